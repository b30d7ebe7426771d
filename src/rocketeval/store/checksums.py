"""Checksums of a run's files: recorded before a file is replaced, checked before it is read.

A folder of a run has an append-only file `.checksums.jsonl` with one line per written file: its
size, its hash, and a hash of all lines so far, which the manifest repeats. The line is written
before the file replaces the old one. After a crash between the two, the file has its previous
content; so the last two lines of a file are both valid. Folders without checksums, as in runs of
earlier versions, are not checked. A journal of judgments grows, so it has no line: each of its own
lines carries a checksum.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from pathlib import Path, PurePosixPath, PureWindowsPath
from zlib import crc32

import orjson
import pyarrow as pa

from rocketeval.errors import StoreError
from rocketeval.hashing import content_hash

NAME = ".checksums.jsonl"
CHUNK = 1 << 20
VALID = 2
"""Lines of a file that are valid: the last one, and the one before it after a crash."""
LOOKS = 3
"""Attempts to check a file that another process may be replacing."""
_GROWS = re.compile(r".*journal-\d{6}\.jsonl")
_CRC = b',"crc":"'
_CRC_LENGTH = len(_CRC) + 8 + len(b'"}')


class FileState(StrEnum):
    """The state of a file of a run."""

    WHOLE = "whole"
    CHANGED = "changed"
    MISSING = "missing"
    UNRECORDED = "no checksum"


@dataclass(frozen=True, slots=True)
class Recorded:
    """One line about a file."""

    file: str
    size: int | None
    """None if the file was removed."""
    hash: str | None
    chain: str
    """Hash of this line and all before it."""

    @classmethod
    def after(cls, chain: str, file: str, size: int | None, digest: str | None) -> Recorded:
        """Return the next line after one with this `chain`."""
        whole = content_hash("checksum", chain, file, size, digest).hex()
        return cls(file, size, digest, whole)


@dataclass(frozen=True, slots=True)
class ChecksumLog:
    """The checksums of a folder."""

    lines: tuple[Recorded, ...] = ()
    doubtful: frozenset[str] = frozenset()
    """Files whose line does not follow from the one before it, so that one of the two was changed,
    and names that are not files of this folder."""

    @property
    def head(self) -> str:
        """Hash of all lines; empty without any."""
        return self.lines[-1].chain if self.lines else ""

    def valid(self, name: str) -> list[Recorded]:
        """Return the lines that a file may agree with."""
        return [line for line in self.lines if line.file == name][-VALID:]

    def files(self) -> list[str]:
        """Return the names of all files that should exist."""
        latest = {line.file: line for line in self.lines}
        return [name for name, line in latest.items() if line.hash is not None and not _grows(name)]


def keep_checksums(folder: Path) -> None:
    """Record checksums of the files that are written to `folder` from now on."""
    path = folder / NAME
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            # A cache that a group shares has one log.
            mode = 0o600 | (folder.stat().st_mode & 0o066)
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))


def record(path: Path, written: Path | None) -> None:
    """Record that the content of `written` is about to replace `path`; None if it is removed."""
    log = path.parent / NAME
    if not log.exists() or _grows(path.name):
        return
    size = None if written is None else written.stat().st_size
    digest = None if written is None else hash_file(written)
    line = Recorded.after(read_log(path.parent).head, path.name, size, digest)
    content = orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)
    handle = os.open(log, os.O_RDWR | os.O_APPEND)
    try:
        end = os.lseek(handle, 0, os.SEEK_END)
        torn = end > 0 and os.pread(handle, 1, end - 1) != b"\n"
        append_whole(handle, (b"\n" if torn else b"") + content)
        os.fsync(handle)
    finally:
        os.close(handle)


def append_whole(handle: int, content: bytes) -> None:
    """Append to a file; if only part of the content fits, remove that part and raise OSError."""
    written = os.write(handle, content)
    if written == len(content):
        return
    end = os.lseek(handle, 0, os.SEEK_CUR)
    # In a shared file, another process may have written behind this part.
    if os.fstat(handle).st_size == end:
        os.ftruncate(handle, end - written)
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def read_log(folder: Path) -> ChecksumLog:
    """Return the checksums of a folder."""
    path = folder / NAME
    try:
        stat = path.stat()
    except OSError:
        return ChecksumLog()
    return _read_log(path, stat.st_size, stat.st_mtime_ns, stat.st_ino)


@lru_cache(maxsize=256)
def _read_log(path: Path, size: int, changed: int, inode: int) -> ChecksumLog:
    lines: list[Recorded] = []
    doubtful: set[str] = set()
    chain = ""
    for line in path.read_bytes().split(b"\n"):
        try:
            row = orjson.loads(line)
            found = Recorded(row["file"], row["size"], row["hash"], row["chain"])
            expected = Recorded.after(chain, found.file, found.size, found.hash)
        except (ValueError, KeyError, TypeError):
            # Empty, or torn by a kill; if it was damaged, the next line does not follow.
            continue
        chain = found.chain
        if found == expected and is_plain(found.file):
            lines.append(found)
        else:
            doubtful.add(str(found.file))
    return ChecksumLog(tuple(lines), frozenset(doubtful))


def is_plain(name: object) -> bool:
    """Return whether a recorded name is one file of its folder, on every system.

    >>> is_plain("part-000001.parquet"), is_plain("../settings.json"), is_plain("C:key")
    (True, False, False)
    """
    if not isinstance(name, str) or name in {"", ".", ".."} or not name.isprintable():
        return False
    return PureWindowsPath(name).name == name and PurePosixPath(name).name == name


def _grows(name: str) -> bool:
    return _GROWS.fullmatch(name) is not None


def heads_of(root: Path, folders: Iterable[str]) -> dict[str, str]:
    """Return the hash of all checksums of each folder that has some."""
    heads = {name: read_log(root / name).head for name in folders}
    return {name: head for name, head in heads.items() if head}


def hash_file(path: Path) -> str:
    """Return the hash of a file's content."""
    stat = path.stat()
    return _hash_file(path, stat.st_size, stat.st_mtime_ns, stat.st_ino)


