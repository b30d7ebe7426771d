"""Labels, averaged where a response has several, beside the answers and scores they speak about."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from rocketeval.errors import ConfigError
from rocketeval.grid import ScoreGrid
from rocketeval.records import Label
from rocketeval.scoring.answers import AnswerTable

Floats = NDArray[np.float64]
Key = TypeVar("Key", bound=Hashable)


def label_column(
    answers: AnswerTable, labels: Sequence[Label], scale: tuple[float, float]
) -> Floats:
    """Return each response's label, the mean of several, NaN without one.

    ConfigError when a label is not on the scale: it would teach the scorer nonsense.
    """
    refuse_off_scale(labels, scale)
    means = mean_by_response(labels)
    responses = zip(answers.query_ids, answers.candidates, strict=True)
    return np.array([means.get(response, math.nan) for response in responses], dtype=np.float64)


def label_cells(grid: ScoreGrid, labels: Iterable[Label]) -> tuple[Floats, int]:
    """Return the labels laid out like the grid's scores, and how many are of no cell of it.

    Several labels of one response are averaged, and count as one.
    """
    rows = {query: row for row, query in enumerate(grid.query_ids)}
    columns = {candidate: column for column, candidate in enumerate(grid.candidates)}
    cells = np.full(grid.scores.shape, np.nan)
    unknown = 0
    for (query, candidate), mean in mean_by_response(labels).items():
        if query in rows and candidate in columns:
            cells[rows[query], columns[candidate]] = mean
        else:
            unknown += 1
    return cells, unknown


def mean_by_response(labels: Iterable[Label]) -> dict[tuple[str, str], float]:
    """Return the mean label of every response with one, by query id and candidate."""
    return _means(((label.query_id, label.candidate), label.value) for label in labels)


def mean_by_candidate(labels: Iterable[Label]) -> dict[str, float]:
    """Return the mean label of every candidate with one."""
    return _means((label.candidate, label.value) for label in labels)


def refuse_off_scale(labels: Iterable[Label], scale: tuple[float, float]) -> None:
    """Raise ConfigError when a label is not on the scale."""
    low, high = scale
    for label in labels:
        if not low <= label.value <= high:
            raise ConfigError(
                f"The label {label.value:g} of query {label.query_id!r}, candidate "
                f"{label.candidate!r} is not on the scale {low:g} to {high:g}.",
                hint="Set `scorer.scale` to the scale of the labels, or mend the label.",
            )


def _means(pairs: Iterable[tuple[Key, float]]) -> dict[Key, float]:
    given: dict[Key, list[float]] = defaultdict(list)
    for key, value in pairs:
        given[key].append(value)
    # Exact sums, so that the order of the labels cannot move a mean.
    return {key: math.fsum(values) / len(values) for key, values in given.items()}
