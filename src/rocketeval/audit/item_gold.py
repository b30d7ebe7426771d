"""Gold answers to single items: whether a yes of the judge is a yes.

What gold answers to single items say of a judge, in sentences.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from rocketeval.audit.calibration import Calibration, calibration
from rocketeval.audit.wording import LEVEL, luck, or_more, percent, points, rho, span
from rocketeval.benchmarks.reading import Row, read_rows
from rocketeval.config import RunConfig
from rocketeval.errors import BenchmarkError, ConfigError
from rocketeval.records import Interval
from rocketeval.scoring.answers import AnswerTable
from rocketeval.scoring.read_answers import answers_yes_or_no, read_answers
from rocketeval.store.run import RunStore


def on_items(found: Calibration) -> Iterator[str]:
    """Yield whether it leans to yes, tells yes from no, and means its probabilities."""
    if found.yes_bias is None or found.gold_yes is None:
        yield f"The gold tells nothing: {found.reason}."
        return
    yield _on_yes(found.yes_bias, found.gold_yes / found.items)
    if found.auc is not None:
        yield _on_order(found.auc)
    yield from _on_bins(found)


def _on_yes(bias: Interval, gold: float) -> str:
    figures = f"to {percent(gold + bias.value)} of items, gold to {percent(gold)}"
    if math.isnan(bias.low):
        return f"It says yes {figures}: too few queries to tell whether it leans to either side."
    if bias.low > 0.0:
        return f"It says yes too easily: {figures}, {points(bias)}."
    if bias.high < 0.0:
        return f"It says no too easily: yes {figures}, {points(bias)}."
    return f"No lean to yes or to no is sure: yes {figures}, {points(bias)}."


def _on_order(auc: Interval) -> str:
    said = f"{percent(auc.value)} of the time"
    if math.isnan(auc.low):
        return f"An item that gold says yes to gets the higher probability {said}, so far."
    if auc.low > 0.5:
        return (
            f"It tells yes from no: an item that gold says yes to gets the higher probability "
            f"{said} ({span(auc)}; guessing: 50)."
        )
    if auc.high < 0.5:
        return (
            f"It takes yes for no: an item that gold says yes to gets the higher probability only "
            f"{said} ({span(auc)}; guessing: 50). Look whether the items ask for what gold answers."
        )
    return (
        f"It does not surely tell yes from no: an item that gold says yes to gets the higher "
        f"probability {said} ({span(auc)}; guessing: 50)."
    )


def _on_bins(found: Calibration) -> Iterator[str]:
    bins = [each for each in found.by_width.bins if not math.isnan(each.gold.low)]
    off = [each for each in bins if not each.gold.low <= each.mean_p <= each.gold.high]
    if not bins:
        return
    if not off:
        reach = max(each.gold.high - each.gold.low for each in bins)
        yield (
            f"Nothing says that its probabilities are no chances: all {len(bins)} bins hold, with "
            f"intervals of up to {100.0 * reach:.0f} points."
        )
        return
    widest = max(off, key=lambda each: abs(each.mean_p - each.gold.value))
    yield (
        f"Its probabilities are no chances: in {len(off)} of {len(bins)} bins gold says yes to "
        f"another share, most so at {rho(widest.mean_p)}, where it does to "
        f"{percent(widest.gold.value)} ({span(widest.gold)}). By luck alone {or_more(len(off))} "
        f"would be off in {luck(len(bins), len(off), 1.0 - LEVEL)}."
    )


Cell = tuple[str, str]


@dataclass(frozen=True, slots=True)
class ItemGold:
    """The judge's answers held against gold answers to the same items."""

    FILE: ClassVar[str] = "item_gold"
    COMMAND: ClassVar[str] = "audit --reference-answers"
    SCHEMA: ClassVar[int] = 1

    calibration: Calibration
    responses: int
    """Responses of the run that have gold answers and were judged."""
    unjudged: int
    """Responses of the run that have gold answers and were not judged."""
    unknown: int
    """Rows about responses that the run does not have."""
    advice: tuple[str, ...]
    """What this means, in sentences."""


def compare_with_item_gold(store: RunStore, config: RunConfig, path: Path) -> ItemGold:
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
