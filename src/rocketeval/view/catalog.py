"""The runs of a folder by the slug in their URL, and a cache of open runs."""

from __future__ import annotations

import asyncio
import re
import shlex
from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TypeVar

from rocketeval._version import __version__
from rocketeval.config import load_config
from rocketeval.errors import RocketEvalError, StoreError
from rocketeval.hashing import content_hash
from rocketeval.judges.runs import JudgedRun, open_run
from rocketeval.report.blocks import plain
from rocketeval.report.model import LiveProgress, RunsHead
from rocketeval.report.run_diff import why_not_comparable
from rocketeval.store.run import RunStore
from rocketeval.store.watch import READ_ERRORS, results_version
from rocketeval.view.changes import DiffPage, ResponseDiff, diff_page, response_diff
from rocketeval.view.live_run import LiveRun
from rocketeval.view.run_list import (
    QUIET_SECONDS,
    ProgressMeter,
    RunLines,
    age_order,
    is_finished,
    named_benchmarks,
    unreadable,
    with_patience,
)

T = TypeVar("T")
_MARKS = ("manifest.json", "run.yaml", "ledger")
"""Files that identify a run directory."""


@dataclass(frozen=True, slots=True)
class ViewTarget:
    """The run, or the folder of runs, to show."""

    folder: Path
    alone: bool
    """True if `folder` is the run itself."""
    command: str | None = None
    """The command that continues an unfinished run, if the user named its config."""

    def runs(self) -> dict[str, Path]:
        """Return the current runs by slug, the name in a page's URL.

        URLs are looked up here and never used as paths.
        """
        if self.alone:
            paths = [self.folder] if _is_run(self.folder) else []
        else:
            paths = list(_runs_below(self.folder))
        return {_slug(path.relative_to(self.folder.parent), path.name): path for path in paths}


def find_target(given: Path | None) -> ViewTarget:
    """Return the target; raise StoreError if it does not exist.

    Without a path, it is the run of ./rocketeval.yaml, or else the folder ./runs.
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
        f"{given} does not exist.",
        hint="Give a config file, a run directory, or a folder of runs.",
    )


def _runs_below(folder: Path) -> Iterator[Path]:
    """Yield the runs in a folder and its direct subfolders, but none inside a run."""
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
    """Return the run's name in a URL; unusual characters are replaced, and a hash is added.

    >>> _slug(Path("runs/demo"), "demo")
    'demo'
    >>> _slug(Path("runs/a/x y"), "x y")
    'x-y-22df8288'
    """
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-.")
    if plain == name and len(place.parts) <= 2:
        return name
    return f"{plain}-{blake2b(str(place).encode(errors='replace'), digest_size=4).hexdigest()}"


@dataclass(frozen=True, slots=True)
class BaselineChoice:
    """A run that another run can be compared with, or the reason why not."""

    slug: str
    name: str
    created: str
    judge: str
    why: str
    """Why it cannot be compared; empty if it can."""


MOST_OPEN = 4
"""Number of recently viewed runs whose figures stay in memory."""


class RunCache:
    """A cache of the list of runs, and of runs by slug."""

    def __init__(self, target: ViewTarget, *, quiet: float = QUIET_SECONDS) -> None:
        """Treat a run as stopped after `quiet` seconds without a change."""
        self.target = target
        self._quiet = quiet
        self._workers = ThreadPoolExecutor(max_workers=2, thread_name_prefix="view")
        self._open: OrderedDict[Path, LiveRun] = OrderedDict()
        self._meters: dict[Path, ProgressMeter] = {}
        self._lines = RunLines()
        self._listing = asyncio.Lock()
        self._compared: tuple[tuple[str, ...], DiffPage] | None = None

    async def runs(self) -> dict[str, Path]:
        """Return the current runs by slug."""
        return await self._work(self.target.runs)

    async def run(self, slug: str) -> LiveRun | None:
        """Return a run by slug; None if there is none."""
        path = (await self.runs()).get(slug)
        if path is None:
            return None
        if path not in self._open:
            self._open[path] = LiveRun(path, self._meter(path), self._workers, self.target.command)
        self._open.move_to_end(path)
        while len(self._open) > MOST_OPEN:
            self._open.popitem(last=False)[1].close()
        return self._open[path]

    async def baselines(self, slug: str) -> tuple[BaselineChoice, ...]:
        """Return the other finished runs, newest first; those that cannot be compared last."""
        return await self._work(lambda: self._baselines(slug))

    async def diff(self, slug: str, base: str) -> DiffPage | None:
        """Return what changed since the run `base`; None if one of the runs does not exist."""
        return await self._work(lambda: self._diff(slug, base))

    async def response(
        self, slug: str, base: str, query: str, candidate: str
    ) -> ResponseDiff | None:
        """Return one response in both runs; None if there is none."""

        def found() -> ResponseDiff | None:
            runs = self._two_runs(slug, base)
            return None if runs is None else response_diff(*runs, query, candidate)

        return await self._work(found)

    async def list(self) -> RunsHead:
        """Return the list of runs."""
        async with self._listing:
            return await self._work(self._list)

    def close(self) -> None:
        """Drop all runs, without waiting for reads in progress."""
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

    async def _work(self, work: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._workers, work)
        except READ_ERRORS as error:
            raise StoreError(unreadable(self.target.folder, error)) from error

    def _baselines(self, slug: str) -> tuple[BaselineChoice, ...]:
        runs = self.target.runs()
        if slug not in runs:
            return ()
        own = open_run(runs[slug])
        found = [
            _baseline(own, name, path)
            for name, path in runs.items()
            if name != slug and is_finished(RunStore(path))
        ]
        newest = sorted(found, key=lambda one: age_order(one.created, one.name), reverse=True)
        return tuple(sorted(newest, key=lambda one: bool(one.why)))

    def _two_runs(self, slug: str, base: str) -> tuple[JudgedRun, JudgedRun] | None:
        runs = self.target.runs()
        if slug not in runs or base not in runs:
            return None
        return open_run(runs[slug]), open_run(runs[base])

    def _diff(self, slug: str, base: str) -> DiffPage | None:
        runs = self._two_runs(slug, base)
        if runs is None:
            return None
        version = tuple(f"{run.store.path} {results_version(run.store)}" for run in runs)
        if self._compared is None or self._compared[0] != version:
            self._compared = (version, diff_page(*runs))
        return self._compared[1]

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


def _baseline(own: JudgedRun, slug: str, path: Path) -> BaselineChoice:
    try:
        other = open_run(path)
        manifest = other.store.manifest()
        judge = manifest.judge.name if manifest.judge else ""
        why = why_not_comparable(own, other)
        return BaselineChoice(slug, path.name, manifest.created, judge, why)
    except RocketEvalError as error:
        return BaselineChoice(slug, path.name, "", "", error.message)
    except READ_ERRORS as error:
        return BaselineChoice(slug, path.name, "", "", unreadable(path, error))
