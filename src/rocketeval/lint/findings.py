"""One thing that is wrong with one item, and the kinds of things there are."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How bad a finding is."""

    ERROR = "error"
    """The item measures nothing, or the wrong thing: rewrite or drop it."""
    WARNING = "warning"
    """The item may mislead the judge, or says little: look at it."""


@dataclass(frozen=True, slots=True)
class ItemFinding:
    """One thing that is wrong with one item: also what an author is told who rewrites it."""

    query_id: str
    """The query; the first one where all queries share one checklist."""
    item: int
    """Its number in the checklist, from 1."""
    text: str
    kind: str
    """One of `KINDS`."""
    severity: Severity
    why: str
    """What is wrong, and what to do."""
    query_ids: tuple[str, ...]
    """Every query in which it was found: several where they share one checklist."""


@dataclass(frozen=True, slots=True)
class FindingKind:
    """A kind of finding."""

    severity: Severity
    title: str
    """What it means, in a few words."""
    behavioural: bool = False
    """Whether it is seen in the judge's answers, not in the item's words."""
    english: bool = True
    """Whether it can be seen in English items only."""


_ERROR, _WARNING = Severity.ERROR, Severity.WARNING

KINDS: dict[str, FindingKind] = {
    "empty": FindingKind(_ERROR, "holds no words", english=False),
    "residue": FindingKind(_ERROR, "placeholder, numbering or markup left in", english=False),
    "not_yes_no": FindingKind(_ERROR, "cannot be answered by yes or no"),
    "scale": FindingKind(_ERROR, "asks for a degree or a grade"),
    "yes_is_worse": FindingKind(_ERROR, "yes is the worse answer"),
    "duplicate": FindingKind(_ERROR, "another item of the checklist again", english=False),
    "reference": FindingKind(_ERROR, "speaks of a reference the judge cannot see"),
    "other_item": FindingKind(_ERROR, "speaks of other items or the checklist"),
    "candidate": FindingKind(_ERROR, "speaks of one candidate, or compares responses"),
    "cut_off": FindingKind(_ERROR, "ends in the middle"),
    "no_question_mark": FindingKind(_WARNING, "ends without a question mark"),
    "near_duplicate": FindingKind(_WARNING, "almost another item of the checklist"),
    "double_barrelled": FindingKind(_WARNING, "asks two things at once"),
    "about_query": FindingKind(_WARNING, "asks about the query, not the response"),
    "vague": FindingKind(_WARNING, "names no criterion"),
    "dangling": FindingKind(_WARNING, "does not say what is meant by it or this"),
    "too_short": FindingKind(_WARNING, "too short to be a question"),
    "too_long": FindingKind(_WARNING, "too long", english=False),
    "unanswered": FindingKind(_ERROR, "the judge hardly ever answers it", behavioural=True),
    "backwards": FindingKind(_ERROR, "yes goes with worse responses", behavioural=True),
    "against_labels": FindingKind(_ERROR, "yes goes with lower labels", behavioural=True),
    "always_yes": FindingKind(_WARNING, "yes to every response", behavioural=True),
    "never_yes": FindingKind(_WARNING, "no to every response", behavioural=True),
    "same_for_all": FindingKind(_WARNING, "the same answer to every response", behavioural=True),
    "redundant": FindingKind(_WARNING, "answers as an earlier item", behavioural=True),
    "unsure": FindingKind(_WARNING, "the judge is unsure of it", behavioural=True),
}
"""By name, in the order in which they are shown where counts are equal: worst first."""

ORDER = {kind: place for place, kind in enumerate(KINDS)}
"""The place of every kind in that order."""


def make_finding(query_id: str, item: int, text: str, kind: str, why: str) -> ItemFinding:
    """Return a finding with the severity of its kind."""
    return ItemFinding(query_id, item, text, kind, KINDS[kind].severity, why, (query_id,))
