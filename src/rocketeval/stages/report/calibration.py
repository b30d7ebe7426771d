"""What gold says of low, middling and high scores, for the report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocketeval.audit.by_query import Resampling, renumbered
from rocketeval.config import RunConfig
from rocketeval.outcomes import vote_outcomes
from rocketeval.records import Interval, Vote
from rocketeval.report.data import CalibrationCurve, CurveBin
from rocketeval.stages.report.cells import Cells
from rocketeval.stages.report.figures import read_interval

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Places = NDArray[np.intp]
Means = Callable[[Floats, Places, Places, int], list[Interval | None]]

BINS = 10
FEWEST = 20
"""Labels or votes below which bins say nothing."""

_INTERVALS = "Intervals resample the queries."


def curves(
    cells: Cells,
    config: RunConfig,
    labels: Floats,
    votes: Sequence[Vote],
    item_gold: Mapping[str, Any] | None,
) -> tuple[CalibrationCurve, ...]:
    """Return a curve for each kind of gold that the run has."""
    ranking = config.ranking
    resampling = Resampling(ranking.bootstrap, ranking.seed, 0.95)
    return (
        *_items(item_gold),
        *_labels(cells, labels, config.scorer.scale, resampling),
        *_votes(cells, votes, resampling),
    )


def _items(item_gold: Mapping[str, Any] | None) -> Iterator[CalibrationCurve]:
    if item_gold is None:
        return
    found = item_gold["calibration"]
    bins = [
        CurveBin(each["mean_p"], gold, each["items"])
        for each in found["by_width"]["bins"]
        if (gold := read_interval(each["gold"])) is not None
    ]
    if bins:
        yield CalibrationCurve(
            title="Answers against gold answers to the same items",
            x_label="Probability of yes",
            y_label="Share that gold says yes to",
            diagonal=True,
            bins=tuple(bins),
            how=f"{found['items']:,} answers in bins of equal width. Of answers with 0.8, four in "
            f"five should be a yes: the diagonal. {_INTERVALS}",
        )


def _labels(
    cells: Cells, labels: Floats, scale: tuple[float, float], resampling: Resampling
) -> Iterator[CalibrationCurve]:
    queries, candidates = np.nonzero(~np.isnan(labels) & ~np.isnan(cells.scores))
    if len(queries) < FEWEST:
        return
    scores, gold = cells.scores[queries, candidates], labels[queries, candidates]
    same = bool(scale[0] <= np.nanmin(labels) and np.nanmax(labels) <= scale[1])
    diagonal = " On the diagonal, score and label are equal." if same else ""
    yield CalibrationCurve(
        title="Scores against labels",
        x_label="Score",
        y_label="Mean label",
        diagonal=same,
        bins=_binned(scores, gold, queries, resampling.means),
        how=f"{len(scores):,} labelled responses in ten bins of about equally many, from low to "
        f"high score; each dot is the mean label of a bin.{diagonal} {_INTERVALS}",
    )


def _votes(
    cells: Cells, votes: Sequence[Vote], resampling: Resampling
) -> Iterator[CalibrationCurve]:
    rows = {query: row for row, query in enumerate(cells.query_ids)}
    columns = {name: column for column, name in enumerate(cells.candidates)}
    usable = [
        vote
        for vote in votes
        if vote.query_id in rows and vote.candidate_a in columns and vote.candidate_b in columns
    ]
    queries = np.array([rows[vote.query_id] for vote in usable], dtype=np.int64)
    first = np.array([columns[vote.candidate_a] for vote in usable], dtype=np.int64)
    second = np.array([columns[vote.candidate_b] for vote in usable], dtype=np.int64)
    differences = cells.scores[queries, first] - cells.scores[queries, second]
    known = ~np.isnan(differences)
    if known.sum() < FEWEST:
        return
    shares: Floats = (vote_outcomes(usable)[known].astype(np.float64) + 1.0) / 2.0
    yield CalibrationCurve(
        title="Differences of scores against votes",
        x_label="Score of the first response less that of the second",
        y_label="Share of votes for the first",
        diagonal=False,
        bins=_binned(differences[known], shares, queries[known], resampling.shares),
        how=f"{int(known.sum()):,} votes in ten bins of about equally many, by how much higher the "
        "first response scores; a tie is half a vote. A judge that people agree with gives a "
        f"curve that climbs from 0 to 1 through the middle. {_INTERVALS}",
    )


def _binned(x: Floats, y: Floats, queries: Ints, means: Means) -> tuple[CurveBin, ...]:
    """Ten bins of about equally many; equal values of x stay together."""
    edges = np.quantile(x, np.arange(1, BINS) / BINS)
    parts = np.searchsorted(edges, x).astype(np.intp)
    counts = np.bincount(parts, minlength=BINS)
    totals = np.bincount(parts, x, BINS)
    found = means(y, renumbered(queries.astype(np.intp)), parts, BINS)
    return tuple(
        CurveBin(float(totals[part] / counts[part]), value, int(counts[part]))
        for part, value in enumerate(found)
        if value is not None
    )
