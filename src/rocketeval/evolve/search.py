"""Which settings suit a forest, by how well it predicts left-out queries.

A tree that may grow deep holds the shallow one: cut off at depth 3, or where fewer cases meet than
a split needs, it is a tree as the smaller settings grow it, and its first 50 trees are a forest of
50. So all 96 settings of the paper are tried by growing four forests a fold.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocketeval.evolve.cases import Floats
from rocketeval.evolve.grow import ForestSettings, Lessons, grow_trees, node_values
from rocketeval.scoring.forest import LEAF, forest_of

INNER_FOLDS = 3
"""Parts of the queries for choices within training."""
TREES_TO_CHOOSE = 30
"""Trees of a forest that is only compared with others of as many trees."""


def best_settings(lessons: Lessons, space: Sequence[ForestSettings], seed: int) -> ForestSettings:
    """Return the settings with the least squared error on left-out queries; of equals the first.

    Of pairs that is the Brier score: it asks for good probabilities, on which confidence rests,
    and tells settings apart where accuracy is the same by chance.
    """
    folds = inner_folds(lessons.queries, seed)
    losses = np.zeros(len(space))
    for fold in range(int(folds.max()) + 1):
        learned, held_out = lessons.take(folds != fold), lessons.take(folds == fold)
        losses += _losses(learned, held_out, space, seed + fold)
    return space[int(losses.argmin())]


def inner_folds(queries: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
    """Return the fold of each case for choices within training; queries stay whole."""
    names, place = np.unique(queries, return_inverse=True)
    order = np.random.default_rng(seed).permutation(len(names))
    folds: NDArray[np.int64] = (order % min(INNER_FOLDS, len(names)))[place]
    return folds


def _losses(
    learned: Lessons, held_out: Lessons, space: Sequence[ForestSettings], seed: int
) -> Floats:
    """Each setting's weighted sum of squared errors."""
    losses, targets = np.zeros(len(space)), held_out.targets()
    for leaf in sorted({one.min_samples_leaf for one in space}):
        places = [place for place, one in enumerate(space) if one.min_samples_leaf == leaf]
        tried = [space[place] for place in places]
        sizes = {one.n_estimators for one in space}
        largest = ForestSettings(
            n_estimators=max(sizes) if len(sizes) > 1 else min(TREES_TO_CHOOSE, *sizes),
            max_depth=max(one.max_depth for one in tried),
            min_samples_split=min(one.min_samples_split for one in tried),
            min_samples_leaf=leaf,
        )
        trees = grow_trees(learned, largest, seed)
        for place, said in zip(places, _cut_off(learned, trees, held_out, tried), strict=True):
            errors = ((said - targets) ** 2).sum(axis=1)
            losses[place] = float(held_out.weights @ errors)
    return losses


def _cut_off(
    learned: Lessons, trees: list[Any], asked: Lessons, tried: Sequence[ForestSettings]
) -> list[Floats]:
    """What smaller forests within these trees say about the cases asked."""
    forest, values = forest_of(trees), node_values(trees)
    cases = np.concatenate([tree.n_node_samples for tree in trees])
    said: dict[tuple[int, int], Floats] = {}
    for split in sorted({one.min_samples_split for one in tried}):
        depths = {one.max_depth for one in tried if one.min_samples_split == split}
        stops = (forest.item == LEAF) | (cases < split)
        node = np.repeat(forest.roots.astype(np.intp)[:, None], len(asked.answers), axis=1)
        rows = np.arange(len(asked.answers))
        answers = asked.answers.astype(np.float32).astype(np.float64)
        for depth in range(1, max(depths) + 1):
            below = answers[rows, forest.item[node]] <= forest.number[node]
            onward = np.where(below, node + 1, forest.right[node])
            node = np.where(stops[node], node, onward)
            if depth in depths:
                said[split, depth] = values[node]
    return [
        said[one.min_samples_split, one.max_depth][: one.n_estimators].mean(axis=0) for one in tried
    ]
