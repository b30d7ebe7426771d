"""Tell precisions of the same weights apart by what a judge answers to a few fixed questions.

A server that does not say how it computes is asked the same short questions one at a time, twice.
What it lists is kept with the judge as text, and a later contact is the same judge if it lists the
same within tolerance:

- **Steps.** bfloat16 and float16 logits are coarse, so the gaps between listed log-probabilities
  are multiples of a power of two; those of float32 are not. Judges with different steps are two.
- **Distance.** Of judges with the same steps, the listed log-probabilities may differ by the noise
  that was measured, and by what other requests in flight and other kernels do to such numbers.

What this sees: bfloat16 against float32, float16 against either, and weights that were quantized
so coarsely that answers move beyond the noise. What it does not see: a quantization that moves
answers by less than that, and on a noisy hosted service most changes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt

from rocketeval.hashing import content_hash

STEPS = (0.125, 0.0625, 0.03125, 0.015625, 0.0078125)
"""Gaps between the logits of a coarse number format, in the range where likely tokens lie."""
FINEST_BFLOAT16 = 0.03125
"""bfloat16 logits from 4 to 32 have steps of 1/32 to 1/8, float16 ones an eighth of that."""
ON_STEP = 1e-4
"""A gap is a multiple of a step if it is this close to one."""
FEWEST_GAPS = 6
"""With fewer gaps than this, nothing is said about steps."""
NOISES = 4.0
"""How many times the noise that was measured two lists of one judge may be apart."""
EXACT = 0.02
"""How far apart two lists of one judge may be where there are no steps: other kernels, other
requests in flight."""
COARSE_STEPS = 2.0
"""The same in steps, where there are."""
KEPT = 8
"""Tokens that are kept of each list."""
LIKELY = -16.0
"""Tokens below this log-probability are too unlikely to compare."""

Listed = Mapping[str, float]
"""The most likely tokens after a question with their log-probabilities."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What a judge listed after the fixed questions."""

    step: float
    """The step all gaps are multiples of; 0 where there is none."""
    noise: float
    """How far two answers to the same question were apart, as a root mean square."""
    listed: tuple[Listed, ...]

    @classmethod
    def of(cls, first: Sequence[Listed], again: Sequence[Listed]) -> Measured:
        """Return what the same questions, asked twice, tell.

        >>> coarse = {token: -0.125 * n for n, token in enumerate("abcdefgh")}
        >>> Measured.of([coarse, coarse], [coarse, coarse]).name
        'bfloat16'
        """
        kept = tuple(_kept(listed) for listed in first)
        return cls(_step(kept), _distance(kept, again), kept)

    @classmethod
    def parse(cls, text: str) -> Measured:
        """Return what `str` wrote."""
        found = json.loads(text)
        return cls(found["step"], found["noise"], tuple(found["listed"]))

    def __str__(self) -> str:
        told = {"step": self.step, "noise": self.noise, "listed": self.listed}
        return json.dumps(told, ensure_ascii=False, separators=(",", ":"))

    @property
    def name(self) -> str:
        """The number format that the steps speak for."""
        if len(_gaps(self.listed)) < FEWEST_GAPS:
            return "unknown"
        if not self.step:
            return "float32"
        return "bfloat16" if self.step >= FINEST_BFLOAT16 else "float16"

    @property
    def precision(self) -> str:
        """What stands for it in a judge's fingerprint."""
        return f"measured {self.name} {content_hash(str(self)).hex()[:8]}"

    def same_as(self, other: Measured) -> bool:
        """Whether both can be one judge."""
        if self.name != other.name and "unknown" not in (self.name, other.name):
            return False
        coarse = COARSE_STEPS * max(self.step, other.step)
        allowed = max(EXACT, coarse, NOISES * max(self.noise, other.noise))
        return _distance(self.listed, other.listed) <= allowed


def same_precision(one: str, other: str) -> bool:
    """Whether two measurements, as text, can be of one judge; an empty one can be of any."""
    return not one or not other or Measured.parse(one).same_as(Measured.parse(other))


def _kept(listed: Listed) -> Listed:
    likeliest = sorted(listed.items(), key=lambda told: -told[1])[:KEPT]
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
    """Return the gaps between neighbors; equal ones are multiples of everything."""
    gaps = (
        one - other
        for listed in lists
        for one, other in pairwise(sorted(listed.values(), reverse=True))
    )
    return [gap for gap in gaps if gap > ON_STEP]


def _distance(one: Sequence[Listed], other: Sequence[Listed]) -> float:
    """Return how far apart two answers to the same questions are; infinite if nothing is shared."""
    apart = [
        listed[token] - again[token]
        for listed, again in zip(one, other, strict=False)
        for token in listed
        if token in again
    ]
    return sqrt(sum(gap * gap for gap in apart) / len(apart)) if apart else float("inf")
