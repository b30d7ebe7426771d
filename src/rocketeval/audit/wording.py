"""Figures, table rows and notes of an audit, shared by the terminal, the report and the exports.

`advice` turns them into sentences. Better or worse means that the 95% interval of the difference
excludes zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeGuard

from rocketeval.audit.audit import Audit
from rocketeval.audit.bias import FEWEST_RESPONSES, Bias, LengthBias
from rocketeval.audit.figures import BASELINES, LABELER, MeasuredFigure
from rocketeval.audit.labels import CANDIDATES, LEVELS, PER_QUERY, RESPONSES, LabelCorrelation
from rocketeval.audit.votes import FEWEST_VOTES, JUDGE
from rocketeval.records import Interval
from rocketeval.stats.bootstrap import least_queries
from rocketeval.stats.correlation import Coefficient
from rocketeval.stats.permutation import FARTHEST
from rocketeval.text import between, count_of, join_words

ANOTHER_VOTER = "human-human agreement"
UPPER_BOUND = "expected upper bound"
UPPER_NOTE = "expected share of the outcome that most people would choose"
VOTER_NOTE = "how often two voters agree"
SPEARMAN = "Spearman"
_TESTS_MOST = ("held-out labels", "all labels", "labels out of fold")
"""Kinds of labels, the strictest test first: candidates unseen in training, all, out-of-fold."""
_COUNTED = {
    RESPONSES: ("labeled response", "labeled responses"),
    PER_QUERY: ("query", "queries"),
    CANDIDATES: ("candidate", "candidates"),
}
_SUFFIX = {RESPONSES: "", PER_QUERY: f", {PER_QUERY}", CANDIDATES: f", {CANDIDATES}"}

LEVEL_NAMES = {
    RESPONSES: "all responses",
    PER_QUERY: "within a query",
    CANDIDATES: "candidate means",
}
"""Column heads of the levels."""
DECIDED_NOTE = "decided votes: votes that are not ties; equal scores count half."
HARD_NOTE = "hard yes/no: answers rounded to yes or no."

Unit = Literal["number", "share"]


@dataclass(frozen=True, slots=True)
class AuditFigure:
    """One figure of an audit, with its sample size."""

    measure: str
    """The name of the figure, such as `Agreement with decided votes`."""
    method: str
    """The judge, a simpler score, a baseline, or human-human agreement."""
    value: Interval | None
    """None if it could not be computed; unknown bounds are NaN."""
    rests_on: str
    """Sample size: a number of votes, responses, queries or candidates."""
    note: str = ""
    """The reason for a missing value, or a remark."""
    unit: Unit = "number"
    baseline: bool = False
    """True if the judge should beat this figure."""
    p_value: float | None = None


def vote_figures(audit: Audit) -> Iterator[AuditFigure]:
    """Yield the agreement of each method and of voters, with all votes and with decided votes."""
    for whole in (True, False):
        measure = f"Agreement with {'votes, ties included' if whole else 'decided votes'}"
        for method, found in audit.agreement.items():
            value, votes = (
                (found.with_ties, found.used) if whole else (found.without_ties, found.decisive)
            )
            some, rule = count_of(votes, "vote", "votes"), method not in (JUDGE, LABELER)
            yield AuditFigure(measure, method_name(method), value, some, "", "share", rule)
        if audit.voters is not None:
            value, pairs = (
                (audit.voters.with_ties, audit.voters.pairs)
                if whole
                else (audit.voters.without_ties, audit.voters.decisive_pairs)
            )
            some = count_of(pairs, "vote with a second voter", "votes with a second voter")
            yield AuditFigure(measure, ANOTHER_VOTER, value, some, VOTER_NOTE, "share")
            best = audit.voters.best_with_ties if whole else audit.voters.best_without_ties
            if best is not None:
                yield AuditFigure(measure, UPPER_BOUND, best, some, UPPER_NOTE, "share")


def label_figures(
    audit: Audit, coefficient: str, levels: Sequence[str] = LEVELS
) -> Iterator[AuditFigure]:
    """Yield each method's correlation with the labels, level by level."""
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
    """Yield the measured figures of length bias and self-preference."""
    length, family = bias.length, bias.own_family
    queries, labelled = (
        count_of(count, "query", "queries") for count in (length.queries, length.gold_queries)
    )
    lost = count_of(length.lost, "vote", "votes")
    found = [AuditFigure("score vs. length, Spearman", JUDGE, length.scores, queries)]
    difference = "difference of the two"
    if not _same_responses(length):
        difference = "difference of the last two"
        found.append(
            AuditFigure(
                "score vs. length, labeled responses", JUDGE, length.scores_with_gold, labelled
            )
        )
    found += [
        AuditFigure("label vs. length, Spearman", JUDGE, length.gold, labelled),
        AuditFigure(difference, JUDGE, length.excess, labelled),
        AuditFigure(
            "people chose longer, judge shorter",
            JUDGE,
            length.lost_to_longer,
            lost,
            unit="share",
        ),
    ]
    if family is not None:
        some = count_of(family.queries, "query", "queries")
        found += [
            AuditFigure("own family, score above label", JUDGE, family.preference, some),
            AuditFigure("own family at equal labels", JUDGE, family.at_equal_gold, some),
        ]
    return (figure for figure in found if figure.value is not None)


