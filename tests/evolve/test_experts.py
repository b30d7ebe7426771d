"""Experts: forests as arrays that match scikit-learn, and their settings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from evolve.planted import planted_labels, planted_pairs
from rocketeval.errors import ArtifactError
from rocketeval.evolve.cases import query_numbers
from rocketeval.evolve.forest import (
    SPACES,
    ForestSettings,
    TrainingCases,
    best_settings,
    fit_expert,
    fit_trees,
)
from rocketeval.scoring.split import inner_folds

SMALL = ForestSettings(20, 5, 2, 2)


def training_pairs(queries: int = 40) -> TrainingCases:
    """Pairs of one query type, decided by the answers."""
    table = planted_pairs(queries, types=1).table
    numbers = query_numbers(table.query_ids)
    return TrainingCases("pairs", table.answers, table.gold, np.ones(len(table)), numbers)


def test_expert_equals_scikit_learn_trees() -> None:
    """The mean of scikit-learn's class shares, in the order of outcomes."""
    training = training_pairs()
    trees = fit_trees(training, SMALL, seed=3)
    asked = training.answers.astype(np.float32)
    theirs = np.mean([tree.predict(asked)[:, :] for tree in trees], axis=0).reshape(-1, 3)
    ours = fit_expert(training, SMALL, seed=3).predict(training.answers)
    np.testing.assert_allclose(ours, theirs, atol=1e-12)


def test_unseen_outcome_has_probability_zero() -> None:
    """Without ties in training the middle class is 0, and the others sum to one."""
    training = training_pairs()
    decided = training.take(training.gold != 0.0)
    predicted = fit_expert(decided, SMALL, seed=0).predict(training.answers)
    assert predicted[:, 1].tolist() == [0.0] * len(predicted)
    np.testing.assert_allclose(predicted.sum(axis=1), 1.0)
    assert np.mean((predicted[:, 2] > 0.5) == (training.gold > 0.0)) > 0.6


def test_labels_are_means_of_trees() -> None:
    """They stay within the range of training labels and follow them."""
    table = planted_labels(40, types=1).table
    numbers = query_numbers(table.query_ids)
    training = TrainingCases("scores", table.answers, table.gold, np.ones(len(table)), numbers)
    expert = fit_expert(training, SMALL, seed=0)
    predicted = expert.predict(table.answers)[:, 0]
    assert predicted.min() >= 1.0
    assert predicted.max() <= 5.0
    assert np.corrcoef(predicted, table.gold)[0, 1] > 0.8
    assert expert.spread(table.answers).min() >= 0.0


def test_case_weights_matter() -> None:
    """An expert with weight on one half of the cases learns that half's rule."""
    training = training_pairs(60)
    turned = np.arange(len(training.gold)) % 2 == 0
    gold = np.where(turned, -training.gold, training.gold)
    weights = np.where(turned, 0.001, 1.0)
    predicted = fit_expert(replace(training, gold=gold, weights=weights), SMALL, 0).predict(
        training.answers
    )
    assert np.mean(predicted.argmax(axis=1) - 1.0 == training.gold) > 0.8


def test_attention_is_on_planted_perspectives() -> None:
    """The three planted perspectives come before the idle ones, and shares sum to one."""
    attention = fit_expert(training_pairs(), SMALL, seed=0).attention
    assert attention.sum() == pytest.approx(1.0)
    assert attention[:3].min() > attention[3:].max()


def test_search_spaces_match_the_paper() -> None:
    """96 settings, and a short list of twelve."""
    assert len(set(SPACES["paper"])) == 96
    assert len(SPACES["short"]) == 12
    assert set(SPACES["short"]) < set(SPACES["paper"])


def test_search_finds_fitting_settings() -> None:
    """A rule of several answers needs more than a stump; pure noise prefers shallow trees."""
    training = training_pairs(60)
    space = (ForestSettings(30, 1, 2, 50), ForestSettings(30, 10, 2, 2))
    assert best_settings(training, space, 0) == space[1]
    noise = replace(training, gold=np.random.default_rng(0).permutation(training.gold))
    assert best_settings(noise, space, 0) == space[0]


def test_truncated_tree_equals_grown_tree() -> None:
    """With all columns at each split there is no randomness, and the two are equal."""
    from rocketeval.evolve.forest import _cut_off

    training = training_pairs(30)
    wanted = ForestSettings(3, 3, 15, 2)
    deep = fit_trees(training, replace(wanted, max_depth=10, min_samples_split=2), 0, columns=1.0)
    # One tree each: later trees draw other cases once the random state differs.
    shallow = fit_trees(training, wanted, 0, columns=1.0)[0]
    (predicted,) = _cut_off(training, deep[:1], training, [replace(wanted, n_estimators=1)])
    theirs = shallow.predict(training.answers.astype(np.float32)).reshape(-1, 3)
    np.testing.assert_allclose(predicted, theirs)


def test_inner_folds_keep_queries_whole() -> None:
    """No query is in two folds."""
    queries = np.repeat(np.arange(10), 3)
    folds = inner_folds(queries, 0)
    assert set(folds.tolist()) == {0, 1, 2}
    assert all(len(set(folds[queries == query].tolist())) == 1 for query in range(10))


def test_a_damaged_expert_is_refused() -> None:
    """Values that are not numbers, or for another number of perspectives."""
    expert = fit_expert(training_pairs(), SMALL, seed=0)
    expert.check(8, 3)
    values = expert.values.copy()
    values[0, 0] = np.nan
    for broken, perspectives in ((replace(expert, values=values), 8), (expert, 9)):
        with pytest.raises(ArtifactError, match="inconsistent"):
            broken.check(perspectives, 3)
