"""Atomic file writes."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rocketeval.engines.scripted import exact_answer
from rocketeval.errors import StoreError
from rocketeval.records import Checklist, JudgeFingerprint, Query, Response, Usage
from rocketeval.store import files
from rocketeval.store.answer_file import AnswerFile
from rocketeval.store.checksums import NAME, check_complete, check_file, keep_checksums, read_log
from rocketeval.store.failures import UNCHECKED, Unchecked
from rocketeval.store.files import (
    check_folder,
    remove_temporaries,
    write_bytes,
    write_parquet_parts,
)
from rocketeval.store.journal import Journal
from rocketeval.store.run import RunStore
from support.make import judgment, key

JUDGE = b"j" * 16


def rows(start: int, stop: int) -> pa.Table:
    """Return rows with names, nulls and numbers."""
    numbers = range(start, stop)
    return pa.table(
        {
            "name": pa.array([f"name {n % 4}" for n in numbers], pa.string()),
            "value": pa.array([None if n % 5 == 0 else n / 7 for n in numbers], pa.float64()),
        }
    )


@pytest.mark.parametrize("group", [1, 4, 10, 11, 100])
@pytest.mark.parametrize("step", [1, 3, 10, 11, 40])
@pytest.mark.parametrize("count", [0, 1, 10, 33, 40])
def test_parts_give_the_bytes_of_one_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group: int, step: int, count: int
) -> None:
    """The file does not depend on how the rows arrive: scores have a content hash."""
    monkeypatch.setattr(files, "ROW_GROUP", group)
    parts = [rows(start, min(start + step, count)) for start in range(0, count, step)]
    write_parquet_parts(tmp_path / "parts", parts or [rows(0, 0)])
    pq.write_table(
        rows(0, count),
        tmp_path / "whole",
        compression="zstd",
        row_group_size=group,
        write_page_checksum=True,
    )
    assert (tmp_path / "parts").read_bytes() == (tmp_path / "whole").read_bytes()


def test_row_groups_match_pyarrow(tmp_path: Path) -> None:
    """A file in parts has the row groups that `pq.write_table` would write."""
    numbers = pa.table({"n": pa.array(range(files.ROW_GROUP + 5), pa.int32())})
    pq.write_table(numbers, tmp_path / "whole", compression="zstd", write_page_checksum=True)
    write_parquet_parts(tmp_path / "parts", [numbers.slice(0, 9), numbers.slice(9)])
    assert (tmp_path / "parts").read_bytes() == (tmp_path / "whole").read_bytes()


def test_failed_write_keeps_the_old_file(tmp_path: Path) -> None:
    """Nothing is replaced before everything is written, and no partial file stays."""
    path = tmp_path / "scores"
    path.write_bytes(b"before")

    def parts() -> Iterator[pa.Table]:
        yield rows(0, 3)
        raise RuntimeError("out of answers")

    with pytest.raises(RuntimeError, match="out of answers"):
        write_parquet_parts(path, parts())
    assert [each.name for each in tmp_path.iterdir()] == ["scores"]
    assert path.read_bytes() == b"before"


@pytest.mark.parametrize("operation", ["fsync", "replace"])
def test_file_that_never_came_is_not_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    """A full disk after the checksum was recorded leaves no damage behind."""
    keep_checksums(tmp_path)
    path, real, calls = tmp_path / "part", getattr(os, operation), []

    def full(*args: Any, **settings: Any) -> Any:
        calls.append(args)
        # The first fsync is that of the file itself, the second that of its checksum.
        if operation == "replace" or len(calls) == 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(*args, **settings)

    monkeypatch.setattr(os, operation, full)
    with pytest.raises(StoreError, match="No space left"):
        write_bytes(path, b"content")
    monkeypatch.undo()
    assert [line.file for line in read_log(tmp_path).lines] == ["part"]
    check_complete(tmp_path)
    assert remove_temporaries(tmp_path) == 1
    check_complete(tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == [NAME]


@contextmanager
def files_end_at(size: int) -> Iterator[None]:
    """No file of this process can grow beyond `size` bytes, as on a full disk."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


