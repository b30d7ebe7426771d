"""Experts: random forests that weigh answers for one type of query, and their settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rocketeval.arrays import Floats
from rocketeval.errors import ArtifactError, Stopped
from rocketeval.evolve.cases import OUTCOMES, Task
from rocketeval.scoring.forest import LEAF, Forest, forest_of, grow_trees, importances_of
from rocketeval.scoring.split import inner_folds

COLUMNS = 1.0 / 3.0
"""Share of the perspectives considered at a split; few perspectives are informative."""
is_stopped: ContextVar[Callable[[], bool] | None] = ContextVar("is_stopped", default=None)
"""Returns whether to stop fitting. A thread cannot be canceled, so it asks before each forest."""


@dataclass(frozen=True, order=True)
class ForestSettings:
    """Settings of one forest, with scikit-learn's names."""

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
"""Search spaces of settings: those of the paper's Table 7, and a short selection of them."""


@dataclass(frozen=True, eq=False)
class TrainingCases:
    """Training cases of an expert."""

    task: Task
    answers: Floats
    """Answers without missing values."""
    gold: Floats
    """For pairs -1, 0 or 1; for scores the label."""
    weights: Floats
    """Weight of each case; the largest need not be 1."""
    queries: NDArray[np.int64]
    """Query number of each case; folds keep the cases of one query together."""

    def take(self, rows: NDArray[np.bool_]) -> TrainingCases:
        """Return some of the cases."""
        return TrainingCases(
            self.task, self.answers[rows], self.gold[rows], self.weights[rows], self.queries[rows]
        )

    def targets(self) -> Floats:
        """Return the regression targets: one-hot outcomes, or the label."""
        return targets(self.task, self.gold)


def targets(task: Task, gold: Floats) -> Floats:
    """Return what trees learn: for pairs one column per outcome, for scores the label.

    The total squared error over these columns is the Gini impurity of the outcomes, so a
    regression tree splits exactly like a classification tree. scikit-learn validates its input less
    for regression, and that validation takes longer than growing a small tree.
    """
    if task == "scores":
        return gold[:, None]
    outcomes = np.arange(-1, len(OUTCOMES) - 1)
    given: Floats = (gold[:, None] == outcomes).astype(np.float64)
    return given


def fit_trees(
    cases: TrainingCases, settings: ForestSettings, seed: int, columns: float = COLUMNS
) -> list[Any]:
    """Return scikit-learn trees, each fitted to its own bootstrap sample of the cases.

    Cases are drawn in proportion to their weight. The sample size is the sum of the weights scaled
    to a maximum of 1, so settings such as the minimum leaf size refer to effective cases. Raises
    Stopped if `is_stopped` says so.
    """
    stopped = is_stopped.get()
    if stopped is not None and stopped():
        raise Stopped("Stopped before the end.")
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
    """Return the output of each node of the concatenated trees, shape (nodes, outputs).

    For pairs, one share per outcome, in the order of `OUTCOMES`; for scores, the label.
    """
    values: Floats = np.concatenate([tree.value[:, :, 0] for tree in trees])
    return values


@dataclass(frozen=True, eq=False)
class Expert:
    """A fitted forest as arrays."""

    forest: Forest
    values: Floats
    """Output of each node, shape (nodes, outputs): a share for each of `OUTCOMES`, or a label."""
    attention: Floats
    """Each perspective's importance in the forest; they sum to one or are all zero."""
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
        """Return the standard deviation of the trees' labels for each case."""
        deviation: Floats = self.values[:, 0].take(self.forest.leaves(answers)).std(axis=0)
        return deviation

    def check(self, perspectives: int, outputs: int) -> None:
        """Raise ArtifactError unless the arrays form a forest of this shape."""
        self.forest.check(perspectives)
        sound = (
            self.values.shape == (len(self.forest.item), outputs)
            and self.attention.shape == (perspectives,)
            and bool(np.isfinite(self.values).all())
            and bool(((self.attention >= 0.0) & (self.attention <= 1.0)).all())
        )
        if not sound:
            raise ArtifactError(
                "The arrays of an expert in the saved evaluator are inconsistent.",
                hint="The file is damaged: fit the evaluator again, or use another copy.",
            )


def fit_expert(cases: TrainingCases, settings: ForestSettings, seed: int) -> Expert:
    """Return an expert grown from all of the training cases."""
    trees = fit_trees(cases, settings, seed)
    forest = forest_of(trees)
    # Values of inner nodes are never read.
    values = np.where((forest.item == LEAF)[:, None], node_values(trees), 0.0)
    return Expert(forest, values, importances_of(trees), settings)


TREES_TO_CHOOSE = 30
"""Number of trees in the forests that are compared to choose settings."""


def best_settings(
    cases: TrainingCases, space: Sequence[ForestSettings], seed: int
) -> ForestSettings:
    """Return the settings with the smallest out-of-fold squared error; the first if tied.

    For pairs this is the Brier score: it rewards good probabilities, which confidence depends on,
    and differs between settings with the same accuracy.
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
    """Return each setting's weighted sum of squared errors."""
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
    """Return predictions of the shallower forests contained in these trees."""
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
