"""The ledger of judgments: an append-only journal rolled into immutable Parquet parts.

A finished judgment is one `os.write` to `journal-N.jsonl`; a full journal becomes
`part-N.parquet` by write-temp, fsync, rename. A kill at any moment loses no finished judgment:
a torn last line is cut off, and an existing part supersedes its journal. Every line and every part
has a checksum; damage is an error, never another score.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj
import pyarrow.parquet as pq

from rocketeval.errors import StoreError
from rocketeval.records import JudgeFingerprint, Judgment, Status
from rocketeval.store.checksums import (
    append_whole,
    check_complete,
    damaged,
    keep_checksums,
    line_is_whole,
    reading,
    sealed_line,
)
from rocketeval.store.files import (
    copy_file,
    make_folder,
    make_shared,
    read_json,
    remove_temporaries,
    write_json,
    write_parquet,
)
from rocketeval.store.finished_keys import FinishedKeys
from rocketeval.store.schema import (
    APPLICABILITY,
    JUDGMENTS,
    JudgmentRows,
    complete_rows,
    judgment_to_row,
    without_unused,
)

ROLL_ROWS = 50_000
SYNC_SECONDS = 1.0
JUDGE_FILE = "judge.json"
SET_ASIDE = "set_aside"
"""Folder of a run for damaged and doubtful files."""
_log = logging.getLogger("rocketeval.ledger")
_PART = re.compile(r"(?P<owner>.*?)part-(?P<number>\d{6})\.parquet")
_JOURNAL = re.compile(r"(?P<owner>.*?)journal-(?P<number>\d{6})\.jsonl")


class Ledger:
    """Appends judgments to one folder. Only the process that holds the run's lock opens one."""

    def __init__(
        self,
        folder: Path,
        judge: bytes,
        *,
        mirror: Mirror | None = None,
        roll_rows: int | None = None,
        before_change: Callable[[], None] | None = None,
    ) -> None:
        self.folder = folder
        self.judge = judge.hex()
        self._mirror = mirror
        self._roll_rows = roll_rows or ROLL_ROWS
        self._before_change = before_change
        make_folder(folder)
        keep_checksums(folder)
        remove_temporaries(folder)
        self._number, self._rows = self._recover()
        path = self._journal_path
        self._journal = JudgmentRows(read_file(path, JUDGMENTS.names) if self._rows else None)
        self.finished = finished_keys(folder)
        """Keys of every judgment in the ledger."""
        self._handle = self._open_journal()
        self._synced_at = time.monotonic()

    def append(self, judgment: Judgment) -> None:
        """Record a finished judgment; StoreError if its key is already present."""
        if judgment.key in self.finished:
            raise StoreError(
                f"The judgment of {judgment.candidate!r} on query {judgment.query_id!r} is "
                "already in the ledger."
            )
        self._will_change()
        row = judgment_to_row(judgment, self.judge)
        line = sealed_line(row)
        _write_whole(self._handle, line)
        self._journal.add(row, line)
        self.finished.add(judgment.key)
        self._rows += 1
        if self._rows >= self._roll_rows:
            self.roll()
        elif time.monotonic() - self._synced_at > SYNC_SECONDS:
            os.fsync(self._handle)
            self._synced_at = time.monotonic()

    def adopt(self, table: pa.Table) -> None:
        """Add judgments reused from another run, as a separate part."""
        self._add_part(table, publish=False)

    def extend(self, table: pa.Table) -> None:
        """Add new judgments made elsewhere for this run, as a separate part."""
        self._add_part(table, publish=True)

    def roll(self) -> None:
        """Turn the journal into an immutable part."""
        if not self._rows:
            return
        os.fsync(self._handle)
        write_parquet(self._part_path, without_unused(self._journal.table()))
        if self._mirror:
            self._mirror.publish(self._part_path)
        self._start_next()

    def set_aside(self, keys: Collection[bytes]) -> None:
        """Take judgments out of the ledger and the cache; keep them in `set_aside/` of the run."""
        chosen = pa.array([key.hex() for key in keys], pa.string())
        self._will_change()
        self.roll()
        for path in live_files(self.folder):
            table = read_file(path, JUDGMENTS.names)
            if table is None or path.suffix != ".parquet":
                continue
            taken = pc.is_in(table["key"], value_set=chosen)
            if not pc.any(taken).as_py():
                continue
            aside = self.folder.parent / SET_ASIDE / f"changed-judge-{time.time_ns()}"
            write_parquet(aside / path.name, without_unused(table.filter(taken)))
            write_parquet(path, without_unused(table.filter(pc.invert(taken))))
            if self._mirror:
                self._mirror.publish(path)
        for key in keys:
            self.finished.discard(key)

    def close(self) -> None:
        """Roll the remaining rows and release the journal."""
        self.roll()
        self._end_journal()

    def _will_change(self) -> None:
        """Drop results derived from the judgments, once, before the first new one."""
        if self._before_change is not None:
            self._before_change()
            self._before_change = None

    def _add_part(self, table: pa.Table, *, publish: bool) -> None:
        self._will_change()
        self.roll()
        write_parquet(self._part_path, without_unused(table))
        if publish and self._mirror:
            self._mirror.publish(self._part_path)
        self.finished.update(map(bytes.fromhex, table["key"].to_pylist()))
        self._start_next()

    @property
    def _journal_path(self) -> Path:
        return self.folder / f"journal-{self._number:06d}.jsonl"

    @property
    def _part_path(self) -> Path:
        return self.folder / f"part-{self._number:06d}.parquet"

    def _end_journal(self) -> None:
        os.close(self._handle)
        if self._mirror:
            self._mirror.retract(self._journal_path)
        self._journal_path.unlink(missing_ok=True)

    def _start_next(self) -> None:
        self._end_journal()
        self._number += 1
        self._rows = 0
        self._journal = JudgmentRows()
        self._handle = self._open_journal()

    def _open_journal(self) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
        mode = 0o600 | (self.folder.stat().st_mode & 0o044)
        handle = os.open(self._journal_path, flags, mode)
        if self._mirror:
            self._mirror.publish(self._journal_path)
        return handle

    def _recover(self) -> tuple[int, int]:
        """Return the number of the journal to continue, and its rows."""
        parts = _numbered(self.folder, _PART)
        journals = _numbered(self.folder, _JOURNAL)
        for number in journals.keys() & parts.keys():
            journals.pop(number).unlink()
        last = max([0, *parts, *journals])
        if last not in journals:
            return last + 1, 0
        return last, _cut_torn_tail(journals[last])


