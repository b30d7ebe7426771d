"""Regression trees on one-hot outcomes equal classification trees."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from rocketeval.evolve.forest import COLUMNS, ForestSettings, TrainingCases, fit_trees, node_values

SETTINGS = ForestSettings(40, 5, 2, 3)
SEED = 7


@pytest.fixture
def training() -> TrainingCases:
    """Votes that follow two of twelve answers, with ties and noise."""
    random = np.random.default_rng(0)
    answers = random.random((200, 12))
    gold = np.sign(np.round(2.0 * (answers[:, 0] - answers[:, 1]) + random.normal(0.0, 0.3, 200)))
    return TrainingCases("pairs", answers, gold, np.ones(200), np.arange(200))


def test_splits_equal_a_classifier(training: TrainingCases) -> None:
    """From the same draws; rounding may decide between equally good splits."""
    grown = fit_trees(training, SETTINGS, SEED)
    random = np.random.RandomState(SEED)
    same = 0
    for tree in grown:
        classifier = DecisionTreeClassifier(
            max_depth=5, min_samples_leaf=3, max_features=COLUMNS, random_state=random
        )
        drawn = random.multinomial(200, np.full(200, 1 / 200)).astype(np.float64)
        x = training.answers.astype(np.float32)
        other = classifier.fit(x, training.gold, sample_weight=drawn).tree_
        if np.array_equal(tree.feature, other.feature):
            same += 1
            assert node_values([tree]) == pytest.approx(other.value[:, 0, :])
    assert same >= 36


def test_unseen_outcome_has_zero_share(training: TrainingCases) -> None:
    """The columns are those of all outcomes."""
    decided = training.take(training.gold != 0.0)
    values = node_values(fit_trees(decided, SETTINGS, SEED))
    assert values.shape[1] == 3
    assert not values[:, 1].any()
    assert values.sum(axis=1) == pytest.approx(1.0)
