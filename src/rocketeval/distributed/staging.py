"""The folder that a driver and its cluster share: tasks, results and progress.

job.json             the job's description, written last: without it there is no job
asked.json           how many tasks were sent to a judge, updated from time to time
jobs/ID/tasks/       Parquet files of tasks
jobs/ID/results/     Parquet files of judgments and failures, each written at once and atomically

A task is finished if its id is in a file of results and no stop interrupted it; there is no other
record of it. In jobs of earlier versions, Ray wrote one such file per batch, and a `checkpoint`
folder that is not read.
Every job has its own ID, so late writes of a killed job never reach the next one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyarrow import fs

from rocketeval.checks.runner import CheckRunner
from rocketeval.errors import ConfigError, StoreError
from rocketeval.grading.loop import CUT_OFF
from rocketeval.items import AnswerLabels
from rocketeval.records import Answer, Failure, GradingTask, Judgment
from rocketeval.store.files import replacing
from rocketeval.store.schema import JUDGMENTS, answers_to_lists, judgment_to_row, lists_to_answers

READERS = 16
"""Files read in parallel, because most of the time is spent waiting for them."""
TORN = (pa.ArrowInvalid, OSError)
"""Errors of reading a file whose writer died."""


@dataclass(frozen=True)
class StagedJob:
    """Tasks staged for a cluster."""

    made_for: str
    """Hash of the judge and of the judgments that the tasks will become."""
    judge: str
    """Digest of the judge, in hex."""
    rows: int
    id: str


class JobFolder:
    """The tasks, results and checkpoint of one job, on a disk or in an object store."""

    def __init__(self, filesystem: fs.FileSystem, path: str) -> None:
        self.filesystem = filesystem
        self.path = path
        self.tasks, self.results = f"{path}/tasks", f"{path}/results"

    def visible(self) -> bool:
        """Return whether this machine can see the tasks."""
        return bool(self.filesystem.get_file_info(self.tasks).type == fs.FileType.Directory)

    def write_results(self, results: pa.Table) -> None:
        """Write a new file of results, which is there as a whole or not at all.

        An object store shows an object when it is complete. On a disk the file is flushed and then
        renamed, so that it also survives a power cut.
        """
        path = f"{self.results}/block-{uuid4().hex}.parquet"
        if isinstance(self.filesystem, fs.LocalFileSystem):
            with replacing(Path(path)) as temporary:
                pq.write_table(results, temporary, compression="zstd")
            return
        pq.write_table(results, path, filesystem=self.filesystem, compression="zstd")

    def finished(self, rows: int) -> NDArray[np.bool_]:
        """Return which of the job's tasks, by id, have a result."""
        found = np.zeros(rows, dtype=bool)
        for table in self._tables(self.results, [ID, "failure"]):
            if table is not None:
                found[ended(table)[ID].to_numpy()] = True
        return found

    def unfinished_tasks(self, finished: NDArray[np.bool_]) -> tuple[list[str], int]:
        """Return the files with unfinished tasks, and how many tasks those files have."""
        files: list[str] = []
        rows = first = 0
        paths = self._files(self.tasks)
        with ThreadPoolExecutor(READERS) as readers:
            for path, count in zip(paths, readers.map(self._count, paths), strict=True):
                if not finished[first : first + count].all():
                    files.append(path)
                    rows += count
                first += count
        return files, rows

    def _count(self, path: str) -> int:
        with pq.ParquetFile(path, filesystem=self.filesystem) as part:
            return int(part.metadata.num_rows)

    def result_tables(self) -> Iterator[pa.Table | None]:
        """Yield every file of results; None for an incomplete one, whose writer died."""
        return self._tables(self.results)

    def _tables(
        self, folder: str, columns: Sequence[str] | None = None
    ) -> Iterator[pa.Table | None]:
        read = partial(self._table, columns=columns)
        with ThreadPoolExecutor(READERS) as readers:
            found = self._files(folder)
            for first in range(0, len(found), READERS):
                yield from readers.map(read, found[first : first + READERS])

    def _table(self, path: str, columns: Sequence[str] | None) -> pa.Table | None:
        try:
            with pq.ParquetFile(path, filesystem=self.filesystem) as part:
                return part.read(columns)
        except TORN:
            return None

    def _files(self, folder: str) -> list[str]:
        selector = fs.FileSelector(folder, recursive=True, allow_not_found=True)
        found = self.filesystem.get_file_info(selector)
        return sorted(info.path for info in found if info.path.endswith(".parquet"))


