"""An audit in words: its figures, rows and notes, made once for every place that shows them.

The terminal, the report and the exports lay out these records, and `advice` says in sentences what
they mean. Figures have no more digits than they have, and better or worse is said only when the
interval of the difference leaves out zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeGuard

from rocketeval.audit.audit import Audit
from rocketeval.audit.bias import FEWEST_RESPONSES, Bias
from rocketeval.audit.figures import KNOW_NOTHING, LABELER, MeasuredFigure
from rocketeval.audit.labels import CANDIDATES, LEVELS, PER_QUERY, RESPONSES, LabelCorrelation
from rocketeval.audit.votes import FEWEST_VOTES, JUDGE
from rocketeval.records import Interval
from rocketeval.stats.bootstrap import least_queries
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


Needed = Callable[[float, float, float], int | None]
"""How many queries tell an effect of some spread at some level, as `certainty.power` knows."""

LEVEL = 0.95
"""Confidence level of the audit's intervals."""
FARTHEST = 100
"""Where it would take more than so many times the queries there are, no number is given."""
DISTRUST = "Do not trust its scores here."


@dataclass(frozen=True, slots=True)
class FigureText:
    """One kind of figure in words."""

    on: str
    """What it is measured on."""
    gold: str
    """What to collect more of."""
    warning: str
    """What to do where the judge is worse than a rule that reads nothing."""
    figure: Callable[[float], str]
    gap: Callable[[Interval], str]


def verdict(
    ours: float, name: str, difference: MeasuredFigure, told: FigureText, needed: Needed
) -> Iterator[str]:
    """Whether the judge does better than the rule `name`, and if not, what would tell."""
    theirs = ours - difference.value.value
    figures = f"{told.figure(ours)} against {told.figure(theirs)}"
    sign = direction(difference)
    if sign is None:
        yield (
            f"On {told.on}, the judge cannot be told from {name} ({figures}): "
            f"{count_of(difference.queries, 'query', 'queries')} with {told.gold}, and "
            f"{least_queries(LEVEL)} are the fewest that can tell anything."
        )
    elif sign > 0:
        yield f"On {told.on}, the judge beats {name}: {figures}, {told.gap(difference.value)}."
    elif sign < 0:
        yield (
            f"On {told.on}, the judge does worse than {name}: {figures}, "
            f"{told.gap(difference.value)}. {told.warning}"
        )
    else:
        yield (
            f"On {told.on}, the judge is not told apart from {name}: {figures}, "
            f"{told.gap(difference.value)}. {_more(difference, told, needed)}"
        )


def _more(difference: MeasuredFigure, told: FigureText, needed: Needed) -> str:
    """How much more gold would tell a difference like the one seen."""
    effect, queries = difference.value.value, difference.queries
    told_by = None
    if abs(effect) > 1e-6 and not math.isnan(difference.spread):
        told_by = needed(effect, difference.spread, LEVEL)
    if told_by is None or told_by > FARTHEST * queries:
        return f"So small a difference would take over {FARTHEST} times the {told.gold}."
    more = max(told_by - queries, 1) / queries
    return (
        f"If it is real, about {about(more * difference.gold)} more {told.gold}, on "
        f"{about(more * queries)} more queries, would tell it four times in five."
    )


def simpler(name: str, difference: MeasuredFigure, told: FigureText) -> Iterator[str]:
    """Whether a simpler score of the same answers is good enough."""
    sign = direction(difference)
    if sign == 0:
        yield (
            f"The simpler score {name!r} does as well on {told.on}, as far as can be told: "
            f"{told.gap(difference.value)} between them."
        )
    elif sign is not None and sign < 0:
        gap = difference.value
        turned = Interval(-gap.value, -gap.high, -gap.low)
        yield f"The simpler score {name!r} does better on {told.on}: {told.gap(turned)}."


def direction(difference: MeasuredFigure) -> int | None:
    """1 for better, -1 for worse, 0 for not told apart; None below the fewest queries."""
    if math.isnan(difference.value.low):
        return None
    return (difference.value.low > 0.0) - (difference.value.high < 0.0)


def above_zero(figure: Interval | None) -> TypeGuard[Interval]:
    """Whether a figure is known, and its interval lies above zero."""
    return figure is not None and figure.low > 0.0


def percent(share: float) -> str:
    """Return a share in whole percent."""
    return f"{100.0 * share:z.0f} %"


def span(interval: Interval) -> str:
    """Return the bounds of a share, in percent."""
    return f"{100.0 * interval.low:z.0f} to {100.0 * interval.high:z.0f}"


def points(gap: Interval) -> str:
    """Return a difference of two shares, in percentage points."""
    digits = 0 if abs(gap.value) >= 0.01 else 1
    value, low, high = (f"{100.0 * each:z.{digits}f}" for each in (gap.value, gap.low, gap.high))
    return f"{value} points ({low} to {high})"


def rho(value: float) -> str:
    """Return a coefficient."""
    return f"{value:z.2f}"


def rho_gap(gap: Interval) -> str:
    """Return a difference of two coefficients."""
    return f"a difference of {rho(gap.value)} ({rho(gap.low)} to {rho(gap.high)})"


def about(count: float) -> str:
    """Return a count with two digits that mean something.

    >>> about(1234), about(7.2)
    ('1,200', '8')
    """
    whole = math.ceil(count)
    return f"{round(whole, 2 - len(str(whole))):,}" if whole > 99 else f"{whole:,}"


def or_more(count: int) -> str:
    """Return a count as the least there is of something."""
    return "at least one" if count == 1 else f"{count} or more"


def luck(looked_at: int, found: int, tail: float) -> str:
    """Return how often there are so many or more, each by luck alone as likely as `tail`.

    >>> luck(20, 1, 0.05), luck(20, 10, 0.05)
    ('about 64 % of audits', 'fewer than 1 % of audits')
    """
    fewer = (
        math.comb(looked_at, count) * tail**count * (1.0 - tail) ** (looked_at - count)
        for count in range(found)
    )
    chance = 1.0 - math.fsum(fewer)
    return f"{'fewer than 1 %' if chance < 0.005 else f'about {percent(chance)}'} of audits"
