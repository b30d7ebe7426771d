"""Reading an item with its own labels: ordered levels, and "not applicable" as a further label.

The value is the expected level given that the item applies. The probability of "not applicable" is
its share of the probability on all labels. Both have proven bounds for unlisted tokens, as in
`scale_readout`: a hidden variant is at most as likely as the least likely listed token.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import exp, fsum

from rocketeval.config import EngineConfig
from rocketeval.engines.readout import (
    NOT_REPORTED,
    SLACK,
    logsumexp,
    spellings,
    weigh,
    weigh_labels,
)
from rocketeval.engines.scale_readout import bounds_of_mean, mean_of
from rocketeval.hashing import content_hash
from rocketeval.items import AnswerLabels
from rocketeval.records import Answer, Status


@dataclass(frozen=True)
class RubricReadout:
    """Converts listed token log-probabilities into the answer to an item with its own labels.

    >>> from math import log
    >>> readout = RubricReadout(AnswerLabels(("Yes", "No"), "NA"))
    >>> found = readout.read([("Yes", log(0.6)), ("NA", log(0.25)), ("No", log(0.15))])
    >>> round(found.p_yes, 6), round(found.p_na, 6), found.text
    (0.8, 0.25, 'Yes')
    """

    labels: AnswerLabels
    min_mass: float = 0.1
    """Below this probability on all labels the judge does not answer the question."""
    max_width: float = 0.1
    """A truncated answer is not used if its value or applicability is less certain than this."""

    @cached_property
    def words(self) -> tuple[str, ...]:
        """All labels: the levels, best first, then the one for "not applicable"."""
        return self.labels.words if self.labels.na is None else (*self.labels.words, self.labels.na)

    @cached_property
    def spelled(self) -> tuple[frozenset[str], ...]:
        """The tokens of each label."""
        return tuple(map(spellings, self.words))

    @cached_property
    def values(self) -> tuple[float, ...]:
        """Value of each level, from 1 to 0."""
        steps = len(self.labels.words) - 1
        return tuple((steps - place) / steps for place in range(steps + 1))

    @cached_property
    def hash(self) -> str:
        """Hex hash of labels and limits."""
        return content_hash("rubric", self.words, [self.min_mass, self.max_width]).hex()

    def read(self, listed: Sequence[tuple[str, float]]) -> Answer:
        """Return the answer that the most likely tokens, as `(token, logprob)`, prove."""
        known = [(token, logp) for token, logp in listed if logp > NOT_REPORTED]
        listed_mass, unusable = weigh(known)
        if unusable is not None:
            return Answer(unusable)
        tokens = {token for token, _ in known}
        least = exp(min(logp for _, logp in known))
        logps = [logsumexp(logp for token, logp in known if token in own) for own in self.spelled]
        if all(logp is None for logp in logps):
            return Answer(Status.HIDDEN, mass=0.0)
        room = [len(own - tokens) * least for own in self.spelled]
        return self._answer(logps, room, max(0.0, 1.0 - listed_mass) + SLACK)

    def read_labels(self, logps: Sequence[Sequence[float]], *, wrote: str | None = None) -> Answer:
        """Return the answer if the log-probability of every token of all labels is known.

        `wrote` is the token the judge wrote; it separates a thinking judge from a vague one.
        """
        _, unusable = weigh_labels(logps, wrote)
        if unusable is not None:
            return Answer(unusable)
        summed = [logsumexp(label) for label in logps]
        if all(logp is None for logp in summed):
            return Answer(Status.LOW_MASS, mass=0.0)
        exact = [NOT_REPORTED if logp is None else logp for logp in summed]
        return self._answer(exact, [0.0] * len(exact), 0.0)

    def _answer(
        self, logps: Sequence[float | None], room: Sequence[float], unlisted: float
    ) -> Answer:
        seen = [0.0 if logp is None else exp(logp) for logp in logps]
        mass, levels = fsum(seen), len(self.values)
        low, high = bounds_of_mean(self.values, seen[:levels], room[:levels], unlisted)
        na = _share_bounds(seen, room, unlisted) if self.labels.na is not None else None
        na_low, na_high = na or (None, None)
        if mass < self.min_mass:
            return Answer(Status.LOW_MASS, None, low, high, mass, na_low=na_low, na_high=na_high)
        applies = 1.0 if na_low is None else 1.0 - na_low
        width = max((high - low) * applies, 0.0 if na is None else na[1] - na[0])
        complete = all(logp is not None for logp in logps)
        if not complete and width > self.max_width:
            return Answer(Status.UNBOUNDED, None, low, high, mass, na_low=na_low, na_high=na_high)
        value = _inside(mean_of(self.values, seen[:levels]), low, high, all(seen[:levels]))
        p_na = None if na is None else _inside(seen[-1] / mass, *na, complete)
        return Answer(
            Status.OK if complete else Status.TRUNCATED,
            value,
            min(low, value),
            max(high, value),
            mass,
            logps[0] if levels == 2 else None,
            logps[1] if levels == 2 else None,
            text=self.words[max(range(len(seen)), key=lambda place: (seen[place], -place))],
            p_na=p_na,
            na_low=None if na is None or p_na is None else min(na[0], p_na),
            na_high=None if na is None or p_na is None else max(na[1], p_na),
        )


def item_readout(config: EngineConfig, labels: AnswerLabels) -> RubricReadout:
    """Return the readout of an item with its own labels, for a judge with this config."""
    return RubricReadout(labels, config.min_mass, config.max_width)


def _inside(exact: float | None, low: float, high: float, complete: bool) -> float:
    """Return the exact figure if everything was listed, else the middle of its bounds."""
    return exact if complete and exact is not None else (low + high) / 2


def _share_bounds(
    seen: Sequence[float], room: Sequence[float], unlisted: float
) -> tuple[float, float]:
    """Return the smallest and largest share of the last label in the probability on all labels."""
    others, own = fsum(seen[:-1]), seen[-1]
    most_others = others + min(fsum(room[:-1]), unlisted)
    most_own = own + min(room[-1], unlisted)
    low = own / (own + most_others) if own + most_others > 0 else 0.0
    high = most_own / (most_own + others) if most_own + others > 0 else 1.0
    return low, high