APPENDING: dict[str, Callable[[Path], Callable[[int], None]]] = {
    "journal": lambda path: lambda n: Journal(path).append({"n": n}),
    "shared journal": lambda path: lambda n: Journal(path, shared=True).append({"n": n}),
    "answers": lambda path: (
        lambda n: AnswerFile(path).add(
            JudgeFingerprint(*"abcdefg"), {str(n): exact_answer(0.5)}, Usage(), "c"
        )
    ),
    "unchecked": lambda path: lambda n: Unchecked(path.parent).add(key(str(n))),
    "checksums": lambda path: lambda n: write_bytes(path, b"%d" % n),
}


@pytest.mark.parametrize("kind", APPENDING)
def test_partial_write_is_undone_and_reported(tmp_path: Path, kind: str) -> None:
    """A line that does not fit is an error, and the file has the lines it had before."""
    path = tmp_path / {"unchecked": UNCHECKED}.get(kind, "file")
    if kind == "checksums":
        keep_checksums(tmp_path)
    append = APPENDING[kind](path)
    append(1)
    grows = tmp_path / NAME if kind == "checksums" else path
    before = grows.read_bytes()
    with files_end_at(len(before) + 5), pytest.raises(StoreError, match="No space left"):
        append(2)
    assert grows.read_bytes() == before
    append(3)
    assert grows.read_bytes().startswith(before)
    if kind == "checksums":
        check_file(path)


def test_undoing_a_partial_write_removes_no_other_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process may append to a shared file in between."""
    journal, write = Journal(tmp_path / "rows.jsonl", shared=True), os.write

    def half(handle: int, line: bytes) -> int:
        written = write(handle, line[:4])
        monkeypatch.undo()
        journal.append({"n": 1})
        return written

    monkeypatch.setattr(os, "write", half)
    with pytest.raises(StoreError, match="No space left"):
        journal.append({"n": 2})
    assert list(journal.rows()) == [{"n": 1}]


def modes(folder: Path) -> set[int]:
    """Return the permissions of a folder and of everything in it."""
    return {path.stat().st_mode & 0o777 for path in (folder, *folder.rglob("*"))}


@pytest.fixture
def usual_umask() -> Iterator[None]:
    """New files and folders can be read by others, unless the program says otherwise."""
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.usefixtures("usual_umask")
def test_inputs_are_as_private_as_their_run(tmp_path: Path) -> None:
    """Texts cannot be read even where somebody else can enter the run."""
    store = RunStore(tmp_path / "run")
    with store.locked():
        store.inputs.save([Query("q1", "?")], [Response("q1", "left", "Yes.")], [], [], [])
    assert modes(store.inputs.folder) == {0o700, 0o600}
    store.path.chmod(0o755)
    with store.locked():
        store.inputs.save([Query("q1", "?")], [Response("q1", "left", "Yes.")], [], [], [])
    assert modes(store.inputs.folder) == {0o755, 0o644}


@pytest.mark.usefixtures("usual_umask")
@pytest.mark.parametrize("checked", [True, False], ids=["when the run loads", "when it grades"])
def test_a_new_cache_is_private(tmp_path: Path, checked: bool) -> None:
    """Judgments and checklists in it can be read by the owner only, also in an open folder."""
    tmp_path.chmod(0o755)
    cache, store = tmp_path / "runs" / ".cache", RunStore(tmp_path / "runs" / "one")
    if checked:
        check_folder(cache)
    fill_cache(cache, store)
    assert modes(cache) == {0o700, 0o600}
    assert cache.parent.stat().st_mode & 0o777 == 0o755


@pytest.mark.usefixtures("usual_umask")
def test_a_cache_that_a_group_shares_stays_shared(tmp_path: Path) -> None:
    """The mode of an existing folder is kept, and its new files can be read by the group."""
    cache, store = tmp_path / "shared", RunStore(tmp_path / "runs" / "one")
    cache.mkdir()
    cache.chmod(0o770)
    check_folder(cache)
    fill_cache(cache, store)
    assert cache.stat().st_mode & 0o777 == 0o770
    assert all(mode & 0o040 and not mode & 0o007 for mode in modes(cache))


def fill_cache(cache: Path, store: RunStore) -> None:
    """Add a judgment and an authored checklist to a cache."""
    with store.locked(), store.ledger(JUDGE, store.shared_ledger(JUDGE, cache)) as ledger:
        ledger.append(judgment("a"))
    journal = store.authored(cache)
    journal.check_writable()
    journal.append(key("a"), Checklist("q1", ("Is it right?",)))
