"""Calibration curves appear only with enough reference data."""

from __future__ import annotations

from dataclasses import astuple, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from rocketeval.audit.calibration import CalibrationBin, CalibrationCurve, calibration
from rocketeval.audit.item_gold import ItemGold
from rocketeval.records import Interval, Vote
from rocketeval.report.cells import ResponseGrid, make_cells
from rocketeval.report.figures import curves
from support.make import make_config

NO_CALIBRATION = calibration(np.zeros(0), np.zeros(0), [])
QUERIES = [f"q{number}" for number in range(20)]
NAMES = ["a", "b"]
PLACES = np.arange(20)
"""Every query is independent."""


@pytest.fixture
def cells() -> ResponseGrid:
    scores = np.random.default_rng(0).uniform(1, 10, 40)
    return make_cells(
        pa.table(
            {
                "query_id": np.repeat(QUERIES, 2).tolist(),
                "candidate": NAMES * 20,
                "score": scores,
                "judgment": pa.nulls(40, pa.string()),
            }
        ),
        QUERIES,
        NAMES,
    )


def test_labels_that_equal_scores_lie_on_the_diagonal(tmp_path: Path, cells: ResponseGrid) -> None:
    """Ten bins hold all labeled responses; each mean label equals the mean score."""
    (curve,) = curves(cells, make_config(tmp_path), cells.scores, (), None, places=PLACES)
    assert curve.diagonal
    assert len(curve.bins) == 10
    assert sum(each.n for each in curve.bins) == 40
    for each in curve.bins:
        assert each.y.value == pytest.approx(each.x)
    assert "40 labeled responses" in curve.how


def test_labels_of_another_scale_have_no_diagonal(tmp_path: Path, cells: ResponseGrid) -> None:
    """y = x is meaningless there."""
    (curve,) = curves(cells, make_config(tmp_path), cells.scores * 10, (), None, places=PLACES)
    assert not curve.diagonal


def test_vote_share_rises_with_the_score_difference(tmp_path: Path, cells: ResponseGrid) -> None:
    """Voters who follow the scores give a share of 0 at the left and 1 at the right."""
    votes = [
        Vote(query, "a", "b", "a" if a > b else "b")
        for query, (a, b) in zip(QUERIES, cells.scores.tolist(), strict=True)
    ]
    votes += [Vote("elsewhere", "a", "b", "a"), Vote("q0", "a", "stranger", "a")]
    (curve,) = curves(
        cells, make_config(tmp_path), np.full((20, 2), np.nan), votes, None, places=PLACES
    )
    assert (curve.bins[0].y.value, curve.bins[-1].y.value) == (0.0, 1.0)
    assert curve.bins[0].x < 0 < curve.bins[-1].x
    assert "20 votes" in curve.how


def test_a_tie_is_half_a_vote(tmp_path: Path, cells: ResponseGrid) -> None:
    """Votes that are all ties give a flat line."""
    votes = [Vote(query, "a", "b", "tie") for query in QUERIES]
    (curve,) = curves(
        cells, make_config(tmp_path), np.full((20, 2), np.nan), votes, None, places=PLACES
    )
    assert {each.y.value for each in curve.bins} == {0.5}


def test_a_few_labels_or_votes_make_no_curve(tmp_path: Path, cells: ResponseGrid) -> None:
    """Bins of one or two values are not informative."""
    few = np.full((20, 2), np.nan)
    few[:3] = 5.0
    votes = [Vote("q0", "a", "b", "a")]
    assert curves(cells, make_config(tmp_path), few, votes, None, places=PLACES) == ()


def test_reference_answers_give_a_curve(tmp_path: Path, cells: ResponseGrid) -> None:
    """The measured bins, with a diagonal."""
    one = CalibrationBin(0.8, 0.9, items=8, mean_p=0.85, gold=Interval(0.75, 0.5, np.nan))
    measured = replace(NO_CALIBRATION, by_width=CalibrationCurve((one,), 0.1), items=8)
    found = ItemGold(measured, responses=1, unjudged=0, unknown=0, advice=())
    (curve,) = curves(
        cells, make_config(tmp_path), np.full((20, 2), np.nan), (), found, places=PLACES
    )
    assert curve.diagonal
    assert [(each.x, each.y.value, each.n) for each in curve.bins] == [(0.85, 0.75, 8)]


def test_queries_of_one_cluster_are_resampled_together(tmp_path: Path, cells: ResponseGrid) -> None:
    """Two equal turns per conversation give the intervals of the first turns alone."""
    labels = np.repeat(cells.scores[:10], 2, axis=0)
    flat = replace(cells, scores=np.full((20, 2), 5.0))
    alone = replace(flat, query_ids=flat.query_ids[::2], scores=flat.scores[::2])
    votes = [
        Vote(query, *pair, "a" if place % 6 < 2 else "b")
        for place, query in enumerate(QUERIES)
        for pair in (("a", "b"), ("a", "b"))
    ]
    config = make_config(tmp_path)
    both = curves(flat, config, labels, votes, None, places=PLACES // 2)
    first = curves(alone, config, labels[::2], votes, None, places=PLACES[:10])
    for ours, theirs in zip(both, first, strict=True):
        for one, other in zip(ours.bins, theirs.bins, strict=True):
            assert astuple(one.y) == pytest.approx(astuple(other.y))
            assert one.n == 2 * other.n
    assert len(both) == 2
