"""An open run: its figures, recomputed when there is more to show."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from rocketeval.errors import RocketEvalError, StoreError
from rocketeval.report.blocks import WHOLE_BLOCKS, ReportSource
from rocketeval.report.model import LiveProgress, ReportHead
from rocketeval.store.run import RunStore
from rocketeval.store.watch import READ_ERRORS, results_version
from rocketeval.view.labeling import Labeling, LabelProgress, LabelQueue
from rocketeval.view.provisional import PageFigures, final_figures, provisional_figures
from rocketeval.view.run_list import ProgressMeter, unreadable, with_patience
from rocketeval.view.search import TextMatch, find_texts

Work = Callable[[Callable[[], bytes | None]], Awaitable[bytes | None]]


class Blocks:
    """Computes the blocks of one version of a run in another thread; caches large ones."""

    def __init__(self, source: ReportSource, work: Work) -> None:
        self._source = source
        self._work = work
        self._kept: dict[str, asyncio.Task[bytes | None]] = {}
        self._one_at_a_time = asyncio.Lock()

    async def get(self, name: str) -> bytes | None:
        """Return a block by name; None if there is none."""
        if name not in WHOLE_BLOCKS:
            # Blocks of single queries are fast and many, so they are not cached.
            return await self._work(lambda: self._source.block(name))
        if name not in self._kept:
            self._kept[name] = asyncio.create_task(self._make(name))
        # Other requests may wait for the same task, so a cancelled one must not cancel it.
        return await asyncio.shield(self._kept[name])

    async def _make(self, name: str) -> bytes | None:
        try:
            # Leave other threads for pulses, heads and single queries.
            async with self._one_at_a_time:
                return await self._work(lambda: self._source.block(name))
        except BaseException:
            del self._kept[name]
            raise


REFRESH_SECONDS = 5.0
"""Minimum time between updates of provisional figures."""
SHARE = 0.1
"""Maximum share of time spent on provisional figures, since the run needs the CPU too."""
KEPT = 2
"""Number of versions of a run whose blocks are kept for open pages."""

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The figures of a run at one moment."""

    key: str
    """Unique identifier."""
    figures: PageFigures
    blocks: Blocks
    done: int
    made_at: float
    seconds: float
    """Time to compute it."""

    def version(self, progress: LiveProgress) -> str:
        """Return the version of a page with these figures and this state."""
        return f"{self.key}-{progress.state}"


class LiveRun:
    """The head, pulse and blocks of one run."""

    def __init__(
        self, path: Path, meter: ProgressMeter, workers: Executor, command: str | None
    ) -> None:
        self.path = path
        self._meter = meter
        self._workers = workers
        self._command = command
        self._kept: OrderedDict[str, Snapshot] = OrderedDict()
        self._making = asyncio.Lock()
        self._background: asyncio.Task[None] | None = None
        self._failed_at = -REFRESH_SECONDS
        self._labels: tuple[str, Labeling] | None = None

    async def head(self) -> ReportHead:
        """Return the head of the run's page, with current progress."""
        progress = await self._progress()
        snapshot = await self._up_to_date(progress)
        return replace(
            snapshot.figures.source.head,
            provisional=snapshot.figures.words(progress.state == "going"),
            live=replace(progress, version=snapshot.version(progress)),
        )

    async def pulse(self) -> LiveProgress:
        """Return the progress of the run; start an update of the figures if it is due."""
        progress = await self._progress()
        shown = self._newest()
        if self._background is None and self._is_due(progress, shown):
            self._background = asyncio.create_task(self._make_behind(progress))
        if progress.state == "finished":
            return replace(progress, version=f"{_final_key(self.path)}-finished")
        return replace(progress, version=shown.version(progress) if shown else "")

    async def block(self, name: str, version: str | None) -> bytes | None:
        """Return a block of the given version, or of the newest; None if unknown."""
        if version is None:
            snapshot = self._newest() or await self._up_to_date(await self._progress())
        else:
            key = version.rpartition("-")[0]
            if key not in self._kept:
                # After a restart of the server, a finished run has the same key as before.
                await self._up_to_date(await self._progress())
            if key not in self._kept:
                raise StaleBlock
            snapshot = self._kept[key]
        return await snapshot.blocks.get(name)

    async def search(self, words: str) -> tuple[TextMatch, ...]:
        """Return the texts of the run that contain every word."""
        return await self._work(lambda: find_texts(RunStore(self.path), words))

    async def label_queue(self, labeler: str) -> LabelQueue:
        """Return the pairs to vote on next, and the progress."""
        labeling = await self._labeling(labeler)
        return await self._work(lambda: LabelQueue(labeling.queue(), labeling.progress()))

    async def label(self, labeler: str, given: Mapping[str, object]) -> LabelProgress:
        """Write a label, and return the progress once it is on disk."""
        labeling = await self._labeling(labeler)
        return await self._work(lambda: labeling.record(given))

    async def _labeling(self, labeler: str) -> Labeling:
        # A run that was repeated has other queries, scores or votes.
        key = _final_key(self.path)
        if self._labels is None or self._labels[0] != key:
            self._labels = key, await self._work(lambda: Labeling(self.path, labeler))
        return self._labels[1]

    def close(self) -> None:
        """Drop all figures."""
        self._kept.clear()
        if self._background is not None:
            self._background.cancel()

    async def _progress(self) -> LiveProgress:
        return await self._work(lambda: with_patience(self._meter.look))

    def _newest(self) -> Snapshot | None:
        return next(reversed(self._kept.values()), None)

    async def _up_to_date(self, progress: LiveProgress) -> Snapshot:
        async with self._making:
            shown = self._newest()
            if shown is not None and not self._is_due(progress, shown):
                return shown
            return await self._make(progress)

    def _is_due(self, progress: LiveProgress, shown: Snapshot | None) -> bool:
        """Return whether there is something new to show, and enough time has passed."""
        now = time.monotonic()
        if progress.state == "finished":
            return shown is None or shown.key != _final_key(self.path)
        if shown is None:
            return now - self._failed_at >= REFRESH_SECONDS
        pause = max(REFRESH_SECONDS, shown.seconds / SHARE)
        changed = shown.figures.final or shown.done != progress.done
        return changed and now - max(shown.made_at, self._failed_at) >= pause

    async def _make_behind(self, progress: LiveProgress) -> None:
        try:
            await self._up_to_date(progress)
        except RocketEvalError:
            # Loading the page reports the error; the pulse continues.
            self._failed_at = time.monotonic()
        finally:
            self._background = None

    async def _make(self, progress: LiveProgress) -> Snapshot:
        started = time.monotonic()
        final = progress.state == "finished"
        key = _final_key(self.path) if final else f"p{secrets.token_hex(6)}"
        store = RunStore(self.path)

        def read() -> PageFigures:
            return final_figures(store) if final else provisional_figures(store, self._command)

        figures = await self._work(lambda: with_patience(read))
        ended = time.monotonic()
        blocks = Blocks(figures.source, self._work)
        snapshot = Snapshot(key, figures, blocks, progress.done, ended, ended - started)
        self._kept[key] = snapshot
        self._kept.move_to_end(key)
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return snapshot

    async def _work(self, work: Callable[[], T]) -> T:
        """Run `work` in another thread; convert read errors of a damaged run to StoreError."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._workers, work)
        except READ_ERRORS as error:
            raise StoreError(unreadable(self.path, error)) from error


class StaleBlock(Exception):
    """The requested version of a block is no longer kept."""


def _final_key(path: Path) -> str:
    return f"f{results_version(RunStore(path))}"
