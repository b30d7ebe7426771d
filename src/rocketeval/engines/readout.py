"""Reading one answer from the listed tokens, with proven bounds for what the list leaves out.

`p_yes = sigmoid(logsumexp(yes variants) - logsumexp(no variants))`, in float64, variants summed.
A variant the engine did not list is at most as likely as the least likely token it did list, so
every answer has an interval that is certain to contain the exact value. An engine that reports the
log-probabilities of chosen tokens leaves nothing open.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import exp, fsum, inf, log
from operator import itemgetter

from rocketeval.hashing import content_hash
from rocketeval.records import Answer, Status

YES_NO = ("Yes", "No")
"""The labels of a checklist, best first."""
BYTE_MARKERS = ("\u0120", "\u2581")
"""Characters that some vocabularies write for a space."""
_LEADS = ("", " ", "\n", *BYTE_MARKERS)
"""Prefixes of a word in tokenizers: nothing, a space, a newline, or a byte marker."""

THINKING = frozenset(
    {
        "<think>",
        "<thinking>",
        "<thought>",
        "<reasoning>",
        "<seed:think>",
        "[THINK]",
        "<|channel|>",
        "<|START_THINKING|>",
        "<|begin_of_thought|>",
    }
)
"""Tokens with which reasoning models start to think instead of answering."""
NOT_REPORTED = -1000.0
"""Values at or below this are placeholders of servers (-9999, minus infinity)."""
SLACK = 0.02
"""How far low precision may move the sum of listed probabilities."""
TINY = 1e-290
"""Sums below this are computed in log space to keep their digits."""
NO_LOGPROB = 1.0
"""Greater than any log-probability, at any precision."""
MOST_LISTED = 1.0 + SLACK
"""A list that sums to more than this does not contain probabilities."""


def called(words: Sequence[str]) -> str:
    """Return labels as they are shown to people.

    >>> called(("Yes", "No")), called(("3", "2", "1"))
    ('yes and no', '3, 2 and 1')
    """
    shown = [word.lower() for word in words] if words == YES_NO else words
    return f"{', '.join(shown[:-1])} and {shown[-1]}"


def spellings(word: str) -> frozenset[str]:
    """Return all tokens that count as `word`.

    >>> sorted(spellings("yes"))[:3]
    ['\\nYES', '\\nYes', '\\nyes']
    """
    cases = (word.lower(), word.capitalize(), word.upper())
    return frozenset(lead + case for lead in _LEADS for case in cases)


@dataclass(frozen=True)
class Readout:
    """Converts listed token log-probabilities into an answer.

    >>> Readout().read([("Yes", math.log(0.6)), ("No", math.log(0.3)), ("I", math.log(0.1))])
    ... # doctest: +ELLIPSIS
    Answer(status=<Status.OK: 'ok'>, p_yes=0.666..., ...)
    """

    yes: frozenset[str] = spellings("yes")
    """Tokens that mean yes; part of the fingerprint."""
    no: frozenset[str] = spellings("no")
    """Tokens that mean no."""
    min_mass: float = 0.1
    """Below this P(yes)+P(no) the judge does not answer the question."""
    max_width: float = 0.1
    """A truncated answer whose interval is wider than this has no usable probability."""

    @property
    def spelled(self) -> tuple[frozenset[str], ...]:
        """The tokens of each label, best first."""
        return (self.yes, self.no)

    @property
    def hash(self) -> str:
        """Hex hash of variants and limits; part of the judge's fingerprint."""
        return content_hash(
            "readout",
            sorted(self.yes),
            sorted(self.no),
            sorted(THINKING),
            [self.min_mass, self.max_width, NOT_REPORTED, SLACK, MOST_LISTED],
        ).hex()

    def read(self, listed: Sequence[tuple[str, float]]) -> Answer:
        """Return the answer that the most likely tokens, as `(token, logprob)`, prove."""
        known = [(token, logp) for token, logp in listed if logp > NOT_REPORTED]
        listed_mass, unusable = weigh(known)
        if unusable is not None:
            return Answer(unusable)
        yes = [logp for token, logp in known if token in self.yes]
        no = [logp for token, logp in known if token in self.no]
        if not yes and not no:
            return Answer(Status.HIDDEN, mass=0.0)
        logp_yes, logp_no = logsumexp(yes), logsumexp(no)
        bounds = self._bounds(known, listed_mass, _exp(logp_yes), _exp(logp_no))
        return self._answer(logp_yes, logp_no, *bounds)

    def read_exact(
        self, yes: Sequence[float], no: Sequence[float], *, wrote: str | None = None
    ) -> Answer:
        """Return the answer if the log-probability of every yes and no token is known.

        `wrote` is the token the judge wrote; it separates a thinking judge from a vague one.

        >>> Readout().read_exact([math.log(0.6)], [math.log(0.2), math.log(0.1)]).p_high
        0.6666666666666666
        """
        # `weigh_labels` for two labels, without its lists: this runs for every answer.
        if not yes or not no:
            return Answer(Status.NO_LOGPROBS)
        if max(yes) > NO_LOGPROB or max(no) > NO_LOGPROB:
            return Answer(Status.UNSOUND)
        sum_yes, sum_no = fsum(map(exp, yes)), fsum(map(exp, no))
        mass = sum_yes + sum_no
        if mass != mass:
            return Answer(Status.NO_LOGPROBS)
        if mass > MOST_LISTED:
            return Answer(Status.UNSOUND)
        if wrote is not None and wrote.strip() in THINKING:
            return Answer(Status.THINKING)
        logp_yes = log(sum_yes) if sum_yes > TINY else logsumexp(yes)
        logp_no = log(sum_no) if sum_no > TINY else logsumexp(no)
        if logp_yes is None and logp_no is None:
            return Answer(Status.LOW_MASS, mass=0.0)
        p_yes = sigmoid(
            (-inf if logp_yes is None else logp_yes) - (-inf if logp_no is None else logp_no)
        )
        if mass < self.min_mass:
            return Answer(Status.LOW_MASS, None, p_yes, p_yes, mass, logp_yes, logp_no)
        return Answer(Status.OK, p_yes, p_yes, p_yes, mass, logp_yes, logp_no)

    def read_labels(self, logps: Sequence[Sequence[float]], *, wrote: str | None = None) -> Answer:
        """Return the answer if the log-probability of every token of both labels is known."""
        yes, no = logps
        return self.read_exact(yes, no, wrote=wrote)

    def _answer(
        self, logp_yes: float | None, logp_no: float | None, low: float, high: float
    ) -> Answer:
        mass = _exp(logp_yes) + _exp(logp_no)
        status, p_yes = self._decide(mass, logp_yes, logp_no, low, high)
        if p_yes is not None:
            # Different computations, which may differ in the last bit.
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
        self,
        known: Sequence[tuple[str, float]],
        listed_mass: float,
        seen_yes: float,
        seen_no: float,
    ) -> tuple[float, float]:
        tokens = {token for token, _ in known}
        least = exp(min(known, key=itemgetter(1))[1])
        unlisted = max(0.0, 1.0 - listed_mass) + SLACK
        most_yes = seen_yes + min(len(self.yes - tokens) * least, unlisted)
        most_no = seen_no + min(len(self.no - tokens) * least, unlisted)
        return _share(seen_yes, most_no, otherwise=0.0), _share(most_yes, seen_no, otherwise=1.0)


