"""Answers, grades and reference data of graded runs, by study, judge and method."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
from grade import (
    KEPT,
    RUNS,
    STUDY_JUDGE,
    judgments,
    kept_as,
    study_config,
    study_method,
)
from numpy.typing import NDArray

from rocketeval.grid import ScoreGrid
from rocketeval.scoring.answers import AnswerTable
from rocketeval.scoring.mean import HardMeanScorer, MeanScorer
from rocketeval.scoring.read_answers import read_answers
from rocketeval.store.run import RunStore

HERE = Path(__file__).parent
RECORDED = HERE / "recorded"
JUDGES = {STUDY_JUDGE: "Qwen2.5-Coder-1.5B", "smollm2-135m-instruct": "SmolLM2-135M"}
"""The judges of the studies without stored judgments, with their displayed names."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Graded:
    """One method's judgments of one study's responses."""

    judge: str
    method: str
    store: RunStore
    answers: AnswerTable

    def grid(self, items: Sequence[int] | None = None, *, hard: bool = False) -> ScoreGrid:
        """Return mean answers on 1 to 10, of all items or some positions; `hard` counts yes/no."""
        answers = self.answers if items is None else only_items(self.answers, items)
        scorer = HardMeanScorer() if hard else MeanScorer()
        scores = scorer.predict(answers).tolist()
        return ScoreGrid.from_columns(answers.query_ids, answers.candidates, scores)

    def by_cell(self) -> dict[tuple[str, str], Floats]:
        """Return the answers of every response."""
        cells = zip(self.answers.query_ids, self.answers.candidates, strict=True)
        bounds = self.answers.offsets
        return {
            cell: self.answers.p_yes[bounds[row] : bounds[row + 1]]
            for row, cell in enumerate(cells)
        }


def only_items(answers: AnswerTable, items: Sequence[int]) -> AnswerTable:
    """Return the answers at some positions; all checklists must be the same."""
    rows = answers.p_yes.reshape(len(answers), -1)[:, list(items)]
    offsets = np.arange(len(answers) + 1, dtype=np.int64) * len(items)
    return AnswerTable(answers.query_ids, answers.candidates, rows.ravel(), offsets)


def graded(study: str, method: str, judge: str, limit: int | None = None) -> Graded | None:
    """Return the judgments of a study by one method and judge; None if there are none."""
    path = study_method(study_config(study, judge, limit), method).run_path
    return judged(path, judge, method)


def stored(study: str, method: str) -> AnswerTable:
    """Return the answers of a study by one method that are kept in the repository."""
    return judgments.read(KEPT / kept_as(study, method))


def judged(run: Path, judge: str, method: str) -> Graded | None:
    """Return the judgments of a run; None if there are none."""
    store = RunStore(run)
    if store.manifest().judge is None:
        return None
    answers, keys = read_answers(store)
    there = [row for row, key in enumerate(keys) if key is not None and answers.items[row] > 0]
    if not there:
        return None
    return Graded(judge, method, store, answers.take(there))


def rows_of(study: str, file: str) -> list[dict[str, Any]]:
    """Return the rows of a file in the study's benchmark folder."""
    path = RUNS / "data" / study / f"{file}.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def record(name: str, content: Mapping[str, Any], lines: Sequence[str], *, keep: bool) -> None:
    """Print a study's table; with `keep`, write it and its figures to recorded/."""
    text = "\n".join(lines)
    print(text)
    if keep:
        RECORDED.mkdir(exist_ok=True)
        (RECORDED / f"{name}.txt").write_text(text + "\n", encoding="utf-8")
        shown = json.dumps(content, indent=1, ensure_ascii=False, default=_plain)
        (RECORDED / f"{name}.json").write_text(shown + "\n", encoding="utf-8")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a plain text table."""
    widths = [max(len(row[place]) for row in [head, *rows]) for place in range(len(head))]
    lines = []
    for row in [head, *rows]:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        lines.append("  ".join(cells).rstrip())
    return lines


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    raise TypeError(type(value).__name__)
