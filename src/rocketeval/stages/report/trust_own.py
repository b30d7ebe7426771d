"""Numbers about trust that every run has, with or without gold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rocketeval.ranking.rank import Ranking
from rocketeval.records import Interval
from rocketeval.report.data import Beside, Mood, TrustNumber
from rocketeval.stages.report.figures import read_interval
from rocketeval.stages.report.moods import by_limits, exact

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


def usable(score: Mapping[str, Any]) -> TrustNumber:
    """Return how many answers could be used."""
    answers, missing = score.get("answers", 0), score.get("missing_answers", 0)
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
        beside=(Beside("no leaning", 0.0, "floor"),),
        range=(-1.0, 1.0),
        how="Spearman's correlation of score and length among the responses to one query"
        + (", less that of label and length." if excess is not None else "."),
    )
