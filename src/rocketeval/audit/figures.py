"""The figures that an audit is made of, with what each rests on."""

from __future__ import annotations

from dataclasses import dataclass

from rocketeval.records import Interval


@dataclass(frozen=True, slots=True)
class Agreement:
    """How often scores say what votes say."""

    with_ties: Interval | None
    """Share of votes whose outcome (a, b or tie by the margin) the scores give; None if no votes.

    Three outcomes: guessing gives a third."""
    without_ties: Interval | None
    """Among votes that are not ties, the share won by the higher score; None if there are none.

    No margin here; equal scores count half, so guessing gives a half."""
    votes: int
    """Votes given."""
    used: int
    """Votes on which both responses have a score."""
    decisive: int
    """Used votes that are not ties."""
    unusable: int
    """Votes on an unknown query or candidate, or with a score missing."""


@dataclass(frozen=True, slots=True)
class VoterAgreement:
    """How often two voters say the same about the same two responses."""

    with_ties: Interval
    """Share of vote pairs with the same outcome."""
    without_ties: Interval | None
    """The same among pairs in which neither is a tie; None if there are none."""
    pairs: int
    """Pairs of votes by different voters."""
    decisive_pairs: int
    """Pairs in which neither vote is a tie."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A figure, or the difference of two on the same gold, with what it rests on."""

    value: Interval
    """A difference is above zero where the first does better."""
    queries: int
    gold: int
    """Votes or labelled responses."""
    spread: float
    """Standard deviation over queries of what each adds; NaN below two queries."""


@dataclass(frozen=True, slots=True)
class MeasuredVotes:
    """A share of votes, or the difference of two."""

    with_ties: Measured | None
    without_ties: Measured | None
    """The same among votes that are not ties."""


def as_agreement(found: MeasuredVotes, votes: int) -> Agreement:
    """The share of votes that scores give; `votes` counts the unusable ones too."""
    whole, decided = found.with_ties, found.without_ties
    used = whole.gold if whole else 0
    return Agreement(
        with_ties=whole.value if whole else None,
        without_ties=decided.value if decided else None,
        votes=votes,
        used=used,
        decisive=decided.gold if decided else 0,
        unusable=votes - used,
    )
