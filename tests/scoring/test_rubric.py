"""Weights, penalties, applicability and points, against independent computations."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rocketeval.config import ScorerConfig
from rocketeval.items import LEAST_WEIGHT
from rocketeval.ranking.stage import clip_interval
from rocketeval.records import Interval
from rocketeval.scoring.answers import AnswerTable, RubricColumns
from rocketeval.scoring.base import check_scorer
from rocketeval.scoring.mean import HardMeanScorer, MeanScorer
from rocketeval.scoring.rubric import AnswerBounds, PointsScorer, credits, score_bounds

unit = st.floats(0, 1)
weights = st.one_of(
    st.integers(-10, 10).map(float), st.floats(-10, -LEAST_WEIGHT), st.floats(LEAST_WEIGHT, 10)
)
answers = st.tuples(
    weights, st.one_of(st.none(), unit), st.one_of(st.just(0.0), st.just(1.0), unit)
)
"""Weight, value (None if missing) and probability of "not applicable"."""
Row = list[tuple[float, float | None, float]]


def table_of(rows: list[Row]) -> AnswerTable:
    """Return responses to one query as a table, one row each."""
    flat = [answer for row in rows for answer in row]
    columns = RubricColumns(
        np.array([np.nan if value is None else value for _, value, _ in flat]),
        np.array([weight for weight, _, _ in flat]),
        np.array([1.0 - na for _, _, na in flat]),
    )
    offsets = np.cumsum([0, *map(len, rows)])
    names = [f"c{place}" for place in range(len(rows))]
    return AnswerTable(["q"] * len(rows), names, credits(columns, offsets), offsets, rubric=columns)


def weighted_mean(row: Row) -> float:
    """The default rule, written out."""
    total = share = 0.0
    for weight, value, na in row:
        if value is not None:
            share += abs(weight) * (1 - na)
            total += abs(weight) * (1 - na) * (value if weight > 0 else 1 - value)
    return total / share if share > 0 else math.nan


def health_points(row: Row) -> float:
    """HealthBench's published rule, written out: points met over possible points."""
    met = sum(weight * (1 - na) * value for weight, value, na in row if value is not None)
    possible = sum(w * (1 - na) for w, value, na in row if value is not None and w > 0)
    return met / possible if possible > 0 else math.nan


@settings(max_examples=1000, deadline=None)
@given(st.lists(answers, min_size=1, max_size=8))
def test_rules_equal_an_independent_computation(row: Row) -> None:
    """Weights, penalties, missing and inapplicable answers give the written-out scores."""
    table = table_of([row])
    for scorer, rule in (
        (MeanScorer((0, 1)), weighted_mean),
        (PointsScorer((0, 1)), health_points),
    ):
        expected = rule(row)
        (found,) = scorer.predict(table)
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-6, nan_ok=True)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.one_of(st.none(), unit), min_size=1, max_size=8))
def test_weights_of_one_are_the_plain_mean_to_the_bit(values: list[float | None]) -> None:
    """A rubric whose items all weigh 1 and apply scores exactly like plain items."""
    weighed = table_of([[(1.0, value, 0.0) for value in values]])
    plain = AnswerTable(weighed.query_ids, weighed.candidates, weighed.shown, weighed.offsets)
    for scorer in (MeanScorer(), HardMeanScorer()):
        assert scorer.predict(weighed).tobytes() == scorer.predict(plain).tobytes()


@pytest.mark.parametrize(
    "row",
    [
        [(0.0, 1.0, 0.0), (0.0, 0.5, 0.0)],
        [(1.0, 1.0, 1.0), (2.0, 0.0, 1.0)],
        [(1.0, None, 0.0)],
    ],
    ids=["zero weights", "nothing applicable", "nothing answered"],
)
def test_undefined_scores_are_gaps(row: Row) -> None:
    """A score that is not defined is missing, not zero."""
    table = table_of([row])
    assert np.isnan(MeanScorer().predict(table)).all()
    assert np.isnan(PointsScorer().predict(table)).all()


def test_points_without_a_positive_weight_are_a_gap() -> None:
    """Penalties alone have a mean, but no points to earn."""
    table = table_of([[(-2.0, 0.25, 0.0)]])
    assert np.isnan(PointsScorer((0, 1)).predict(table)).all()
    assert MeanScorer((0, 1)).predict(table).tolist() == [0.75]


def test_drop_needs_every_answer() -> None:
    """With `missing: drop`, one missing answer is a gap."""
    table = table_of([[(2.0, 1.0, 0.0), (1.0, None, 0.0)]])
    assert np.isnan(MeanScorer(missing="drop").predict(table)).all()
    assert np.isnan(PointsScorer(missing="drop").predict(table)).all()


