"""Reading an expected grade on a scale of labels, with proven bounds for unlisted tokens.

The labels are spaced evenly from 1 (best) to 0 (worst); `p_yes` is the mean of their values,
weighted by their shares of the probability on all labels. With two labels it equals the yes/no
readout.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import exp, fsum

from rocketeval.config import EngineConfig
from rocketeval.engines.readout import (
    MOST_LISTED,
    NOT_REPORTED,
    SLACK,
    THINKING,
    Readout,
    logsumexp,
    spellings,
    weigh,
    weigh_labels,
)
from rocketeval.hashing import content_hash
from rocketeval.records import Answer, Status


@dataclass(frozen=True)
class ScaleReadout:
    """Converts listed token log-probabilities into an expected grade.

    >>> from math import log
    >>> readout = ScaleReadout(("3", "2", "1"))
    >>> answer = readout.read([("3", log(0.5)), ("2", log(0.4)), ("1", log(0.1))])
    >>> round(answer.p_yes, 6), answer.text
    (0.7, '3')
    """

    words: tuple[str, ...]
    """The labels, best first."""
    min_mass: float = 0.1
    """Below this probability on all labels the judge does not answer the question."""
    max_width: float = 0.1
    """A truncated answer whose interval is wider than this has no usable grade."""

    @cached_property
    def spelled(self) -> tuple[frozenset[str], ...]:
        """The tokens of each label, best first."""
        return tuple(map(spellings, self.words))

    @cached_property
    def values(self) -> tuple[float, ...]:
        """Value of each label, from 1 to 0."""
        steps = len(self.words) - 1
        return tuple((steps - place) / steps for place in range(steps + 1))

    @cached_property
    def hash(self) -> str:
        """Hex hash of labels, variants and limits; part of the judge's fingerprint."""
        return content_hash(
            "scale",
            self.words,
            [sorted(tokens) for tokens in self.spelled],
            sorted(THINKING),
            [self.min_mass, self.max_width, NOT_REPORTED, SLACK, MOST_LISTED],
        ).hex()

    def read(self, listed: Sequence[tuple[str, float]]) -> Answer:
        """Return the answer that the most likely tokens, as `(token, logprob)`, prove."""
        known = [(token, logp) for token, logp in listed if logp > NOT_REPORTED]
        listed_mass, unusable = weigh(known)
        if unusable is not None:
            return Answer(unusable)
        logps = [
            logsumexp(logp for token, logp in known if token in tokens) for tokens in self.spelled
        ]
        if all(logp is None for logp in logps):
            return Answer(Status.HIDDEN, mass=0.0)
        seen = [0.0 if logp is None else exp(logp) for logp in logps]
        low, high = self._bounds(known, seen, max(0.0, 1.0 - listed_mass) + SLACK)
        expected = self._expected(logps)
        mass = fsum(seen)
        if mass < self.min_mass:
            return Answer(Status.LOW_MASS, None, low, high, mass)
        if all(logp is not None for logp in logps):
            # Different computations, which may differ in the last bit.
            low, high = min(low, expected), max(high, expected)
            return Answer(Status.OK, expected, low, high, mass, text=self._likeliest(logps))
        if high - low > self.max_width:
            return Answer(Status.UNBOUNDED, None, low, high, mass)
        middle = (low + high) / 2
        return Answer(Status.TRUNCATED, middle, low, high, mass, text=self._likeliest(logps))

    def read_labels(self, logps: Sequence[Sequence[float]], *, wrote: str | None = None) -> Answer:
        """Return the answer if the log-probability of every token of all labels is known.

        `wrote` is the token the judge wrote; it separates a thinking judge from a vague one.
        """
        sums, unusable = weigh_labels(logps, wrote)
        if unusable is not None:
            return Answer(unusable)
        mass = fsum(sums)
        summed = [logsumexp(label) for label in logps]
        if all(logp is None for logp in summed):
            return Answer(Status.LOW_MASS, mass=0.0)
        expected = self._expected(summed)
        if mass < self.min_mass:
            return Answer(Status.LOW_MASS, None, expected, expected, mass)
        likeliest = self._likeliest(summed)
        return Answer(Status.OK, expected, expected, expected, mass, text=likeliest)

    def _expected(self, logps: Sequence[float | None]) -> float:
        top = max(logp for logp in logps if logp is not None)
        shares = [0.0 if logp is None else exp(logp - top) for logp in logps]
        return min(1.0, _mean(self.values, shares))

    def _likeliest(self, logps: Sequence[float | None]) -> str:
        """Return the most probable of the labels whose probability is known."""
        known = [(logp, -place) for place, logp in enumerate(logps) if logp is not None]
        return self.words[-max(known)[1]]

    def _bounds(
        self, known: Sequence[tuple[str, float]], seen: Sequence[float], unlisted: float
    ) -> tuple[float, float]:
        """Return the smallest and the largest mean that the hidden variants allow."""
        tokens = {token for token, _ in known}
        least = exp(min(logp for _, logp in known))
        room = [len(label - tokens) * least for label in self.spelled]
        return bounds_of_mean(self.values, seen, room, unlisted)


def bounds_of_mean(
    values: Sequence[float], seen: Sequence[float], room: Sequence[float], unlisted: float
) -> tuple[float, float]:
    """Return the smallest and largest mean of labels, best first, that hidden variants allow.

    Each label may gain up to its `room`, and all together up to `unlisted`.
    """
    places = range(len(values))
    high = _raised(values, seen, room, unlisted, places)
    # The smallest mean is the largest one on the reversed scale.
    turned = tuple(1.0 - value for value in values)
    low = 1.0 - _raised(turned, seen, room, unlisted, reversed(places))
    return max(0.0, min(low, high)), min(1.0, max(low, high))


def mean_of(values: Sequence[float], shares: Sequence[float]) -> float | None:
    """Return the mean of values weighted by shares; None if all shares are zero."""
    return min(1.0, _mean(values, shares)) if fsum(shares) > 0 else None


def make_readout(config: EngineConfig) -> Readout | ScaleReadout:
    """Return the readout for a judge with this config."""
    if len(config.labels) > 2:
        return ScaleReadout(config.labels, config.min_mass, config.max_width)
    best, worst = map(spellings, config.labels)
    return Readout(best, worst, config.min_mass, config.max_width)


def _raised(
    values: Sequence[float],
    seen: Sequence[float],
    room: Sequence[float],
    unlisted: float,
    best_first: Iterable[int],
) -> float:
    """Return the largest mean if each label may gain up to its `room`, and all up to `unlisted`.

    Filling the best labels first is exact: probability on a label raises the mean only while the
    label is above it, and higher labels raise it more.
    """
    shares, left = list(seen), unlisted
    for place in best_first:
        if fsum(shares) > 0 and values[place] <= _mean(values, shares):
            break
        gained = min(room[place], left)
        shares[place] += gained
        left -= gained
    return _mean(values, shares) if fsum(shares) > 0 else 1.0


def _mean(values: Sequence[float], shares: Sequence[float]) -> float:
    weighed = fsum(value * share for value, share in zip(values, shares, strict=True))
    return weighed / fsum(shares)
