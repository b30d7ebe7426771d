"""Shared code of learning scorers: input checks, label tables, and reading of saved states."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from rocketeval.arrays import Floats
from rocketeval.config import NoOptions, ScorerConfig, parse_options
from rocketeval.errors import ArtifactError, ConfigError
from rocketeval.grid import ScoreGrid
from rocketeval.records import Label
from rocketeval.scoring.answers import AnswerTable

TIE_MARGIN = 0.1
"""Default tie margin."""
FEWEST_LABELS = 5
"""With fewer labels, a scorer that pools over queries uses the mean."""


def refuse_votes(config: ScorerConfig) -> None:
    """Raise ConfigError if a scorer that learns from labels should learn from votes."""
    if config.learn_from == "votes":
        raise ConfigError(
            f"A scorer of kind {config.kind!r} learns from labels, not from votes.",
            hint="For votes, use kind pooled_logistic; or set `scorer.learn_from: labels`.",
        )


def refuse_labels(config: ScorerConfig) -> None:
    """Raise ConfigError if a scorer that learns from votes should learn from labels."""
    if config.learn_from == "labels":
        raise ConfigError(
            f"A scorer of kind {config.kind!r} learns from votes, not from labels.",
            hint="Set `scorer.learn_from: votes`; for labels, use kind pooled_ridge.",
        )


def refuse_other_checklist(query_id: str, items: int, known: int) -> None:
    """Raise ArtifactError if a query's number of items differs from the fit."""
    if items != known:
        raise ArtifactError(
            f"Query {query_id!r} has {items} items; the scorer was fitted on {known}.",
            hint="Its checklist has changed: fit the scorer again.",
        )


def everywhere(answers: AnswerTable, reason: str | None) -> dict[str, str]:
    """Return the reason for every query; empty without a reason."""
    return {} if reason is None else dict.fromkeys(answers.query_ids, reason)


def why_too_few(labels: Floats) -> str | None:
    """Return a reason not to learn from these labels, or None."""
    if len(labels) < FEWEST_LABELS:
        return f"{len(labels)} labels over all queries; {FEWEST_LABELS} are needed"
    if np.ptp(labels) == 0.0:
        return f"all {len(labels)} labels are {labels[0]:g}"
    return None


@contextmanager
def reading_state(kind: str) -> Iterator[None]:
    """Convert errors from a damaged state to ArtifactError."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ArtifactError(
            f"The saved {kind} scorer is inconsistent ({error}).",
            hint="The file is damaged: fit the scorer again, or use another copy.",
        ) from None


def split_numbers(array: NDArray[Any], sizes: Sequence[int]) -> list[Floats]:
    """Cut a saved array into parts; raise ValueError if its size is wrong or not all are finite."""
    parts = split_array(array, np.float64, sizes)
    if not np.isfinite(array).all():
        raise ValueError("not all of its numbers are finite")
    return parts


def split_array(
    array: NDArray[Any], kind: type[np.generic], sizes: Sequence[int], *, least: int = 0
) -> list[NDArray[Any]]:
    """Cut an array into parts; raise ValueError for a wrong dtype, size or part below `least`."""
    ends = np.cumsum([0, *(int(size) for size in sizes)])
    if min(sizes, default=least) < least or array.dtype != kind or array.shape != (ends[-1],):
        needed = f"{ends[-1]} {kind.__name__} numbers are needed"
        raise ValueError(f"{array.shape} {array.dtype} where {needed}")
    return np.split(array, ends[1:-1]) if len(sizes) else []


SIZED = "sized"
"""In a saved header: the arrays have the size of each item's weight, `sizes`."""


def read_sizes(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> list[Floats]:
    """Return the sizes of each query's item weights; earlier versions counted all items alike."""
    if (SIZED in header) != ("sizes" in arrays):
        raise ValueError("it has only a part of the items' weights")
    counts = header["items"]
    alike = joined([np.ones(int(count)) for count in counts])
    return split_numbers(arrays.get("sizes", alike), counts)


def joined(parts: Sequence[Floats]) -> Floats:
    """Concatenate any number of parts, including none."""
    return np.concatenate([np.zeros(0), *parts])


def read_reasons(given: Any) -> dict[str, str]:
    """Read a saved mapping of queries to reasons."""
    return {str(query_id): str(reason) for query_id, reason in given.items()}


class LabelScorer:
    """Base of scorers that learn from the labels of all queries and have no options."""

    fallbacks_: dict[str, str]

    def __init__(self, scale: tuple[float, float] = (1.0, 10.0), missing: str = "skip") -> None:
        self.scale = scale
        self.missing = missing

    @classmethod
    def create(cls, config: ScorerConfig) -> Self:
        """Return an unfitted scorer; raise ConfigError if it should learn from votes."""
        refuse_votes(config)
        parse_options(config.options, NoOptions, "scorer.options")
        return cls(config.scale, config.missing)

    def fallbacks(self) -> Mapping[str, str]:
        """Return all queries if there was too little training data, else none."""
        return dict(self.fallbacks_)


Key = TypeVar("Key", bound=Hashable)


def label_column(
    answers: AnswerTable, labels: Sequence[Label], scale: tuple[float, float]
) -> Floats:
    """Return each response's mean label; NaN without one.

    Raise ConfigError for a label off the scale.
    """
    refuse_off_scale(labels, scale)
    means = mean_by_response(labels)
    responses = zip(answers.query_ids, answers.candidates, strict=True)
    return np.array([means.get(response, math.nan) for response in responses], dtype=np.float64)


def label_cells(grid: ScoreGrid, labels: Iterable[Label]) -> tuple[Floats, int]:
    """Return the labels in the layout of the grid, and the number without a cell.

    Several labels of one response are averaged and count as one.
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
    """Return mean labels by (query id, candidate)."""
    return _means(((label.query_id, label.candidate), label.value) for label in labels)


def mean_by_candidate(labels: Iterable[Label]) -> dict[str, float]:
    """Return mean labels by candidate."""
    return _means((label.candidate, label.value) for label in labels)


def refuse_off_scale(labels: Iterable[Label], scale: tuple[float, float]) -> None:
    """Raise ConfigError for a label off the scale."""
    low, high = scale
    for label in labels:
        if not low <= label.value <= high:
            raise ConfigError(
                f"The label {label.value:g} of query {label.query_id!r}, candidate "
                f"{label.candidate!r} is not on the scale {low:g} to {high:g}.",
                hint="Set `scorer.scale` to the scale of the labels, or correct the label.",
            )


def _means(pairs: Iterable[tuple[Key, float]]) -> dict[Key, float]:
    given: dict[Key, list[float]] = defaultdict(list)
    for key, value in pairs:
        given[key].append(value)
    # Exact sums, so that the order of labels does not matter.
    return {key: math.fsum(values) / len(values) for key, values in given.items()}
