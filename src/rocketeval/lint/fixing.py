"""Which flagged items an author is asked to rewrite, and what is taken of what it writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rocketeval.lint.finding import KINDS, Finding
from rocketeval.lint.item_text import Context, ItemText
from rocketeval.lint.static import check_item
from rocketeval.lint.twins import find_twins
from rocketeval.prompts.read_rewrites import DROP, read_rewrites
from rocketeval.prompts.unreadable import Unreadable
from rocketeval.records import Checklist, Query

OFFERED = (
    *(kind for kind, about in KINDS.items() if not about.behavioural),
    "unanswered",
    "backwards",
)
"""Kinds that are rewritten unless others are named: what is wrong with the item itself.

Left out are kinds that say how these candidates fare with it (every response passes, or fails, or
gets what another item gives it), how sure this judge is, and what labels say: a checklist that was
fitted to the labels cannot be held against them any more."""


@dataclass(frozen=True)
class Request:
    """One checklist with the items that are to be rewritten."""

    checklist: Checklist
    """The query's own, or the one that all queries share."""
    query: Query | None
    """None for a shared checklist, which is asked about without any."""
    query_ids: tuple[str, ...]
    """Every query that has this checklist."""
    findings: Mapping[int, Sequence[Finding]]
    """What is wrong with each of these items, by their numbers from 1, in order."""

    @property
    def name(self) -> str:
        """What it is called for people."""
        return self.checklist.query_id if self.query else f"all {len(self.query_ids):,} queries"

    @property
    def numbers(self) -> tuple[int, ...]:
        """The items' numbers, in order."""
        return tuple(self.findings)

    def old(self, number: int) -> str:
        """Return an item as it is."""
        return self.checklist.items[number - 1]


@dataclass(frozen=True)
class Settled:
    """What comes of one request, by the items' numbers."""

    new: Mapping[int, str | None]
    """The new question; None where the item is dropped."""
    left: Mapping[int, str] = field(default_factory=dict)
    """Why others stay as they were."""


def gather_requests(
    findings: Iterable[Finding],
    checklists: Mapping[str, Checklist],
    queries: Mapping[str, Query],
    *,
    shared: bool,
) -> list[Request]:
    """Return a request for every checklist that has findings, in the checklists' order."""
    by_query: dict[str, dict[int, list[Finding]]] = {}
    for found in findings:
        by_query.setdefault(found.query_id, {}).setdefault(found.item, []).append(found)
    return [
        Request(
            checklist,
            None if shared else queries[query_id],
            tuple(checklists) if shared else (query_id,),
            dict(sorted(by_query[query_id].items())),
        )
        for query_id, checklist in checklists.items()
        if query_id in by_query
    ]


def count_unoffered(findings: Iterable[Finding], offered: Collection[str]) -> dict[str, int]:
    """Return how many items have findings of kinds that are not offered, by kind."""
    return dict(Counter(found.kind for found in findings if found.kind not in offered))


def with_rewrites(checklist: Checklist, new: Mapping[int, str | None]) -> Checklist:
    """Return the checklist with items replaced, or left out, by their numbers from 1.

    >>> with_rewrites(Checklist("q", ("a", "b", "c")), {1: "A", 2: None}).items
    ('A', 'c')
    """
    kept = [place for place in range(len(checklist.items)) if new.get(place + 1, "") is not None]
    groups = checklist.groups
    return replace(
        checklist,
        items=tuple(new.get(place + 1) or checklist.items[place] for place in kept),
        groups=None if groups is None else tuple(groups[place] for place in kept),
    )


def find_problems(
    request: Request, new: Mapping[int, str | None], context: Context
) -> dict[int, str]:
    """Return what is wrong with new questions, by number: by the same rules that flag items."""
    problems: dict[int, str] = {}
    if all(new.get(number, "") is None for number in range(1, len(request.checklist.items) + 1)):
        return dict.fromkeys(new, "the checklist would lose all its items")
    for number, question in new.items():
        if question is None:
            continue
        if question.split() == request.old(number).split():
            problems[number] = "it is the old question unchanged"
            continue
        reasons = check_item(ItemText(question), context)
        if reasons:
            told = (f"{kind}: {why.rstrip('.')}" for kind, why in reasons.items())
            problems[number] = "; ".join(told)
    return {**_repeats(request, new), **problems}


def _repeats(request: Request, new: Mapping[int, str | None]) -> dict[int, str]:
    """Return the new questions that ask what another item of the new checklist asks."""
    items = request.checklist.items
    kept = [number for number in range(1, len(items) + 1) if new.get(number, "") is not None]
    texts = [ItemText(new.get(number) or request.old(number)) for number in kept]
    found: dict[int, str] = {}
    for place, first, _ in find_twins(texts):
        later, earlier = kept[place], kept[first]
        if later in new:
            found[later] = f"it asks the same as item {earlier}"
        elif earlier in new:
            found[earlier] = f"it asks the same as item {later}"
    return found


class Attempts:
    """Reads what an author writes for one request, and remembers the best of it."""

    def __init__(self, request: Request, context: Context) -> None:
        self._request = request
        self._context = context
        self._best: dict[int, str | None] | None = None
        self._fewest = 0

    def read(self, text: str) -> Settled:
        """Return the new questions; Unreadable when any is missing, or flagged itself."""
        numbers = self._request.numbers
        new = dict(zip(numbers, read_rewrites(text, numbers), strict=True))
        problems = find_problems(self._request, new, self._context)
        if not problems:
            return Settled(new)
        if self._best is None or len(problems) < self._fewest:
            self._best, self._fewest = new, len(problems)
        if all(question is None for question in new.values()) and len(problems) == len(new):
            raise Unreadable(
                "every item dropped",
                f"{DROP} stands for every item of the checklist; one must stay at least.",
            )
        told = " ".join(f"item {number}: {why}." for number, why in problems.items())
        raise Unreadable("a new question is flagged", f"what you wrote for {told}")

    def salvage(self) -> Settled | None:
        """Return what can be taken of the best list; None when no list could be read at all."""
        if self._best is None:
            return None
        new, left = dict(self._best), {}
        # An item that goes back to its old text may be the twin of another's new one.
        while problems := find_problems(self._request, new, self._context):
            for number, why in problems.items():
                del new[number]
                left[number] = f"no proposal was good enough; the best: {why}"
        return Settled(new, dict(sorted(left.items())))
