"""The three trust figures on the report's first screen.

Figures from reference data come first: agreement with votes, correlation with labels, correlation
with reference ratings. The rest is filled from significant pairs, answered items and length bias.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice

import numpy as np

from rocketeval.audit.audit import Audit
from rocketeval.audit.conclusion import doubt, doubt_from_labels
from rocketeval.audit.figures import LONGER
from rocketeval.audit.votes import JUDGE
from rocketeval.audit.wording import (
    ANOTHER_VOTER,
    LEVEL,
    UPPER_BOUND,
    rating_figures,
    significant_order,
    strictest_labels,
    trivial_rules,
)
from rocketeval.ranking.rank import Ranking
from rocketeval.records import Interval
from rocketeval.report.findings import Findings
from rocketeval.report.model import FigureBaseline, Mood, TrustNumber
from rocketeval.stats.correlation import FEWEST_FOR_INTERVAL, Correlation
from rocketeval.store.manifest import ScoreFacts
from rocketeval.text import count_of


def share(value: float) -> str:
    """Format a share as a percentage."""
    return f"{100 * value:.1f}%"


def number(value: float) -> str:
    """Format a coefficient with a typographic minus sign."""
    return f"{value:.2f}".replace("-", "\N{MINUS SIGN}")


def by_limits(value: float, good: float, fair: float) -> Mood:
    """Grade a figure for which higher is better."""
    if value >= good:
        return "good"
    return "fair" if value >= fair else "poor"


def exact(value: float) -> Interval:
    """Return a counted figure, which has no uncertainty."""
    return Interval(value, value, value)


_ABOVE = (
    "Good: the interval lies above every baseline. Fair: it does not, but a paired comparison with "
    "the best baseline is significant. Weak: not significantly better than a baseline."
)
_NEAR_PEOPLE = (
    "Good: the interval lies above every baseline, and the figure is closer to human-human "
    "agreement than to the best baseline. Fair: only one of the two, or only a paired comparison "
    "with the best baseline is significant. Weak: not significantly better than a baseline."
)


def _limits(good: float, fair: float) -> str:
    """Return the rule of `by_limits` for shares."""
    return f"Good: at least {good:.0%}. Fair: at least {fair:.0%}. Weak: less."


GOOD_CORRELATION = 0.7
"""Limit for the correlation of single responses with their labels."""
GOOD_ORDER, FAIR_ORDER = 0.8, 0.5
"""Limits for the Spearman correlation with reference ratings."""

_SHORTER = "shorter response"
_UNRELATED = "no significant correlation"
_NO_RELATION = FigureBaseline("no correlation", 0.0, "floor")
_LABELS_AS_SHOWN = {"all labels": "labels", "labels out of fold": "labels"}


def from_votes(audit: Audit) -> Iterator[TrustNumber]:
    """Yield the agreement with votes, if the run has votes."""
    judge = audit.agreement.get(JUDGE)
    if judge is None:
        return
    value, voters = judge.with_ties, audit.voters
    floors = [FigureBaseline(name, own, "floor") for name, own in trivial_rules(audit).items()]
    if voters is None:
        above = []
        mood, verdict = _against_baselines(value, floors, share, good_from=0.0, short="")
    else:
        people = voters.with_ties.value
        above = [FigureBaseline(ANOTHER_VOTER, people, "people")]
        if voters.best_with_ties is not None:
            bound = voters.best_with_ties.value
            above.append(FigureBaseline(UPPER_BOUND, bound, "bound"))
        mood, verdict = _against_voters(value, floors, people)
    mood, verdict = _as_concluded(mood, verdict, doubt(audit), value, floors, share)
    yield TrustNumber(
        title="Agreement with human votes (win, loss or tie)",
        value=value,
        mood=mood,
        verdict=verdict,
        beside=(*floors, *above),
        how="Each vote in the benchmark says which of two responses to a query is better, or that "
        f"they tie. This is the share of {judge.used:,} votes that the judge's scores agree with. "
        "The interval comes from resampled queries. "
        f"{_ABOVE if voters is None else _NEAR_PEOPLE}",
    )


def _as_concluded(
    mood: Mood,
    verdict: str,
    unsure: str,
    value: Interval | None,
    floors: list[FigureBaseline],
    shown: Callable[[float], str],
) -> tuple[Mood, str]:
    """Align the grade with the audit's verdict, `unsure`, which rests on a paired comparison.

    A judge that the page warns of is graded poor, and one that passes is not, unless its figure is
    below a baseline.
    """
    best = _best(floors)
    if unsure and mood in ("good", "fair"):
        reason = unsure.removeprefix("Ranked by a judge ").removeprefix("that is ")
        return "poor", reason.removeprefix("whose ").partition(":")[0]
    if not unsure and mood == "poor" and value and best and value.value > best.value:
        rule = f"\u201c{best.name}\u201d ({shown(best.value)})"
        return "fair", f"better than the baseline {rule} in a paired comparison only"
    return mood, verdict


def _best(floors: list[FigureBaseline]) -> FigureBaseline | None:
    return max(floors, key=lambda floor: floor.value, default=None)


def _above(value: Interval, best: FigureBaseline) -> Mood:
    """Grade a figure against a baseline: good only if its whole interval lies above."""
    if math.isnan(value.low):
        return "unknown"
    return "good" if value.low > best.value else "poor"


def _compared(mood: Mood, value: Interval, best: FigureBaseline, rule: str) -> str:
    """Return the verdict on a figure and its best baseline, `rule`."""
    if mood == "unknown":
        return f"too few queries to compare with the baseline {rule}"
    if mood == "good":
        return f"above the best baseline, {rule}"
    some = "not significantly" if value.value > best.value else "no"
    return f"{some} better than the baseline {rule}"


def _against_voters(
    value: Interval | None, floors: list[FigureBaseline], people: float
) -> tuple[Mood, str]:
    """Compare agreement with the best baseline and with human-human agreement."""
    best = _best(floors)
    if value is None or best is None:
        return "unknown", f"could not be computed; human-human agreement is {share(people)}"
    rule = f"\u201c{best.name}\u201d ({share(best.value)})"
    mood = _above(value, best)
    if mood == "good" and value.value < (best.value + people) / 2:
        people_agree = f"human-human agreement ({share(people)})"
        return "fair", f"above every baseline, but closer to {rule} than to {people_agree}"
    return mood, f"{_compared(mood, value, best, rule)}; {_beside_people(value, people)}"


def _beside_people(value: Interval, people: float) -> str:
    """Compare an agreement with human-human agreement, without more than its interval shows."""
    agreement = f"human-human agreement ({share(people)})"
    if value.low <= people <= value.high:
        return f"the interval includes {agreement}"
    if value.high < people:
        return f"below {agreement}"
    return f"human-human agreement is {share(people)}"


def from_labels(audit: Audit) -> Iterator[TrustNumber]:
    """Yield the correlation with labels, if the run has labels."""
    part = strictest_labels(audit)
    if part is None:
        return
    judge, by_length = audit.labels[part][JUDGE], audit.labels[part].get(LONGER)
    value, floors = judge.spearman, [_NO_RELATION]
    if by_length is not None and by_length.spearman is not None:
        # Preferring the shorter response is a baseline, too.
        length = by_length.spearman.value
        name = LONGER if length >= 0.0 else _SHORTER
        floors.append(FigureBaseline(name, abs(length), "floor"))
    mood, verdict = _against_baselines(
        value,
        floors,
        number,
        good_from=GOOD_CORRELATION,
        short="but single scores often differ from their labels",
    )
    if value is None:
        verdict = judge.reason or verdict
    elif value.low <= 0.0:
        mood = "poor"
        verdict = "negative: scores fall as labels rise" if value.high < 0.0 else _UNRELATED
    elif audit.label_differences:
        unsure = doubt_from_labels(audit, part)
        mood, verdict = _as_concluded(mood, verdict, unsure, value, floors, number)
    unseen = " Scores are out-of-fold." if "fold" in part else ""
    yield TrustNumber(
        title="Correlation of the judge's scores with "
        f"{_LABELS_AS_SHOWN.get(part, part)} (Spearman), "
        f"{count_of(judge.responses, 'response', 'responses')}",
        value=value,
        unit="number",
        mood=mood,
        verdict=verdict,
        beside=tuple(floors),
        range=(-1.0, 1.0),
        how="Labels in the benchmark are scores that people or a strong model gave to single "
        f"responses. This is Spearman's correlation over {judge.responses:,} labeled responses: "
        "1 means the same order of responses, 0 means no correlation."
        f"{unseen} The interval comes from resampled queries. Good: the interval lies above every "
        f"baseline, and the correlation is at least {GOOD_CORRELATION:g}. Fair: significantly "
        "above every baseline, but lower. Weak: otherwise, or if scores do not follow labels "
        "within a query, significantly and more than length does.",
    )


def _against_baselines(
    value: Interval | None,
    floors: list[FigureBaseline],
    shown: Callable[[float], str],
    *,
    good_from: float,
    short: str,
) -> tuple[Mood, str]:
    """Compare a figure with its best baseline."""
    best = _best(floors)
    if value is None or best is None:
        return "unknown", "could not be computed"
    rule = f"\u201c{best.name}\u201d ({shown(best.value)})"
    mood = _above(value, best)
    verdict = _compared(mood, value, best, rule)
    if mood == "good" and value.value < good_from:
        return "fair", f"{verdict}, {short}"
    return mood, verdict


def from_ratings(audit: Audit) -> Iterator[TrustNumber]:
    """Yield the rank correlation with reference ratings, if the run has ratings."""
    if audit.ratings is None:
        return
    spearman, _ = rating_figures(audit)
    mood, verdict = _order(spearman.value, audit.ratings)
    yield TrustNumber(
        title="Rank correlation with reference ratings",
        value=spearman.value,
        unit="number",
        mood=mood,
        verdict=verdict,
        beside=(FigureBaseline("random order", 0.0, "floor"),),
        range=(-1.0, 1.0),
        how="Reference ratings in the benchmark rate each candidate by another source, such as an "
        "arena's Elo. This is Spearman's correlation of the ranking with them, over "
        f"{audit.ratings.n} candidates: 1 means the same order, 0 means no correlation. It tests "
        "the order of candidates, not the scores of single responses. Good: at least "
        f"{GOOD_ORDER:g}, with an interval from {FAIR_ORDER:g} up, or the same order. Fair: at "
        f"least {FAIR_ORDER:g}. Both only if it is significant (p-value at most 0.05). Weak: "
        "otherwise.",
    )


def _order(value: Interval | None, ratings: Correlation) -> tuple[Mood, str]:
    """Grade the order by its p-value; few candidates and a perfect order have no interval."""
    if value is None:
        return "unknown", ratings.reason or ""
    if not significant_order(ratings.spearman):
        if ratings.spearman is not None and ratings.spearman.p_value <= 1.0 - LEVEL:
            return "poor", "negative: the ranking reverses the ratings"
        if ratings.n < FEWEST_FOR_INTERVAL:
            return "unknown", f"too few candidates ({ratings.n}) to exclude chance"
        return "poor", _UNRELATED
    if value.value > 1.0 - 1e-12:
        return "good", "the same order"
    if value.low >= FAIR_ORDER and value.value >= GOOD_ORDER:
        return "good", "nearly the same order"
    if value.value >= FAIR_ORDER:
        return "fair", "similar order, with exceptions"
    return "poor", "weak correlation"


GOOD_SEPARATION, FAIR_SEPARATION = 0.8, 0.5
"""Limits for the share of candidate pairs with a significant difference."""
GOOD_ANSWERS, FAIR_ANSWERS = 0.99, 0.95
"""Limits for the share of answered items."""
FAIR_LENGTH = 0.2
"""Limit for the correlation with length in excess of the labels'."""
_ORDER_ONLY = "This shows how certain the order is, not whether the judge is right"
_AGAINST = "the lower-ranked candidate has the higher mean score"
_NO_VERDICT = "There is no verdict, because it is not known whether the judge is right."
_LENGTH_RULE = (
    f"Good: the interval includes 0 or lies below it. Fair: at most {FAIR_LENGTH:g}. Weak: more."
)