def _same_responses(length: LengthBias) -> bool:
    """Return whether the score's correlation with length is the same on labeled responses."""
    every, labeled = length.scores, length.scores_with_gold
    if every is None or labeled is None:
        return False
    return length.queries == length.gold_queries and every.value == labeled.value


def bias_title(bias: Bias) -> str:
    """Return the title of the table of bias figures."""
    family = bias.own_family
    measured = family is not None and (family.preference or family.at_equal_gold)
    return f"Length bias{' and self-preference' if measured else ''}, within a query"


def bias_notes(bias: Bias) -> tuple[str, str, str]:
    """Return notes on the queries measured, those left out, and the judge's family; "" for none."""
    looked_at = left_out = family = ""
    if bias.queries_skipped:
        whole = bias.queries + bias.queries_skipped
        looked_at = f"Length bias was measured on {bias.queries:,} of {whole:,} queries."
    if bias.length.left_out:
        some = count_of(bias.length.left_out, "query has", "queries have")
        left_out = f"{some} fewer than {FEWEST_RESPONSES} scores, or identical scores or lengths."
    if bias.own_family is not None:
        names, reason = join_words(bias.own_family.family, most=5), bias.own_family.reason
        scale = "Unit: standard deviations of a query's scores."
        family = (
            f"Own family, guessed by name: {names}. {f'No figure: {reason}.' if reason else scale}"
        )
    return looked_at, left_out, family


def level_rows(
    methods: Mapping[str, LabelCorrelation],
) -> Iterator[tuple[str, str, tuple[Interval | None, ...]]]:
    """Yield (method, coefficient, values by level): all for the judge, Spearman for the others."""
    measured = {method: found.levels for method, found in methods.items() if found.levels}
    for method, levels in measured.items():
        cells = [levels[level].coefficients for level in LEVELS]
        for name in cells[0] if method == JUDGE else (SPEARMAN,):
            yield method, name, tuple(cell[name] for cell in cells)


def level_note(judge: LabelCorrelation) -> str:
    """Return a note on queries without a correlation; "" if all have one."""
    per_query = judge.levels.get(PER_QUERY)
    if per_query is None or not per_query.left_out:
        return ""
    some = count_of(per_query.left_out, "query is", "queries are")
    return f"Within a query: {some} left out because all scores or all labels are equal."


def pooled_note(audit: Audit) -> str:
    """Return a note on categories too small for a row; "" if there are none."""
    pooled = audit.categories[-1].pooled if audit.categories else ()
    names = join_words(pooled, most=10)
    return (
        f"other: categories with fewer than {FEWEST_VOTES} votes each: {names}." if pooled else ""
    )


def method_name(method: str) -> str:
    """Return the name of a method as shown to people."""
    return "labels as scores" if method == LABELER else method


def labels_of(part: str, responses: int) -> str:
    """Return a kind of labels with the number of labeled responses.

    >>> labels_of("all labels", 60), labels_of("held-out labels", 1)
    ('the labels of 60 responses', 'the held-out labels of 1 response')
    """
    some = count_of(responses, "response", "responses")
    if part == "held-out labels":
        return f"the held-out labels of {some}"
    scores = "" if part == "all labels" else " (out-of-fold scores)"
    return f"the labels of {some}{scores}"


def strictest_labels(audit: Audit) -> str | None:
    """Return the kind of labels that is the strictest test; None without labels."""
    return next((part for part in _TESTS_MOST if part in audit.labels), None)


def trivial_rules(audit: Audit) -> dict[str, float]:
    """Return the agreement of each baseline with the votes, ties included."""
    rules = ((name, audit.agreement.get(name)) for name in BASELINES)
    return {name: found.with_ties.value for name, found in rules if found and found.with_ties}


Needed = Callable[[float, float, float], int | None]
"""Function of effect, spread and level: the queries needed to detect the effect (80% power)."""

LEVEL = 0.95
"""Confidence level of the audit's intervals."""
DISTRUST = "Do not trust its scores here."


@dataclass(frozen=True, slots=True)
class FigureText:
    """Wording of one kind of figure."""

    on: str
    """The reference data it is measured on."""
    gold: str
    """The reference data to collect more of."""
    warning: str
    """Advice if the judge is significantly worse than a baseline."""
    figure: Callable[[float], str]
    gap: Callable[[Interval], str]


