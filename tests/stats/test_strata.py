"""Strata: by score, of similar size, and with enough labels."""

from __future__ import annotations

import numpy as np
import pytest

from rocketeval.stats.prediction_powered import FEWEST_IN_STRATUM, make_strata, merge_thin


def test_groups_have_similar_size_and_score_order() -> None:
    """Distinct scores fall into equal groups, the lowest first."""
    scores = np.random.default_rng(0).permutation(np.arange(40.0))
    strata = make_strata(scores, 4)
    assert np.bincount(strata).tolist() == [10, 10, 10, 10]
    assert [int(scores[strata == h].min()) for h in range(4)] == [0, 10, 20, 30]


def test_equal_scores_share_a_stratum() -> None:
    """With many equal scores there are fewer groups, numbered without gaps."""
    strata = make_strata(np.array([10.0] * 8 + [3.0, 4.0]), 4)
    assert len(set(strata[:8].tolist())) == 1
    assert sorted(set(strata.tolist())) == list(range(strata.max() + 1))
    assert make_strata(np.full(5, 7.0), 3).tolist() == [0] * 5


def test_categories_are_separate() -> None:
    """No stratum has two categories, and each category has its own groups."""
    scores = np.arange(20.0)
    kinds = ["code" if i % 2 else "math" for i in range(20)]
    strata = make_strata(scores, 2, kinds)
    assert strata.max() == 3
    for stratum in range(4):
        assert len({kind for kind, s in zip(kinds, strata, strict=True) if s == stratum}) == 1


@pytest.mark.parametrize("labels", [0, 1, 7, 20, 60])
def test_merged_strata_have_enough_labels(labels: int) -> None:
    """Every merged stratum has enough labels, or one is left; order is kept."""
    rng = np.random.default_rng(labels)
    strata = make_strata(rng.normal(size=60), 6)
    labelled = np.zeros(60, bool)
    labelled[rng.permutation(60)[:labels]] = True
    merged = merge_thin(strata, labelled)
    counts = np.bincount(merged[labelled], minlength=merged.max() + 1)
    assert merged.max() == 0 or counts.min() >= FEWEST_IN_STRATUM
    order = np.argsort(strata, kind="stable")
    assert (np.diff(merged[order]) >= 0).all()


def test_strata_with_enough_labels_are_kept() -> None:
    """Nothing is merged without need."""
    strata = np.repeat([0, 1, 2], FEWEST_IN_STRATUM)
    assert merge_thin(strata, np.ones(len(strata), bool)).tolist() == strata.tolist()
