"""From latent quality to a score whose tie margin means what voters mean by a tie.

Two responses tie in a run when their scores differ by less than the tie margin. So the curve climbs
one margin over each stretch of quality within which voters most likely call a tie, and it passes
the average response in the middle of the scale. Where voters hardly ever call a tie, a margin would
stand for no quality at all, and the curve would leave the scale: there it stands for the smallest
stretch with which all responses learned from find room. Scores beyond them bend smoothly toward the
ends of the scale, so that the order of the qualities is never lost.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rocketeval.scoring.features import Floats
from rocketeval.scoring.vote_model import TieCurve

ROOM = 0.45
"""Share of the scale, above and below its middle, within which a margin is exactly a margin."""
KNOTS = 257
"""Points between which the curve is straight."""

_FINEST = 1e-3
_HALVINGS = 60


@dataclass(frozen=True, eq=False)
class QualityScale:
    """A rising curve from latent quality to score."""

    qualities: Floats
    """Rising, from the lowest to the highest quality that was learned from."""
    heights: Floats
    """Score above the middle of the scale at each."""

    def score(self, quality: Floats, scale: tuple[float, float]) -> Floats:
        """Return the score of each latent quality, inside the scale."""
        low, high = scale
        height = np.interp(quality, self.qualities, self.heights)
        rise, run = np.diff(self.heights)[[0, -1]], np.diff(self.qualities)[[0, -1]]
        height += rise[0] / run[0] * np.minimum(quality - self.qualities[0], 0.0)
        height += rise[1] / run[1] * np.maximum(quality - self.qualities[-1], 0.0)
        bent: Floats = (low + high) / 2.0 + _bend(height, high - low)
        return np.asarray(np.clip(bent, low, high), dtype=np.float64)


def quality_scale(
    ties: TieCurve, lowest: float, highest: float, scale: tuple[float, float], margin: float
) -> tuple[QualityScale, float]:
    """Return the curve, and the smallest stretch of quality that a margin stands for on it.

    Qualities that were learned from reach from `lowest` (below 0) to `highest` (above 0).
    """
    qualities = np.linspace(lowest, highest, KNOTS)
    stretches = ties.threshold((qualities[1:] + qualities[:-1]) / 2.0)
    room = ROOM * (scale[1] - scale[0])

    def heights(least: float) -> Floats:
        steps = margin * np.diff(qualities) / np.maximum(stretches, least)
        climbed = np.concatenate([[0.0], np.cumsum(steps)])
        above: Floats = climbed - np.interp(0.0, qualities, climbed)
        return above

    finest = _FINEST * (highest - lowest)
    coarsest = max(finest, margin * (highest - lowest) / room)
    for _ in range(_HALVINGS):
        middle = np.sqrt(finest * coarsest)
        fits = bool(np.abs(heights(middle)).max() <= room)
        finest, coarsest = (finest, middle) if fits else (middle, coarsest)
    least = coarsest
    return QualityScale(qualities, heights(least)), float(np.maximum(stretches, least).min())


def _bend(height: Floats, length: float) -> Floats:
    """Return heights unchanged within the room, and bent toward half the scale beyond it."""
    room, rest = ROOM * length, (0.5 - ROOM) * length
    beyond = np.maximum(np.abs(height) - room, 0.0)
    bent: Floats = np.sign(height) * (
        np.minimum(np.abs(height), room) - rest * np.expm1(-beyond / rest)
    )
    return bent
