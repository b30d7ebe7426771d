"""Where an export goes, and what it said about itself: nothing is overwritten unasked."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from os import getpid
from pathlib import Path

from rocketeval.errors import ExportError
from rocketeval.exports.formats import Request
from rocketeval.store.files import read_json
from rocketeval.store.run import RunStore

ABOUT = "export.json"
"""What a folder of exported files says about itself, and by which it is known to be one."""


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written, and what was not."""

    rows: int
    left_out: Mapping[str, int] = field(default_factory=dict)
    """How much is not in it, by what it is."""
    notes: tuple[str, ...] = ()
    """What a reader of the files should know."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Names of files by candidate, where each has its own and it is not its name."""
    path: Path | None = None
    """Where it is; None when it went to a stream."""


def refuse_to_overwrite(store: RunStore, request: Request, path: Path, *, force: bool) -> None:
    """Raise ExportError if the export would replace something it may not replace."""
    refuse_inside_run(path, store.path)
    if path.is_dir() != request.form.is_folder and path.exists():
        kind, wanted = ("folder", "a file") if path.is_dir() else ("file", "a folder")
        raise ExportError(f"{path} is a {kind}, and {request.form.name} is {wanted}.")
    if path.exists() and not force and not (path.is_dir() and not any(path.iterdir())):
        raise ExportError(
            f"{path} exists already.", hint="Give another path, or --force to replace it."
        )
    if request.form.is_folder and path.exists() and any(path.iterdir()):
        _written_before(path)


def refuse_inside_run(path: Path, run: Path | None = None) -> None:
    """Raise ExportError for a place inside of `run`, or of any other run."""
    whole, own = path.resolve(), run.resolve() if run else None
    for folder in (whole, *whole.parents):
        if folder == own or _is_run(folder):
            raise ExportError(
                f"{path} is inside the run {folder}, whose files only its own stages write.",
                hint="Choose a place outside of it.",
            )


def _is_run(folder: Path) -> bool:
    return all((folder / name).is_file() for name in ("run.yaml", "manifest.json"))


@contextmanager
def filling(path: Path) -> Iterator[Path]:
    """Give an empty folder to fill; on success its files take the place of an older export's.

    Of what is in `path`, only files that an export has written are removed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{getpid()}.tmp")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    try:
        yield fresh
        if path.exists() and any(path.iterdir()):
            for old in _written_before(path):
                old.unlink(missing_ok=True)
        for new in sorted(fresh.rglob("*")):
            if new.is_file():
                place = path / new.relative_to(fresh)
                place.parent.mkdir(parents=True, exist_ok=True)
                new.replace(place)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _written_before(path: Path) -> list[Path]:
    """Return the files that an earlier export wrote; ExportError if the folder is none."""
    about = path / ABOUT
    found = read_json(about) if about.is_file() else None
    names = found.get("written") if isinstance(found, dict) else None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ExportError(
            f"{path} holds files that no export wrote.", hint="Choose an empty or a new folder."
        )
    files = [path / name for name in names]
    inside = path.resolve()
    return [file for file in files if file.parent.resolve().is_relative_to(inside)]
