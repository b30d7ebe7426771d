"""Trees of a random forest, grown by scikit-learn from cases that count more or less."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import product
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rocketeval.evolve.cases import OUTCOMES, Floats, Task

COLUMNS = 1.0 / 3.0
"""Share of the perspectives that a split chooses among: judges leave few that tell much."""


@dataclass(frozen=True, order=True)
class ForestSettings:
    """Settings of one forest, by scikit-learn's names."""

    n_estimators: int = 100
    max_depth: int = 5
    min_samples_split: int = 2
    min_samples_leaf: int = 5

    def as_dict(self) -> dict[str, int]:
        """Return the settings as plain data."""
        return asdict(self)


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
class Lessons:
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

    def take(self, rows: NDArray[np.bool_]) -> Lessons:
        """Return some of the cases."""
        return Lessons(
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


def grow_trees(
    lessons: Lessons, settings: ForestSettings, seed: int, columns: float = COLUMNS
) -> list[Any]:
    """Return trees of scikit-learn, each of another draw of the cases.

    A case is drawn in proportion to its weight, and as many are drawn as the weights sum to when
    the largest is 1: so the settings that count cases count those that count for this expert.
    """
    import sklearn
    from sklearn.tree import DecisionTreeRegressor

    x, y = lessons.answers.astype(np.float32), lessons.targets()
    chances = lessons.weights / lessons.weights.sum()
    draws = max(1, round(float(lessons.weights.sum() / lessons.weights.max())))
    random = np.random.RandomState(seed % 2**32)
    grown = []
    with sklearn.config_context(skip_parameter_validation=True, assume_finite=True):
        for _ in range(settings.n_estimators):
            tree = DecisionTreeRegressor(
                max_depth=settings.max_depth,
                min_samples_split=settings.min_samples_split,
                min_samples_leaf=settings.min_samples_leaf,
                max_features=columns,
                random_state=random,
            )
            drawn = random.multinomial(draws, chances).astype(np.float64)
            grown.append(tree.fit(x, y, sample_weight=drawn, check_input=False).tree_)
    return grown


def node_values(trees: list[Any]) -> Floats:
    """Return what each node of the trees, one after the other, says: (nodes, outputs).

    Of pairs, one share an outcome, in the order of `OUTCOMES`; of scores, the label.
    """
    values: Floats = np.concatenate([tree.value[:, :, 0] for tree in trees])
    return values
