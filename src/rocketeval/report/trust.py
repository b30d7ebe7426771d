"""The three numbers that say how far to trust the judge, on the report's first screen.

Taken in this order, as far as there are any: agreement with votes, correlation with labels, with
reference ratings; then what every run has: pairs that can be told apart, usable answers, length.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import islice

import numpy as np

from rocketeval.audit.audit import Audit
from rocketeval.audit.figures import LONGER
from rocketeval.audit.votes import JUDGE
from rocketeval.audit.wording import rating_figures, strictest_labels, trivial_rules
from rocketeval.ranking.rank import Ranking
from rocketeval.records import Interval
from rocketeval.report.findings import Findings
from rocketeval.report.model import FigureBaseline, Mood, TrustNumber
from rocketeval.store.manifest import ScoreFacts


def share(value: float) -> str:
    """Return a share in per cent."""
    return f"{100 * value:.1f} %"


def number(value: float) -> str:
    """Return a coefficient with a real minus sign."""
    return f"{value:.2f}".replace("-", "\N{MINUS SIGN}")


def by_limits(value: float, good: float, fair: float) -> Mood:
    """Return how good a figure is that is better the higher it is."""
    if value >= good:
        return "good"
    return "fair" if value >= fair else "poor"


def exact(value: float) -> Interval:
    """Return a figure that is counted, not estimated."""
    return Interval(value, value, value)


GOOD_CORRELATION = 0.7
"""Of single responses with their labels."""
GOOD_ORDER, FAIR_ORDER = 0.8, 0.5
"""Spearman with reference ratings, by the low end of its interval and by its value."""

_SHORTER = "shorter response"
_UNRELATED = "cannot be told from no relation at all"
_NO_RELATION = FigureBaseline("no relation", 0.0, "floor")
_LABELS_AS_SHOWN = {"all labels": "labels", "labels out of fold": "labels"}


def from_votes(audit: Audit) -> Iterator[TrustNumber]:
    """Yield agreement with votes, if there are any."""
    judge = audit.agreement.get(JUDGE)
    if judge is None:
        return
    value, voters = judge.with_ties, audit.voters
    floors = [FigureBaseline(name, own, "floor") for name, own in trivial_rules(audit).items()]
    if voters is None:
        ceiling = []
        mood, verdict = _against(value, floors, share, good_from=0.0, short="")
    else:
        people = voters.with_ties.value
        ceiling = [FigureBaseline("people among themselves", people, "ceiling")]
        mood, verdict = _beside_people(value, floors, people)
    yield TrustNumber(
        title="Agreement with votes, ties included",
        value=value,
        mood=mood,
        verdict=verdict,
        beside=(*floors, *ceiling),
        how="Votes came with the benchmark: each says which of two responses to a query is better, "
        f"or that they tie. This is the share of {judge.used:,} votes on which the "
        "judge's scores say the same. Intervals resample the queries.",
    )


def _above(value: Interval, best: FigureBaseline) -> Mood:
    """Return good where a figure is surely above a rule, fair where it may be, poor below it."""
    if math.isnan(value.low):
        return "unknown"
    if value.low > best.value:
        return "good"
    return "fair" if value.value > best.value else "poor"


def _beside_people(
    value: Interval | None, floors: list[FigureBaseline], people: float
) -> tuple[Mood, str]:
    """How agreement stands to that of people, which comes first, and to the best trivial rule."""
    best = max(floors, key=lambda floor: floor.value, default=None)
    told = f"People agree with each other {share(people)} of the time"
    if value is None or best is None:
        return "unknown", f"{told}; for the judge it could not be computed"
    told += f"; the best trivial rule, \u201c{best.name}\u201d, reaches {share(best.value)}"
    mood = _above(value, best)
    if mood == "good" and value.value < (best.value + people) / 2:
        return "fair", f"{told}; the judge is nearer to the rule"
    ends = {
        "good": "",
        "fair": "; the judge may do no better",
        "poor": "; the judge does no better",
        "unknown": "; too few queries to tell",
    }
    return mood, told + ends[mood]


def from_labels(audit: Audit) -> Iterator[TrustNumber]:
    """Yield the correlation with labels, if there are any."""
    part = strictest_labels(audit)
    if part is None:
        return
    judge, by_length = audit.labels[part][JUDGE], audit.labels[part].get(LONGER)
    value, floors = judge.spearman, [_NO_RELATION]
    if by_length is not None and by_length.spearman is not None:
        # To prefer the shorter is as trivial as to prefer the longer.
        length = by_length.spearman.value
        name = LONGER if length >= 0.0 else _SHORTER
        floors.append(FigureBaseline(name, abs(length), "floor"))
    mood, verdict = _against(
        value,
        floors,
        number,
        good_from=GOOD_CORRELATION,
        short="yet single scores often differ from their labels",
    )
    if value is None:
        verdict = judge.reason or verdict
    elif value.low <= 0.0:
        mood = "poor"
        verdict = "scores fall where labels rise" if value.high < 0.0 else _UNRELATED
    unseen = " No score was made by a fit that saw its own label." if "fold" in part else ""
    yield TrustNumber(
        title=f"Correlation with {_LABELS_AS_SHOWN.get(part, part)} (Spearman)",
        value=value,
        unit="number",
        mood=mood,
        verdict=verdict,
        beside=tuple(floors),
        range=(-1.0, 1.0),
        how="Labels came with the benchmark: scores of single responses by people or a strong "
        f"model. Spearman's correlation of scores and labels over {judge.responses:,} labelled "
        "responses: 1 when they put the responses in the same order, 0 for no relation."
        f"{unseen} Intervals resample the queries.",
    )


def _against(
    value: Interval | None,
    floors: list[FigureBaseline],
    shown: Callable[[float], str],
    *,
    good_from: float,
    short: str,
) -> tuple[Mood, str]:
    """How a figure stands to the best rule that reads nothing."""
    best = max(floors, key=lambda floor: floor.value, default=None)
    if value is None or best is None:
        return "unknown", "could not be computed"
    rule = f"\u201c{best.name}\u201d ({shown(best.value)})"
    mood = _above(value, best)
    verdict = {
        "good": f"beats every trivial rule, the best of which is {rule}",
        "fair": f"not surely better than {rule}",
        "poor": f"no better than {rule}",
        "unknown": f"too few queries to tell it from {rule}",
    }[mood]
    if mood == "good" and value.value < good_from:
        return "fair", f"{verdict}, {short}"
    return mood, verdict


def from_ratings(audit: Audit) -> Iterator[TrustNumber]:
    """Yield how far the order is that of reference ratings, if there are any."""
    if audit.ratings is None:
        return
    spearman, _ = rating_figures(audit)
    mood, verdict = _order(spearman.value, spearman.note)
    yield TrustNumber(
        title="Same order as the reference ratings",
        value=spearman.value,
        unit="number",
        mood=mood,
        verdict=verdict,
        beside=(FigureBaseline("any order", 0.0, "floor"),),
        range=(-1.0, 1.0),
        how="Reference ratings came with the benchmark: a rating of each candidate from elsewhere, "
        "such as an arena's Elo. This is Spearman's correlation of the ranking with them, over "
        f"{audit.ratings.n} candidates: 1 for the same order, 0 for no relation. It tests the "
        "order of candidates, not the score of a response.",
    )


def _order(value: Interval | None, reason: str) -> tuple[Mood, str]:
    if value is None:
        return "unknown", reason
    if math.isnan(value.low):
        return "unknown", "too few candidates to tell"
    if value.low >= FAIR_ORDER and value.value >= GOOD_ORDER:
        return "good", "nearly the same order"
    if value.low > 0.0 and value.value >= FAIR_ORDER:
        return "fair", "about the same order, with exceptions"
    return "poor", "a weak relation" if value.low > 0.0 else _UNRELATED


GOOD_SEPARATION, FAIR_SEPARATION = 0.8, 0.5
"""Share of pairs of candidates that can be told apart."""
GOOD_ANSWERS, FAIR_ANSWERS = 0.99, 0.95
"""Share of answers that could be used."""
FAIR_LENGTH = 0.2
"""Correlation with length beyond the labels' own that is still fair."""