class Mirror:
    """A cache folder that shares a ledger's files with other runs.

    Parts are copies, so that damage to one is not damage to all. A journal is a hard link, which
    follows it as it grows.
    """

    def __init__(self, folder: Path, owner: str) -> None:
        self.folder = folder
        self.owner = owner
        make_shared(folder)
        keep_checksums(folder)

    def publish(self, path: Path) -> None:
        """Add `path` to the cache, or replace it there."""
        link = self._link(path)
        if path.suffix == ".parquet":
            copy_file(path, link)
            return
        fresh = link.with_name(f".{link.name}.{os.getpid()}.tmp")
        # On another file system a growing journal cannot be shared; its part will be.
        with suppress(OSError):
            fresh.unlink(missing_ok=True)
            os.link(path, fresh)
            fresh.replace(link)

    def retract(self, path: Path) -> None:
        """Remove a rolled journal from the cache."""
        self._link(path).unlink(missing_ok=True)

    def _link(self, path: Path) -> Path:
        return self.folder / f"{self.owner}-{path.name}"


def read_tables(folder: Path, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
    """Yield every judgment in `folder`, part by part, including the current journal."""
    names = list(columns) if columns is not None else JUDGMENTS.names
    check_complete(folder)
    for path in live_files(folder):
        table = read_file(path, names)
        if table is not None:
            yield table


def tables_with(folder: Path, keys: pa.Array) -> Iterator[pa.Table]:
    """Yield the judgments with these hex keys; a part without any is read no further."""
    check_complete(folder)
    for path in live_files(folder):
        there = read_file(path, ["key"]) if path.suffix == ".parquet" else None
        if there is not None and not pc.any(pc.is_in(there["key"], value_set=keys)).as_py():
            continue
        table = read_file(path, JUDGMENTS.names)
        if table is not None:
            yield table.filter(pc.is_in(table["key"], value_set=keys))


def finished_keys(folder: Path) -> FinishedKeys:
    """Return the keys of all judgments in `folder`."""
    tables = read_tables(folder, ["key"])
    return FinishedKeys(bytes.fromhex(key) for table in tables for key in table["key"].to_pylist())


def sound_tables(folder: Path, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
    """Yield the judgments of a cache like `read_tables`; skip damaged files with a warning."""
    names = list(columns) if columns is not None else JUDGMENTS.names
    for path in live_files(folder):
        try:
            table = read_file(path, names)
        except StoreError as error:
            _log.warning("%s It is skipped: its judgments are made again.", error.message)
            continue
        if table is not None:
            yield table


def read_file(path: Path, names: Sequence[str]) -> pa.Table | None:
    """Return columns of one part or journal as it is now; None if it is empty.

    Raises StoreError if the file is damaged.
    """
    try:
        with reading(path):
            if path.suffix == ".parquet":
                return _sound(_read_part(path, names))
            return _sound(_read_journal(path).select(names)) if path.stat().st_size else None
    except FileNotFoundError:
        # A writer rolled this journal while we read; its part has the same rows.
        rolled = path.with_name(path.name.replace("journal-", "part-")).with_suffix(".parquet")
        return _read_part(rolled, names) if rolled.exists() else None


def _sound(table: pa.Table) -> pa.Table:
    """Return a table of judgments; ValueError if a key, status or list cannot have been written."""
    if not table.num_rows:
        # A journal whose first line is torn; `pc.all` of nothing is null.
        return table
    names = set(table.column_names)
    if "key" in names:
        keys = table["key"]
        if keys.null_count or not pc.all(pc.match_substring_regex(keys, _HEX)).as_py():
            raise ValueError("a key is not hexadecimal")
    if "status" in names:
        found = pc.unique(pc.list_flatten(table["status"])).to_pylist()
        if table["status"].null_count or not _STATUSES.issuperset(found):
            raise ValueError("an answer has an unknown status")
        lengths = pc.list_value_length(table["status"])
        for name in names & _LISTS:
            same = pc.equal(pc.list_value_length(table[name]), lengths)
            # Judgments without items that may not apply have no list of `p_na`.
            nothing = name in APPLICABILITY and table[name].null_count == table.num_rows
            if not nothing and not pc.all(same).as_py():
                raise ValueError(f"the list {name} has another length than the answers")
    return table


_HEX = "^([0-9a-f]{2})+$"
_STATUSES = frozenset(map(str, Status))
_LISTS = frozenset({"p_yes", "p_low", "p_high", "mass", "logp_yes", "logp_no", *APPLICABILITY})


def adopt_from_cache(
    ledger: Ledger,
    cache: Path,
    wanted: Mapping[bytes, tuple[str, str]],
    renamed: Mapping[bytes, bytes] | None = None,
) -> int:
    """Copy the wanted judgments in the cache into the ledger; return how many were reused.

    `renamed` maps keys in the cache to the keys they get in the ledger.
    """
    adopted = 0
    if all(key in ledger.finished for key in wanted):
        return adopted
    for table in map(complete_rows, sound_tables(cache)):
        keys = [bytes.fromhex(key) for key in table["key"].to_pylist()]
        if renamed is not None:
            keys = [renamed.get(key, key) for key in keys]
        rows, fresh = [], set()
        for row, key in enumerate(keys):
            if key in wanted and key not in ledger.finished and key not in fresh:
                rows.append(row)
                fresh.add(key)
        if not rows:
            continue
        names = [wanted[keys[row]] for row in rows]
        chosen = table.take(rows)
        if renamed is not None:
            fresh_keys = pa.array([keys[row].hex() for row in rows])
            chosen = chosen.set_column(chosen.schema.get_field_index("key"), "key", fresh_keys)
        chosen = chosen.set_column(2, "query_id", pa.array([query for query, _ in names]))
        chosen = chosen.set_column(3, "candidate", pa.array([name for _, name in names]))
        ledger.adopt(chosen)
        adopted += len(rows)
    return adopted


def replace_ledger(folder: Path, judgments: pa.Table) -> None:
    """Replace all judgments of a ledger; the old ones are removed once the new ones exist."""
    recover_ledger(folder)
    new, old = folder.with_name(_NEW), folder.with_name(_OLD)
    shutil.rmtree(new, ignore_errors=True)
    make_folder(new)
    keep_checksums(new)
    write_parquet(new / "part-000001.parquet", without_unused(judgments))
    if folder.exists():
        folder.rename(old)
    new.rename(folder)
    shutil.rmtree(old, ignore_errors=True)


def recover_ledger(folder: Path) -> None:
    """Put the old ledger back if a process was killed before the new one took its place."""
    old = folder.with_name(_OLD)
    if old.exists() and not folder.exists():
        old.rename(folder)
    shutil.rmtree(old, ignore_errors=True)


_NEW, _OLD = ".ledger.new", ".ledger.old"


def count_rows(folder: Path) -> int:
    """Return how many judgments the folder contains."""
    return sum(table.num_rows for table in read_tables(folder, ["key"]))


def live_files(folder: Path) -> list[Path]:
    """Return parts and current journals, oldest first; a part supersedes its own journal."""
    if not folder.is_dir():
        return []
    newest_form: dict[tuple[str, str], Path] = {}
    for pattern in (_JOURNAL, _PART):
        for path in folder.iterdir():
            found = pattern.fullmatch(path.name)
            if found and not path.name.startswith("."):
                newest_form[found["owner"], found["number"]] = path
    return [path for _, path in sorted(newest_form.items())]


def _numbered(folder: Path, pattern: re.Pattern[str]) -> dict[int, Path]:
    found = ((pattern.fullmatch(path.name), path) for path in folder.iterdir())
    return {int(m["number"]): path for m, path in found if m and not m["owner"]}


def _cut_torn_tail(path: Path) -> int:
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        os.truncate(path, whole)
    return content.count(b"\n")


def _read_part(path: Path, names: Sequence[str]) -> pa.Table:
    """Return columns of a part; a column that the part lacks is all null."""
    with pq.ParquetFile(path, memory_map=True, page_checksum_verification=True) as part:
        there = set(part.schema_arrow.names)
        table = part.read([name for name in names if name in there])
    for name in names:
        if name not in there:
            column = pa.nulls(table.num_rows, JUDGMENTS.field(name).type)
            table = table.append_column(JUDGMENTS.field(name), column)
    return table.select(names)


def _read_journal(path: Path) -> pa.Table:
    content = path.read_bytes()
    content = content[: content.rfind(b"\n") + 1]
    if not content:
        return JUDGMENTS.empty_table()
    for number, line in enumerate(content.splitlines(), 1):
        if not line_is_whole(line):
            raise damaged(path, f"line {number} is not what was written")
    table = pj.read_json(
        pa.BufferReader(content),
        read_options=pj.ReadOptions(block_size=1 << 24),
        parse_options=pj.ParseOptions(explicit_schema=JUDGMENTS),
    )
    return table.select(JUDGMENTS.names)


def _write_whole(handle: int, line: bytes) -> None:
    try:
        append_whole(handle, line)
    except OSError as error:
        raise StoreError(
            f"Cannot write a judgment to the ledger: {error.strerror}.",
            hint="Finished judgments are safe. Free some space and run the same command again.",
        ) from None


__all__ = [
    "Ledger",
    "Mirror",
    "adopt_from_cache",
    "count_rows",
    "finished_keys",
    "live_files",
    "read_file",
    "read_tables",
    "recover_ledger",
    "replace_ledger",
    "sound_tables",
]


def keep_measured(folder: Path, judge: JudgeFingerprint) -> None:
    """Write a judge's measured fingerprint next to its judgments in the cache."""
    if judge.measured and not (folder / JUDGE_FILE).exists():
        make_shared(folder)
        write_json(folder / JUDGE_FILE, asdict(judge))


def measured_judges(folder: Path) -> Iterator[JudgeFingerprint]:
    """Yield the judges with a measured precision whose judgments are in a cache."""
    for path in sorted(folder.glob(f"*/{JUDGE_FILE}")):
        try:
            yield JudgeFingerprint(**read_json(path))
        except (StoreError, TypeError) as error:
            _log.warning("%s cannot be read and is skipped: %s", path, error)