@lru_cache(maxsize=8192)
def _hash_file(path: Path, size: int, changed: int, inode: int) -> str:
    found = hashlib.blake2b(digest_size=16)
    with path.open("rb") as stream:
        while chunk := stream.read(CHUNK):
            found.update(chunk)
    return found.hexdigest()


def state_of(path: Path) -> FileState:
    """Return whether a file is as it was written."""
    if _grows(path.name):
        return FileState.UNRECORDED
    log = read_log(path.parent)
    valid = log.valid(path.name)
    try:
        size = path.stat().st_size
        if not valid:
            return FileState.UNRECORDED
        same = any(line.size == size and line.hash == hash_file(path) for line in valid)
    except FileNotFoundError:
        gone = not valid or any(line.hash is None for line in valid)
        # A process that was killed before its new file was in place left a temporary one.
        begun = any(path.parent.glob(f".{path.name}.*.tmp"))
        return FileState.UNRECORDED if gone or begun else FileState.MISSING
    if same:
        return FileState.WHOLE
    return FileState.UNRECORDED if path.name in log.doubtful else FileState.CHANGED


def check_file(path: Path, hint: str = "") -> None:
    """Raise StoreError, with a `hint` if given, if a file is not as it was written."""
    for _ in range(LOOKS):
        state = state_of(path)
        if state is not FileState.CHANGED:
            return
        # Another process may have replaced it just now.
        time.sleep(0.01)
    raise damaged(path, "its content is not what was written", hint)


def check_complete(folder: Path) -> None:
    """Raise StoreError if a file that was written to a folder is missing."""
    for _ in range(LOOKS):
        names = read_log(folder).files()
        missing = [folder / name for name in names if not (folder / name).exists()]
        missing = [path for path in missing if state_of(path) is FileState.MISSING]
        if not missing:
            return
        # Another process may be about to put it there.
        time.sleep(0.01)
    raise damaged(missing[0], "it is missing")


def damaged(path: Path, why: str, hint: str = "") -> StoreError:
    """Return the error for a damaged file of a run."""
    run = _run_of(path)
    command = f"`rocketeval repair {run}`" if run else "`rocketeval repair`"
    return StoreError(
        f"{path} is damaged: {why.rstrip('.')}.",
        hint=hint
        or f"Restore it from a backup. Or run {command}: it sets the damage aside and keeps the "
        "rest; then `rocketeval run` asks only for what was lost.",
    )


def _run_of(path: Path) -> Path | None:
    for folder in path.parents[:3]:
        if (folder / "run.yaml").exists() or (folder / "ledger").is_dir():
            return folder
    return None


@contextmanager
def reading(path: Path, hint: str = "") -> Iterator[None]:
    """Check a file, and turn an error of a damaged one into a StoreError that names it."""
    check_file(path, hint)
    try:
        yield
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError) as error:
        raise damaged(path, str(error), hint) from None
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise damaged(path, f"{type(error).__name__}: {error}", hint) from None


def sealed_line(row: object) -> bytes:
    """Return a JSON object as a line that ends with its own checksum.

    >>> sealed_line({"a": 1})
    b'{"a":1,"crc":"a702fc6e"}\\n'
    """
    content = orjson.dumps(row)[:-1]
    return content + _CRC + f"{crc32(content):08x}".encode() + b'"}\n'


def line_is_whole(line: bytes) -> bool:
    """Return whether a line agrees with its checksum; lines of earlier versions have none.

    >>> line_is_whole(sealed_line({"a": 1})), line_is_whole(b'{"a": 1}')
    (True, True)
    >>> line_is_whole(sealed_line({"a": 1}).replace(b"1", b"3"))
    False
    """
    line = line.rstrip(b"\r\n")
    content, end = line[:-_CRC_LENGTH], line[-_CRC_LENGTH:]
    if end.startswith(_CRC) and end.endswith(b'"}'):
        return end == _CRC + f"{crc32(content):08x}".encode() + b'"}'
    try:
        return isinstance(orjson.loads(line), dict) and b'"crc"' not in line[-40:]
    except orjson.JSONDecodeError:
        return False
