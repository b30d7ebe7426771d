"""The lint result: findings on checklists, counted and sorted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rocketeval.checklists.base import is_shared
from rocketeval.errors import ConfigError
from rocketeval.lint.answer_checks import ItemBehavior, ItemInfluence, RankingWithout
from rocketeval.lint.findings import KINDS, ORDER, ItemFinding, Severity
from rocketeval.lint.static import StaticFindings, merge_shared
from rocketeval.records import Checklist, Query
from rocketeval.store.codec import OPTIONAL
from rocketeval.text import did_you_mean, starts_of_queries

SAYS_NOTHING = ("always_yes", "never_yes", "same_for_all", "redundant")
"""Kinds of items that a ranking should not depend on."""


@dataclass(frozen=True, slots=True)
class KindCount:
    """Number of items with one kind of finding."""

    kind: str
    severity: Severity
    title: str
    items: int
    share: float
    """Share of the items that could have it."""


@dataclass(frozen=True, slots=True)
class AnswerBehavior:
    """Figures of items from the judge's answers."""

    judge: str
    responses: int
    items: int
    """Items with at least one answer."""
    labels: int
    """Responses with a label."""
    figures: tuple[ItemBehavior, ...]
    influences: tuple[ItemInfluence, ...]
    without_dead_and_redundant: RankingWithout
    """The ranking without items that do not discriminate or are redundant."""
    without_flagged: RankingWithout
    """The ranking without all flagged items."""


@dataclass(frozen=True, slots=True)
class Lint:
    """Findings on the items of some checklists, with counts."""

    source: str
    """The checked run, folder or file."""
    query_ids: tuple[str, ...]
    """Ids of all queries with a checklist."""
    checklists: int
    """Number of checklists; a shared one counts once."""
    items: int
    """Number of items; those of a shared checklist count once."""
    flagged: int
    """Items with at least one finding."""
    errors: int
    """Items with at least one error."""
    not_english: int
    """Items skipped by English-only checks."""
    kinds: tuple[KindCount, ...]
    """Kinds found, most frequent first."""
    findings: tuple[ItemFinding, ...]
    """Worst first: items with the most errors, then those with the most findings."""
    behaviour: AnswerBehavior | None
    """None without judgments."""
    no_behaviour: str | None
    """The reason if the field above is None."""
    in_few_queries: int = 0
    """Findings on answers to shared items that apply to fewer than half of the queries; `findings`
    excludes them."""
    query_texts: Mapping[str, str] | None = field(default=None, metadata=OPTIONAL)
    """Start of the text of each query whose id is a hash, by id; None without such queries."""


def make_lint(
    source: str,
    checklists: Sequence[Checklist],
    static: StaticFindings,
    behavioural: Sequence[ItemFinding] = (),
    behaviour: AnswerBehavior | None = None,
    no_behaviour: str | None = None,
    queries: Mapping[str, Query] | None = None,
) -> Lint:
    """Sort and count the findings; those of a shared checklist count once."""
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
        query_texts=starts_of_queries(queries or {}) or None,
    )


def narrow(found: Lint, query_id: str | None, kinds: Collection[str]) -> Lint:
    """Keep only the findings of one query or some kinds; the table of kinds is unchanged."""
    if query_id is not None and query_id not in found.query_ids:
        raise ConfigError(
            f"{found.source} has no checklist for query {query_id!r}.",
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
    """Return the items with findings."""
    return {(found.query_id, found.item) for found in findings}


def answers_to(findings: Iterable[ItemFinding]) -> set[tuple[str, int]]:
    """Return (query, item) for each finding, in all queries that share it."""
    return {(query_id, found.item) for found in findings for query_id in found.query_ids}


def worst_first(findings: Iterable[ItemFinding]) -> list[ItemFinding]:
    """Sort findings by item: most errors first, then most findings."""
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
