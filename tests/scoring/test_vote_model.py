"""Votes with ties: likelihood, gradient and tie threshold."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime, brentq

from rocketeval.scoring.vote_model import (
    TieCurve,
    VoteColumns,
    davidson_loss,
    fit_ties,
    fit_weights,
    tie_loss,
)


def make_votes(votes: int = 60, features: int = 3, seed: int = 0) -> VoteColumns:
    """Return random differences with random outcomes."""
    random = np.random.default_rng(seed)
    return VoteColumns(
        random.normal(size=(votes, features)),
        random.integers(-1, 2, size=votes).astype(np.int8),
        [f"q{vote % 10}" for vote in range(votes)],
    )


def drawn(
    weights: list[float], ties: TieCurve, votes: int, seed: int
) -> tuple[VoteColumns, np.ndarray, np.ndarray]:
    """Return votes drawn from the model, with the difference and mean of the two qualities."""
    random = np.random.default_rng(seed)
    first, second = random.normal(size=(2, votes, len(weights)))
    difference, level = (first - second) @ weights, (first + second) @ weights / 2.0
    tie = ties.at_zero - ties.fade * np.abs(difference) + ties.by_level * level
    odds = np.exp(np.stack([-difference / 2, tie, difference / 2]))
    below = np.cumsum(odds / odds.sum(axis=0), axis=0)
    outcomes = (random.uniform(size=votes) > below[:2]).sum(axis=0) - 1
    queries = [f"q{vote % 50}" for vote in range(votes)]
    return VoteColumns(first - second, outcomes.astype(np.int8), queries), difference, level


def test_the_likelihood_is_davidsons() -> None:
    """Three votes, computed by hand."""
    votes = VoteColumns(
        np.array([[1.0], [2.0], [-1.0]]), np.array([1, 0, 1], np.int8), ["a", "b", "c"]
    )
    weight, tie = 0.8, -0.3
    chances = []
    for difference, outcome in ((0.8, "a"), (1.6, "tie"), (-0.8, "a")):
        odds = {"a": np.exp(difference / 2), "b": np.exp(-difference / 2), "tie": np.exp(tie)}
        chances.append(odds[outcome] / sum(odds.values()))
    loss, _ = davidson_loss(np.array([weight, tie]), votes, np.array([0.5, 0.0]))
    assert loss == pytest.approx(-np.log(chances).mean() + 0.25 * weight**2)


def test_gradients_equal_finite_differences() -> None:
    """The gradients of both likelihoods, at random points."""
    random = np.random.default_rng(1)
    votes, held = make_votes(), np.array([0.1, 0.3, 0.0, 0.2])
    level = random.normal(size=60)
    for _ in range(5):
        point = random.normal(size=4)
        numeric = approx_fprime(point, lambda x: davidson_loss(x, votes, held)[0], 1e-7)
        np.testing.assert_allclose(davidson_loss(point, votes, held)[1], numeric, atol=1e-5)
        known = (votes.differences[:, 0], level, votes.outcomes)
        numeric = approx_fprime(point[:3], lambda x, known=known: tie_loss(x, *known)[0], 1e-7)
        np.testing.assert_allclose(tie_loss(point[:3], *known)[1], numeric, atol=1e-5)


def test_vote_order_does_not_matter() -> None:
    """Swapping every other vote does not change the weights."""
    votes, *_ = drawn([1.5, -0.5], TieCurve(0.2, 0.0, 0.0), 400, seed=2)
    turn = np.where(np.arange(400) % 2, -1, 1)
    turned = VoteColumns(
        votes.differences * turn[:, None],
        (votes.outcomes * turn).astype(np.int8),
        votes.query_ids,
    )
    np.testing.assert_allclose(
        fit_weights(turned, 0)[0], fit_weights(votes, 0)[0], rtol=1e-3, atol=1e-3
    )


def test_true_weights_are_recovered() -> None:
    """From many votes with known weights."""
    votes, *_ = drawn([1.5, -0.8, 0.0], TieCurve(0.1, 0.0, 0.0), 20_000, seed=3)
    weights, penalty = fit_weights(votes, 0)
    np.testing.assert_allclose(weights, [1.5, -0.8, 0.0], atol=0.08)
    assert penalty == 0.001


def test_uninformative_features_are_shrunk() -> None:
    """With few votes and one informative feature, the strongest penalties are chosen."""
    votes, *_ = drawn([1.5, *[0.0] * 8], TieCurve(0.1, 0.0, 0.0), 120, seed=4)
    weights, penalty = fit_weights(votes, 0)
    assert penalty >= 0.1
    assert np.abs(weights[1:]).max() < 0.15 * weights[0]


def test_true_tie_curve_is_recovered() -> None:
    """All three parameters, from many votes."""
    made = TieCurve(0.6, 0.4, -0.5)
    votes, difference, level = drawn([1.0, 1.0], made, 40_000, seed=5)
    found = fit_ties(difference, level, votes.outcomes)
    assert found.at_zero == pytest.approx(made.at_zero, abs=0.08)
    assert found.fade == pytest.approx(made.fade, abs=0.08)
    assert found.by_level == pytest.approx(made.by_level, abs=0.08)


@pytest.mark.parametrize("curve", [TieCurve(0.7, 0.0, 0.0), TieCurve(0.5, 0.6, -0.4)])
def test_at_the_threshold_a_tie_is_as_likely_as_a_win(curve: TieCurve) -> None:
    """The closed form equals the root of the two log-odds."""
    for level in (-1.0, 0.0, 1.0):
        root = brentq(
            lambda gap, level=level: (
                curve.at_zero - curve.fade * gap + curve.by_level * level - gap / 2
            ),
            0.0,
            50.0,
        )
        assert curve.threshold(np.array([level]))[0] == pytest.approx(root)


def test_the_threshold_agrees_with_most_votes() -> None:
    """On votes from the model, no constant threshold is better than the curve's."""
    curve = TieCurve(0.8, 0.3, -0.6)
    votes, difference, level = drawn([1.0], curve, 40_000, seed=6)

    def agreement(threshold: np.ndarray | float) -> float:
        predicted = np.where(np.abs(difference) < threshold, 0, np.sign(difference))
        return float((predicted == votes.outcomes).mean())

    own = agreement(curve.threshold(level))
    assert all(own > agreement(constant) + 0.005 for constant in np.linspace(0, 4, 41))


def test_threshold_is_zero_if_a_tie_is_never_most_likely() -> None:
    """Even for two equal responses, a win is more likely."""
    assert TieCurve(-0.4, 0.2, 0.0).threshold(np.array([-1.0, 0.0, 9.0])).tolist() == [0, 0, 0]


def test_votes_that_never_tie_or_never_contradict_stay_finite() -> None:
    """The weak penalty keeps parameters finite."""
    differences = np.linspace(-2, 2, 40)[:, None]
    outcomes = np.sign(differences[:, 0]).astype(np.int8)
    weights, _ = fit_weights(VoteColumns(differences, outcomes, [str(n % 8) for n in range(40)]), 0)
    ties = fit_ties(differences[:, 0], np.zeros(40), outcomes)
    assert 0 < weights[0] < 50
    assert -50 < ties.at_zero < 0