class Staging:
    """The folder that a run and its cluster share, on this machine or in an object store."""

    def __init__(self, filesystem: fs.FileSystem, root: str) -> None:
        self.filesystem = filesystem
        self.root = root.rstrip("/")
        self.local = isinstance(filesystem, fs.LocalFileSystem)

    def job(self) -> StagedJob | None:
        """Return the job whose tasks are complete; None if there is none."""
        found = self._read("job.json")
        try:
            return None if found is None else StagedJob(**orjson.loads(found))
        except (orjson.JSONDecodeError, TypeError):
            return None

    def folder(self, job_id: str) -> JobFolder:
        """Return the folder of a job."""
        return JobFolder(self.filesystem, f"{self.root}/jobs/{job_id}")

    def new_folder(self) -> tuple[str, JobFolder]:
        """Return a new job id and its folder."""
        job_id = uuid4().hex[:12]
        return job_id, self.folder(job_id)

    def begin(self, job: StagedJob) -> None:
        """Declare the tasks complete."""
        self.filesystem.create_dir(self.folder(job.id).results, recursive=True)
        self._write("job.json", orjson.dumps(asdict(job)))

    def note_asked(self, asked: int) -> None:
        """Save how many tasks have been sent to a judge."""
        self._write("asked.json", orjson.dumps({"asked": asked}))

    def asked(self) -> int:
        """Return how many tasks were sent to a judge, as last saved."""
        found = self._read("asked.json")
        try:
            return 0 if found is None else int(orjson.loads(found)["asked"])
        except orjson.JSONDecodeError:
            return 0

    def clear(self) -> None:
        """Remove the job, its description first, so that a partial job does not count."""
        for name in ("job.json", "asked.json"):
            if self._exists(name):
                self.filesystem.delete_file(f"{self.root}/{name}")
        jobs = f"{self.root}/jobs"
        if self.filesystem.get_file_info(jobs).type == fs.FileType.Directory:
            self.filesystem.delete_dir(jobs)

    def _exists(self, name: str) -> bool:
        return bool(self.filesystem.get_file_info(f"{self.root}/{name}").type == fs.FileType.File)

    def _read(self, name: str) -> bytes | None:
        if not self._exists(name):
            return None
        with self.filesystem.open_input_stream(f"{self.root}/{name}") as stream:
            return bytes(stream.read())

    def _write(self, name: str, content: bytes) -> None:
        """Write a small file; on a disk it replaces the old one atomically."""
        self.filesystem.create_dir(self.root, recursive=True)
        path = f"{self.root}/{name}"
        target = f"{self.root}/.{name}.tmp" if self.local else path
        try:
            with self.filesystem.open_output_stream(target) as stream:
                stream.write(content)
            if self.local:
                self.filesystem.move(target, path)
        except OSError as error:
            raise StoreError(
                f"Cannot write {path}: {error}.",
                hint="`distributed.staging` must be a folder or URI that this machine can write.",
            ) from None


def open_staging(where: str | None, run: Path, run_id: str) -> Staging:
    """Return the run's folder in the configured staging place, or inside the run directory."""
    if where is None:
        return Staging(fs.LocalFileSystem(), str(run.resolve() / "distributed"))
    # Several runs, of several users, may share the place.
    if "://" not in where:
        return Staging(fs.LocalFileSystem(), str((Path(where) / run_id).resolve()))
    address, mark, options = where.partition("?")
    place = f"{address.rstrip('/')}/{run_id}{mark}{options}"
    try:
        filesystem, root = fs.FileSystem.from_uri(place)
    except (ValueError, OSError, pa.ArrowException):
        filesystem, root = _through_fsspec(place)
    return Staging(filesystem, root)


def _through_fsspec(place: str) -> tuple[fs.FileSystem, str]:
    try:
        from fsspec.core import url_to_fs

        found, root = url_to_fs(place)
    except (ImportError, ValueError, OSError) as error:
        raise ConfigError(
            f"Cannot open distributed.staging {place}: {error}",
            hint="Use a folder that all machines share, or a URI that pyarrow or an installed "
            "fsspec package supports, such as s3://bucket/folder.",
        ) from None
    return fs.PyFileSystem(fs.FSSpecHandler(found)), str(root)


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
"""`items` is null if every suffix is an item; `known` has the answers that are reused, those of
code checks, and the labels of items that have their own."""
RESULTS = pa.schema([pa.field(ID, pa.int64()), *JUDGMENTS, pa.field("failure", pa.string())])
"""A ledger row plus `failure`, which is null for a finished judgment."""
FILE_ROWS = 20_000
"""Tasks per file; a file ends at the next change of query."""
GROUP_BYTES = 8 << 20
"""Text per row group, which is held in memory while tasks are written."""

