"""Static checks: what an item's own words show; findings in a shared checklist are merged."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from rocketeval.lint.findings import KINDS, ItemFinding, make_finding
from rocketeval.lint.item_text import Context, ItemText
from rocketeval.lint.scope_checks import (
    about_query,
    candidate,
    cut_off,
    empty,
    find_near_duplicates,
    no_question_mark,
    other_item,
    reference,
    residue,
    too_long,
    too_short,
)
from rocketeval.lint.wording_checks import (
    dangling,
    double_barrelled,
    not_yes_no,
    scale,
    vague,
    yes_is_worse,
)
from rocketeval.records import Checklist, Query

Check = Callable[[ItemText, Context], str | None]

CHECKS: dict[str, Check] = {
    "empty": empty,
    "residue": residue,
    "scale": scale,
    "not_yes_no": not_yes_no,
    "yes_is_worse": yes_is_worse,
    "reference": reference,
    "other_item": other_item,
    "candidate": candidate,
    "cut_off": cut_off,
    "no_question_mark": no_question_mark,
    "double_barrelled": double_barrelled,
    "about_query": about_query,
    "vague": vague,
    "dangling": dangling,
    "too_short": too_short,
    "too_long": too_long,
}
"""Every check of one item, by the kind it finds."""

MOST_READ = 3000
"""Characters above which an item is only called too long: nobody could grade it."""

_EXPLAINED_BY = {
    "no_question_mark": {"not_yes_no", "scale", "cut_off", "residue", "too_short"},
    "not_yes_no": {"too_short", "residue"},
    "dangling": {"vague", "other_item"},
}
"""Kinds that say nothing new beside certain others: one cause is one finding."""


@dataclass(frozen=True, slots=True)
class StaticFindings:
    """What the words of some checklists show."""

    findings: tuple[ItemFinding, ...]
    items: int
    not_english: int
    """Items that the checks which know English alone passed over."""


def check_checklists(
    checklists: Iterable[Checklist],
    queries: Mapping[str, Query] | None = None,
    candidates: Collection[str] = (),
) -> StaticFindings:
    """Return what is wrong with every item, as far as words show it.

    >>> bad = Checklist("q", ("How good is the response?", "Does the response name Paris?"))
    >>> [(found.item, found.kind) for found in check_checklists([bad]).findings]
    [(1, 'scale')]
    """
    found: list[ItemFinding] = []
    items = not_english = 0
    for checklist in checklists:
        context = context_of((queries or {}).get(checklist.query_id), candidates)
        texts = [ItemText(text) for text in checklist.items]
        items += len(texts)
        not_english += sum(bool(text.written) and not text.english for text in texts)
        found += _of_checklist(checklist, texts, context)
    return StaticFindings(tuple(found), items, not_english)


def check_item(item: ItemText, context: Context) -> dict[str, str]:
    """Return what is wrong with one item alone: why, by kind."""
    empty_one = empty(item, context)
    if empty_one is not None:
        return {"empty": empty_one}
    if len(item.raw) > MOST_READ:
        return {"too_long": f"The item has {len(item.raw):,} characters; ask one short question."}
    reasons: dict[str, str] = {}
    for kind, check in CHECKS.items():
        readable = item.english or not KINDS[kind].english
        why = check(item, context) if readable else None
        if why is not None:
            reasons[kind] = why
    return {
        kind: why
        for kind, why in reasons.items()
        if not _EXPLAINED_BY.get(kind, set()) & reasons.keys()
    }


def _of_checklist(
    checklist: Checklist, texts: list[ItemText], context: Context
) -> Iterable[ItemFinding]:
    duplicates = {place: (first, exactly) for place, first, exactly in find_near_duplicates(texts)}
    for place, text in enumerate(texts):
        reasons = check_item(text, context)
        if place in duplicates and "empty" not in reasons:
            first, exactly = duplicates[place]
            kind = "duplicate" if exactly else "near_duplicate"
            same = "the same as" if exactly else "almost the same as"
            reasons[kind] = (
                f"The item asks {same} item {first + 1}, which counts it twice; drop one, or say "
                "what is different."
            )
        for kind, why in reasons.items():
            yield make_finding(checklist.query_id, place + 1, text.raw, kind, why)


def context_of(query: Query | None, candidates: Collection[str] = ()) -> Context:
    """Return what an item's words are read with; None for a query that is not known."""
    if query is None:
        return Context("", candidates)
    return Context("\n".join([*(turn.content for turn in query.history), query.text]), candidates)


MOST_QUERIES = 0.5
"""Share of the queries in which a shared item must behave so before it is a finding."""


def merge_shared(
    findings: Iterable[ItemFinding], query_ids: Sequence[str]
) -> tuple[list[ItemFinding], int]:
    """Return one finding for each kind and item of a shared checklist, and how many were left out.

    What words show counts wherever it is found. How the judge takes an item differs from query to
    query: it is told where it holds in half of them or more, and left out where it holds in fewer.
    """
    by_kind: dict[tuple[int, str], list[ItemFinding]] = {}
    for found in findings:
        by_kind.setdefault((found.item, found.kind), []).append(found)
    merged, left_out = [], 0
    for (_, kind), same in by_kind.items():
        behavioural = KINDS[kind].behavioural
        if behavioural and len(same) < MOST_QUERIES * len(query_ids):
            left_out += len(same)
            continue
        merged.append(_as_one(same, query_ids, behavioural=behavioural))
    return merged, left_out


def _as_one(
    same: Sequence[ItemFinding], query_ids: Sequence[str], *, behavioural: bool
) -> ItemFinding:
    first = same[0]
    why = first.why
    if behavioural:
        # The figures are one query's: the others have their own.
        why = f"In {len(same):,} of {len(query_ids):,} queries; in {first.query_id!r}: {why}"
    return replace(
        first, query_id=query_ids[0], why=why, query_ids=tuple(found.query_id for found in same)
    )
