"""The folder that a driver and its cluster share: tasks in, results out, and what is done.

job.json      what the tasks are, written last: without it there is no job
tasks/        Parquet files of tasks
results/      Parquet files of judgments and failures, written by the cluster as they come
checkpoint/   ids of the rows in results, written by Ray
asked.json    how many tasks were put to a judge, now and then
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from rocketeval.errors import ConfigError, StoreError


@dataclass(frozen=True)
class Job:
    """Tasks that lie ready for a cluster."""

    made_for: str
    """Stands for the judge and the judgments that the tasks will become."""
    rows: int


class Staging:
    """A job's folder, on this machine or in an object store."""

    def __init__(self, filesystem: fs.FileSystem, root: str) -> None:
        self.filesystem = filesystem
        self.root = root.rstrip("/")
        self.local = isinstance(filesystem, fs.LocalFileSystem)

    @property
    def tasks(self) -> str:
        """Where the tasks are."""
        return f"{self.root}/tasks"

    @property
    def results(self) -> str:
        """Where the cluster writes."""
        return f"{self.root}/results"

    @property
    def checkpoint(self) -> str:
        """Where Ray keeps the ids of what it wrote."""
        return f"{self.root}/checkpoint"

    def job(self) -> Job | None:
        """Return the job whose tasks are all there; None if there is none."""
        found = self._read("job.json")
        return None if found is None else Job(**orjson.loads(found))

    def begin(self, job: Job) -> None:
        """Declare the tasks complete."""
        self.filesystem.create_dir(self.results, recursive=True)
        self._write("job.json", orjson.dumps(asdict(job)))

    def note_asked(self, asked: int) -> None:
        """Remember how many tasks were put to a judge so far."""
        self._write("asked.json", orjson.dumps({"asked": asked}))

    def asked(self) -> int:
        """Return how many tasks were put to a judge, as far as was noted."""
        found = self._read("asked.json")
        return 0 if found is None else int(orjson.loads(found)["asked"])

    def written(self) -> int:
        """Return how many rows the cluster has written and noted as finished."""
        rows = 0
        for found in self._files(self.checkpoint):
            if not found.endswith(".pending.parquet"):
                rows += pq.ParquetFile(found, filesystem=self.filesystem).metadata.num_rows
        return rows

    def result_tables(self) -> Iterator[pa.Table | None]:
        """Yield every file of results; None for one whose writer died before its end."""
        for found in self._files(self.results):
            try:
                with pq.ParquetFile(found, filesystem=self.filesystem) as part:
                    yield part.read()
            except pa.ArrowInvalid:
                yield None

    def clear(self) -> None:
        """Remove the job: its declaration first, so that half a job is none."""
        for name in ("job.json", "asked.json"):
            if self._exists(name):
                self.filesystem.delete_file(f"{self.root}/{name}")
        for folder in (self.tasks, self.checkpoint, self.results):
            if self.filesystem.get_file_info(folder).type == fs.FileType.Directory:
                self.filesystem.delete_dir(folder)

    def _files(self, folder: str) -> list[str]:
        selector = fs.FileSelector(folder, recursive=True, allow_not_found=True)
        found = self.filesystem.get_file_info(selector)
        return sorted(info.path for info in found if info.path.endswith(".parquet"))

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
    place = f"{where.rstrip('/')}/{run_id}"
    if "://" not in place:
        return Staging(fs.LocalFileSystem(), str(Path(place).resolve()))
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