Known = Mapping[bytes, Mapping[int, Answer]]


def write_tasks(
    tasks: Iterable[GradingTask],
    known: Known,
    filesystem: fs.FileSystem,
    folder: str,
    checks: CheckRunner | None = None,
) -> int:
    """Write the tasks, sorted by query, to `folder`; return how many there are.

    Code checks run here, so that workers need no functions of the user.
    """
    filesystem.create_dir(folder, recursive=True)
    rows = number = 0
    for number, group in enumerate(_files(tasks)):
        path = f"{folder}/part-{number:06d}.parquet"
        with pq.ParquetWriter(path, TASKS, filesystem=filesystem, compression="zstd") as writer:
            for table in task_tables(group, known, rows, checks):
                writer.write_table(table)
                rows += table.num_rows
    return rows


def read_tasks(batch: pa.Table) -> Iterator[tuple[int, GradingTask, dict[int, Answer]]]:
    """Yield the tasks of a batch with their ids and the answers that are reused."""
    for row in batch.to_pylist():
        task = GradingTask(
            row["key"],
            row["query_id"],
            row["candidate"],
            row["prefix"],
            tuple(row["suffixes"]),
            row["neutralised"],
            row["items"],
            None if row["known"] is None else _unpack_labels(row["known"]),
        )
        yield row[ID], task, {} if row["known"] is None else _unpack(row["known"])


def judged_row(number: int, judgment: Judgment, judge: str) -> dict[str, Any]:
    """Return the row of a finished judgment."""
    return {ID: number, **judgment_to_row(judgment, judge)}


def failed_row(number: int, failure: Failure, judge: str) -> dict[str, Any]:
    """Return the row of a task that failed."""
    judgment = Judgment(failure.key, failure.query_id, failure.candidate, failure.answers)
    return {ID: number, **judgment_to_row(judgment, judge), "failure": failure.reason}


def ended(results: pa.Table) -> pa.Table:
    """Return the rows without those of tasks that a stop interrupted."""
    cut_off = pc.equal(results["failure"], CUT_OFF)
    return results.filter(pc.invert(pc.fill_null(cut_off, False)))


def row_to_failure(row: Mapping[str, Any]) -> Failure:
    """Return the failure in a row; the inverse of `failed_row`."""
    return Failure(
        bytes.fromhex(row["key"]),
        row["query_id"],
        row["candidate"],
        row["failure"],
        lists_to_answers(row),
    )


def _files(tasks: Iterable[GradingTask]) -> Iterator[Iterator[GradingTask]]:
    """Split the tasks into files between queries. Consume each before the next."""
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


def task_tables(
    tasks: Iterable[GradingTask], known: Known, first: int = 0, checks: CheckRunner | None = None
) -> Iterator[pa.Table]:
    """Yield the tasks as rows numbered from `first`, one table per row group."""
    rows: list[dict[str, Any]] = []
    held = 0
    for number, task in enumerate(tasks, first):
        had = known.get(task.key)
        if task.checks and checks is not None:
            missing = {item: one for item, one in task.checks.items() if item not in (had or {})}
            had = {**(had or {}), **{item: checks.check(one) for item, one in missing.items()}}
        rows.append(_task_row(number, task, had))
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
        "known": _pack(known or {}, task.labels) if known or task.labels else None,
    }


def _unpack_labels(packed: bytes) -> tuple[AnswerLabels | None, ...] | None:
    rows = orjson.loads(packed).get("labels")
    if rows is None:
        return None
    return tuple(None if row is None else AnswerLabels(tuple(row[0]), row[1]) for row in rows)


def _pack(
    known: Mapping[int, Answer], labels: Sequence[AnswerLabels | None] | None = None
) -> bytes:
    packed = {"places": list(known), **answers_to_lists(list(known.values()))}
    if labels is not None:
        packed["labels"] = [None if own is None else [own.words, own.na] for own in labels]
    return orjson.dumps(packed)


def _unpack(packed: bytes) -> dict[int, Answer]:
    row = orjson.loads(packed)
    return dict(zip(row["places"], lists_to_answers(row), strict=True))