def separation(ranking: Ranking) -> TrustNumber:
    """Return how many pairs of candidates are told apart."""
    low = np.array([row.rank_low for row in ranking.rows])
    high = np.array([row.rank_high for row in ranking.rows])
    pairs = len(low) * (len(low) - 1) // 2
    apart = int((high[:, None] < low[None, :]).sum())
    value = exact(apart / pairs) if pairs else None
    mood: Mood = "unknown"
    verdict = "fewer than two candidates are ranked"
    if value is not None:
        mood = by_limits(value.value, GOOD_SEPARATION, FAIR_SEPARATION)
        verdict = f"{apart:,} of {pairs:,} pairs" + (
            "" if mood == "good" else "; more queries would part more of them"
        )
    return TrustNumber(
        title="Pairs of candidates told apart",
        value=value,
        mood=mood,
        verdict=verdict,
        how="The share of all pairs of candidates whose intervals of rank "
        f"({ranking.level:.0%}) do not overlap. It says how sure the order is, not whether the "
        "judge is right.",
    )


def usable(score: ScoreFacts) -> TrustNumber:
    """Return how many answers could be used."""
    answers, missing = score.answers, score.missing_answers
    value: Interval | None = None
    mood: Mood = "unknown"
    verdict = "counted when the run is scored"
    if answers:
        value = exact((answers - missing) / answers)
        mood = by_limits(value.value, GOOD_ANSWERS, FAIR_ANSWERS)
        verdict = f"{missing:,} of {answers:,} are missing" if missing else "none is missing"
    return TrustNumber(
        title="Usable answers",
        value=value,
        mood=mood,
        verdict=verdict,
        how="The share of the judge's answers to items that could be used. Missing ones are left "
        "out of the score, never counted as yes or no.",
    )


