"""Losses of scorers on held-out reference data, and the one-standard-error rule."""

from __future__ import annotations

import numpy as np
import pytest

from rocketeval.records import Gold, Label, Vote
from rocketeval.scoring.select import (
    ScorerLosses,
    disagreements,
    simplest_of_the_best,
    squared_errors,
)
from support.made_runs import answer_table

NAN = float("nan")
TABLE = answer_table([("q", "a", [0.5]), ("q", "b", [0.5]), ("r", "a", [0.5]), ("r", "b", [])])


def test_squared_errors_are_summed_by_query() -> None:
    """Several labels of a response are averaged; one without a score costs nothing."""
    gold = Gold(
        [Label("q", "a", 4.0), Label("q", "a", 6.0), Label("q", "b", 2.0), Label("r", "b", 9.0)]
    )
    found = squared_errors(TABLE, np.array([7.0, 3.0, 1.0, NAN]), gold, (1.0, 10.0))
    assert found.totals.tolist() == [4.0 + 1.0, 0.0]
    assert found.counts.tolist() == [2.0, 0.0]
    assert found.mean == 2.5


def test_vote_is_lost_if_the_scores_disagree() -> None:
    """A difference of the margin wins, a smaller one ties; a missing score costs nothing."""
    scores = np.array([7.3, 7.2, 5.0, NAN])
    votes = [Vote("q", "a", "b", winner) for winner in ("a", "b", "tie")]
    votes += [Vote("r", "a", "b", "a"), Vote("elsewhere", "a", "b", "a")]
    gold, won, tied = (Gold(votes=given) for given in (votes, votes[:1], votes[2:3]))
    assert disagreements(TABLE, scores, gold, 0.1).totals.tolist() == [2.0, 0.0]
    assert disagreements(TABLE, scores, won, 0.1).mean == 0.0
    assert disagreements(TABLE, scores, tied, 0.11).mean == 0.0
    assert disagreements(TABLE, scores, gold, 0.1).counts.tolist() == [3.0, 0.0]
    assert disagreements(TABLE, np.full(4, 3.0), tied, 0.0).mean == 0.0


def test_losses_of_a_cluster_are_summed() -> None:
    """Two turns of one conversation are one unit of the standard error, for labels and votes."""
    clusters = {"q": "conversation", "r": "conversation"}
    votes = [Vote("q", "a", "b", "b"), Vote("r", "a", "b", "b")]
    gold = Gold([Label("q", "a", 5.0), Label("r", "a", 3.0)], votes, clusters=clusters)
    scores = np.array([7.0, 3.0, 4.0, 2.0])
    found = squared_errors(TABLE, scores, gold, (1.0, 10.0))
    assert (found.totals.tolist(), found.counts.tolist()) == ([4.0 + 1.0], [2.0])
    found = disagreements(TABLE, scores, gold, 0.1)
    assert (found.totals.tolist(), found.counts.tolist()) == ([2.0], [2.0])


def losses(*totals: float) -> ScorerLosses:
    """Return the losses of queries with one label each."""
    return ScorerLosses(np.array(totals), np.ones(len(totals)))


def test_simpler_scorer_is_kept_within_a_standard_error() -> None:
    """The difference is 0.1 per query; its standard error decides."""
    steady = losses(1.0, 1.1, 0.9, 1.0), losses(0.9, 1.0, 0.8, 0.9)
    noisy = losses(1.0, 1.1, 0.9, 1.0), losses(0.2, 1.7, 0.1, 1.6)
    assert simplest_of_the_best(steady) == 1
    assert simplest_of_the_best(noisy) == 0


def test_the_standard_error_is_that_of_paired_queries() -> None:
    """With one label per query it is the textbook one: just inside stays, just outside does not."""
    random = np.random.default_rng(0)
    first = random.uniform(1.0, 2.0, size=30)
    gaps = random.normal(size=30)
    gaps -= gaps.mean()
    error = gaps.std(ddof=1) / np.sqrt(30)
    for factor, expected in ((0.99, 0), (1.01, 1)):
        second = first + gaps - factor * error
        assert simplest_of_the_best([losses(*first), losses(*second)]) == expected


def test_labels_of_one_query_are_not_independent() -> None:
    """Ten queries with a hundred equal labels each count as ten."""
    gaps = np.array([0.3, -0.25] * 5)
    once = [losses(*np.ones(10)), losses(*(1.0 - gaps))]
    often = [ScorerLosses(found.totals * 100, found.counts * 100) for found in once]
    assert simplest_of_the_best(once) == simplest_of_the_best(often) == 0


@pytest.mark.parametrize("given", [[losses(2.0), losses(1.0)], [losses(), losses()]])
def test_too_little_data_keeps_the_first(given: list[ScorerLosses]) -> None:
    """With one query or none, the first is chosen."""
    assert simplest_of_the_best(given) == 0


def test_rounding_does_not_choose() -> None:
    """Two scorers that differ only by rounding: the first is chosen."""
    exact = losses(0.3, 0.3, 0.3, 0.3)
    rounded = losses(*[0.1 + 0.2 - 1e-16] * 4)
    assert rounded.mean < exact.mean
    assert simplest_of_the_best([exact, rounded]) == 0
