"""Bytes that a distributed run leaves, and the writes an object store sees."""

from __future__ import annotations

import math
from dataclasses import dataclass

TASKS_PER_FILE = 20_000
JUDGMENTS_PER_PART = 50_000
PUTS_PER_BLOCK = 2
"""A batch of results is one object, and the checkpoint that names it another."""


@dataclass(frozen=True, slots=True)
class Storage:
    """What a run takes on a disk or in an object store."""

    task_bytes: float
    """Prompts, as Parquet: what workers read."""
    ledger_bytes: float
    """Judgments. The blocks that workers write hold the same again until they are collected."""
    score_bytes: float
    disk_bytes: float
    """All of these at once, blocks included."""
    puts: int
    """Objects written, if all of it lies in an object store."""


def store(
    responses: float, *, per_task: float, per_judgment: float, per_score: float, batch: float
) -> Storage:
    """Return the storage of a run whose batches become durable one by one."""
    tasks, ledger, scores = (responses * each for each in (per_task, per_judgment, per_score))
    files = math.ceil(responses / TASKS_PER_FILE) + math.ceil(responses / JUDGMENTS_PER_PART)
    return Storage(
        task_bytes=tasks,
        ledger_bytes=ledger,
        score_bytes=scores,
        disk_bytes=tasks + 2 * ledger + scores,
        puts=PUTS_PER_BLOCK * math.ceil(responses / batch) + files + bool(responses),
    )
