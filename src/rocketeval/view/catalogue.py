"""Which runs there are, and by which name a page asks for each."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from rocketeval.config import load_config
from rocketeval.errors import StoreError

_MARKS = ("manifest.json", "run.yaml", "ledger")
"""A folder with one of these is a run, or was one."""


@dataclass(frozen=True, slots=True)
class Target:
    """What is looked at: one run, or a folder of runs."""

    folder: Path
    alone: bool
    """Whether `folder` is the run itself."""
    command: str | None = None
    """What goes on with an unfinished run, where the user has named its config."""

    def runs(self) -> dict[str, Path]:
        """Return every run there is now by its slug: the name its page has in an address.

        Addresses are looked up here and never become paths.
        """
        if self.alone:
            paths = [self.folder] if _is_run(self.folder) else []
        else:
            paths = list(_runs_below(self.folder))
        return {_slug(path.relative_to(self.folder.parent), path.name): path for path in paths}


def find_target(given: Path | None) -> Target:
    """Return what the user wants to see; StoreError when there is no such thing.

    Without a path it is the run of ./rocketeval.yaml, or else the folder ./runs.
    """
    if given is None:
        config = Path("rocketeval.yaml")
        given = config if config.is_file() else Path("runs")
    if given.is_dir():
        return Target(given.resolve(), alone=_is_run(given))
    if given.is_file():
        command = shlex.join(["rocketeval", "run", str(given)])
        return Target(load_config(given).run_path.resolve(), alone=True, command=command)
    raise StoreError(
        f"There is no {given}.",
        hint="Give a config file, a run's folder, or a folder that holds runs.",
    )


def _runs_below(folder: Path) -> Iterator[Path]:
    """Yield the runs in a folder and in its plain sub-folders; never what lies inside a run."""
    for path in _folders(folder):
        if _is_run(path):
            yield path
        else:
            yield from filter(_is_run, _folders(path))


def _folders(folder: Path) -> list[Path]:
    try:
        return sorted(p for p in folder.iterdir() if p.is_dir() and not p.name.startswith("."))
    except OSError:
        return []


def _is_run(folder: Path) -> bool:
    return any((folder / name).exists() for name in _MARKS)


def _slug(place: Path, name: str) -> str:
    """Return the run's name in an address; what is unusual in it is replaced, and told apart.

    >>> _slug(Path("runs/demo"), "demo")
    'demo'
    >>> _slug(Path("runs/a/x y"), "x y")
    'x-y-22df8288'
    """
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-.")
    if plain == name and len(place.parts) <= 2:
        return name
    return f"{plain}-{blake2b(str(place).encode(errors='replace'), digest_size=4).hexdigest()}"
