"""Checking every file of a run, and setting damage aside so that the rest can be used.

Nothing is deleted: a damaged file is copied to `set_aside/` in the run before it is replaced or
removed. What a repair takes away is asked again by the next `rocketeval run`.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import pyarrow.parquet as pq

from rocketeval.errors import StageMissing, StoreError
from rocketeval.store.checksums import (
    NAME,
    FileState,
    heads_of,
    keep_checksums,
    line_is_whole,
    read_log,
    reading,
    record,
    state_of,
)
from rocketeval.store.failures import FAILURES
from rocketeval.store.files import (
    copy_file,
    read_json,
    remove,
    remove_temporaries,
    replacing,
    write_parquet,
)
from rocketeval.store.inputs import EARLIER, PROVENANCE
from rocketeval.store.ledger import SET_ASIDE, live_files, read_file
from rocketeval.store.manifest import Manifest
from rocketeval.store.run import CHECKED, RunStore
from rocketeval.store.schema import JUDGMENTS, complete_rows, without_unused

Verdict = Literal["whole", "readable", "changed", "missing", "unreadable", "torn", "incomplete"]
"""readable: no checksum was recorded, as in runs of earlier versions; torn: the last line of a
journal was being written when its process ended; incomplete: judgments with answers that were lost
to faults of the server."""
DAMAGE: frozenset[Verdict] = frozenset({"changed", "missing", "unreadable"})
_LINES = (".jsonl",)
_SMALL = (".json",)
_ALONE = frozenset({"checklists.jsonl", EARLIER, PROVENANCE})
"""Input files that can be set aside without the snapshot of the benchmark."""


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """The state of one file."""

    name: str
    """Path in the run directory."""
    verdict: Verdict
    why: str = ""
    """What is wrong; empty if nothing is."""


@dataclass(frozen=True, slots=True)
class RunCheck:
    """The state of every file of a run."""

    path: Path
    files: tuple[CheckedFile, ...]
    judgments: int
    """Judgments in files that are not damaged."""
    incomplete: int
    """Of those, judgments with answers lost to faults of the server, as earlier versions kept."""
    temporaries: int
    """Temporary files of a process that was killed."""

    @property
    def damaged(self) -> tuple[CheckedFile, ...]:
        """The damaged and missing files."""
        return tuple(file for file in self.files if file.verdict in DAMAGE)

    @property
    def whole(self) -> bool:
        """Whether nothing is damaged or missing."""
        return not self.damaged


@dataclass(frozen=True, slots=True)
class Repair:
    """The result of a repair."""

    path: Path
    set_aside: tuple[str, ...]
    """Files that were damaged, or held damaged parts."""
    folder: Path | None
    """Where they are now; None if nothing was damaged."""
    kept: int
    """Judgments that the run still has."""
    to_ask: int
    """Judgments set aside because answers in them were lost to faults of the server."""


def verify_run(store: RunStore) -> RunCheck:
    """Read every file of a run and of the runs inside it, and return their states."""
    if not store.path.is_dir():
        raise StageMissing(
            f"There is no run {store.path}.", hint="Give a run directory, or the config of a run."
        )
    files: list[CheckedFile] = []
    judgments = incomplete = temporaries = 0
    for run in _runs(store.path):
        below = run.relative_to(store.path)
        for folder in _folders(run):
            place = below / folder.relative_to(run)
            files.extend(_check_folder(folder, place.as_posix().removeprefix(".").strip("/")))
            temporaries += sum(1 for _ in folder.glob(".*.tmp"))
        files.extend(_check_heads(run, below))
        for path in live_files(run / "ledger"):
            counts = _count(path)
            judgments += counts[0]
            incomplete += counts[0] - counts[1]
    return RunCheck(store.path, tuple(files), judgments, incomplete, temporaries)


def repair_run(store: RunStore) -> Repair:
    """Set the damage in a run aside and keep everything else."""
    if not store.path.is_dir():
        raise StageMissing(f"There is no run {store.path}.")
    with store.locked():
        found = verify_run(store)
        stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S-%f")
        aside = _Aside(store.path, store.path / SET_ASIDE / stamp)
        for file in found.damaged:
            aside.take(file)
        to_ask = sum(
            aside.take_incomplete(path)
            for run in _runs(store.path)
            for path in live_files(run / "ledger")
        )
        for folder in (folder for run in _runs(store.path) for folder in _folders(run)):
            remove_temporaries(folder)
        for run in _runs(store.path):
            _confirm(RunStore(run))
        kept = verify_run(store).judgments
    moved = tuple(dict.fromkeys(aside.moved))
    return Repair(store.path, moved, aside.folder if moved else None, kept, to_ask)


def _confirm(store: RunStore) -> None:
    """Write the hash of all checksums into the manifest again, if it has one of earlier ones."""
    try:
        manifest = store.read_if_made(Manifest)
    except StoreError:
        # Of another version; `_check_heads` cannot read it either.
        return
    if manifest is None or manifest.checksums is None:
        return
    heads = heads_of(store.path, CHECKED)
    if heads != manifest.checksums or _lacks_own_checksums(store.path):
        store.save(replace(manifest, checksums=heads))


def _runs(path: Path) -> list[Path]:
    """Return the run and the runs inside it."""
    inside = (found.parent for found in path.rglob("manifest.json"))
    return [path, *sorted(run for run in inside if run != path and SET_ASIDE not in run.parts)]


def _folders(run: Path) -> list[Path]:
    folders = (run, run / "inputs", run / "inputs" / "responses", run / "ledger")
    return [folder for folder in folders if folder.is_dir()]


def _check_folder(folder: Path, place: str) -> Iterator[CheckedFile]:
    log = read_log(folder)
    there = {path.name for path in folder.iterdir() if path.is_file()}
    names = sorted({name for name in there if not name.startswith(".")} | set(log.files()))
    for name in names:
        verdict, why = _check(folder / name)
        yield CheckedFile(f"{place}/{name}".lstrip("/"), verdict, why)
    if log.doubtful:
        named = ", ".join(sorted(log.doubtful)[:3])
        why = f"its lines about {named} were changed, or name no file of this folder"
        yield CheckedFile(f"{place}/{NAME}".lstrip("/"), "changed", why)


def _check(path: Path) -> tuple[Verdict, str]:
    state = state_of(path)
    if state is FileState.CHANGED:
        return "changed", "its content is not what was written"
    if state is FileState.MISSING:
        return "missing", "it is missing"
    try:
        torn = _read(path)
    except (StoreError, OSError) as error:
        why = error.message if isinstance(error, StoreError) else str(error)
        return "unreadable", why.removeprefix(f"{path} is damaged: ")
    if torn:
        return "torn", "its last line was being written when its process ended"
    return ("whole", "") if state is FileState.WHOLE else ("readable", "")


def _read(path: Path) -> bool:
    """Read a file completely; return whether its last line is torn."""
    if path.suffix == ".parquet":
        with reading(path):
            if path.parent.name == "ledger":
                read_file(path, JUDGMENTS.names)
            else:
                pq.read_table(path, page_checksum_verification=True)
    elif path.suffix in _SMALL:
        read_json(path)
    elif path.suffix in _LINES:
        content = path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        for number, line in enumerate(whole.splitlines(), 1):
            if line and not line_is_whole(line):
                raise StoreError(f"line {number} is not what was written.")
        return len(whole) < len(content) and path.parent.name == "ledger"
    elif path.suffix == ".npz":
        with reading(path), zipfile.ZipFile(path) as arrays:
            bad = arrays.testzip()
        if bad is not None:
            raise StoreError(f"the array {bad} in it is damaged.")
    return False


def _check_heads(run: Path, below: Path) -> Iterator[CheckedFile]:
    """Compare the checksums of each folder with the manifest, which repeats their hash."""
    try:
        found = RunStore(run).manifest().checksums
    except StoreError:
        # The manifest itself is reported as damaged.
        return
    heads = found or {}
    if found is not None and _lacks_own_checksums(run):
        why = "the checksum of the manifest is missing in it"
        yield CheckedFile((below / NAME).as_posix(), "missing", why)
    for folder in sorted(heads.keys() - set(CHECKED)):
        why = f"it confirms the checksums of {ascii(folder)[:80]}, which is no folder of a run"
        yield CheckedFile((below / "manifest.json").as_posix(), "changed", why)
    for folder, head in heads.items():
        if folder not in CHECKED:
            continue
        known = {line.chain for line in read_log(run / folder).lines}
        if head not in known:
            why = "lines that the manifest confirms are missing"
            yield CheckedFile((below / folder / NAME).as_posix(), "missing", why)


def _lacks_own_checksums(run: Path) -> bool:
    """Return whether the checksums of a run's own folder were lost.

    The manifest cannot confirm them, because they confirm the manifest. A run that was ever locked
    has them.
    """
    log = read_log(run)
    known = log.valid("manifest.json") or "manifest.json" in log.doubtful
    return (run / ".lock").exists() and not known


def _count(path: Path) -> tuple[int, int]:
    """Return the judgments in a file, and those in which no answer is lost; zeros if damaged."""
    try:
        table = read_file(path, ["key", "status"])
    except StoreError:
        return 0, 0
    return (0, 0) if table is None else (table.num_rows, complete_rows(table).num_rows)


class _Aside:
    """A folder for what a repair takes out of a run."""

    def __init__(self, run: Path, folder: Path) -> None:
        self.run = run
        self.folder = folder
        self.moved: list[str] = []

    def take(self, file: CheckedFile) -> None:
        """Set one damaged file aside."""
        path = self.run / file.name
        if path.name == NAME:
            self._renew_checksums(path)
        elif path.suffix == ".jsonl" and (path.name == FAILURES or path.parent.name == "ledger"):
            self._keep_lines(path)
        else:
            self._move(path)
            if path.parent.name == "inputs" and path.name not in _ALONE:
                self._move(path.parent / "summary.json")
            if path.parent.name == "responses":
                self._move(path.parent.parent / "summary.json")

    def take_incomplete(self, path: Path) -> int:
        """Set aside the judgments of a file in which answers are lost; return how many."""
        table = read_file(path, JUDGMENTS.names)
        if table is None:
            return 0
        whole = complete_rows(table)
        lost = table.num_rows - whole.num_rows
        if lost:
            kept = without_unused(whole)
            self._copy(path)
            if path.suffix == ".parquet":
                write_parquet(path, kept)
            else:
                write_parquet(
                    path.with_name(path.name.replace("journal-", "part-")).with_suffix(".parquet"),
                    kept,
                )
                path.unlink()
        return int(lost)

    def _move(self, path: Path) -> None:
        if path.exists():
            self._copy(path)
            remove(path)
        else:
            record(path, None)
            self.moved.append(path.relative_to(self.run).as_posix())

    def _copy(self, path: Path) -> None:
        name = path.relative_to(self.run)
        copy_file(path, self.folder / name)
        self.moved.append(name.as_posix())

    def _keep_lines(self, path: Path) -> None:
        """Keep the lines of a file that are whole."""
        if not path.exists():
            record(path, None)
            self.moved.append(path.relative_to(self.run).as_posix())
            return
        self._copy(path)
        lines = _whole_lines(path.read_bytes().split(b"\n"))
        with replacing(path) as temporary:
            temporary.write_bytes(b"".join(lines))

    def _renew_checksums(self, path: Path) -> None:
        """Record the files of a folder again, if they can be read."""
        files = [each for each in read_log(path.parent).files() if (path.parent / each).exists()]
        if path.exists():
            self._copy(path)
            path.unlink()
        keep_checksums(path.parent)
        for name in files:
            record(path.parent / name, path.parent / name)


def _whole_lines(lines: Iterable[bytes]) -> Iterator[bytes]:
    for line in lines:
        if line and line_is_whole(line):
            yield line + b"\n"
