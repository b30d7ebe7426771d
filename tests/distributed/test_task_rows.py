"""Tasks survive the way to a cluster, and a query is never split."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from rocketeval.checks.runner import CheckRunner, CheckSettings
from rocketeval.distributed import staging as task_rows
from rocketeval.distributed.staging import (
    RESULTS,
    TASKS,
    failed_row,
    read_tasks,
    row_to_failure,
    task_tables,
    write_tasks,
)
from rocketeval.engines.scripted import exact_answer
from rocketeval.items import AnswerLabels, CheckCall
from rocketeval.records import Answer, Failure, GradingTask, PendingCheck, Status
from rocketeval.store.schema import JUDGMENTS
from support.make import key


def task(query: int, candidate: int, **changes: object) -> GradingTask:
    """Return a task with hostile text in it."""
    name = f"{query}-{candidate}"
    return GradingTask(
        **{
            "key": key(name),
            "query_id": f"q{query}",
            "candidate": f"c\u2028{candidate}\x1b[31m",
            "prefix": f"prefix \U0001f680 {name}\n",
            "suffixes": ("one\n", "two"),
            "neutralised": query,
            **changes,
        }
    )


def written(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.parquet"))


def test_tasks_round_trip(tmp_path: Path) -> None:
    """Every field, and the known answers, are read as they were written."""
    tasks = [task(0, 0), task(0, 1, suffixes=("all",), items=3), task(1, 0)]
    known = {tasks[1].key: {2: exact_answer(0.25), 0: Answer(Status.HIDDEN, text="so\n")}}
    rows = write_tasks(tasks, known, fs.LocalFileSystem(), str(tmp_path))
    assert rows == 3
    (file,) = written(tmp_path)
    table = pq.read_table(file)
    assert table.schema.equals(TASKS)
    assert list(read_tasks(table)) == [
        (0, tasks[0], {}),
        (1, tasks[1], known[tasks[1].key]),
        (2, tasks[2], {}),
    ]


def test_query_stays_in_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files end between two queries, and ids continue through all of them."""
    monkeypatch.setattr(task_rows, "FILE_ROWS", 4)
    monkeypatch.setattr(task_rows, "GROUP_BYTES", 50)
    tasks = [task(query, candidate) for query in range(5) for candidate in range(3)]
    assert write_tasks(iter(tasks), {}, fs.LocalFileSystem(), str(tmp_path)) == len(tasks)
    tables = [pq.read_table(file) for file in written(tmp_path)]
    assert [table.num_rows for table in tables] == [6, 6, 3]
    owners = [set(table["query_id"].to_pylist()) for table in tables]
    assert not (owners[0] & owners[1])
    assert not (owners[1] & owners[2])
    ids = [number for table in tables for number in table["id"].to_pylist()]
    assert ids == list(range(len(tasks)))


def test_no_tasks_make_no_files(tmp_path: Path) -> None:
    """Without remaining tasks no file is written."""
    assert write_tasks([], {}, fs.LocalFileSystem(), str(tmp_path)) == 0
    assert written(tmp_path) == []


def test_results_are_rows_of_the_ledger() -> None:
    """A result has every column of the ledger, plus an id and a failure."""
    assert [field for field in RESULTS if field.name not in ("id", "failure")] == list(JUDGMENTS)


def test_failure_round_trips() -> None:
    """Answers before the failure are not asked again."""
    failure = Failure(
        key("a"), "q", "c", "item 2: too long", (exact_answer(0.5), Answer(Status.ERROR))
    )
    row = failed_row(7, failure, "judge")
    assert row["id"] == 7
    assert row_to_failure({**dict.fromkeys(RESULTS.names), **row}) == failure


def test_labels_and_checks_travel_with_a_task(tmp_path: Path) -> None:
    """A worker gets the labels of items, and the results of checks as known answers."""
    labels = (None, AnswerLabels(("3", "2", "1"), "NA"), None)
    check = PendingCheck(CheckCall("contains", {"text": "x"}), "a text")
    task = GradingTask(b"k" * 16, "q", "c", "p", ("a", "b", ""), 0, 3, labels, {2: check})
    with closing(CheckRunner(CheckSettings())) as checks:
        (table,) = task_tables([task], {}, 0, checks)
    ((_, read, known),) = read_tasks(table)
    assert read.labels == labels
    assert {item: answer.p_yes for item, answer in known.items()} == {2: 1.0}
    assert read.left(known) == [0, 1]
