"""Grading tasks as rows: what is handed to a cluster, and what comes back.

Tasks are Parquet files sorted by query; all tasks of a query lie in one file, so that a judge's
prefix cache sees its candidates one after the other. `id` counts tasks in that order: eight bytes
a response are all that a cluster has to remember of finished work.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from rocketeval.records import Answer, Failure, GradingTask, Judgment
from rocketeval.store.schema import (
    JUDGMENTS,
    answers_to_lists,
    judgment_to_row,
    lists_to_answers,
)

ID = "id"
TASKS = pa.schema(
    [
        (ID, pa.int64()),
        ("key", pa.binary()),
        ("query_id", pa.string()),
        ("candidate", pa.string()),
        ("prefix", pa.large_string()),
        ("suffixes", pa.list_(pa.string())),
        ("items", pa.int32()),
        ("neutralised", pa.int32()),
        ("known", pa.binary()),
    ]
)
"""`items` is null where every suffix is an item; `known` holds answers that are there already."""
RESULTS = pa.schema([pa.field(ID, pa.int64()), *JUDGMENTS, pa.field("failure", pa.string())])
"""A row of the ledger, and why there is none: `failure` is null for a finished judgment."""
FILE_ROWS = 20_000
"""Tasks after which a file ends with its query."""
GROUP_BYTES = 8 << 20
"""Text in a row group: what is held in memory while tasks are written."""

Known = Mapping[bytes, Mapping[int, Answer]]


def write_tasks(
    tasks: Iterable[GradingTask], known: Known, filesystem: fs.FileSystem, folder: str
) -> int:
    """Write the tasks, which come sorted by query, below `folder`; return how many there are."""
    filesystem.create_dir(folder, recursive=True)
    rows = number = 0
    for number, group in enumerate(_files(tasks)):
        path = f"{folder}/part-{number:06d}.parquet"
        with pq.ParquetWriter(path, TASKS, filesystem=filesystem, compression="zstd") as writer:
            for table in task_tables(group, known, rows):
                writer.write_table(table)
                rows += table.num_rows
    return rows


def read_tasks(batch: pa.Table) -> Iterator[tuple[int, GradingTask, dict[int, Answer]]]:
    """Yield the tasks of a batch with their ids and the answers that are there already."""
    for row in batch.to_pylist():
        task = GradingTask(
            row["key"],
            row["query_id"],
            row["candidate"],
            row["prefix"],
            tuple(row["suffixes"]),
            row["neutralised"],
            row["items"],
        )
        yield row[ID], task, {} if row["known"] is None else _unpack(row["known"])


def judged_row(number: int, judgment: Judgment, judge: str) -> dict[str, Any]:
    """Return the row of a finished judgment."""
    return {ID: number, **judgment_to_row(judgment, judge)}


def failed_row(number: int, failure: Failure, judge: str) -> dict[str, Any]:
    """Return the row of a task that could not be finished."""
    judgment = Judgment(failure.key, failure.query_id, failure.candidate, failure.answers)
    return {ID: number, **judgment_to_row(judgment, judge), "failure": failure.reason}


def row_to_failure(row: Mapping[str, Any]) -> Failure:
    """Return the failure a row holds; the inverse of `failed_row`."""
    return Failure(
        bytes.fromhex(row["key"]),
        row["query_id"],
        row["candidate"],
        row["failure"],
        lists_to_answers(row),
    )


def _files(tasks: Iterable[GradingTask]) -> Iterator[Iterator[GradingTask]]:
    """Cut the tasks into files, only ever between two queries. Each is used up before the next."""
    stream = iter(tasks)
    waiting = next(stream, None)

    def one_file() -> Iterator[GradingTask]:
        nonlocal waiting
        count = 0
        while waiting is not None:
            task, waiting = waiting, next(stream, None)
            count += 1
            yield task
            if waiting is not None and count >= FILE_ROWS and waiting.query_id != task.query_id:
                return

    while waiting is not None:
        yield one_file()


def task_tables(tasks: Iterable[GradingTask], known: Known, first: int = 0) -> Iterator[pa.Table]:
    """Yield the tasks as rows, numbered from `first`, in tables of a row group each."""
    rows: list[dict[str, Any]] = []
    held = 0
    for number, task in enumerate(tasks, first):
        rows.append(_task_row(number, task, known.get(task.key)))
        held += len(task.prefix) + sum(map(len, task.suffixes))
        if held >= GROUP_BYTES:
            yield pa.Table.from_pylist(rows, schema=TASKS)
            rows, held = [], 0
    if rows:
        yield pa.Table.from_pylist(rows, schema=TASKS)


def _task_row(number: int, task: GradingTask, known: Mapping[int, Answer] | None) -> dict[str, Any]:
    return {
        ID: number,
        "key": task.key,
        "query_id": task.query_id,
        "candidate": task.candidate,
        "prefix": task.prefix,
        "suffixes": list(task.suffixes),
        "items": task.items,
        "neutralised": task.neutralised,
        "known": _pack(known) if known else None,
    }


def _pack(known: Mapping[int, Answer]) -> bytes:
    return orjson.dumps({"places": list(known), **answers_to_lists(list(known.values()))})


def _unpack(packed: bytes) -> dict[int, Answer]:
    row = orjson.loads(packed)
    return dict(zip(row["places"], lists_to_answers(row), strict=True))
