"""What a run may ask again: failed tasks, judgments that no check followed, and canaries.

failures.jsonl has the tasks to retry, with the answers they already have.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Collection, Iterable
from pathlib import Path

from rocketeval.records import NO_ANSWER, Answer, Failure
from rocketeval.store.checksums import append_whole, reading
from rocketeval.store.files import open_in_folder, read_jsonl, remove, write_sealed, writing
from rocketeval.store.schema import answers_to_lists, lists_to_answers

FAILURES = "failures.jsonl"


def save_failures(path: Path, failures: Iterable[Failure]) -> None:
    """Write the tasks to retry, each line with its checksum; an empty list removes the file."""
    rows = [
        {
            "key": failure.key.hex(),
            "query_id": failure.query_id,
            "candidate": failure.candidate,
            "reason": failure.reason,
            **answers_to_lists(failure.answers),
        }
        for failure in failures
    ]
    if rows:
        write_sealed(path, rows)
    else:
        remove(path)


def read_failures(path: Path) -> list[Failure]:
    """Return the tasks in the file; StoreError if it is damaged."""
    with reading(path):
        return [
            Failure(
                bytes.fromhex(row["key"]),
                row["query_id"],
                row["candidate"],
                row["reason"],
                lists_to_answers(row),
            )
            for row in read_jsonl(path)
        ]


def answered(failure: Failure) -> dict[int, Answer]:
    """Return the answers that a failed task received, by item."""
    return {
        position: answer
        for position, answer in enumerate(failure.answers)
        if answer.status not in NO_ANSWER
    }


UNCHECKED = ".unchecked"
REPEATS = ".repeats"
_KEY = 16
"""Bytes of a judgment's key."""
_REPEAT = struct.Struct(f"<{_KEY}sd")
"""A judgment's key and the probability of a repetition."""


class Unchecked:
    """The keys of judgments that no passed check has followed yet, oldest first.

    With a ledger's folder, each key is in a file before its judgment is, so that a killed process
    leaves the keys to the next one. Without a folder they are kept in memory only.
    """

    def __init__(self, folder: Path | None = None, finished: Collection[bytes] = ()) -> None:
        self._handle: int | None = None
        """The file while keys are added: opening it costs more than writing a key."""
        self._path = None if folder is None else folder / UNCHECKED
        content = _content(self._path)
        whole = range(0, len(content) - _KEY + 1, _KEY)
        found = dict.fromkeys(content[at : at + _KEY] for at in whole)
        self.keys = [key for key in found if key in finished]

    def __len__(self) -> int:
        return len(self.keys)

    def __del__(self) -> None:
        self.close()

    def add(self, key: bytes) -> None:
        """Add a judgment that is about to be recorded."""
        self.keys.append(key)
        if self._path is not None:
            with writing(self._path):
                if self._handle is None:
                    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
                    self._handle = open_in_folder(self._path, flags)
                append_whole(self._handle, key)

    def close(self) -> None:
        """Close the file; adding a key opens it again."""
        handle, self._handle = self._handle, None
        if handle is not None:
            os.close(handle)

    def drop(self, count: int) -> None:
        """Remove the first `count` judgments, because a check passed or they were set aside."""
        del self.keys[:count]
        self.close()
        _replace(self._path, b"".join(self.keys))


class Repeats:
    """The first repetition of each canary: p_yes by the judgment's key.

    Later repetitions are compared with it, because both were computed in the same way. With a
    ledger's folder they are kept in a file.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._path = None if folder is None else folder / REPEATS
        content = _content(self._path)
        whole = content[: len(content) // _REPEAT.size * _REPEAT.size]
        self.p_yes: dict[bytes, float] = dict(_REPEAT.iter_unpack(whole))

    def add(self, key: bytes, p_yes: float) -> None:
        """Keep a first repetition."""
        self.p_yes[key] = p_yes
        self._write()

    def drop(self, keys: Collection[bytes]) -> None:
        """Forget judgments that were set aside."""
        for key in keys:
            self.p_yes.pop(key, None)
        self._write()

    def _write(self) -> None:
        _replace(self._path, b"".join(_REPEAT.pack(*pair) for pair in self.p_yes.items()))


def _content(path: Path | None) -> bytes:
    return path.read_bytes() if path is not None and path.exists() else b""


def _replace(path: Path | None, content: bytes) -> None:
    """Replace a file that is only advice: it is not synced, because a lost change costs nothing."""
    if path is not None:
        with writing(path):
            fresh = path.with_name(f"{path.name}.{os.getpid()}.tmp")
            fresh.write_bytes(content)
            fresh.replace(path)
