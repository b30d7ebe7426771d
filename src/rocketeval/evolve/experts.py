"""An expert: a random forest that weighs answers for one sort of query.

Grown by scikit-learn, kept and asked as plain arrays: a forest that was read from a file says the
same to the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rocketeval.errors import ArtifactError
from rocketeval.evolve.cases import Floats
from rocketeval.evolve.grow import ForestSettings, Lessons, grow_trees, node_values
from rocketeval.scoring.forest import Forest, forest_of


@dataclass(frozen=True, eq=False)
class Expert:
    """What one forest learned."""

    forest: Forest
    values: Floats
    """What each node says, shape (nodes, outputs): a share for each of `OUTCOMES`, or a label."""
    attention: Floats
    """Each perspective's share in its decisions; they sum to one, or all are zero."""
    settings: ForestSettings

    def predict(self, answers: Floats) -> Floats:
        """Return the mean over the trees, shape (cases, outputs)."""
        leaves = self.forest.leaves(answers)
        outputs = [
            self.values[:, place].take(leaves).sum(axis=0) / len(leaves)
            for place in range(self.values.shape[1])
        ]
        return np.stack(outputs, axis=1)

    def spread(self, answers: Floats) -> Floats:
        """Return how far apart the trees' labels are: their standard deviation for each case."""
        deviation: Floats = self.values[:, 0].take(self.forest.leaves(answers)).std(axis=0)
        return deviation

    def check(self, perspectives: int, outputs: int) -> None:
        """Raise ArtifactError unless it is a forest over so many perspectives."""
        self.forest.check(perspectives)
        sound = (
            self.values.shape == (len(self.forest.item), outputs)
            and self.attention.shape == (perspectives,)
            and bool(np.isfinite(self.values).all())
            and bool(((self.attention >= 0.0) & (self.attention <= 1.0)).all())
        )
        if not sound:
            raise ArtifactError(
                "An expert of the saved evaluator does not fit together.",
                hint="The file is damaged: fit the evaluator again, or take another copy.",
            )


def grow_expert(lessons: Lessons, settings: ForestSettings, seed: int) -> Expert:
    """Return an expert grown from all of the lessons."""
    trees = grow_trees(lessons, settings, seed)
    shares = np.mean([tree.compute_feature_importances() for tree in trees], axis=0)
    total = float(shares.sum())
    attention: NDArray[np.float64] = shares / total if total > 0.0 else np.zeros(len(shares))
    forest, values = forest_of(trees), node_values(trees)
    leaf = forest.item < 0
    # What a node says on the way to a leaf is never read.
    return Expert(forest, np.where(leaf[:, None], values, 0.0), attention, settings)
