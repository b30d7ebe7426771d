"""Everything that is wrong with some checklists, counted and in order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from rocketeval.checklists.base import is_shared
from rocketeval.errors import ConfigError
from rocketeval.lint.answer_checks import ItemBehavior, ItemInfluence, RankingWithout
from rocketeval.lint.findings import KINDS, ORDER, ItemFinding, Severity
from rocketeval.lint.static import StaticFindings, merge_shared
from rocketeval.records import Checklist
from rocketeval.text import did_you_mean

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
class AnswerBehavior:
    """What the judge's answers show."""

    judge: str
    responses: int
    items: int
    """Items with an answer to any response."""
    labels: int
    """Responses with a label."""
    figures: tuple[ItemBehavior, ...]
    influences: tuple[ItemInfluence, ...]
    without_dead_and_redundant: RankingWithout
    """The ranking without the items that tell nobody apart, or say it twice."""
    without_flagged: RankingWithout
    """The ranking without every item that has a finding."""


@dataclass(frozen=True, slots=True)
class Lint:
    """What is wrong with the items of some checklists."""

    source: str
    """What was looked at."""
    query_ids: tuple[str, ...]
    """Of every query that has a checklist."""
    checklists: int
    """One where all queries share it."""
    items: int
    """Of these checklists; those of a shared one count once."""
    flagged: int
    """Items with any finding."""
    errors: int
    """Items with a finding that is an error."""
    not_english: int
    """Items that checks which know English alone passed over."""
    kinds: tuple[KindCount, ...]
    """Those that were found, most frequent first."""
    findings: tuple[ItemFinding, ...]
    """Worst first: items with errors, then those with most findings."""
    behaviour: AnswerBehavior | None
    """None where there are no judgments."""
    no_behaviour: str | None
    """Why there is none."""
    in_few_queries: int = 0
    """Findings about the answers to shared items that hold in fewer than half of the queries; they
    are not among `findings`."""


def make_lint(
    source: str,
    checklists: Sequence[Checklist],
    static: StaticFindings,
    behavioural: Sequence[ItemFinding] = (),
    behaviour: AnswerBehavior | None = None,
    no_behaviour: str | None = None,
) -> Lint:
    """Return the findings in order, with their counts; those of a shared checklist once."""
    every, left_out = [*static.findings, *behavioural], 0
    named = tuple(checklist.query_id for checklist in checklists)
    answered, times = behaviour.items if behaviour else 0, 1
    if is_shared(checklists):
        times = len(checklists)
        every, left_out = merge_shared(every, named)
        answered = len({figures.item for figures in behaviour.figures}) if behaviour else 0
    findings = worst_first(every)
    items = static.items // times
    return Lint(
        source=source,
        query_ids=named,
        checklists=len(checklists) // times,
        items=items,
        flagged=len(flagged_items(findings)),
        errors=len(flagged_items(f for f in findings if f.severity is Severity.ERROR)),
        not_english=static.not_english // times,
        kinds=_counts(findings, items, answered),
        findings=tuple(findings),
        behaviour=behaviour,
        no_behaviour=no_behaviour,
        in_few_queries=left_out,
    )


def narrow(found: Lint, query_id: str | None, kinds: Collection[str]) -> Lint:
    """Return the findings of one query, or of some kinds; the table of kinds stays as it is."""
    if query_id is not None and query_id not in found.query_ids:
        raise ConfigError(
            f"There is no checklist for query {query_id!r} in {found.source}.",
            hint=did_you_mean(query_id, list(found.query_ids)),
        )
    findings = tuple(
        each
        for each in found.findings
        if (query_id is None or query_id in each.query_ids) and (not kinds or each.kind in kinds)
    )
    errors = flagged_items(each for each in findings if each.severity is Severity.ERROR)
    return replace(found, findings=findings, errors=len(errors))


def flagged_items(findings: Iterable[ItemFinding]) -> set[tuple[str, int]]:
    """Return the items that findings are about."""
    return {(found.query_id, found.item) for found in findings}


def answers_to(findings: Iterable[ItemFinding]) -> set[tuple[str, int]]:
    """Return the same once for every query in which it was found: which answers to leave out."""
    return {(query_id, found.item) for found in findings for query_id in found.query_ids}


def worst_first(findings: Iterable[ItemFinding]) -> list[ItemFinding]:
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


def _item(found: ItemFinding) -> tuple[str, int]:
    return found.query_id, found.item


def _counts(findings: Sequence[ItemFinding], items: int, answered: int) -> tuple[KindCount, ...]:
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
