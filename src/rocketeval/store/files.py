"""Atomic, durable file writes, and the list of a run's public files."""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from rocketeval.errors import ExportError, StoreError
from rocketeval.resources import is_run
from rocketeval.store.checksums import check_file, damaged, line_is_whole, record, sealed_line

ROW_GROUP = 1 << 20
"""Rows per row group of Parquet files."""


FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""Error numbers that mean that there is no space left."""
_DENIED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.ENOENT})


def cannot_write(path: Path, error: OSError) -> StoreError:
    """Return the error that says why a file of a run or a cache could not be written."""
    # Arrow gives the error number only in its message.
    number = error.errno or next((n for n in FULL if f"[errno {n}]" in str(error)), None)
    why = os.strerror(number) if number else str(error)
    hints = {
        **dict.fromkeys(
            FULL,
            "Free some space (or raise the quota), then run the same command again: all "
            "finished work is kept.",
        ),
        **dict.fromkeys(
            _DENIED,
            "Check the permissions, or choose another place with `output` and `cache` in the "
            "config.",
        ),
    }
    hint = hints.get(number or 0, "Check the disk, then run the same command again.")
    if number in _DENIED and (path / "manifest.json").exists():
        hint += " Commands that only read, such as compare, export and view, still work."
    return StoreError(f"{path} cannot be written: {why}.", hint=hint)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn an OSError into a StoreError that names the file."""
    try:
        yield
    except OSError as error:
        raise cannot_write(path, error) from None


def check_folder(folder: Path) -> None:
    """Create a private folder if needed; raise StoreError unless files can be created in it."""
    probe = folder / f".writable-{os.getpid()}"
    with writing(folder):
        make_private(folder)
        probe.touch()
        probe.unlink()


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path to write; on success it replaces `path` durably.

    In a folder with checksums, that of the new content is recorded first. The file can be read by
    those who can read its folder.
    """
    make_folder(path.parent)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    recorded = False
    try:
        yield temporary
        with temporary.open("rb+") as stream:
            os.fsync(stream.fileno())
        temporary.chmod(0o600 | (path.parent.stat().st_mode & 0o044))
        recorded = True
        record(path, temporary)
        temporary.replace(path)
        sync_folder(path.parent)
    finally:
        # If the new file has a checksum but never came, the temporary one stays to say so.
        if not recorded or path.exists():
            temporary.unlink(missing_ok=True)


def make_folder(folder: Path) -> None:
    """Create a folder and those above it; a new one is as private as the one above it."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700 | (folder.parent.stat().st_mode & 0o055))


def make_private(folder: Path) -> None:
    """Create a folder that only its owner can read; an existing one stays as it is."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def make_shared(folder: Path) -> None:
    """Create a judge's folder, CACHE/judgments/JUDGE; a new cache is private."""
    with writing(folder):
        make_private(folder.parent.parent)
        make_folder(folder)


def open_in_folder(path: str | Path, flags: int) -> int:
    """Open a file, as `open(opener=...)` needs it; a new one is as private as its folder."""
    return os.open(path, flags, 0o600 | (Path(path).parent.stat().st_mode & 0o066))


def remove(path: Path) -> None:
    """Remove a file of a run, if it exists."""
    if path.exists():
        with writing(path):
            record(path, None)
            path.unlink(missing_ok=True)


def remove_temporaries(folder: Path) -> int:
    """Remove temporary files that a killed process left; return how many."""
    removed = 0
    for path in folder.glob(".*.tmp"):
        target = target_of(path)
        if target is None:
            continue
        with writing(path):
            if not target.exists():
                # Its checksum was recorded, but it never came.
                record(target, None)
            path.unlink(missing_ok=True)
        removed += 1
    return removed


def target_of(path: Path) -> Path | None:
    """Return the file or folder that a temporary one replaces; None if it is not temporary.

    >>> str(target_of(Path(".scores.csv.4711.tmp"))), target_of(Path("scores.csv"))
    ('scores.csv', None)
    """
    found = _TEMPORARY.fullmatch(path.name)
    return path.with_name(found["name"]) if found else None


_TEMPORARY = re.compile(r"\.(?P<name>.+)\.\d+\.tmp")


def copy_file(source: Path, target: Path) -> None:
    """Copy a file durably; the copy shares no block with the original."""
    with writing(target), replacing(target) as temporary:
        shutil.copyfile(source, temporary)