def separation(ranking: Ranking, audit: Audit | None) -> TrustNumber:
    """Return the share of candidate pairs whose scores differ significantly.

    A certain order of an unchecked judge is no reason to trust it, so it is never graded good.
    """
    islands = Counter(row.island for row in ranking.rows)
    pairs = sum(map(_pairs_of, islands.values()))
    never = _pairs_of(len(ranking.rows)) - pairs
    apart = _significant_pairs(ranking)
    against = sum(len(row.outscored_by) for row in ranking.rows)
    value = exact(apart / pairs) if pairs else None
    mood: Mood = "unknown"
    verdict = "fewer than two ranked candidates"
    if never:
        verdict = "not measured: no two candidates share queries"
    if value is not None:
        mood = by_limits((apart - against) / pairs, GOOD_SEPARATION, FAIR_SEPARATION)
        left = pairs - apart
        tied = f", {left:,} {'is' if left == 1 else 'are'} tied" if left else ""
        more = "; more queries would separate more of them" if left and mood != "good" else ""
        verdict = f"{apart:,} of {pairs:,} candidate pairs differ{tied}{more}. "
        if never:
            verb = "shares" if never == 1 else "share"
            verdict += f"{never:,} more {verb} no queries and cannot be compared. "
        if against:
            verdict += f"In {against:,} of those that differ, {_AGAINST}. "
        verdict += _ORDER_ONLY
        if doubt(audit):
            mood = "unknown"
    return TrustNumber(
        title="Pairs that differ significantly",
        value=value,
        mood=mood,
        verdict=verdict,
        how="The share of candidate pairs whose mean scores differ significantly, with correction "
        "for all pairs of the ranking. "
        f"{'Only pairs that share queries, directly or through others, count. ' if never else ''}"
        f"{_NO_VERDICT if doubt(audit) else _limits(GOOD_SEPARATION, FAIR_SEPARATION)}"
        f"{f' Pairs in which {_AGAINST} do not count as good.' if against else ''}",
        question="order",
    )


