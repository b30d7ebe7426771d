"""Gold answers to single items: whether a yes of the judge is a yes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rocketeval.audit.advice_on_items import on_items
from rocketeval.audit.calibration import Calibration, calibration
from rocketeval.benchmarks.reading import Row, read_rows
from rocketeval.config import RunConfig
from rocketeval.errors import BenchmarkError, ConfigError
from rocketeval.scoring.answers import AnswerTable
from rocketeval.stages.answers import read_answers
from rocketeval.stages.yes_no import answers_yes_or_no
from rocketeval.store.run import RunStore

Cell = tuple[str, str]


@dataclass(frozen=True, slots=True)
class ItemGold:
    """The judge's answers held against gold answers to the same items."""

    calibration: Calibration
    responses: int
    """Responses of the run that have gold answers and were judged."""
    unjudged: int
    """Responses of the run that have gold answers and were not judged."""
    unknown: int
    """Rows about responses that the run does not have."""
    advice: tuple[str, ...]
    """What this means, in sentences."""


def hold_against_item_gold(store: RunStore, config: RunConfig, path: Path) -> ItemGold:
    """Compare the run's answers with a file of rows `query_id, candidate, answers`.

    `answers` are true, false or null, one for every item of the query's checklist, in order. With
    `items` beside them, the texts of the items, another checklist than the run's is refused.
    """
    if not answers_yes_or_no(config):
        raise ConfigError(
            f"The method {config.method.kind!r} does not answer with yes or no.",
            hint="Gold answers to items test methods that do, such as checklist.",
        )
    answers, _ = read_answers(store)
    gold, unknown = _read(path, store, answers)
    judged = [row for row in gold if answers.items[row]]
    if not judged:
        raise BenchmarkError(
            f"{path} says nothing about what was judged in {store.path}.",
            hint="Its rows need the run's own query_id and candidate.",
        )
    told = answers.take(judged)
    truth = np.array([each for row in judged for each in gold[row]], dtype=np.float64)
    known = ~np.isnan(truth)
    found = calibration(
        told.p_yes[known],
        truth[known],
        np.repeat(np.array(told.query_ids), told.items)[known],
        bootstrap=config.ranking.bootstrap,
        seed=config.ranking.seed,
    )
    left = len(gold) - len(judged)
    return ItemGold(found, len(judged), left, unknown, tuple(on_items(found)))


def _read(
    path: Path, store: RunStore, answers: AnswerTable
) -> tuple[dict[int, Sequence[float]], int]:
    """Return the gold answers by row of the table, and how many rows are of no response there."""
    cells = zip(answers.query_ids, answers.candidates, strict=True)
    rows = {cell: row for row, cell in enumerate(cells)}
    checklists = store.inputs.checklists()
    gold: dict[int, Sequence[float]] = {}
    unknown = 0
    for given in read_rows(path):
        cell = (given.name("query_id"), given.name("candidate"))
        if cell not in rows:
            unknown += 1
            continue
        if rows[cell] in gold:
            raise BenchmarkError(
                f"{given.where}: query {cell[0]!r}, candidate {cell[1]!r} stands here twice.",
                hint="Give each response one row; where people disagree, the answer of most.",
            )
        items = checklists[cell[0]].items if cell[0] in checklists else ()
        gold[rows[cell]] = _verdicts(given, items)
    return gold, unknown


def _verdicts(row: Row, items: Sequence[str]) -> list[float]:
    """Return a row's answers as 1, 0 or NaN."""
    given: list[Any] = row.get("answers", list)
    if not all(each is None or isinstance(each, bool) for each in given):
        raise BenchmarkError(f"{row.where}: `answers` must be a list of true, false or null.")
    if len(given) != len(items):
        raise BenchmarkError(
            f"{row.where}: for {len(items)} items in the checklist, {len(given)} are answered.",
            hint="Give one answer for every item, in order; null where there is none.",
        )
    if "items" in row.values and row.texts("items") != tuple(items):
        raise BenchmarkError(
            f"{row.where}: its `items` are not those of the run's checklist.",
            hint="Gold answers hold for the items they were given to: see inputs/checklists.jsonl.",
        )
    return [np.nan if each is None else float(each) for each in given]
