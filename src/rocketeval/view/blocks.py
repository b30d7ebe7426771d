"""The blocks of one version of a run: the large ones are made once, and nobody waits for them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from rocketeval.report.source import ReportSource

WHOLE = frozenset({"queries", "scores", "answers", "items", "labels", "pairs"})
"""Blocks about all queries. They are kept; those of single queries are quick, and too many."""

Work = Callable[[Callable[[], bytes | None]], Awaitable[bytes | None]]


class Blocks:
    """Makes blocks in another thread, by `work`."""

    def __init__(self, source: ReportSource, work: Work) -> None:
        self._source = source
        self._work = work
        self._kept: dict[str, asyncio.Task[bytes | None]] = {}
        self._one_at_a_time = asyncio.Lock()

    async def get(self, name: str) -> bytes | None:
        """Return a block; None if there is none of that name."""
        if name not in WHOLE:
            return await self._work(lambda: self._source.block(name))
        if name not in self._kept:
            self._kept[name] = asyncio.create_task(self._make(name))
        # Others may wait for it too: whoever goes away must not end it.
        return await asyncio.shield(self._kept[name])

    async def _make(self, name: str) -> bytes | None:
        try:
            # The other threads are left to pulses, heads and single queries.
            async with self._one_at_a_time:
                return await self._work(lambda: self._source.block(name))
        except BaseException:
            del self._kept[name]
            raise