def _pairs_of(candidates: int) -> int:
    return candidates * (candidates - 1) // 2


def _significant_pairs(ranking: Ranking) -> int:
    if ranking.significant_pairs is not None:
        return ranking.significant_pairs
    # Rankings of earlier versions have rank intervals only.
    low = np.array([row.rank_low for row in ranking.rows])
    high = np.array([row.rank_high for row in ranking.rows])
    return int((high[:, None] < low[None, :]).sum())


def usable(score: ScoreFacts) -> TrustNumber:
    """Return the share of answered items."""
    answers, missing = score.answers, score.missing_answers
    value: Interval | None = None
    mood: Mood = "unknown"
    verdict = "counted after scoring"
    if answers:
        value = exact((answers - missing) / answers)
        mood = by_limits(value.value, GOOD_ANSWERS, FAIR_ANSWERS)
        verdict = f"{missing:,} of {answers:,} unanswered" if missing else "no unanswered items"
    return TrustNumber(
        title="Answered items",
        value=value,
        mood=mood,
        verdict=verdict,
        how="The share of items with a usable answer from the judge. Unanswered items are left "
        f"out of the score and never counted as yes or no. {_limits(GOOD_ANSWERS, FAIR_ANSWERS)}",
        question="missing",
    )


def length(audit: Audit | None) -> TrustNumber:
    """Return the length bias of the scores."""
    found = audit.bias.length if audit and audit.bias else None
    excess, plain = (found.excess, found.scores) if found else (None, None)
    mood: Mood = "unknown"
    if excess is not None:
        verdict = "longer responses score no higher than their labels justify"
        mood = "good"
        if excess.low > 0.0:
            verdict = "longer responses score higher than their labels justify"
            mood = "fair" if excess.value <= FAIR_LENGTH else "poor"
    elif plain is not None:
        verdict = "labels are needed to know whether longer responses deserve higher scores"
    else:
        verdict = "not measured yet"
    return TrustNumber(
        title="Length bias" if excess is None else "Length bias in excess of labels",
        value=excess or plain,
        unit="number",
        mood=mood,
        verdict=verdict,
        beside=(FigureBaseline("no bias", 0.0, "floor"),),
        range=(-1.0, 1.0),
        how="Spearman's correlation of score and length among the responses to one query"
        + (f", minus that of label and length. {_LENGTH_RULE}" if excess is not None else "."),
    )


