"""Votes with ties: likelihood, gradient, tie threshold, and ties by category."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import approx_fprime, brentq

from rocketeval.scoring.vote_model import TieCurve, VoteColumns, _VoteModel, fit_votes


def drawn(
    weights: list[float], curves: dict[str, TieCurve], votes: int, seed: int
) -> tuple[VoteColumns, NDArray[np.float64]]:
    """Return votes drawn from the model, and the difference of the two qualities of each."""
    random = np.random.default_rng(seed)
    names = sorted(curves)
    queries = np.arange(votes) % 50
    differences = random.normal(size=(votes, len(weights))) * np.sqrt(2)
    quality = differences @ np.array(weights)
    own = [curves[names[query % len(names)]] for query in queries]
    tie = np.array([curve.at_zero for curve in own])
    tie -= np.array([curve.fade for curve in own]) * np.abs(quality)
    odds = np.exp(np.stack([-quality / 2, tie, quality / 2]))
    below = np.cumsum(odds / odds.sum(axis=0), axis=0)
    outcomes = (random.uniform(size=votes) > below[:2]).sum(axis=0) - 1
    columns = VoteColumns(
        differences,
        outcomes.astype(np.int8),
        [f"q{query}" for query in queries],
        [names[query % len(names)] for query in queries],
    )
    return columns, quality


def model(votes: VoteColumns) -> _VoteModel:
    """Return the likelihood of these votes."""
    names, own = votes.groups()
    return _VoteModel(votes, own, len(names))


def test_the_likelihood_is_davidsons_without_fade() -> None:
    """Three votes, computed by hand."""
    votes = VoteColumns(
        np.array([[1.0], [2.0], [-1.0]]), np.array([1, 0, 1], np.int8), ["a", "b", "c"], [""] * 3
    )
    weight, tie = 0.8, -0.3
    chances = []
    for difference, outcome in ((0.8, "a"), (1.6, "tie"), (-0.8, "a")):
        odds = {"a": np.exp(difference / 2), "b": np.exp(-difference / 2), "tie": np.exp(tie)}
        chances.append(odds[outcome] / sum(odds.values()))
    own = model(votes)
    loss, _ = own.loss(np.array([weight, 0.0, tie]), own.everything, np.array([0.5, 0.0, 0.0]))
    assert loss == pytest.approx(-np.log(chances).mean() + 0.25 * weight**2)


def test_gradients_equal_finite_differences() -> None:
    """At random points, with categories and without."""
    random = np.random.default_rng(1)
    curves = {"easy": TieCurve(0.5, 0.2), "hard": TieCurve(-0.5, 0.2)}
    for chosen in (curves, {"": TieCurve(0.1, 0.3)}):
        own = model(drawn([1.0, 0.5], chosen, 60, seed=2)[0])
        held = own.held(0.3, 0.2)
        for _ in range(5):
            point = random.normal(size=len(held))
            numeric = approx_fprime(
                point, lambda x, own=own, held=held: own.loss(x, own.everything, held)[0], 1e-7
            )
            np.testing.assert_allclose(own.loss(point, own.everything, held)[1], numeric, atol=1e-5)


def test_vote_order_does_not_matter() -> None:
    """Swapping every other vote does not change the weights."""
    votes, _ = drawn([1.5, -0.5], {"": TieCurve(0.2, 0.1)}, 400, seed=2)
    turn = np.where(np.arange(400) % 2, -1, 1)
    turned = VoteColumns(
        votes.differences * turn[:, None],
        (votes.outcomes * turn).astype(np.int8),
        votes.query_ids,
        votes.categories,
    )
    np.testing.assert_allclose(
        fit_votes(turned, 0).weights, fit_votes(votes, 0).weights, rtol=1e-3, atol=1e-3
    )


def test_true_weights_and_tie_curves_are_recovered() -> None:
    """From many votes with known weights, fade and ties by category."""
    made = {"math": TieCurve(0.9, 0.3), "writing": TieCurve(-0.3, 0.3)}
    votes, _ = drawn([1.5, -0.8, 0.0], made, 20_000, seed=3)
    found = fit_votes(votes, 0)
    np.testing.assert_allclose(found.weights, [1.5, -0.8, 0.0], atol=0.1)
    for name, curve in made.items():
        assert found.by_category[name].at_zero == pytest.approx(curve.at_zero, abs=0.12)
        assert found.by_category[name].fade == pytest.approx(curve.fade, abs=0.12)


def test_uninformative_features_are_shrunk() -> None:
    """With few votes and one informative feature, a strong penalty is chosen."""
    votes, _ = drawn([1.5, *[0.0] * 8], {"": TieCurve(0.1, 0.0)}, 120, seed=4)
    found = fit_votes(votes, 0)
    assert found.penalty >= 0.1
    own = model(votes)
    loose = own.fit(own.everything, 0.001, 0.0)[1:9]
    assert np.linalg.norm(found.weights[1:]) < 0.8 * np.linalg.norm(loose)


def test_equal_categories_get_nearly_equal_curves() -> None:
    """Offsets of categories that do not differ are shrunk toward 0."""
    votes, _ = drawn([1.0], {str(n): TieCurve(0.2, 0.1) for n in range(5)}, 300, seed=8)
    heights = [curve.at_zero for curve in fit_votes(votes, 0).by_category.values()]
    assert np.ptp(heights) < 0.2


@pytest.mark.parametrize("curve", [TieCurve(0.7, 0.0), TieCurve(0.5, 0.6)])
def test_at_the_threshold_a_tie_is_as_likely_as_a_win(curve: TieCurve) -> None:
    """The closed form equals the root of the two log-odds."""
    root = brentq(lambda gap: curve.at_zero - curve.fade * gap - gap / 2, 0.0, 50.0)
    assert curve.threshold == pytest.approx(root)


def test_the_threshold_agrees_with_most_votes() -> None:
    """On votes from the model, thresholds by category are better than any constant one."""
    curves = {"math": TieCurve(1.2, 0.3), "writing": TieCurve(-0.5, 0.3)}
    votes, quality = drawn([1.0], curves, 40_000, seed=6)

    def agreement(threshold: NDArray[np.float64] | float) -> float:
        predicted = np.where(np.abs(quality) < threshold, 0, np.sign(quality))
        return float((predicted == votes.outcomes).mean())

    own = agreement(np.array([curves[name].threshold for name in votes.categories]))
    assert all(own > agreement(constant) + 0.005 for constant in np.linspace(0, 4, 41))


def test_threshold_is_zero_if_a_tie_is_never_most_likely() -> None:
    """Even for two equal responses, a win is more likely."""
    assert TieCurve(-0.4, 0.2).threshold == 0.0


def test_votes_that_never_tie_or_never_contradict_stay_finite() -> None:
    """The weak penalty keeps parameters finite."""
    differences = np.linspace(-2, 2, 40)[:, None]
    outcomes = np.sign(differences[:, 0]).astype(np.int8)
    votes = VoteColumns(differences, outcomes, [str(n % 8) for n in range(40)])
    found = fit_votes(votes, 0)
    assert 0 < found.weights[0] < 50
    assert found.ties.threshold == 0.0
    assert np.isfinite([found.ties.at_zero, found.ties.fade]).all()
