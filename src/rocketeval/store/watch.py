"""Reading a run while another process may write it, without taking its lock."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from rocketeval.hashing import content_hash
from rocketeval.store.ledger import live_files
from rocketeval.store.run import MADE, RESULTS, RunStore

_LOCKS = Path("/proc/locks")
_INPUTS = ("inputs/summary.json", "inputs/checklists.jsonl", "run.yaml")
_SIGNS = ("manifest.json", "authored.jsonl", "failures.jsonl", ".inputs.new", *_INPUTS, *RESULTS)


class LedgerWatch:
    """Counts the wanted judgments in a growing ledger; no row is read twice."""

    def __init__(self, folder: Path, wanted: Mapping[bytes, int]) -> None:
        """Set up the count; `wanted` gives the number of responses per judgment."""
        self.folder = folder
        self.total = sum(wanted.values())
        self.done = 0
        """Responses whose judgment was in the ledger at the last look."""
        self._wanted = wanted
        self._left = dict(wanted)
        self._read_to: dict[str, int] = {}

    def look(self) -> int:
        """Read new rows; return how many responses are judged."""
        files = live_files(self.folder)
        if self._is_another(files):
            self.done, self._left, self._read_to = 0, dict(self._wanted), {}
        for path in files:
            try:
                keys = self._parts_keys(path) if path.suffix == ".parquet" else self._lines(path)
                for key in keys:
                    self.done += self._left.pop(key, 0)
            except FileNotFoundError:
                # It was just rolled; its part is read at the next look.
                continue
        return self.done

    def _is_another(self, files: list[Path]) -> bool:
        """Return whether a file read earlier is missing, so that the ledger was restarted."""
        there = {path.stem for path in files}
        rolled = (Path(name).stem.replace("journal-", "part-") for name in self._read_to)
        return any(
            Path(name).stem not in there and part not in there
            for name, part in zip(self._read_to, rolled, strict=True)
        )

    def _parts_keys(self, path: Path) -> list[bytes]:
        size = path.stat().st_size
        if self._read_to.get(path.name) == size:
            return []
        with pq.ParquetFile(path, memory_map=True) as part:
            keys = part.read(["key"])["key"].to_pylist()
        self._read_to[path.name] = size
        return list(map(bytes.fromhex, keys))

    def _lines(self, path: Path) -> Iterator[bytes]:
        with path.open("rb") as journal:
            journal.seek(self._read_to.get(path.name, 0))
            fresh = journal.read()
        whole = fresh.rfind(b"\n") + 1
        for line in fresh[:whole].splitlines():
            yield bytes.fromhex(orjson.loads(line)["key"])
        self._read_to[path.name] = self._read_to.get(path.name, 0) + whole


def made_by(store: RunStore) -> set[str]:
    """Return the stages after grading whose file exists."""
    return {stage for stage, names in MADE.items() if (store.path / names[0]).exists()}


def inputs_version(store: RunStore) -> str:
    """Return a hash that changes whenever the run needs other judgments."""
    judge = store.manifest().judge_digest
    return content_hash(judge, list(_stamps(store.path, _INPUTS))).hex()


def results_version(store: RunStore) -> str:
    """Return a hash that changes whenever a stage's file changes."""
    return content_hash(list(_stamps(store.path, ("manifest.json", *_INPUTS, *RESULTS)))).hex()


def files_version(path: Path, names: tuple[str, ...]) -> str:
    """Return a hash that changes whenever one of these files of a run changes."""
    return content_hash(list(_stamps(path, names))).hex()


def newest_change(store: RunStore, also: tuple[Path, ...] = ()) -> float:
    """Return the time of the last write to the run, in seconds since 1970; 0 if never.

    `also` are files outside the run, such as a journal that runs share.
    """
    ledger = store.ledger_folder.iterdir() if store.ledger_folder.is_dir() else ()
    paths = [*(store.path / name for name in _SIGNS), store.ledger_folder, *ledger, *also]
    return max((stat.st_mtime for stat in map(_stat, paths) if stat), default=0.0)


def is_held(store: RunStore) -> bool:
    """Return whether a process is known to hold the run's lock, without touching the lock.

    Uses Linux's list of locks. False on other systems, and for processes of another container.
    """
    lock = _stat(store.path / ".lock")
    if lock is None:
        return False
    device = f"{os.major(lock.st_dev):02x}:{os.minor(lock.st_dev):02x}:{lock.st_ino}"
    try:
        return any(device in line.split() for line in _LOCKS.read_text().splitlines())
    except OSError:
        return False


def _stamps(folder: Path, names: tuple[str, ...]) -> Iterator[tuple[str, int, int]]:
    for name in names:
        stat = _stat(folder / name)
        if stat is not None:
            yield name, stat.st_size, stat.st_mtime_ns


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None


READ_ERRORS = (
    OSError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    pa.ArrowException,
)
"""Errors that a damaged, foreign or changing run folder can raise, besides our own errors."""


@dataclass(frozen=True, slots=True)
class StoredSize:
    """The number of rows in Parquet files, and their size in bytes."""

    rows: int
    size: int


def ledger_size(store: RunStore) -> StoredSize:
    """Return the size of the finished parts of the ledger, without the current journal."""
    return _weigh([path for path in live_files(store.ledger_folder) if path.suffix == ".parquet"])


def score_size(store: RunStore) -> StoredSize:
    """Return the size of the scores."""
    return _weigh([store.path / "scores.parquet"])


def _weigh(paths: Sequence[Path]) -> StoredSize:
    rows = size = 0
    for path in paths:
        try:
            rows += pq.read_metadata(path).num_rows
            size += path.stat().st_size
        except (FileNotFoundError, pa.ArrowInvalid):
            # Not written yet, or replaced or damaged: the stage that reads it reports that.
            continue
    return StoredSize(rows, size)