NUMBERS = 3


def trust(findings: Findings) -> tuple[TrustNumber, ...]:
    """Return exactly three trust figures."""
    return tuple(islice(_numbers(findings), NUMBERS))


def _numbers(findings: Findings) -> Iterator[TrustNumber]:
    audit = findings.audit
    reference = (
        [] if audit is None else [*from_votes(audit), *from_labels(audit), *from_ratings(audit)]
    )
    yield from reference or [_no_reference_data(findings)]
    yield separation(findings.ranking, audit)
    yield usable(findings.stages.score)
    yield length(audit)


def _no_reference_data(findings: Findings) -> TrustNumber:
    return TrustNumber(
        title="Agreement with human votes",
        value=None,
        mood="unknown",
        verdict=_why_unknown(findings),
        how="How often the judge and people prefer the same response. To measure it, add votes or "
        "labels to the benchmark, or compare this judge with a second one.",
    )


def _why_unknown(findings: Findings) -> str:
    load = findings.stages.load
    if not (load.labels or load.votes or load.ratings):
        return "not measured: the run has no votes or labels"
    if findings.audit and findings.audit.refused.counts:
        return "not measured: the scorer learned from all reference data of this run"
    if findings.audit is None and "rank" not in findings.stages.made():
        return "not audited yet: the run compares scores with the reference data at its end"
    return "not audited yet: run `rocketeval audit` to compare scores with the reference data"
