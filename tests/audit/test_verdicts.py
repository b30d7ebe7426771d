"""Verdicts compared with votes: by hand, and recorded figures of GPT-4 on MT-Bench."""

from __future__ import annotations

import pytest

from rocketeval.audit.votes import verdict_agreement
from rocketeval.records import Vote, Winner


def vote(query: str, pair: str, winner: Winner) -> Vote:
    """Return a vote on two one-letter candidates."""
    return Vote(query, pair[0], pair[1], winner)


def test_every_vote_is_compared_with_the_verdict_on_its_pair() -> None:
    """Presentation order is ignored; on decided votes, a verdict of a tie counts half."""
    verdicts = [vote("q1", "xy", "a"), vote("q1", "xz", "tie"), vote("q2", "xy", "b")]
    votes = [
        vote("q1", "yx", "b"),
        vote("q1", "xy", "b"),
        vote("q1", "xz", "tie"),
        vote("q1", "zx", "a"),
        vote("q2", "yx", "tie"),
        vote("q2", "yz", "a"),
        vote("q3", "xy", "a"),
    ]
    found = verdict_agreement(verdicts, votes)
    assert found is not None
    assert found.with_ties.value == pytest.approx(2 / 5)
    assert found.without_ties is not None
    assert found.without_ties.value == pytest.approx((1 + 0 + 0.5) / 3)
    assert (found.pairs, found.decisive_pairs) == (5, 3)


def test_verdicts_on_other_pairs_give_no_figure() -> None:
    """Without common pairs the result is None; with only ties there is no figure without ties."""
    assert verdict_agreement([vote("q1", "xy", "a")], [vote("q1", "xz", "a")]) is None
    only_ties = verdict_agreement([vote("q1", "xy", "tie")], [vote("q1", "xy", "tie")])
    assert only_ties is not None
    assert only_ties.without_ties is None


def test_gpt4_reaches_its_recorded_agreement_with_people(
    mt_bench_verdicts: list[Vote], mt_bench_votes: list[Vote]
) -> None:
    """GPT-4 agrees with 66.6% of first-turn votes, and with 79.7% of decided ones.

    The published 85.9% leaves out decided votes with a tie as the verdict.
    """
    found = verdict_agreement(mt_bench_verdicts, mt_bench_votes)
    assert found is not None
    assert found.without_ties is not None
    assert found.pairs == 1689
    assert found.with_ties.value == pytest.approx(0.666, abs=5e-4)
    assert found.without_ties.value == pytest.approx(0.797, abs=5e-4)
    assert found.with_ties.low < 0.65 < found.with_ties.high
