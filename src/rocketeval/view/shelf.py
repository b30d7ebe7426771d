"""All runs of a target: the list of them, and the few whose pages are open."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rocketeval._version import __version__
from rocketeval.errors import RocketEvalError
from rocketeval.hashing import content_hash
from rocketeval.report.data import RunsHead
from rocketeval.report.plain import plain
from rocketeval.store.watch import READ_ERRORS
from rocketeval.view.catalogue import Target
from rocketeval.view.lines import Lines, named_benchmarks, unreadable, with_patience
from rocketeval.view.progress import QUIET_SECONDS, Progress, ProgressMeter
from rocketeval.view.watched import WatchedRun

MOST_OPEN = 4
"""Runs whose figures stay in memory: those looked at last."""


class Shelf:
    """Gives the list of runs, and each run by its slug."""

    def __init__(self, target: Target, *, quiet: float = QUIET_SECONDS) -> None:
        """`quiet` seconds without a change make a run one that is not going."""
        self.target = target
        self._quiet = quiet
        self._workers = ThreadPoolExecutor(max_workers=2, thread_name_prefix="view")
        self._open: OrderedDict[Path, WatchedRun] = OrderedDict()
        self._meters: dict[Path, ProgressMeter] = {}
        self._lines = Lines()
        self._listing = asyncio.Lock()

    async def runs(self) -> dict[str, Path]:
        """Return every run there is now, by its slug."""
        return await asyncio.get_running_loop().run_in_executor(self._workers, self.target.runs)

    async def run(self, slug: str) -> WatchedRun | None:
        """Return one run; None if there is none of that slug."""
        path = (await self.runs()).get(slug)
        if path is None:
            return None
        if path not in self._open:
            self._open[path] = WatchedRun(
                path, self._meter(path), self._workers, self.target.command
            )
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

    def _progress(self, path: Path) -> Progress | str:
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
