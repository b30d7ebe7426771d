"""Fleiss' and Cohen's kappa: equal to other libraries, with a reason if undefined."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from rocketeval.stats.agreement import Weights, cohen_kappa, fleiss_kappa
from support.tables import tables

NAN = math.nan


def by_hand(ratings: np.ndarray) -> float:
    """Return Fleiss' kappa unit by unit, each unit counting once; NaN if undefined."""
    units = [column[~np.isnan(column)] for column in ratings.T]
    units = [unit for unit in units if len(unit) >= 2]
    categories = np.unique(np.concatenate(units))
    agreeing, shares = [], []
    for unit in units:
        counts = np.array([(unit == category).sum() for category in categories])
        agreeing.append((counts * (counts - 1)).sum() / (len(unit) * (len(unit) - 1)))
        shares.append(counts / len(unit))
    chance = (np.mean(shares, axis=0) ** 2).sum()
    return (np.mean(agreeing) - chance) / (1 - chance)


@settings(deadline=None)
@given(tables((2, 6), (1, 12)))
def test_fleiss_of_complete_ratings_equals_statsmodels(ratings: np.ndarray) -> None:
    """Every rater rated every unit."""
    inter_rater = pytest.importorskip("statsmodels.stats.inter_rater")
    full = np.where(np.isnan(ratings), 2.0, ratings)
    found = fleiss_kappa(full)
    assert (found.used, found.dropped) == (full.shape[1], 0)
    if np.ptp(full) == 0:
        assert found.value is None
        assert found.reason is not None
        return
    table, _ = inter_rater.aggregate_raters(full.T.astype(int))
    assert found.value == pytest.approx(inter_rater.fleiss_kappa(table), abs=1e-9)


@settings(deadline=None)
@given(tables((2, 6), (1, 12)))
def test_fleiss_of_incomplete_ratings_counts_every_unit_once(ratings: np.ndarray) -> None:
    """Units rated less than twice are dropped and counted."""
    enough = (~np.isnan(ratings)).sum(axis=0) >= 2
    kept = ratings[:, enough]
    found = fleiss_kappa(ratings)
    assert (found.used, found.dropped) == (enough.sum(), (~enough).sum())
    if len(set(kept[~np.isnan(kept)])) < 2:
        assert found.value is None
        assert found.reason is not None
        return
    assert found.value == pytest.approx(by_hand(ratings), abs=1e-9)


def test_fleiss_with_gaps_is_the_published_generalization() -> None:
    """Three raters with gaps give the value recorded from irrCAC (after Gwet)."""
    ratings = np.array(
        [[0, 1, 1, 2, NAN, 0, 2, 1], [0, 1, 2, 2, 1, NAN, 2, 0], [NAN, 1, 1, 2, 1, 0, 0, NAN]]
    )
    assert fleiss_kappa(ratings).value == pytest.approx(0.554966887417, abs=1e-11)


@settings(deadline=None)
@given(tables((2, 2), (1, 25)), st.sampled_from([None, "linear", "quadratic"]))
def test_cohen_equals_scikit_learn(ratings: np.ndarray, weights: Weights | None) -> None:
    """Plain and weighted, with ties; missing pairs are dropped and counted."""
    both = ~np.isnan(ratings).any(axis=0)
    one, two = ratings[:, both].astype(int)
    found = cohen_kappa(ratings[0], ratings[1], weights)
    assert (found.used, found.dropped) == (len(one), (~both).sum())
    if len({*one, *two}) < 2:
        assert found.value is None
        assert found.reason is not None
        return
    expected = cohen_kappa_score(one, two, labels=list(range(5)), weights=weights)
    assert found.value == pytest.approx(expected, abs=1e-9)


def test_unused_levels_count_in_the_distance() -> None:
    """The weights of 1 and 10 are those of nine steps."""
    one, two = np.array([1.0, 2, 10, 10]), np.array([2.0, 2, 10, 1])
    neighbours = cohen_kappa_score(one.astype(int), two.astype(int), weights="linear")
    assert cohen_kappa(one, two, "linear").value != pytest.approx(neighbours, abs=0.01)


@pytest.mark.parametrize(
    ("ratings", "reason"),
    [
        ([[1.0, NAN], [NAN, 1.0]], "no unit has ratings by two raters"),
        ([[3.0, 3.0, 1.0], [3.0, 3.0, NAN]], "every rating is 3, so chance agreement is perfect"),
        ([[], []], "no unit has ratings by two raters"),
    ],
    ids=["never together", "all the same", "empty"],
)
def test_undefined_kappa_has_a_reason(ratings: list[list[float]], reason: str) -> None:
    """The value is None, not 0, 1 or NaN."""
    table = np.array(ratings)
    for found in (fleiss_kappa(table), cohen_kappa(table[0], table[1])):
        assert (found.value, found.reason) == (None, reason)
        assert found.used + found.dropped == table.shape[1]


def test_raters_who_never_agree_have_kappa_zero() -> None:
    """One always yes, one always no: chance agreement is zero, too."""
    assert cohen_kappa(np.ones(5), np.zeros(5)).value == 0.0


def test_infinite_and_flat_ratings_are_refused() -> None:
    """Ratings must be finite, with raters by units."""
    with pytest.raises(ValueError, match="infinite"):
        fleiss_kappa(np.array([[math.inf, 1.0], [1.0, 1.0]]))
    with pytest.raises(ValueError, match="1 dimensions"):
        fleiss_kappa(np.array([1.0, 2.0]))


def test_pandalms_annotators_reach_their_recorded_kappa(
    pandalm_pairs: list[dict[str, Any]],
) -> None:
    """Fleiss' kappa of the three annotators of PandaLM's test set is 0.864."""
    ratings = [
        [float(pair[f"annotator{person}"]) for pair in pandalm_pairs] for person in (1, 2, 3)
    ]
    found = fleiss_kappa(np.array(ratings))
    assert found.used == 999
    assert found.value == pytest.approx(0.864, abs=5e-4)
