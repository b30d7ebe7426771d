"""Forests of regression trees, grown with scikit-learn and stored as plain arrays.

A forest is saved without pickle, and predicts the same numbers to the last bit with any version of
scikit-learn, because prediction uses only numpy.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocketeval.arrays import Floats
from rocketeval.errors import ArtifactError
from rocketeval.scoring.learning import split_array

LEAF = -1
"""Item number of a leaf."""

_BLOCK_CELLS = 10_000
# Keep the current nodes of all rows in the processor's cache.


@dataclass(frozen=True, eq=False)
class Forest:
    """Concatenated trees in depth-first order: a node's left child is the next node."""

    roots: NDArray[np.int32]
    """Index of each tree's root."""
    item: NDArray[np.int16]
    """Item number of each node, or `LEAF`."""
    right: NDArray[np.int32]
    """Index of the child for answers above the threshold; for a leaf, its own index."""
    number: Floats
    """Threshold of a node, or value of a leaf."""

    def predict(self, p_yes: Floats) -> Floats:
        """Return the mean over the trees for each row of answers."""
        values = self.number.take(self.leaves(p_yes))
        means: Floats = values.sum(axis=0) / len(self.roots)
        return means

    def leaves(self, p_yes: Floats) -> NDArray[np.intp]:
        """Return the leaf index of each row in each tree, with shape (trees, rows).

        Answers are compared with thresholds in single precision, as in training.
        """
        rows, trees, nodes = len(p_yes), len(self.roots), len(self.item)
        by_item = p_yes.astype(np.float32).astype(np.float64).T.ravel()
        leaf = self.item == LEAF
        # No answer is below a leaf's threshold, so a row stays at its leaf.
        threshold = np.where(leaf, -np.inf, self.number)
        column = np.where(leaf, 0, self.item).astype(np.intp) * rows
        child = np.stack([self.right.astype(np.intp), np.arange(1, nodes + 1)], axis=1).ravel()
        places, depth = np.empty((trees, rows), dtype=np.intp), self._depth()
        block = max(1, _BLOCK_CELLS // max(rows, 1))
        for start in range(0, trees, block):
            roots = self.roots[start : start + block].astype(np.intp)
            node, row = np.repeat(roots, rows), np.tile(np.arange(rows), len(roots))
            for _ in range(depth):
                below = by_item.take(column.take(node) + row) <= threshold.take(node)
                node = child.take(2 * node + below)
            places[start : start + block] = node.reshape(len(roots), rows)
        return places

    def _depth(self) -> int:
        """Return the depth of the deepest tree."""
        depth, level = -1, self.roots
        while level.size:
            depth += 1
            inner = level[self.item[level] != LEAF]
            level = np.concatenate([inner + 1, self.right[inner]])
        return depth

    def check(self, items: int) -> None:
        """Raise ArtifactError unless the arrays form valid trees over the items."""
        if not (self._has_sound_nodes(items) and self._has_one_parent_each()):
            raise ArtifactError(
                "A saved tree is invalid.",
                hint="The file is damaged: fit the scorer again, or use another copy.",
            )

    def _has_sound_nodes(self, items: int) -> bool:
        nodes = len(self.item)
        if not (nodes == len(self.right) == len(self.number) and nodes and len(self.roots)):
            return False
        places, leaf = np.arange(nodes), self.item == LEAF
        return bool(
            leaf[-1]
            and ((self.roots >= 0) & (self.roots < nodes)).all()
            and ((self.item >= LEAF) & (self.item < items)).all()
            # Children come after their parent, so there are no cycles.
            and np.where(leaf, self.right == places, self.right > places).all()
            and (self.right < nodes).all()
            and np.isfinite(self.number).all()
        )

    def _has_one_parent_each(self) -> bool:
        """Return whether every node has exactly one parent."""
        inner = np.flatnonzero(self.item != LEAF)
        children = np.concatenate([inner + 1, self.right[inner], self.roots])
        return bool((np.bincount(children, minlength=len(self.item)) == 1).all())


Draw = Callable[[np.random.RandomState], tuple[Any, Floats | None]]
"""Draws the training rows of one tree, and their weights."""


def all_rows(_: np.random.RandomState) -> tuple[Any, None]:
    """Return all rows, unweighted."""
    return slice(None), None


def grow_trees(
    answers: Floats,
    targets: Floats,
    count: int,
    random: np.random.RandomState,
    draw: Draw = all_rows,
    *,
    random_thresholds: bool = False,
    **settings: Any,
) -> list[Any]:
    """Grow scikit-learn trees that regress on `targets` (rows, outputs).

    The trees share one random generator, since seeding one per tree costs more than growing it.
    """
    import sklearn
    from sklearn.tree import DecisionTreeRegressor, ExtraTreeRegressor

    kind = ExtraTreeRegressor if random_thresholds else DecisionTreeRegressor
    x, grown = answers.astype(np.float32), []
    with sklearn.config_context(skip_parameter_validation=True, assume_finite=True):
        for _ in range(count):
            rows, weights = draw(random)
            tree = kind(random_state=random, **settings)
            tree.fit(x[rows], targets[rows], sample_weight=weights, check_input=False)
            grown.append(tree.tree_)
    return grown


def importances_of(grown: Sequence[Any]) -> Floats:
    """Return each column's mean importance as a share; zeros if no tree splits."""
    return shares_of(np.mean([tree.compute_feature_importances() for tree in grown], axis=0))


def shares_of(values: Floats) -> Floats:
    """Return values divided by their sum; zeros if all are zero."""
    total = values.sum()
    return values / total if total > 0.0 else np.zeros(len(values))


def forest_of(grown: Sequence[Any]) -> Forest:
    """Convert scikit-learn trees to arrays; with several classes, keep the first one's share."""
    sizes = [tree.node_count for tree in grown]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    first = np.repeat(starts[:-1], sizes)
    places = np.arange(starts[-1])
    left = np.concatenate([tree.children_left for tree in grown])
    leaf = left == LEAF
    if not bool((leaf | (left + first == places + 1)).all()):
        raise RuntimeError("scikit-learn no longer grows trees depth first")
    right = np.concatenate([tree.children_right for tree in grown]) + first
    threshold = np.concatenate([tree.threshold for tree in grown])
    value = np.concatenate([tree.value[:, 0, 0] for tree in grown])
    return Forest(
        roots=starts[:-1].astype(np.int32),
        item=np.where(leaf, LEAF, np.concatenate([tree.feature for tree in grown])).astype(
            np.int16
        ),
        right=np.where(leaf, places, right).astype(np.int32),
        number=np.where(leaf, value, threshold),
    )


Arrays = Mapping[str, NDArray[Any]]

_KINDS: Mapping[str, type[np.generic]] = {
    "roots": np.int32,
    "item": np.int16,
    "right": np.int32,
    "number": np.float64,
}


def pack_forests(
    forests: Collection[Forest],
) -> tuple[dict[str, list[int]], dict[str, NDArray[Any]]]:
    """Return the numbers of trees and nodes per forest, and all nodes concatenated."""
    sizes = {
        "trees": [len(forest.roots) for forest in forests],
        "nodes": [len(forest.item) for forest in forests],
    }
    arrays = {
        name: np.concatenate([np.zeros(0, kind), *(getattr(forest, name) for forest in forests)])
        for name, kind in _KINDS.items()
    }
    return sizes, arrays


def unpack_forests(sizes: Mapping[str, Sequence[int]], arrays: Arrays) -> list[Forest]:
    """Restore the forests; raise ValueError if the arrays do not match the sizes."""
    parts = {
        name: split_array(
            arrays[name], kind, sizes["trees" if name == "roots" else "nodes"], least=1
        )
        for name, kind in _KINDS.items()
    }
    columns = zip(*parts.values(), strict=True)
    return [Forest(roots, item, right, number) for roots, item, right, number in columns]