def sync_folder(folder: Path) -> None:
    """Make renames inside `folder` durable (a no-op where folders cannot be opened)."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_bytes(path: Path, content: bytes) -> None:
    """Write a whole file durably."""
    with writing(path), replacing(path) as temporary:
        temporary.write_bytes(content)


def write_json(path: Path, content: Any) -> None:
    """Write `content` as indented JSON, durably."""
    options = orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE
    write_bytes(path, orjson.dumps(content, option=options))


def read_json(path: Path) -> Any:
    """Return the JSON in `path`; StoreError if it is damaged."""
    check_file(path)
    try:
        return orjson.loads(path.read_bytes())
    except orjson.JSONDecodeError as error:
        raise damaged(path, str(error)) from None


def write_jsonl(path: Path, rows: Iterable[Any]) -> None:
    """Write one JSON object per line, durably."""
    with writing(path), replacing(path) as temporary, temporary.open("wb") as stream:
        for row in rows:
            stream.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))


def write_sealed(path: Path, rows: Iterable[Any]) -> None:
    """Write one JSON object per line, each with its own checksum, durably."""
    with writing(path), replacing(path) as temporary, temporary.open("wb") as stream:
        stream.writelines(map(sealed_line, rows))


def read_jsonl(path: Path) -> Iterator[Any]:
    """Yield the JSON object on each line of `path`; nothing if the file is absent."""
    if not path.exists():
        return
    check_file(path)
    with path.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            if line.strip():
                try:
                    row = orjson.loads(line)
                    if not isinstance(row, dict) or not line_is_whole(line):
                        raise damaged(path, f"line {number} is not what was written")
                    yield row
                except orjson.JSONDecodeError as error:
                    raise damaged(path, f"line {number} is not JSON ({error.msg})") from None


def write_parquet(path: Path, table: pa.Table) -> None:
    """Write an immutable Parquet part, durably."""
    with writing(path), replacing(path) as temporary:
        pq.write_table(table, temporary, compression="zstd", write_page_checksum=True)


def write_parquet_parts(path: Path, parts: Iterable[pa.Table]) -> None:
    """Write one or more tables into one Parquet file, with the same bytes as a single table."""
    rows = iter(parts)
    waiting = next(rows)
    with (
        writing(path),
        replacing(path) as temporary,
        pq.ParquetWriter(
            temporary, waiting.schema, compression="zstd", write_page_checksum=True
        ) as writer,
    ):
        for table in rows:
            waiting = pa.concat_tables([waiting, table])
            while waiting.num_rows > ROW_GROUP:
                writer.write_table(waiting.slice(0, ROW_GROUP).combine_chunks())
                waiting = waiting.slice(ROW_GROUP)
        writer.write_table(waiting.combine_chunks(), ROW_GROUP)


def refuse_inside_run(path: Path, run: Path | None = None) -> None:
    """Raise ExportError for a path inside `run`, or inside any other run."""
    whole, own = path.resolve(), run.resolve() if run else None
    for folder in (whole, *whole.parents):
        if folder == own or is_run(folder):
            raise ExportError(
                f"{path} is inside the run {folder}, whose files only its own stages write.",
                hint="Choose a path outside of it.",
            )


_SHOWN = re.compile(
    r"""
    (?: run\.yaml | manifest\.json | plan\.json | failures\.jsonl
      | scores\.(?:parquet|jsonl) | scorer\.npz | item_weights\.json
      | ranking\.(?:json|csv) | audit\.json | explain\.json
      | methods\.json | reliability\.json | item_gold\.json | report\.html
      | inputs/summary\.json
      | inputs/(?:queries|checklists|labels|votes|ratings)\.jsonl
      | inputs/responses/part-\d{1,9}\.parquet
      | ledger/part-\d{1,9}\.parquet | ledger/journal-\d{1,9}\.jsonl
    )
    """,
    re.VERBOSE | re.ASCII,
)


def public_file(run: Path, name: str) -> Path | None:
    """Return the file of that name in the run directory; None unless it is public.

    Links are never followed, neither for the file nor for a folder on the way to it.

    >>> public_file(Path("runs/demo"), "../other/run.yaml") is None
    True
    """
    if not _SHOWN.fullmatch(name):
        return None
    path = run / name
    try:
        real = path.resolve(strict=True)
    except (OSError, RuntimeError):
        return None
    return real if real == run.resolve() / name and real.is_file() else None
