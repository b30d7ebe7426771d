"""Detection of a judge's numeric precision from its answers to a few fixed questions.

If a server does not report its precision, the same short questions are asked twice, one at a time.
The listed log-probabilities are stored with the judge. At a later contact, it is the same judge if
the lists agree within tolerance:

- **Steps.** bfloat16 and float16 logits are coarse, so the gaps between listed log-probabilities
  are multiples of a power of two; those of float32 are not. Different steps mean different judges.
- **Distance.** With the same steps, log-probabilities may differ by the measured noise, and by the
  effect of other requests in flight and other kernels.

This detects bfloat16 against float32, float16 against either, and quantization coarse enough to
change answers beyond the noise. It misses finer quantization and, on a noisy hosted service, most
changes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt

from rocketeval.hashing import content_hash

STEPS = (0.125, 0.0625, 0.03125, 0.015625, 0.0078125)
"""Gaps between logits of a coarse number format, in the range of likely tokens."""
FINEST_BFLOAT16 = 0.03125
"""bfloat16 logits from 4 to 32 have steps of 1/32 to 1/8; float16 steps are an eighth of that."""
ON_STEP = 1e-4
"""Maximum distance of a gap from a multiple of a step."""
FEWEST_GAPS = 6
"""Minimum number of gaps to determine steps."""
NOISES = 4.0
"""Allowed distance between two lists of one judge, in multiples of the measured noise."""
EXACT = 0.02
"""Allowed distance between two lists of one judge without steps, due to other kernels and other
requests in flight."""
COARSE_STEPS = 2.0
"""Allowed distance in steps, for judges with steps."""
KEPT = 8
"""Number of tokens kept per list."""
LIKELY = -16.0
"""Minimum log-probability of tokens to compare."""

Listed = Mapping[str, float]
"""The most likely next tokens with their log-probabilities."""


@dataclass(frozen=True, slots=True)
class Measured:
    """The tokens that a judge listed after the fixed questions."""

    step: float
    """The step that all gaps are multiples of; 0 if there is none."""
    noise: float
    """Root-mean-square difference of two answers to the same questions."""
    listed: tuple[Listed, ...]

    @classmethod
    def of(cls, first: Sequence[Listed], again: Sequence[Listed]) -> Measured:
        """Return the measurement from two passes over the same questions.

        >>> coarse = {token: -0.125 * n for n, token in enumerate("abcdefgh")}
        >>> Measured.of([coarse, coarse], [coarse, coarse]).name
        'bfloat16'
        """
        kept = tuple(_kept(listed) for listed in first)
        return cls(_step(kept), _distance(kept, again), kept)

    @classmethod
    def parse(cls, text: str) -> Measured:
        """Parse the text that `str` wrote."""
        found = json.loads(text)
        return cls(found["step"], found["noise"], tuple(found["listed"]))

    def __str__(self) -> str:
        parts = {"step": self.step, "noise": self.noise, "listed": self.listed}
        return json.dumps(parts, ensure_ascii=False, separators=(",", ":"))

    @property
    def name(self) -> str:
        """The number format that the steps indicate."""
        if len(_gaps(self.listed)) < FEWEST_GAPS:
            return "unknown"
        if not self.step:
            return "float32"
        return "bfloat16" if self.step >= FINEST_BFLOAT16 else "float16"

    @property
    def precision(self) -> str:
        """The precision string in a judge's fingerprint."""
        return f"measured {self.name} {content_hash(str(self)).hex()[:8]}"

    def same_as(self, other: Measured) -> bool:
        """Return whether both can be the same judge."""
        if self.name != other.name and "unknown" not in (self.name, other.name):
            return False
        coarse = COARSE_STEPS * max(self.step, other.step)
        allowed = max(EXACT, coarse, NOISES * max(self.noise, other.noise))
        return _distance(self.listed, other.listed) <= allowed


def same_precision(one: str, other: str) -> bool:
    """Return whether two measurements, as text, can be of one judge; an empty one matches any."""
    return not one or not other or Measured.parse(one).same_as(Measured.parse(other))


def _kept(listed: Listed) -> Listed:
    likeliest = sorted(listed.items(), key=lambda pair: -pair[1])[:KEPT]
    return {token: round(logp, 6) for token, logp in likeliest if logp > LIKELY}


def _step(lists: Sequence[Listed]) -> float:
    gaps = _gaps(lists)
    if len(gaps) < FEWEST_GAPS:
        return 0.0
    for step in STEPS:
        if all(abs(gap / step - round(gap / step)) * step <= ON_STEP for gap in gaps):
            return step
    return 0.0


def _gaps(lists: Sequence[Listed]) -> list[float]:
    """Return the gaps between neighboring values, without zeros."""
    gaps = (
        one - other
        for listed in lists
        for one, other in pairwise(sorted(listed.values(), reverse=True))
    )
    return [gap for gap in gaps if gap > ON_STEP]


def _distance(one: Sequence[Listed], other: Sequence[Listed]) -> float:
    """Return the distance of two answers to the same questions; infinite without common tokens."""
    apart = [
        listed[token] - again[token]
        for listed, again in zip(one, other, strict=False)
        for token in listed
        if token in again
    ]
    return sqrt(sum(gap * gap for gap in apart) / len(apart)) if apart else float("inf")
