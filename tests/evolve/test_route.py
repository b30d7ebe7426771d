"""The router: near traits go to the same expert, and nobody starves."""

from __future__ import annotations

import numpy as np

from rocketeval.evolve.select import LEAST_WEIGHT, Router

TRAITS = np.array([[0.9, 0.1], [0.8, 0.9], [0.1, 0.2], [0.2, 0.7], [0.9, np.nan]])
WEIGHTS = np.array([1.0, 0.2])


def router(count: int) -> Router:
    """A router that cares for the first trait most."""
    return Router.fit(("x", "y"), TRAITS, WEIGHTS, count, seed=0)


def test_vectors_are_weights_where_the_query_has_the_trait() -> None:
    """A p_yes of more than a half is a yes; what is missing counts as absent."""
    found = router(2).vectors(TRAITS)
    assert found.tolist() == [[1.0, 0.0], [1.0, 0.2], [0.0, 0.0], [0.0, 0.2], [1.0, 0.0]]


def test_the_heavier_trait_decides_the_groups() -> None:
    """Queries that share it go to the same expert, whatever the lighter one says."""
    first, second, third, fourth, fifth = router(2).route(TRAITS).tolist()
    assert first == second == fifth != third == fourth


def test_a_new_query_goes_to_the_nearest_centroid() -> None:
    """Held against distances by hand."""
    found = router(2)
    new = np.array([[1.0, 1.0], [0.0, 1.0]])
    distances = np.linalg.norm(found.vectors(new)[:, None] - found.centroids, axis=2)
    assert found.route(new).tolist() == distances.argmin(axis=1).tolist()


def test_cases_count_less_the_farther_they_are() -> None:
    """Most with their own expert; never less than the floor."""
    found = router(2)
    weights = found.sample_weights(TRAITS)
    assert weights.argmax(axis=1).tolist() == found.route(TRAITS).tolist()
    assert weights.min() >= LEAST_WEIGHT
    assert weights.max() <= 1.0
    assert weights.max(axis=1).min() > 4.0 * weights.min(axis=1).max()


def test_there_are_no_more_experts_than_different_queries() -> None:
    """Four vectors can fill four experts, and vectors that are all alike one."""
    assert router(9).experts == 4
    alike = Router.fit(("x", "y"), TRAITS, np.zeros(2), 3, seed=0)
    assert alike.experts == 1
    assert alike.sample_weights(TRAITS).tolist() == [[1.0]] * len(TRAITS)


def test_without_perspectives_about_queries_there_is_one_expert() -> None:
    """A table need not have any."""
    found = Router.fit((), np.zeros((5, 0)), np.zeros(0), 3, seed=0)
    assert found.experts == 1
    assert found.route(np.zeros((2, 0))).tolist() == [0, 0]


def test_the_same_seed_gives_the_same_centroids() -> None:
    """To the last bit."""
    assert router(3).centroids.tobytes() == router(3).centroids.tobytes()
