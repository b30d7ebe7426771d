"""Everything that is wrong with some checklists, counted and in order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rocketeval.lint.behaviour import ItemBehaviour
from rocketeval.lint.finding import KINDS, ORDER, Finding, Severity
from rocketeval.lint.influence import ItemInfluence, Without
from rocketeval.lint.static import StaticFindings

SAYS_NOTHING = ("always_yes", "never_yes", "same_for_all", "redundant")
"""Kinds of items whose loss should cost a ranking nothing."""


@dataclass(frozen=True, slots=True)
class KindCount:
    """How many items have one kind of finding."""

    kind: str
    severity: Severity
    title: str
    items: int
    share: float
    """Of the items that could have it."""


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What the judge's answers show."""

    judge: str
    responses: int
    items: int
    """Items with an answer to any response."""
    labels: int
    """Responses with a label."""
    figures: tuple[ItemBehaviour, ...]
    influences: tuple[ItemInfluence, ...]
    without_dead_and_redundant: Without
    """The ranking without the items that tell nobody apart, or say it twice."""
    without_flagged: Without
    """The ranking without every item that has a finding."""


@dataclass(frozen=True, slots=True)
class Lint:
    """What is wrong with the items of some checklists."""

    source: str
    """What was looked at."""
    query_ids: tuple[str, ...]
    """Of every checklist."""
    checklists: int
    items: int
    flagged: int
    """Items with any finding."""
    errors: int
    """Items with a finding that is an error."""
    not_english: int
    """Items that checks which know English alone passed over."""
    kinds: tuple[KindCount, ...]
    """Those that were found, most frequent first."""
    findings: tuple[Finding, ...]
    """Worst first: items with errors, then those with most findings."""
    behaviour: Behaviour | None
    """None where there are no judgments."""
    no_behaviour: str | None
    """Why there is none."""


def make_lint(
    source: str,
    query_ids: Iterable[str],
    static: StaticFindings,
    behavioural: Sequence[Finding] = (),
    behaviour: Behaviour | None = None,
    no_behaviour: str | None = None,
) -> Lint:
    """Return the findings in order, with their counts."""
    findings = worst_first([*static.findings, *behavioural])
    named = tuple(query_ids)
    return Lint(
        source=source,
        query_ids=named,
        checklists=len(named),
        items=static.items,
        flagged=len(flagged_items(findings)),
        errors=len(flagged_items(f for f in findings if f.severity is Severity.ERROR)),
        not_english=static.not_english,
        kinds=_counts(findings, static.items, behaviour.items if behaviour else 0),
        findings=tuple(findings),
        behaviour=behaviour,
        no_behaviour=no_behaviour,
    )


def flagged_items(findings: Iterable[Finding]) -> set[tuple[str, int]]:
    """Return the items that findings are about."""
    return {(found.query_id, found.item) for found in findings}


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings by item, items with most errors first, then those with most findings."""
    every = list(findings)
    errors: Counter[tuple[str, int]] = Counter()
    count: Counter[tuple[str, int]] = Counter()
    for found in every:
        item = (found.query_id, found.item)
        count[item] += 1
        errors[item] += found.severity is Severity.ERROR
    place = {item: number for number, item in enumerate(dict.fromkeys(map(_item, every)))}
    return sorted(
        every,
        key=lambda found: (
            -errors[_item(found)],
            -count[_item(found)],
            place[_item(found)],
            ORDER[found.kind],
        ),
    )


def _item(found: Finding) -> tuple[str, int]:
    return found.query_id, found.item


def _counts(findings: Sequence[Finding], items: int, answered: int) -> tuple[KindCount, ...]:
    count = Counter(found.kind for found in findings)
    rows = (
        KindCount(
            kind,
            KINDS[kind].severity,
            KINDS[kind].title,
            number,
            number / max(1, answered if KINDS[kind].behavioural else items),
        )
        for kind, number in count.items()
    )
    return tuple(sorted(rows, key=lambda row: (-row.items, ORDER[row.kind])))
