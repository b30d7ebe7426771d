"""What an item's own words show: no judge is needed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from rocketeval.lint.double import double_barrelled
from rocketeval.lint.finding import KINDS, Finding, make_finding
from rocketeval.lint.item_text import Context, ItemText
from rocketeval.lint.outside import about_query, candidate, other_item, reference
from rocketeval.lint.polarity import yes_is_worse
from rocketeval.lint.shape import cut_off, empty, no_question_mark, residue, too_long, too_short
from rocketeval.lint.twins import find_twins
from rocketeval.lint.vague import dangling, vague
from rocketeval.lint.yes_no import not_yes_no, scale
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

    findings: tuple[Finding, ...]
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
    found: list[Finding] = []
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
) -> Iterable[Finding]:
    twins = {place: (first, exactly) for place, first, exactly in find_twins(texts)}
    for place, text in enumerate(texts):
        reasons = check_item(text, context)
        if place in twins and "empty" not in reasons:
            first, exactly = twins[place]
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
