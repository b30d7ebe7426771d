"""A design: recorded answers, labels, folds, and the units to resample."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rocketeval.records import Gold, Label
from rocketeval.scoring.answers import AnswerTable

Floats = NDArray[np.float64]
Places = NDArray[np.intp]

NEVER_HELD_OUT = -1


@dataclass(frozen=True)
class Design:
    """Answers with labels, split so that no label is used to score its own response."""

    name: str
    answers: AnswerTable
    labels: Floats
    """One per response, on `scale`."""
    scale: tuple[float, float]
    folds: NDArray[np.int64]
    """A fit to the other folds scores the responses of a fold; -1 is used only for training."""
    units: Sequence[str]
    """Responses of one unit are resampled together."""
    unit_name: str
    systems: Sequence[str] | None = None
    """The system that wrote each response, if systems can be ranked."""

    @property
    def scored(self) -> Places:
        """Return the positions of the scored responses."""
        return np.flatnonzero(self.folds != NEVER_HELD_OUT)

    def splits(self) -> Iterator[tuple[Places, Places]]:
        """Yield training rows and rows to score, fold by fold."""
        for fold in np.unique(self.folds[self.scored]):
            yield np.flatnonzero(self.folds != fold), np.flatnonzero(self.folds == fold)

    def gold(self, rows: Places) -> Gold:
        """Return the labels of the given responses."""
        ids, names = self.answers.query_ids, self.answers.candidates
        return Gold([Label(ids[row], names[row], float(self.labels[row])) for row in rows])

    def unit_rows(self) -> list[Places]:
        """Return the scored responses of each unit."""
        rows: dict[str, list[int]] = {}
        for row in self.scored:
            rows.setdefault(self.units[row], []).append(int(row))
        return [np.array(found) for found in rows.values()]


def table(
    query_ids: Sequence[str], candidates: Sequence[str], p_yes: Sequence[Floats] | Floats
) -> AnswerTable:
    """Return the answers of many responses, one row of `p_yes` each."""
    offsets = np.cumsum([0, *map(len, p_yes)]).astype(np.int64)
    return AnswerTable(list(query_ids), list(candidates), np.concatenate(list(p_yes)), offsets)


def folds_by(units: Sequence[str], folds: int, seed: int) -> NDArray[np.int64]:
    """Return a fold for each response; responses of one unit share theirs."""
    names = sorted(set(units))
    order = np.random.default_rng(seed).permutation(len(names))
    fold = {names[place]: number % folds for number, place in enumerate(order)}
    return np.array([fold[unit] for unit in units], dtype=np.int64)
