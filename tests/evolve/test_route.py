"""The router: similar traits go to the same expert, and every expert has training data."""

from __future__ import annotations

import numpy as np

from rocketeval.evolve.select import LEAST_WEIGHT, Router

TRAITS = np.array([[0.9, 0.1], [0.8, 0.9], [0.1, 0.2], [0.2, 0.7], [0.9, np.nan]])
WEIGHTS = np.array([1.0, 0.2])


def router(count: int) -> Router:
    """A router that weighs the first trait most."""
    return Router.fit(("x", "y"), TRAITS, WEIGHTS, count, seed=0)


def test_vectors_are_weights_of_present_traits() -> None:
    """A p_yes above one half is a yes; missing counts as absent."""
    found = router(2).vectors(TRAITS)
    assert found.tolist() == [[1.0, 0.0], [1.0, 0.2], [0.0, 0.0], [0.0, 0.2], [1.0, 0.0]]


def test_heavier_trait_decides_the_clusters() -> None:
    """Queries that share it go to the same expert, whatever the lighter one says."""
    first, second, third, fourth, fifth = router(2).route(TRAITS).tolist()
    assert first == second == fifth != third == fourth


def test_a_new_query_goes_to_the_nearest_centroid() -> None:
    """Compared with distances computed by hand."""
    found = router(2)
    new = np.array([[1.0, 1.0], [0.0, 1.0]])
    distances = np.linalg.norm(found.vectors(new)[:, None] - found.centroids, axis=2)
    assert found.route(new).tolist() == distances.argmin(axis=1).tolist()


def test_weights_fall_with_distance() -> None:
    """Largest for the own expert; never below the minimum."""
    found = router(2)
    weights = found.sample_weights(TRAITS)
    assert weights.argmax(axis=1).tolist() == found.route(TRAITS).tolist()
    assert weights.min() >= LEAST_WEIGHT
    assert weights.max() <= 1.0
    assert weights.max(axis=1).min() > 4.0 * weights.min(axis=1).max()


def test_no_more_experts_than_distinct_queries() -> None:
    """Four vectors can fill four experts; identical vectors fill one."""
    assert router(9).experts == 4
    alike = Router.fit(("x", "y"), TRAITS, np.zeros(2), 3, seed=0)
    assert alike.experts == 1
    assert alike.sample_weights(TRAITS).tolist() == [[1.0]] * len(TRAITS)


def test_one_expert_without_query_perspectives() -> None:
    """A table need not have any."""
    found = Router.fit((), np.zeros((5, 0)), np.zeros(0), 3, seed=0)
    assert found.experts == 1
    assert found.route(np.zeros((2, 0))).tolist() == [0, 0]


def test_the_same_seed_gives_the_same_centroids() -> None:
    """Bit for bit."""
    assert router(3).centroids.tobytes() == router(3).centroids.tobytes()