def weigh(known: Sequence[tuple[str, float]]) -> tuple[float, Status | None]:
    """Return the summed probability of listed tokens, and why they give no answer, if so."""
    if not known:
        return 0.0, Status.NO_LOGPROBS
    top, highest = max(known, key=itemgetter(1))
    if highest > NO_LOGPROB:
        return math.inf, Status.UNSOUND
    mass = fsum([exp(logp) for _, logp in known])
    if mass > MOST_LISTED:
        return mass, Status.UNSOUND
    return mass, Status.THINKING if top.strip() in THINKING else None


def weigh_labels(
    logps: Sequence[Sequence[float]], wrote: str | None
) -> tuple[list[float], Status | None]:
    """Return the probability of each label, and why the labels give no answer, if so.

    `logps` has the log-probabilities of every token of each label; `wrote` is the token written.
    """
    if not all(logps):
        return [0.0] * len(logps), Status.NO_LOGPROBS
    if max(map(max, logps)) > NO_LOGPROB:
        return [math.inf] * len(logps), Status.UNSOUND
    sums = [fsum(map(exp, label)) for label in logps]
    mass = fsum(sums)
    if math.isnan(mass):
        return sums, Status.NO_LOGPROBS
    if mass > MOST_LISTED:
        return sums, Status.UNSOUND
    thinking = wrote is not None and wrote.strip() in THINKING
    return sums, Status.THINKING if thinking else None


def sigmoid(x: float) -> float:
    """Return `1 / (1 + exp(-x))` without overflow."""
    if x >= 0:
        return 1.0 / (1.0 + exp(-x))
    scaled = exp(x)
    return scaled / (1.0 + scaled)


def _share(part: float, other: float, *, otherwise: float) -> float:
    total = part + other
    return part / total if total > 0 else otherwise


def _exp(logp: float | None) -> float:
    return 0.0 if logp is None else exp(logp)


def logsumexp(values: Iterable[float]) -> float | None:
    """Return the log of the summed probabilities; None if no value is known."""
    known = [value for value in values if value > NOT_REPORTED]
    if len(known) < 2:
        return known[0] if known else None
    top = max(known)
    return top + log(fsum([exp(value - top) for value in known]))