def verdict(
    ours: float, name: str, difference: MeasuredFigure, text: FigureText, needed: Needed
) -> Iterator[str]:
    """Yield whether the judge beats the baseline `name`; if undecided, how much data to add."""
    theirs = ours - difference.value.value
    figures = f"{text.figure(ours)} against {text.figure(theirs)}"
    sign = direction(difference)
    if sign is None:
        yield (
            f"Too few {text.gold} to compare the judge with {name} on {text.on} ({figures}): "
            f"{count_of(difference.queries, 'query', 'queries')}; at least "
            f"{least_queries(LEVEL)} are needed."
        )
    elif sign > 0:
        yield (
            f"The judge is significantly better than {name} on {text.on}: {figures}, "
            f"{text.gap(difference.value)}."
        )
    elif sign < 0:
        yield (
            f"The judge is significantly worse than {name} on {text.on}: {figures}, "
            f"{text.gap(difference.value)}. {text.warning}"
        )
    else:
        yield (
            f"The judge is tied with {name} on {text.on}: {figures}, "
            f"{text.gap(difference.value)}. {_more(difference, text, needed)}"
        )


def _more(difference: MeasuredFigure, text: FigureText, needed: Needed) -> str:
    """Return how much more reference data would detect the observed difference."""
    effect, queries = difference.value.value, difference.queries
    needed_queries = None
    if abs(effect) > 1e-6 and not math.isnan(difference.spread):
        needed_queries = needed(effect, difference.spread, LEVEL)
    if needed_queries is None or needed_queries > FARTHEST * queries:
        return f"To detect so small a difference takes over {FARTHEST} times the {text.gold}."
    more = max(needed_queries - queries, 1) / queries
    return (
        f"To detect a difference this large with 80% power, collect about "
        f"{about(more * difference.gold)} more {text.gold} on {about(more * queries)} more queries."
    )


def simpler(name: str, difference: MeasuredFigure, text: FigureText) -> Iterator[str]:
    """Yield a sentence if a simpler score of the same answers is as good or better."""
    sign = direction(difference)
    if sign == 0:
        yield (
            f"No significant difference from the simpler score {name!r} on {text.on}: "
            f"{text.gap(difference.value)}."
        )
    elif sign is not None and sign < 0:
        gap = difference.value
        turned = Interval(-gap.value, -gap.high, -gap.low)
        yield (
            f"The simpler score {name!r} is significantly better on {text.on}: {text.gap(turned)}."
        )


def significant_order(found: Coefficient | None) -> bool:
    """Return whether an order of candidates is significantly better than a random one.

    By the p-value, because few candidates and a perfect order have no interval.
    """
    return found is not None and found.value > 0.0 and found.p_value <= 1.0 - LEVEL


def direction(difference: MeasuredFigure) -> int | None:
    """Return 1 for better, -1 for worse, 0 for tied; None with too few queries."""
    if math.isnan(difference.value.low):
        return None
    return (difference.value.low > 0.0) - (difference.value.high < 0.0)


def above_zero(figure: Interval | None) -> TypeGuard[Interval]:
    """Return whether the figure is known and its interval lies above zero."""
    return figure is not None and figure.low > 0.0


def percent(share: float) -> str:
    """Return a share in whole percent."""
    return f"{100.0 * share:z.0f}%"


def span(interval: Interval) -> str:
    """Return the bounds of a share, in percent."""
    return between(f"{100.0 * interval.low:z.0f}", f"{100.0 * interval.high:z.0f}")


def points(gap: Interval) -> str:
    """Return a difference of two shares, in percentage points."""
    digits = 0 if abs(gap.value) >= 0.01 else 1
    value, low, high = (f"{100.0 * each:z.{digits}f}" for each in (gap.value, gap.low, gap.high))
    unit = "point" if value in ("1", "-1") else "points"
    return f"{value} {unit} ({between(low, high)})"


def rho(value: float) -> str:
    """Return a coefficient with two digits."""
    return f"{value:z.2f}"


def rho_interval(found: Interval) -> str:
    """Return a coefficient with its interval."""
    return f"{rho(found.value)} ({between(rho(found.low), rho(found.high))})"


def rho_gap(gap: Interval) -> str:
    """Return a difference of two coefficients."""
    return f"a difference of {rho_interval(gap)}"


def about(count: float) -> str:
    """Return a count rounded to two significant digits.

    >>> about(1234), about(7.2)
    ('1,200', '8')
    """
    whole = math.ceil(count)
    return f"{round(whole, 2 - len(str(whole))):,}" if whole > 99 else f"{whole:,}"


def or_more(count: int) -> str:
    """Return a count as a lower bound, in words."""
    return "at least one" if count == 1 else f"{count} or more"


def chance_text(looked_at: int, found: int, tail: float) -> str:
    """Return how many audits show `found` or more of `looked_at` by chance, each with prob. `tail`.

    >>> chance_text(20, 1, 0.05), chance_text(20, 10, 0.05)
    ('about 64% of audits', 'fewer than 1% of audits')
    """
    fewer = (
        math.comb(looked_at, count) * tail**count * (1.0 - tail) ** (looked_at - count)
        for count in range(found)
    )
    chance = 1.0 - math.fsum(fewer)
    return f"{'fewer than 1%' if chance < 0.005 else f'about {percent(chance)}'} of audits"
