"""Which runs there are, by which name a page asks for each, and the few whose pages are open."""

from __future__ import annotations

import asyncio
import re
import shlex
from collections import OrderedDict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from rocketeval._version import __version__
from rocketeval.config import load_config
from rocketeval.errors import RocketEvalError, StoreError
from rocketeval.hashing import content_hash
from rocketeval.report.blocks import plain
from rocketeval.report.model import LiveProgress, RunsHead
from rocketeval.store.watch import READ_ERRORS
from rocketeval.view.live_run import LiveRun
from rocketeval.view.run_list import (
    QUIET_SECONDS,
    ProgressMeter,
    RunLines,
    named_benchmarks,
    unreadable,
    with_patience,
)

_MARKS = ("manifest.json", "run.yaml", "ledger")
"""A folder with one of these is a run, or was one."""


@dataclass(frozen=True, slots=True)
class ViewTarget:
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


def find_target(given: Path | None) -> ViewTarget:
    """Return what the user wants to see; StoreError when there is no such thing.

    Without a path it is the run of ./rocketeval.yaml, or else the folder ./runs.
    """
    if given is None:
        config = Path("rocketeval.yaml")
        given = config if config.is_file() else Path("runs")
    if given.is_dir():
        return ViewTarget(given.resolve(), alone=_is_run(given))
    if given.is_file():
        command = shlex.join(["rocketeval", "run", str(given)])
        return ViewTarget(load_config(given).run_path.resolve(), alone=True, command=command)
    raise StoreError(
        f"There is no file or folder {given}.",
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


MOST_OPEN = 4
"""Runs whose figures stay in memory: those looked at last."""


class RunCache:
    """Gives the list of runs, and each run by its slug."""

    def __init__(self, target: ViewTarget, *, quiet: float = QUIET_SECONDS) -> None:
        """`quiet` seconds without a change make a run one that is not going."""
        self.target = target
        self._quiet = quiet
        self._workers = ThreadPoolExecutor(max_workers=2, thread_name_prefix="view")
        self._open: OrderedDict[Path, LiveRun] = OrderedDict()
        self._meters: dict[Path, ProgressMeter] = {}
        self._lines = RunLines()
        self._listing = asyncio.Lock()

    async def runs(self) -> dict[str, Path]:
        """Return every run there is now, by its slug."""
        return await asyncio.get_running_loop().run_in_executor(self._workers, self.target.runs)

    async def run(self, slug: str) -> LiveRun | None:
        """Return one run; None if there is none of that slug."""
        path = (await self.runs()).get(slug)
        if path is None:
            return None
        if path not in self._open:
            self._open[path] = LiveRun(path, self._meter(path), self._workers, self.target.command)
        self._open.move_to_end(path)
        while len(self._open) > MOST_OPEN:
            self._open.popitem(last=False)[1].close()
        return self._open[path]

    async def list(self) -> RunsHead:
        """Return the list of runs."""
        async with self._listing:
            return await asyncio.get_running_loop().run_in_executor(self._workers, self._list)

    def close(self) -> None:
        """Forget everything; what is being read is left to end."""
        for run in self._open.values():
            run.close()
        self._workers.shutdown(wait=False, cancel_futures=True)

    def _list(self) -> RunsHead:
        runs = self.target.runs()
        found = [
            self._lines.read(path, f"run/{slug}/", self._progress(path))
            for slug, path in runs.items()
        ]
        lines = named_benchmarks(found)
        version = content_hash(plain(lines)).hex()
        return RunsHead(str(self.target.folder), f"RocketEval {__version__}", version, lines)

    def _progress(self, path: Path) -> LiveProgress | str:
        try:
            return with_patience(self._meter(path).look)
        except RocketEvalError as error:
            return error.message
        except READ_ERRORS as error:
            return unreadable(path, error)

    def _meter(self, path: Path) -> ProgressMeter:
        if path not in self._meters:
            self._meters[path] = ProgressMeter(path, quiet=self._quiet)
        return self._meters[path]
