"""Gold answers to single items: whether a yes of the judge is a yes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocketeval.audit.calibration import Calibration, calibration
from rocketeval.benchmarks.reading import Row, read_rows
from rocketeval.config import RankingConfig
from rocketeval.errors import BenchmarkError
from rocketeval.stages.score import read_answers
from rocketeval.store.run import RunStore


@dataclass(frozen=True, slots=True)
class ItemGold:
    """The judge's answers held against gold answers to the same items."""

    calibration: Calibration
    responses: int
    """Responses of the run that have gold answers."""
    unknown: int
    """Rows about responses that the run does not have."""


def hold_against_item_gold(store: RunStore, path: Path, ranking: RankingConfig) -> ItemGold:
    """Compare the run's answers with a file of rows `query_id, candidate, answers`.

    `answers` are true, false or null, one for every item of the response's checklist, in order.
    """
    answers, _ = read_answers(store)
    cells = zip(answers.query_ids, answers.candidates, strict=True)
    rows = {cell: row for row, cell in enumerate(cells)}
    p_yes: list[NDArray[np.float64]] = []
    gold: list[float] = []
    groups: list[str] = []
    responses = unknown = 0
    for given in read_rows(path):
        cell = (given.name("query_id"), given.name("candidate"))
        if cell not in rows:
            unknown += 1
            continue
        row = rows[cell]
        told = answers.p_yes[answers.offsets[row] : answers.offsets[row + 1]]
        known = _verdicts(given, len(told))
        responses += 1
        p_yes.append(told)
        gold += known
        groups += [cell[0]] * len(told)
    if not responses:
        raise BenchmarkError(
            f"{path} says nothing about the responses of {store.path}.",
            hint="Its rows need the run's own query_id and candidate.",
        )
    flat, truth = np.concatenate(p_yes), np.array(gold)
    here = ~np.isnan(truth)
    found = calibration(
        flat[here],
        truth[here] > 0,
        np.array(groups)[here],
        bootstrap=ranking.bootstrap,
        seed=ranking.seed,
    )
    return ItemGold(found, responses, unknown)


def _verdicts(row: Row, items: int) -> list[float]:
    """Return a row's answers as 1, 0 or NaN; none for a response that was not judged."""
    given: list[Any] = row.get("answers", list)
    if not all(each is None or isinstance(each, bool) for each in given):
        raise BenchmarkError(f"{row.where}: `answers` must be a list of true, false or null.")
    if items and len(given) != items:
        raise BenchmarkError(
            f"{row.where}: {len(given)} answers stand against a checklist of {items} items.",
            hint="Give one answer for every item, in order; null where there is none.",
        )
    return [np.nan if each is None else float(each) for each in given[:items]]
