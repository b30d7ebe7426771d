"""The folder that a driver and its cluster share: tasks in, results out, and what is done.

job.json             what the tasks are, written last: without it there is no job
asked.json           how many tasks were put to a judge, now and then
jobs/ID/tasks/       Parquet files of tasks
jobs/ID/results/     Parquet files of judgments and failures, written by the cluster as they come
jobs/ID/checkpoint/  ids of the rows in results, written by Ray

Every job has an ID of its own: what a killed one still writes never reaches the next.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from uuid import uuid4

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from rocketeval.errors import ConfigError, StoreError

READERS = 16
"""Files that are looked at together: most of the time is spent waiting for them."""
TORN = (pa.ArrowInvalid, OSError)
"""What reading a file raises whose writer died."""


@dataclass(frozen=True)
class Job:
    """Tasks that lie ready for a cluster."""

    made_for: str
    """Stands for the judge and the judgments that the tasks will become."""
    judge: str
    """Digest of the judge, in hex."""
    rows: int
    id: str


class JobFolder:
    """Where a job's tasks and results are, on a disk or in an object store."""

    def __init__(self, filesystem: fs.FileSystem, path: str) -> None:
        self.filesystem = filesystem
        self.path = path

    @property
    def tasks(self) -> str:
        """Where the tasks are."""
        return f"{self.path}/tasks"

    @property
    def results(self) -> str:
        """Where the cluster writes."""
        return f"{self.path}/results"

    @property
    def checkpoint(self) -> str:
        """Where Ray keeps the ids of what it wrote."""
        return f"{self.path}/checkpoint"

    def visible(self) -> bool:
        """Whether this machine sees the tasks."""
        return bool(self.filesystem.get_file_info(self.tasks).type == fs.FileType.Directory)

    def written(self) -> int:
        """Return how many rows the cluster has written and noted as finished.

        Notes that cannot be read are removed: Ray would stop at them.
        """
        found = self._files(self.checkpoint)
        notes = [path for path in found if not path.endswith(".pending.parquet")]
        with ThreadPoolExecutor(READERS) as readers:
            return sum(readers.map(self._noted, notes))

    def _noted(self, path: str) -> int:
        try:
            with pq.ParquetFile(path, filesystem=self.filesystem) as part:
                return int(part.metadata.num_rows)
        except FileNotFoundError:
            return 0
        except TORN:
            self.filesystem.delete_file(path)
            return 0

    def result_tables(self) -> Iterator[pa.Table | None]:
        """Yield every file of results; None for one whose writer died before its end."""
        with ThreadPoolExecutor(READERS) as readers:
            found = self._files(self.results)
            for first in range(0, len(found), READERS):
                yield from readers.map(self._table, found[first : first + READERS])

    def _table(self, path: str) -> pa.Table | None:
        try:
            with pq.ParquetFile(path, filesystem=self.filesystem) as part:
                return part.read()
        except TORN:
            return None

    def _files(self, folder: str) -> list[str]:
        selector = fs.FileSelector(folder, recursive=True, allow_not_found=True)
        found = self.filesystem.get_file_info(selector)
        return sorted(info.path for info in found if info.path.endswith(".parquet"))


class Staging:
    """What a run and its cluster share, on this machine or in an object store."""

    def __init__(self, filesystem: fs.FileSystem, root: str) -> None:
        self.filesystem = filesystem
        self.root = root.rstrip("/")
        self.local = isinstance(filesystem, fs.LocalFileSystem)

    def job(self) -> Job | None:
        """Return the job whose tasks are all there; None if there is none."""
        found = self._read("job.json")
        try:
            return None if found is None else Job(**orjson.loads(found))
        except (orjson.JSONDecodeError, TypeError):
            return None

    def folder(self, job_id: str) -> JobFolder:
        """Return the folder of a job."""
        return JobFolder(self.filesystem, f"{self.root}/jobs/{job_id}")

    def new_folder(self) -> tuple[str, JobFolder]:
        """Return an id that no job had, with its folder."""
        job_id = uuid4().hex[:12]
        return job_id, self.folder(job_id)

    def begin(self, job: Job) -> None:
        """Declare the tasks complete."""
        self.filesystem.create_dir(self.folder(job.id).results, recursive=True)
        self._write("job.json", orjson.dumps(asdict(job)))

    def note_asked(self, asked: int) -> None:
        """Remember how many tasks were put to a judge so far."""
        self._write("asked.json", orjson.dumps({"asked": asked}))

    def asked(self) -> int:
        """Return how many tasks were put to a judge, as far as was noted."""
        found = self._read("asked.json")
        try:
            return 0 if found is None else int(orjson.loads(found)["asked"])
        except orjson.JSONDecodeError:
            return 0

    def clear(self) -> None:
        """Remove the job: its declaration first, so that half a job is none."""
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
        """Write a small file; on a disk it takes the place of the old one whole."""
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
                f"{path} could not be written: {error}.",
                hint="`distributed.staging` must be a folder or URI that this machine may write.",
            ) from None


def open_staging(where: str | None, run: Path, run_id: str) -> Staging:
    """Return the run's folder in the place that the config names, or the one inside the run."""
    if where is None:
        return Staging(fs.LocalFileSystem(), str(run.resolve() / "distributed"))
    # Several runs, of several people, may share the place.
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
            f"distributed.staging: {place} cannot be opened: {error}",
            hint="Use a folder that all machines share, or a URI that pyarrow or an installed "
            "fsspec package knows, such as s3://bucket/folder.",
        ) from None
    return fs.PyFileSystem(fs.FSSpecHandler(found)), str(root)
