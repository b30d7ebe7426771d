"""Stored answers of the studies, and how their tables are printed and kept."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
from grade import KEPT, judgments, kept_as

from rocketeval.scoring.answers import AnswerTable

HERE = Path(__file__).parent
RECORDED = HERE / "recorded"


def only_items(answers: AnswerTable, items: Sequence[int]) -> AnswerTable:
    """Return the answers at some positions; all checklists must be the same."""
    rows = answers.p_yes.reshape(len(answers), -1)[:, list(items)]
    offsets = np.arange(len(answers) + 1, dtype=np.int64) * len(items)
    return AnswerTable(answers.query_ids, answers.candidates, rows.ravel(), offsets)


def stored(study: str, method: str) -> AnswerTable:
    """Return the answers of a study by one method that are kept in the repository."""
    return judgments.read(KEPT / kept_as(study, method))


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
