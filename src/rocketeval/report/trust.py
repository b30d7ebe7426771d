"""The three numbers that say how far to trust the judge, on the report's first screen.

Taken in this order, as far as there are any: agreement with votes, correlation with labels, with
reference ratings; then what every run has: pairs that can be told apart, usable answers, length.


Numbers about trust from votes, labels and reference ratings that came with the benchmark.
Numbers about trust that every run has, with or without gold.
Moods and words that several numbers about trust share.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

import numpy as np

from rocketeval.ranking.rank import Ranking
from rocketeval.records import Interval
from rocketeval.report.figures import read_interval
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

_LONGER, _SHORTER = "longer response", "shorter response"
_RULES = frozenset({_LONGER, "always a tie", "random guess"})
_UNRELATED = "cannot be told from no relation at all"
_NO_RELATION = FigureBaseline("no relation", 0.0, "floor")
_COEFFICIENTS = {
    "spearman": "Spearman's correlation of scores and labels over {n:,} labelled responses: 1 when "
    "they put the responses in the same order, 0 for no relation.",
    "pearson": "Pearson's correlation of scores and labels over {n:,} labelled responses: 1 when "
    "the score rises with the label on a straight line, 0 when it says nothing about it.",
}
_LABELS_AS_SHOWN = {"all labels": "labels", "labels out of fold": "labels"}
_TESTS_MOST = ("held-out labels", "all labels", "labels out of fold")


def from_votes(audit: Mapping[str, Any]) -> Iterator[TrustNumber]:
    """Yield agreement with votes, if there are any."""
    agreement = audit.get("agreement") or {}
    found = agreement.get("judge")
    if not found:
        return
    value = read_interval(found.get("with_ties"))
    floors = [
        FigureBaseline(name, rule["with_ties"]["value"], "floor")
        for name, rule in agreement.items()
        if name in _RULES and rule.get("with_ties")
    ]
    voters = read_interval((audit.get("voters") or {}).get("with_ties"))
    ceiling = (
        []
        if voters is None
        else [FigureBaseline("people among themselves", voters.value, "ceiling")]
    )
    if voters is None:
        mood, verdict = _against(value, floors, share, good_from=0.0, short="")
    else:
        mood, verdict = _beside_people(value, floors, voters.value)
    yield TrustNumber(
        title="Agreement with votes, ties included",
        value=value,
        unit="share",
        mood=mood,
        verdict=verdict,
        beside=(*floors, *ceiling),
        range=(0.0, 1.0),
        how="Votes came with the benchmark: each says which of two responses to a query is better, "
        f"or that they tie. This is the share of {found.get('used', 0):,} votes on which the "
        "judge's scores say the same. Intervals resample the queries.",
    )


def _beside_people(
    value: Interval | None, floors: list[FigureBaseline], people: float
) -> tuple[Mood, str]:
    """How agreement stands to that of people, which comes first, and to the best trivial rule."""
    best = max(floors, key=lambda floor: floor.value, default=None)
    told = f"People agree with each other {share(people)} of the time"
    if value is None:
        return "unknown", f"{told}; for the judge it could not be computed"
    if best is None:
        return "unknown", f"{told}; there is no trivial rule to hold it against"
    told += f"; the best trivial rule, \u201c{best.name}\u201d, reaches {share(best.value)}"
    if math.isinf(value.low):
        return "unknown", f"{told}; too few queries to tell"
    if value.low > best.value:
        near = value.value >= (best.value + people) / 2
        return ("good", told) if near else ("fair", f"{told}; the judge is nearer to the rule")
    if value.value > best.value:
        return "fair", f"{told}; the judge may do no better"
    return "poor", f"{told}; the judge does no better"


def from_labels(audit: Mapping[str, Any]) -> Iterator[TrustNumber]:
    """Yield the correlation with labels, if there are any."""
    labels = audit.get("labels")
    if not labels:
        return
    part = next((name for name in _TESTS_MOST if name in labels), None) or next(iter(labels))
    judge = labels[part].get("judge", {})
    name = "spearman" if _coefficient(judge, "spearman") else "pearson"
    value = read_interval(_coefficient(judge, name))
    floors = [_NO_RELATION, *_by_length(labels[part], name)]
    mood, verdict = _against(
        value,
        floors,
        number,
        good_from=GOOD_CORRELATION,
        short="yet single scores often differ from their labels",
    )
    if value is not None and math.isfinite(value.low) and value.low <= 0.0:
        related = value.high < 0.0
        mood = "poor"
        verdict = "scores fall where labels rise" if related else _UNRELATED
    unseen = " No score was made by a fit that saw its own label." if "fold" in part else ""
    yield TrustNumber(
        title=f"Correlation with {_LABELS_AS_SHOWN.get(part, part)} ({name.capitalize()})",
        value=value,
        unit="number",
        mood=mood,
        verdict=judge.get("reason") or verdict if value is None else verdict,
        beside=tuple(floors),
        range=(-1.0, 1.0),
        how="Labels came with the benchmark: scores of single responses by people or a strong "
        f"model. {_COEFFICIENTS[name].format(n=judge.get('responses', 0))}{unseen} "
        "Intervals resample the queries.",
    )


def _coefficient(found: Mapping[str, Any], name: str) -> Mapping[str, float | None] | None:
    """Over labelled responses; older audits have no levels."""
    levels = found.get("levels") or {}
    chosen: Mapping[str, float | None] | None = levels.get("responses", {}).get(name)
    return chosen or found.get(name)


def _by_length(methods: Mapping[str, Any], name: str) -> Iterator[FigureBaseline]:
    """What length alone achieves: to prefer the shorter is as trivial as the longer."""
    length = read_interval(_coefficient(methods.get(_LONGER, {}), name))
    if length is not None:
        yield FigureBaseline(
            _LONGER if length.value >= 0.0 else _SHORTER, abs(length.value), "floor"
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
    if value is None:
        return "unknown", "could not be computed"
    best = max(floors, key=lambda floor: floor.value, default=None)
    if best is None:
        return "unknown", "nothing to hold it against"
    rule = f"\u201c{best.name}\u201d ({shown(best.value)})"
    if math.isinf(value.low):
        return "unknown", f"too few queries to tell it from {rule}"
    if value.low > best.value:
        words = f"beats every trivial rule, the best of which is {rule}"
        return ("good", words) if value.value >= good_from else ("fair", f"{words}, {short}")
    if value.value > best.value:
        return "fair", f"not surely better than {rule}"
    return "poor", f"no better than {rule}"


def from_ratings(audit: Mapping[str, Any]) -> Iterator[TrustNumber]:
    """Yield how far the order is that of reference ratings, if there are any."""
    found = audit.get("ratings")
    if not found:
        return
    spearman = found.get("spearman")
    value: Interval | None = None
    mood: Mood = "unknown"
    verdict = found.get("reason") or "could not be computed"
    if spearman is not None:
        unsure = Interval(spearman["value"], -math.inf, math.inf)
        value = read_interval(spearman.get("interval")) or unsure
        mood, verdict = _order(value)
    yield TrustNumber(
        title="Same order as the reference ratings",
        value=value,
        unit="number",
        mood=mood,
        verdict=verdict,
        beside=(FigureBaseline("any order", 0.0, "floor"),),
        range=(-1.0, 1.0),
        how="Reference ratings came with the benchmark: a rating of each candidate from elsewhere, "
        "such as an arena's Elo. This is Spearman's correlation of the ranking with them, over "
        f"{found.get('n', 0)} candidates: 1 for the same order, 0 for no relation. It tests the "
        "order of candidates, not the score of a response.",
    )


def _order(value: Interval) -> tuple[Mood, str]:
    if not math.isfinite(value.low):
        return "unknown", "too few candidates to tell"
    if value.low >= FAIR_ORDER and value.value >= GOOD_ORDER:
        return "good", "nearly the same order"
    if value.low > 0.0 and value.value >= FAIR_ORDER:
        return "fair", "about the same order, with exceptions"
    if value.low > 0.0:
        return "poor", "a weak relation"
    return "poor", _UNRELATED


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
        unit="share",
        mood=mood,
        verdict=verdict,
        beside=(),
        range=(0.0, 1.0),
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
        unit="share",
        mood=mood,
        verdict=verdict,
        beside=(),
        range=(0.0, 1.0),
        how="The share of the judge's answers to items that could be used. Missing ones are left "
        "out of the score, never counted as yes or no.",
    )


def length(audit: Mapping[str, Any] | None) -> TrustNumber:
    """Return how far scores follow length."""
    length = ((audit or {}).get("bias") or {}).get("length") or {}
    excess, plain = read_interval(length.get("excess")), read_interval(length.get("scores"))
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
        unit="share",
        mood="unknown",
        verdict=_why_unknown(findings),
        beside=(),
        range=(0.0, 1.0),
        how="How often the judge and people prefer the same response. Without votes or labels "
        "nobody knows: collect some, or hold the scores against another judge.",
    )


def _why_unknown(findings: Findings) -> str:
    load = findings.stages.load
    refused = (findings.audit or {}).get("refused") or {}
    if not (load.labels or load.votes or load.ratings):
        return "not audited: the run has neither labels nor votes"
    if any(refused.values()):
        return "nothing left to audit on: what made the scores learned from all gold of this run"
    return "not audited yet: `rocketeval audit` holds the scores against the gold of this run"
