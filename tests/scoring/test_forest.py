"""Forests as arrays: equal to scikit-learn, and invalid shapes are refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor
from sklearn.tree import ExtraTreeRegressor

from rocketeval.errors import ArtifactError
from rocketeval.scoring.forest import LEAF, Forest, forest_of, grow_trees, importances_of

RNG = np.random.default_rng(0)


def grown(labels: int = 40, trees: int = 7) -> Forest:
    """Return a small forest on six items, always the same."""
    random = np.random.default_rng(1)
    answers, targets = random.random((labels, 6)), random.integers(1, 11, (labels, 1)).astype(float)
    seed = np.random.RandomState(0)
    return forest_of(grow_trees(answers, targets, trees, seed, random_thresholds=True))


@pytest.mark.parametrize("kind", [ExtraTreesRegressor, RandomForestRegressor])
@pytest.mark.parametrize("rows", [1, 3, 257])
def test_predictions_equal_scikit_learn(kind: type, rows: int) -> None:
    """To the last bit, for any number of rows and answers of 0, 1 and 0.5."""
    p_yes = RNG.random((50, 8)).round(1)
    model = kind(30, random_state=1).fit(p_yes, RNG.integers(1, 11, 50).astype(float))
    asked = np.vstack([RNG.random((rows, 8)), np.zeros((1, 8)), np.ones((1, 8)), p_yes[:5]])
    forest = forest_of([tree.tree_ for tree in model.estimators_])
    assert forest.predict(asked).tobytes() == model.predict(asked).tobytes()


def test_row_does_not_depend_on_other_rows() -> None:
    """Alone or among thousands, a row gets the same number."""
    forest, asked = grown(), RNG.random((2000, 6))
    together = forest.predict(asked)
    assert [forest.predict(asked[[row]])[0] for row in (0, 7, 1999)] == [
        together[0],
        together[7],
        together[1999],
    ]


def test_importances_equal_scikit_learn() -> None:
    """The mean over the trees."""
    p_yes, labels = RNG.random((60, 5)), RNG.random(60)
    labels += 3.0 * p_yes[:, 2]
    random = np.random.RandomState(3)
    trees = [ExtraTreeRegressor(random_state=random).fit(p_yes, labels) for _ in range(20)]
    expected = np.mean([tree.feature_importances_ for tree in trees], axis=0)
    importance = importances_of([tree.tree_ for tree in trees])
    assert importance == pytest.approx(expected)
    assert importance.sum() == pytest.approx(1.0)
    assert importance.argmax() == 2


def test_tree_without_split_is_one_leaf() -> None:
    """Identical labels give their value and no importance."""
    grown = grow_trees(
        RNG.random((5, 3)), np.full((5, 1), 4.0), 2, np.random.RandomState(0), max_features=1.0
    )
    forest = forest_of(grown)
    assert forest.predict(RNG.random((4, 3))).tolist() == [4.0] * 4
    assert importances_of(grown).tolist() == [0.0] * 3
    forest.check(3)


def broken(field: str, place: int, value: float) -> Forest:
    """Return a valid forest with one number replaced."""
    forest = grown()
    array = getattr(forest, field).copy()
    array[place] = value
    return replace(forest, **{field: array})


def inner(forest: Forest) -> int:
    """Return the index of an inner node."""
    return int(np.flatnonzero(forest.item != LEAF)[0])


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("roots", 10**6),
        ("roots", -1),
        ("item", 6),
        ("item", -2),
        ("right", 0),
        ("right", 10**6),
        ("number", np.nan),
        ("number", np.inf),
    ],
)
def test_invalid_tree_is_refused(field: str, value: float) -> None:
    """Out of range, backwards or not a number: never an endless loop."""
    forest = grown()
    forest.check(6)
    place = 0 if field == "roots" else inner(forest)
    with pytest.raises(ArtifactError, match="tree is invalid"):
        broken(field, place, value).check(6)


def test_leaf_with_a_child_is_refused() -> None:
    """A leaf's right child is itself."""
    leaf = int(np.flatnonzero(grown().item == LEAF)[0])
    with pytest.raises(ArtifactError):
        broken("right", leaf, leaf + 1).check(6)


def test_shared_children_are_refused() -> None:
    """Forty nodes with shared children would allow a trillion paths."""
    nodes = 41
    shared = Forest(
        roots=np.zeros(1, np.int32),
        item=np.array([0] * (nodes - 1) + [LEAF], np.int16),
        right=np.minimum(np.arange(1, nodes + 1), nodes - 1).astype(np.int32),
        number=np.full(nodes, 0.5),
    )
    with pytest.raises(ArtifactError, match="tree is invalid"):
        shared.check(6)


def test_arrays_of_different_lengths_are_refused() -> None:
    """All node arrays must have the same length."""
    forest = grown()
    with pytest.raises(ArtifactError):
        replace(forest, number=forest.number[:-1]).check(6)