def test_means_of_points_are_clipped_to_the_scale() -> None:
    """A candidate's mean, and its interval, stay on the scale; scores of responses may not."""
    assert clip_interval(Interval(-0.25, -0.5, 1.5), (0.0, 1.0)) == Interval(0.0, 0.0, 1.0)
    unknown = clip_interval(Interval(0.5, math.nan, math.nan), (0.0, 1.0))
    assert unknown.value == 0.5
    assert math.isnan(unknown.low)
    below = clip_interval(Interval(-0.5, -0.8, -0.1), (0.0, 1.0))
    assert below.value == 0.0
    assert math.isnan(below.low)
    assert math.isnan(below.high)


def test_points_pass_the_check_of_scorers() -> None:
    """The conformance check of scorers passes."""
    check_scorer(PointsScorer, ScorerConfig(kind="points"))


def test_hard_counts_an_item_as_far_as_it_applies() -> None:
    """An item that does not apply is left out, also if answers are cut at half."""
    table = table_of([[(1.0, 0.9, 0.0), (1.0, 0.2, 0.0), (1.0, 0.5, 1.0)]])
    assert HardMeanScorer((0, 1)).predict(table).tolist() == [0.5]
    half = table_of([[(1.0, 0.9, 0.0), (-1.0, 0.9, 0.0), (2.0, 0.7, 0.5)]])
    assert HardMeanScorer((0, 1)).predict(half).tolist() == pytest.approx([2 / 3])


end = st.one_of(st.just(0.0), st.just(1.0), unit)
bounded = st.tuples(weights, end, end, end, end)
"""Weight, two ends of the value and two of the applicability."""
Bounded = list[tuple[float, float, float, float, float]]
POINTS_TRIED = 400


@settings(max_examples=150, deadline=None)
@given(st.lists(bounded, min_size=1, max_size=5), st.integers(0, 2**32 - 1))
@example([(0, 0, 0, 0, 0), (-1, 1, 1, 1, 1), (1, 0, 0, 0, 1)], 0)
@example([(-8, 1, 1, 1, 1), (1, 0, 1, 0, 1)], 0)
def test_bounds_contain_every_allowed_score(items: Bounded, seed: int) -> None:
    """Any value and applicability within the bounds gives a score within the score's bounds."""
    given_ = np.array(items)
    weight = given_[:, 0]
    low, high = np.sort(given_[:, 1:3]).T
    least, most = np.sort(given_[:, 3:5]).T
    dice = np.random.default_rng(seed)
    # Some points are corners, some are near one, some are anywhere.
    places = dice.random((2, POINTS_TRIED, len(items)))
    places[:, ::3] = np.round(places[:, ::3])
    places[:, 1::3] **= 30
    values = low + places[0] * (high - low)
    applicable = least + places[1] * (most - least)
    shares = np.abs(weight) * applicable
    positive = np.where(weight > 0, shares, 0.0).sum(axis=1)
    right = np.where(weight < 0, 1.0 - values, values)
    met = (weight * applicable * values).sum(axis=1)
    totals = {"mean": ((shares * right).sum(axis=1), shares.sum(axis=1)), "points": (met, positive)}
    columns = RubricColumns(low, weight, most)
    bounds = AnswerBounds(low, high, least, most)
    for rule, (total, share) in totals.items():
        (lowest,), (highest,) = score_bounds(rule, columns, bounds, np.array([0, len(items)]))
        defined = share > 1e-9
        found = total[defined] / share[defined]
        slack = 1e-6 * np.maximum(1.0, np.abs(found))
        assert (lowest - slack <= found).all()
        assert (found <= highest + slack).all()


def test_points_without_a_lowest_score_have_no_lower_bound() -> None:
    """If a penalty applies for sure and nothing else may, any negative score can be reached."""
    one = np.ones(2)
    columns = RubricColumns(np.array([1.0, 0.5]), np.array([-8.0, 1.0]), one)
    bounds = AnswerBounds(np.array([1.0, 0.0]), one, np.array([1.0, 0.0]), one)
    (low,), (high,) = score_bounds("points", columns, bounds, np.array([0, 2]))
    assert (low, high) == (-math.inf, -7.0)


def test_bounds_are_the_extremes_of_the_ratio() -> None:
    """The bounds are attained at a corner of the box, not at those of its parts."""
    low, high = np.array([0.2, 0.6]), np.array([0.4, 0.9])
    least, most = np.array([0.1, 0.3]), np.array([1.0, 0.8])
    weight = np.array([2.0, 1.0])
    columns = RubricColumns(low, weight, most)
    found = score_bounds("mean", columns, AnswerBounds(low, high, least, most), np.array([0, 2]))
    corners = [
        weighted_mean([(w, v, 1 - a) for w, v, a in zip(weight, vs, shares, strict=True)])
        for vs in itertools.product(*zip(low, high, strict=True))
        for shares in itertools.product(*zip(least, most, strict=True))
    ]
    assert [side[0] for side in found] == pytest.approx([min(corners), max(corners)])
