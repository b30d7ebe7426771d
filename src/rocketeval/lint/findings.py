"""Findings on checklist items, and their kinds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """Severity of a finding."""

    ERROR = "error"
    """The item measures nothing or the wrong thing: rewrite or drop it."""
    WARNING = "warning"
    """The item may mislead the judge or adds little: review it."""


@dataclass(frozen=True, slots=True)
class ItemFinding:
    """One finding on one item; its `why` is part of the author's rewrite prompt."""

    query_id: str
    """The query; the first one if all queries share a checklist."""
    item: int
    """Item number in the checklist, from 1."""
    text: str
    kind: str
    """One of `KINDS`."""
    severity: Severity
    why: str
    """The problem and the advice. The author reads this text."""
    query_ids: tuple[str, ...]
    """All queries with this finding: several if they share a checklist."""


@dataclass(frozen=True, slots=True)
class FindingKind:
    """A kind of finding."""

    severity: Severity
    title: str
    """Short description."""
    behavioural: bool = False
    """True if it is found in the judge's answers, not in the item's text."""
    english: bool = True
    """True if it can only be found in English items."""
    wording: bool = True
    """False if other words cannot fix it: a weight, a level, a check or missing material."""


_ERROR, _WARNING = Severity.ERROR, Severity.WARNING

KINDS: dict[str, FindingKind] = {
    "empty": FindingKind(_ERROR, "contains no words", english=False),
    "residue": FindingKind(_ERROR, "contains a placeholder, numbering or markup", english=False),
    "not_yes_no": FindingKind(_ERROR, "cannot be answered with yes or no"),
    "scale": FindingKind(_ERROR, "asks for a degree or a grade"),
    "yes_is_worse": FindingKind(_ERROR, "yes is the worse answer"),
    "duplicate": FindingKind(_ERROR, "duplicates another item of the checklist", english=False),
    "reference": FindingKind(_ERROR, "refers to a reference the judge cannot see"),
    "other_item": FindingKind(_ERROR, "refers to other items or the checklist"),
    "candidate": FindingKind(_ERROR, "refers to one candidate, or compares responses"),
    "cut_off": FindingKind(_ERROR, "ends in mid-sentence"),
    "no_question_mark": FindingKind(_WARNING, "ends without a question mark"),
    "near_duplicate": FindingKind(_WARNING, "nearly duplicates another item"),
    "double_barrelled": FindingKind(_WARNING, "asks two things at once"),
    "about_query": FindingKind(_WARNING, "asks about the query, not the response"),
    "vague": FindingKind(_WARNING, "states no criterion"),
    "dangling": FindingKind(_WARNING, "has a pronoun without a referent"),
    "too_short": FindingKind(_WARNING, "too short to be a question"),
    "too_long": FindingKind(_WARNING, "too long", english=False),
    "penalty_is_good": FindingKind(
        _ERROR, "a penalty whose yes is the better answer", wording=False
    ),
    "no_weight": FindingKind(_ERROR, "its weight does not count", english=False, wording=False),
    "outweighed": FindingKind(
        _WARNING, "nearly irrelevant next to other weights", english=False, wording=False
    ),
    "levels_overlap": FindingKind(
        _ERROR, "two levels say nearly the same", english=False, wording=False
    ),
    "levels_reversed": FindingKind(_WARNING, "levels may go from best to worst", wording=False),
    "weak_check": FindingKind(
        _ERROR, "a check that every response passes", english=False, wording=False
    ),
    "never_shown": FindingKind(
        _ERROR, "uses material that the query lacks", english=False, wording=False
    ),
    "unanswered": FindingKind(_ERROR, "the judge rarely answers it", behavioural=True),
    "backwards": FindingKind(
        _ERROR, "yes goes with lower scores on the other items", behavioural=True
    ),
    "against_labels": FindingKind(_ERROR, "yes goes with lower labels", behavioural=True),
    "always_yes": FindingKind(_WARNING, "yes to every response", behavioural=True),
    "never_yes": FindingKind(_WARNING, "no to every response", behavioural=True),
    "same_for_all": FindingKind(
        _WARNING, "nearly the same p_yes for every response", behavioural=True
    ),
    "redundant": FindingKind(_WARNING, "same answers as an earlier item", behavioural=True),
    "unsure": FindingKind(_WARNING, "the judge is unsure of it", behavioural=True),
    "check_always": FindingKind(_WARNING, "the check passes for every response", behavioural=True),
    "check_never": FindingKind(_WARNING, "the check fails for every response", behavioural=True),
    "check_failed": FindingKind(_WARNING, "the check often has no result", behavioural=True),
}
"""By name, worst first: the display order for equal counts."""

ORDER = {kind: place for place, kind in enumerate(KINDS)}
"""Position of each kind in that order."""


def make_finding(query_id: str, item: int, text: str, kind: str, why: str) -> ItemFinding:
    """Return a finding with the severity of its kind."""
    return ItemFinding(query_id, item, text, kind, KINDS[kind].severity, why, (query_id,))
