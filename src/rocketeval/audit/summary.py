"""An audit as figures, rows and notes: worded once for the terminal, the report and the exports.

`advice` says what these figures mean, in sentences. Both read the audit; what shows it lays out
what they return, and words nothing itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rocketeval.audit.audit import Audit
from rocketeval.audit.bias import FEWEST_RESPONSES, Bias
from rocketeval.audit.figures import KNOW_NOTHING, LABELER
from rocketeval.audit.labels import CANDIDATES, LEVELS, PER_QUERY, RESPONSES, LabelCorrelation
from rocketeval.audit.votes import FEWEST_VOTES, JUDGE
from rocketeval.records import Interval
from rocketeval.text import count_of, join_words

ANOTHER_VOTER = "another voter"
BIAS = "Beside quality: length and family, within a query"
CEILING = "how often two voters agree: the ceiling"
SPEARMAN = "Spearman"
_TESTS_MOST = ("held-out labels", "all labels", "labels out of fold")
"""Labels by how much they test: of candidates never seen, of all, of candidates learned from."""
_COUNTED = {
    RESPONSES: ("labelled response", "labelled responses"),
    PER_QUERY: ("query", "queries"),
    CANDIDATES: ("candidate", "candidates"),
}
_SUFFIX = {RESPONSES: "", PER_QUERY: f", {PER_QUERY}", CANDIDATES: f", {CANDIDATES}"}

Unit = Literal["number", "share"]


@dataclass(frozen=True, slots=True)
class AuditFigure:
    """One figure of an audit, with what it rests on."""

    measure: str
    """What is measured, such as `Agreement with decided votes`."""
    method: str
    """Whose figure it is: the judge's, a simpler score's, a baseline's, another voter's."""
    value: Interval | None
    """None when it could not be computed; bounds are NaN where they are unknown."""
    rests_on: str
    """How many votes, responses, queries or candidates."""
    note: str = ""
    """Why there is no value, or what must be known of it."""
    unit: Unit = "number"
    baseline: bool = False
    """Whether the judge should do better than this."""
    p_value: float | None = None


def vote_figures(audit: Audit) -> Iterator[AuditFigure]:
    """Yield the agreement of every method and of voters, with all votes and with decided ones."""
    for whole in (True, False):
        measure = f"Agreement with {'votes, ties included' if whole else 'decided votes'}"
        for method, found in audit.agreement.items():
            value, votes = (
                (found.with_ties, found.used) if whole else (found.without_ties, found.decisive)
            )
            some, rule = count_of(votes, "vote", "votes"), method not in (JUDGE, LABELER)
            yield AuditFigure(measure, method, value, some, "", "share", rule)
        if audit.voters is not None:
            value, pairs = (
                (audit.voters.with_ties, audit.voters.pairs)
                if whole
                else (audit.voters.without_ties, audit.voters.decisive_pairs)
            )
            some = count_of(pairs, "pair of votes", "pairs of votes")
            yield AuditFigure(measure, ANOTHER_VOTER, value, some, CEILING, "share")


def label_figures(
    audit: Audit, coefficient: str, levels: Sequence[str] = LEVELS
) -> Iterator[AuditFigure]:
    """Yield a correlation of every method with the labels, level by level."""
    for part, methods in audit.labels.items():
        for method, found in methods.items():
            for level in (level for level in levels if level in found.levels):
                own = found.levels[level]
                yield AuditFigure(
                    measure=f"{coefficient} with {part}{_SUFFIX[level]}",
                    method=method,
                    value=own.coefficients[coefficient],
                    rests_on=count_of(own.n, *_COUNTED[level]),
                    note=own.reason or "",
                    baseline=method != JUDGE,
                )


def rating_figures(audit: Audit) -> Iterator[AuditFigure]:
    """Yield the correlations of the ranking with reference ratings, if there are any."""
    if audit.ratings is None:
        return
    some = count_of(audit.ratings.n, *_COUNTED[CANDIDATES])
    for name, found in ((SPEARMAN, audit.ratings.spearman), ("Kendall", audit.ratings.kendall)):
        measure, reason = f"{name} with reference ratings", audit.ratings.reason or ""
        if found is None:
            yield AuditFigure(measure, JUDGE, None, some, reason)
        else:
            value = found.interval or Interval(found.value, math.nan, math.nan)
            yield AuditFigure(measure, JUDGE, value, some, p_value=found.p_value)


def bias_figures(bias: Bias) -> Iterator[AuditFigure]:
    """Yield how far scores follow length and family, as far as either could be measured."""
    length, family = bias.length, bias.own_family
    queries, labelled = (
        count_of(count, "query", "queries") for count in (length.queries, length.gold_queries)
    )
    lost = count_of(length.lost, "vote", "votes")
    found = [
        AuditFigure("score follows length, Spearman", JUDGE, length.scores, queries),
        AuditFigure("label follows length, Spearman", JUDGE, length.gold, labelled),
        AuditFigure("score of labelled responses", JUDGE, length.scores_with_gold, labelled),
        AuditFigure("score beyond label", JUDGE, length.excess, labelled),
        AuditFigure(
            "lost votes that the longer won", JUDGE, length.lost_to_longer, lost, unit="share"
        ),
    ]
    if family is not None:
        some = count_of(family.queries, "query", "queries")
        found += [
            AuditFigure("own family, score beyond label", JUDGE, family.preference, some),
            AuditFigure("own family at equal labels", JUDGE, family.at_equal_gold, some),
        ]
    return (figure for figure in found if figure.value is not None)


def bias_notes(bias: Bias) -> tuple[str, str, str]:
    """Return on which queries lengths were looked at, which were left out, and whose family it is.

    A note is empty where there is nothing to say.
    """
    looked_at = left_out = family = ""
    if bias.queries_skipped:
        whole = bias.queries + bias.queries_skipped
        looked_at = f"Lengths were looked at on {bias.queries:,} of {whole:,} queries."
    if bias.length.left_out:
        some = count_of(bias.length.left_out, "query has", "queries have")
        left_out = (
            f"{some} fewer than {FEWEST_RESPONSES} scores, or all scores or lengths the same."
        )
    if bias.own_family is not None:
        names, reason = join_words(bias.own_family.family, most=5), bias.own_family.reason
        scale = "In standard deviations of a query's scores."
        family = f"Own family, by name: {names}. {f'No figure: {reason}.' if reason else scale}"
    return looked_at, left_out, family


def level_rows(
    methods: Mapping[str, LabelCorrelation],
) -> Iterator[tuple[str, str, tuple[Interval | None, ...]]]:
    """Yield method, coefficient and its value at each level: all of the judge's, then Spearman."""
    measured = {method: found.levels for method, found in methods.items() if found.levels}
    for method, levels in measured.items():
        cells = [levels[level].coefficients for level in LEVELS]
        for name in cells[0] if method == JUDGE else (SPEARMAN,):
            yield method, name, tuple(cell[name] for cell in cells)


def level_note(judge: LabelCorrelation) -> str:
    """Return which queries have no correlation of their own; empty if all have one."""
    per_query = judge.levels.get(PER_QUERY)
    if per_query is None or not per_query.left_out:
        return ""
    some = count_of(per_query.left_out, "query is", "queries are")
    return f"Per query: {some} left out, scores or labels there are all the same."


def pooled_note(audit: Audit) -> str:
    """Return the categories that are too small to be shown alone; empty if there are none."""
    pooled = audit.categories[-1].pooled if audit.categories else ()
    names = join_words(pooled, most=10)
    return f"other: fewer than {FEWEST_VOTES} votes each: {names}." if pooled else ""


def strictest_labels(audit: Audit) -> str | None:
    """Return the labels that test the scores most; None without labels."""
    return next((part for part in _TESTS_MOST if part in audit.labels), None)


def trivial_rules(audit: Audit) -> dict[str, float]:
    """Return the agreement, ties included, of each rule that reads nothing."""
    rules = ((name, audit.agreement.get(name)) for name in KNOW_NOTHING)
    return {name: found.with_ties.value for name, found in rules if found and found.with_ties}