def length(audit: Audit | None) -> TrustNumber:
    """Return how far scores follow length."""
    found = audit.bias.length if audit and audit.bias else None
    excess, plain = (found.excess, found.scores) if found else (None, None)
    mood: Mood = "unknown"
    if excess is not None:
        verdict = "longer responses get no more than labels give them"
        mood = "good"
        if excess.low > 0.0:
            verdict = "longer responses get higher scores than labels give them"
            mood = "fair" if excess.value <= FAIR_LENGTH else "poor"
    elif plain is not None:
        verdict = "without labels nobody knows whether longer responses deserve it"
    else:
        verdict = "not measured yet"
    return TrustNumber(
        title="Leaning on length" if excess is None else "Leaning on length, beyond labels",
        value=excess or plain,
        unit="number",
        mood=mood,
        verdict=verdict,
        beside=(FigureBaseline("no leaning", 0.0, "floor"),),
        range=(-1.0, 1.0),
        how="Spearman's correlation of score and length among the responses to one query"
        + (", less that of label and length." if excess is not None else "."),
    )


NUMBERS = 3


def trust(findings: Findings) -> tuple[TrustNumber, ...]:
    """Return exactly three numbers."""
    return tuple(islice(_numbers(findings), NUMBERS))


def _numbers(findings: Findings) -> Iterator[TrustNumber]:
    audit = findings.audit
    gold = [] if audit is None else [*from_votes(audit), *from_labels(audit), *from_ratings(audit)]
    yield from gold or [_no_gold(findings)]
    yield separation(findings.ranking)
    yield usable(findings.stages.score)
    yield length(audit)


def _no_gold(findings: Findings) -> TrustNumber:
    return TrustNumber(
        title="Agreement with people",
        value=None,
        mood="unknown",
        verdict=_why_unknown(findings),
        how="How often the judge and people prefer the same response. Without votes or labels "
        "nobody knows: collect some, or hold the scores against another judge.",
    )


def _why_unknown(findings: Findings) -> str:
    load = findings.stages.load
    if not (load.labels or load.votes or load.ratings):
        return "not audited: the run has neither labels nor votes"
    if findings.audit and findings.audit.refused.counts:
        return "nothing left to audit on: what made the scores learned from all gold of this run"
    return "not audited yet: `rocketeval audit` holds the scores against the gold of this run"
