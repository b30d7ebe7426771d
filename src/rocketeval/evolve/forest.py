"""An expert: a random forest that weighs answers for one sort of query, and its settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rocketeval.arrays import Floats
from rocketeval.errors import ArtifactError
from rocketeval.evolve.cases import OUTCOMES, Task
from rocketeval.scoring.forest import LEAF, Forest, forest_of, grow_trees, importances_of
from rocketeval.scoring.split import inner_folds

COLUMNS = 1.0 / 3.0
"""Share of the perspectives that a split chooses among: judges leave few that tell much."""


@dataclass(frozen=True, order=True)
class ForestSettings:
    """Settings of one forest, by scikit-learn's names."""

    n_estimators: int = 100
    max_depth: int = 5
    min_samples_split: int = 2
    min_samples_leaf: int = 5


SPACES: dict[Literal["short", "paper"], tuple[ForestSettings, ...]] = {
    "short": tuple(
        ForestSettings(100, depth, 2, leaf) for depth, leaf in product((3, 5, 10), (1, 2, 5, 10))
    ),
    "paper": tuple(
        ForestSettings(trees, depth, split, leaf)
        for trees, depth, split, leaf in product(
            (50, 100), (3, 5, 10), (2, 5, 10, 15), (1, 2, 5, 10)
        )
    ),
}
"""Settings to choose among, those of the paper's Table 7 and a few of them."""


@dataclass(frozen=True, eq=False)
class TrainingCases:
    """Cases to learn from."""

    task: Task
    answers: Floats
    """Nothing missing."""
    gold: Floats
    """Of pairs -1, 0 or 1; of scores the label."""
    weights: Floats
    """How much each case counts; the largest need not be 1."""
    queries: NDArray[np.int64]
    """The number of each case's query: folds never cut through one."""

    def take(self, rows: NDArray[np.bool_]) -> TrainingCases:
        """Return some of the cases."""
        return TrainingCases(
            self.task, self.answers[rows], self.gold[rows], self.weights[rows], self.queries[rows]
        )

    def targets(self) -> Floats:
        """Return what a perfect forest says: 1 for the outcome and 0 for others, or the label."""
        return targets(self.task, self.gold)


def targets(task: Task, gold: Floats) -> Floats:
    """Return what trees learn: of pairs one column an outcome, of scores the label.

    The squared error of such columns, over all of them, is the Gini impurity of the outcomes: a
    tree that regresses on them splits as one that classifies, and scikit-learn checks less of what
    it is given, which takes longer than growing a small tree.
    """
    if task == "scores":
        return gold[:, None]
    outcomes = np.arange(-1, len(OUTCOMES) - 1)
    given: Floats = (gold[:, None] == outcomes).astype(np.float64)
    return given


def fit_trees(
    cases: TrainingCases, settings: ForestSettings, seed: int, columns: float = COLUMNS
) -> list[Any]:
    """Return trees of scikit-learn, each of another draw of the cases.

    A case is drawn in proportion to its weight, and as many are drawn as the weights sum to when
    the largest is 1: so the settings that count cases count those that count for this expert.
    """
    chances = cases.weights / cases.weights.sum()
    draws = max(1, round(float(cases.weights.sum() / cases.weights.max())))

    def draw(random: np.random.RandomState) -> tuple[Any, Floats]:
        return slice(None), random.multinomial(draws, chances).astype(np.float64)

    return grow_trees(
        cases.answers,
        cases.targets(),
        settings.n_estimators,
        np.random.RandomState(seed % 2**32),
        draw,
        max_depth=settings.max_depth,
        min_samples_split=settings.min_samples_split,
        min_samples_leaf=settings.min_samples_leaf,
        max_features=columns,
    )


def node_values(trees: list[Any]) -> Floats:
    """Return what each node of the trees, one after the other, says: (nodes, outputs).

    Of pairs, one share an outcome, in the order of `OUTCOMES`; of scores, the label.
    """
    values: Floats = np.concatenate([tree.value[:, :, 0] for tree in trees])
    return values


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


def fit_expert(cases: TrainingCases, settings: ForestSettings, seed: int) -> Expert:
    """Return an expert grown from all of the training cases."""
    trees = fit_trees(cases, settings, seed)
    forest = forest_of(trees)
    # The values of inner nodes are never read.
    values = np.where((forest.item == LEAF)[:, None], node_values(trees), 0.0)
    return Expert(forest, values, importances_of(trees), settings)


TREES_TO_CHOOSE = 30
"""Trees of a forest that is only compared with others of as many trees."""


def best_settings(
    cases: TrainingCases, space: Sequence[ForestSettings], seed: int
) -> ForestSettings:
    """Return the settings with the least squared error on left-out queries; of equals the first.

    Of pairs that is the Brier score: it asks for good probabilities, on which confidence rests,
    and tells settings apart where accuracy is the same by chance.
    """
    folds = inner_folds(cases.queries, seed)
    losses = np.zeros(len(space))
    for fold in range(int(folds.max()) + 1):
        learned, held_out = cases.take(folds != fold), cases.take(folds == fold)
        losses += _losses(learned, held_out, space, seed + fold)
    return space[int(losses.argmin())]


def _losses(
    learned: TrainingCases, held_out: TrainingCases, space: Sequence[ForestSettings], seed: int
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
        trees = fit_trees(learned, largest, seed)
        for place, predicted in zip(places, _cut_off(learned, trees, held_out, tried), strict=True):
            errors = ((predicted - targets) ** 2).sum(axis=1)
            losses[place] = float(held_out.weights @ errors)
    return losses


def _cut_off(
    learned: TrainingCases, trees: list[Any], asked: TrainingCases, tried: Sequence[ForestSettings]
) -> list[Floats]:
    """What smaller forests within these trees say about the cases asked."""
    forest, values = forest_of(trees), node_values(trees)
    cases = np.concatenate([tree.n_node_samples for tree in trees])
    predicted: dict[tuple[int, int], Floats] = {}
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
                predicted[split, depth] = values[node]
    return [
        predicted[one.min_samples_split, one.max_depth][: one.n_estimators].mean(axis=0)
        for one in tried
    ]
