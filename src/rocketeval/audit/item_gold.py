"""Comparison of the judge's answers with reference answers to single items."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from rocketeval.audit.calibration import Calibration, calibration
from rocketeval.audit.wording import LEVEL, chance_text, or_more, percent, points, rho, span
from rocketeval.benchmarks.reading import Row, read_rows
from rocketeval.config import RunConfig
from rocketeval.errors import BenchmarkError, ConfigError
from rocketeval.records import Interval
from rocketeval.scoring.answers import AnswerTable
from rocketeval.scoring.read_answers import answers_yes_or_no, read_answers
from rocketeval.store.run import RunStore

TOO_LITTLE = "Too few queries, or all with the same result,"
"""Why a figure has no interval."""


def on_items(found: Calibration) -> Iterator[str]:
    """Yield conclusions on yes bias, discrimination of yes from no, and calibration."""
    if found.yes_bias is None or found.gold_yes is None:
        yield f"No conclusion from the reference answers: {found.reason}."
        return
    yield _on_yes(found.yes_bias, found.gold_yes / found.items)
    if found.auc is not None:
        yield _on_order(found.auc)
    yield from _on_bins(found)


def _on_yes(bias: Interval, gold: float) -> str:
    figures = f"yes for {percent(gold + bias.value)} of items, reference {percent(gold)}"
    # Equal results on all queries show a bias, but not that there is none.
    if math.isnan(bias.low) or bias.low == bias.high == 0.0:
        return f"{TOO_LITTLE} to measure a bias toward yes or no: {figures}."
    if bias.low > 0.0:
        return f"The judge says yes too often: {figures}, {points(bias)}."
    if bias.high < 0.0:
        return f"The judge says no too often: {figures}, {points(bias)}."
    return f"No significant bias toward yes or no: {figures}, {points(bias)}."


def _on_order(auc: Interval) -> str:
    higher = f"a reference yes gets a higher probability than a no {percent(auc.value)} of the time"
    if math.isnan(auc.low) and auc.value > 0.5:
        return f"{TOO_LITTLE} to measure discrimination: {higher}, so far."
    if math.isnan(auc.low):
        return f"It does not significantly distinguish yes from no: {higher} (guessing: 50)."
    figures = f"{higher} ({span(auc)}; guessing: 50)"
    if auc.low > 0.5:
        return f"It distinguishes yes from no: {figures}."
    if auc.high < 0.5:
        return (
            f"It confuses yes and no: {figures}. Check that the items ask for what the reference "
            "answers."
        )
    return f"It does not significantly distinguish yes from no: {figures}."


def _on_bins(found: Calibration) -> Iterator[str]:
    bins = [each for each in found.by_width.bins if not math.isnan(each.gold.low)]
    off = [each for each in bins if not each.gold.low <= each.mean_p <= each.gold.high]
    if not bins:
        return
    if not off:
        reach = max(each.gold.high - each.gold.low for each in bins)
        yield (
            f"No significant miscalibration: all {len(bins)} bins agree with the reference, with "
            f"intervals of up to {100.0 * reach:.0f} points."
        )
        return
    widest = max(off, key=lambda each: abs(each.mean_p - each.gold.value))
    yield (
        f"Its probabilities are miscalibrated in {len(off)} of {len(bins)} bins, most of all at "
        f"{rho(widest.mean_p)}, where the reference says yes to {percent(widest.gold.value)} "
        f"({span(widest.gold)}). By chance, {or_more(len(off))} would be off in "
        f"{chance_text(len(bins), len(off), 1.0 - LEVEL)}."
    )


Cell = tuple[str, str]


@dataclass(frozen=True, slots=True)
class ItemGold:
    """Comparison of the judge's answers with reference answers to the same items."""

    FILE: ClassVar[str] = "item_gold"
    COMMAND: ClassVar[str] = "audit --reference-answers"
    SCHEMA: ClassVar[int] = 1

    calibration: Calibration
    responses: int
    """Judged responses with reference answers."""
    unjudged: int
    """Responses with reference answers that were not judged."""
    unknown: int
    """Rows for responses that are not in the run."""
    advice: tuple[str, ...]
    """Conclusions in sentences."""


def compare_with_item_gold(store: RunStore, config: RunConfig, path: Path) -> ItemGold:
    """Compare the run's answers with a file of rows `query_id, candidate, answers`.

    `answers` holds true, false or null for each item of the query's checklist, in order. If rows
    also have `items`, the item texts, they must match the run's checklist.
    """
    if not answers_yes_or_no(config):
        raise ConfigError(
            f"The method {config.method.kind!r} does not answer with yes or no.",
            hint="Reference answers need a method with yes/no items, such as checklist.",
        )
    answers, _ = read_answers(store)
    gold, unknown = _read(path, store, answers)
    judged = [row for row in gold if answers.items[row]]
    if not judged:
        raise BenchmarkError(
            f"{path} has no row for a response judged in {store.path}.",
            hint="Rows need a query_id and a candidate of the run.",
        )
    compared = answers.take(judged)
    truth = np.array([each for row in judged for each in gold[row]], dtype=np.float64)
    known = ~np.isnan(truth)
    clusters = store.inputs.clusters()
    found = calibration(
        compared.shown[known],
        truth[known],
        np.repeat([clusters[query] for query in compared.query_ids], compared.items)[known],
        bootstrap=config.ranking.bootstrap,
        seed=config.ranking.seed,
    )
    left = len(gold) - len(judged)
    return ItemGold(found, len(judged), left, unknown, tuple(on_items(found)))


def _read(
    path: Path, store: RunStore, answers: AnswerTable
) -> tuple[dict[int, Sequence[float]], int]:
    """Return reference answers by row of the table, and the number of rows without a response."""
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
                f"{given.where}: duplicate row for query {cell[0]!r}, candidate {cell[1]!r}.",
                hint="Give each response one row; if people disagree, use the majority answer.",
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
            f"{row.where}: {len(given)} answers for a checklist of {len(items)} items.",
            hint="Give one answer per item, in order; null for an unknown answer.",
        )
    if "items" in row.values and row.texts("items") != tuple(items):
        raise BenchmarkError(
            f"{row.where}: `items` differs from the run's checklist.",
            hint="Reference answers must match the items in inputs/checklists.jsonl.",
        )
    return [np.nan if each is None else float(each) for each in given]
