"""From the tokens an engine lists to one answer, with everything the list leaves open proven.

`p_yes = sigmoid(logsumexp(yes variants) - logsumexp(no variants))`, in float64, variants summed.
A variant the engine did not list is at most as likely as the least likely token it did list;
that gives every answer an interval that must hold the exact value.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rocketeval.hashing import content_hash
from rocketeval.records import Answer, Status

_LEADS = ("", " ", "\n", "\u0120", "\u2581")
"""What tokenizers put before a word: nothing, a space, a newline, or a byte marker."""


def spellings(word: str) -> frozenset[str]:
    """All tokens that count as `word`.

    >>> sorted(spellings("yes"))[:3]
    ['\\nYES', '\\nYes', '\\nyes']
    """
    cases = (word.lower(), word.capitalize(), word.upper())
    return frozenset(lead + case for lead in _LEADS for case in cases)


@dataclass(frozen=True)
class Readout:
    """Turns listed token log-probabilities into an answer.

    >>> Readout().read([("Yes", math.log(0.6)), ("No", math.log(0.3)), ("I", math.log(0.1))])
    ... # doctest: +ELLIPSIS
    Answer(status=<Status.OK: 'ok'>, p_yes=0.666..., ...)
    """

    yes: frozenset[str] = spellings("yes")
    """Tokens that mean yes: frozen, and part of the fingerprint."""
    no: frozenset[str] = spellings("no")
    """Tokens that mean no."""
    min_mass: float = 0.1
    """Below this P(yes)+P(no) the judge is not answering the question."""
    max_width: float = 0.1
    """A truncated answer with a wider interval than this has no usable probability."""

    @property
    def hash(self) -> str:
        """Hex hash of the variants and limits, part of the judge's fingerprint."""
        return content_hash(
            "readout", sorted(self.yes), sorted(self.no), self.min_mass, self.max_width
        ).hex()

    def read(self, listed: Sequence[tuple[str, float]]) -> Answer:
        """Return the answer that the listed `(token, logprob)` pairs prove."""
        if not listed:
            return Answer(Status.NO_LOGPROBS)
        yes = [logp for token, logp in listed if token in self.yes]
        no = [logp for token, logp in listed if token in self.no]
        if not yes and not no:
            return Answer(Status.HIDDEN, mass=0.0)
        logp_yes, logp_no = _logsumexp(yes), _logsumexp(no)
        seen_yes, seen_no = _exp(logp_yes), _exp(logp_no)
        low, high = self._bounds(listed, seen_yes, seen_no)
        mass = seen_yes + seen_no
        status, p_yes = self._decide(mass, logp_yes, logp_no, low, high)
        if p_yes is not None:
            # The two are computed along different paths and may differ in the last bit.
            low, high = min(low, p_yes), max(high, p_yes)
        return Answer(status, p_yes, low, high, mass, logp_yes, logp_no)

    def _decide(
        self, mass: float, logp_yes: float | None, logp_no: float | None, low: float, high: float
    ) -> tuple[Status, float | None]:
        if mass < self.min_mass:
            return Status.LOW_MASS, None
        if logp_yes is not None and logp_no is not None:
            return Status.OK, sigmoid(logp_yes - logp_no)
        if high - low > self.max_width:
            return Status.UNBOUNDED, None
        return Status.TRUNCATED, (low + high) / 2

    def _bounds(
        self, listed: Sequence[tuple[str, float]], seen_yes: float, seen_no: float
    ) -> tuple[float, float]:
        tokens = {token for token, _ in listed}
        least = math.exp(min(logp for _, logp in listed))
        unlisted = 1.0 - math.fsum(math.exp(logp) for _, logp in listed)
        most_yes = seen_yes + _hidden(len(self.yes - tokens), least, unlisted)
        most_no = seen_no + _hidden(len(self.no - tokens), least, unlisted)
        return _share(seen_yes, most_no, otherwise=0.0), _share(most_yes, seen_no, otherwise=1.0)


def sigmoid(x: float) -> float:
    """Return `1 / (1 + exp(-x))` without overflow."""
    if x >= 0:
        return 1.0 / (1.0 + math.exp(-x))
    scaled = math.exp(x)
    return scaled / (1.0 + scaled)


def _hidden(variants: int, least: float, unlisted: float) -> float:
    # A list that sums to one or more (rounding, low precision) proves nothing about the rest.
    each_at_most_least = variants * least
    return min(each_at_most_least, unlisted) if unlisted > 1e-6 else each_at_most_least


def _share(part: float, other: float, *, otherwise: float) -> float:
    total = part + other
    return part / total if total > 0 else otherwise


def _exp(logp: float | None) -> float:
    return 0.0 if logp is None else math.exp(logp)


def _logsumexp(values: Iterable[float]) -> float | None:
    known = [value for value in values if value != -math.inf]
    if not known:
        return None
    top = max(known)
    return top + math.log(math.fsum(math.exp(value - top) for value in known))
