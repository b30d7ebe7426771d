"""Durable blocks: results of many batches and workers, saved together in one file.

A batch is what a worker judges in one call; a block is what survives a crash as a whole. Workers
report finished rows every half second, so the two have nothing to do with each other: a block is
written when it has enough rows, or when its oldest row has waited long enough.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Condition

import pyarrow as pa

from rocketeval.distributed.staging import JobFolder

BLOCK_ROWS = 4096
"""The most rows that wait to be written: 1e8 responses are 25 thousand files (perf/ray_blocks.py).
"""
BLOCK_SECONDS = 2.0
"""How long a row waits at most, so that a slow judge loses seconds of work, not a block of rows."""


class DurableBlocks:
    """The results of a job that are not written yet; safe to use from several threads."""

    def __init__(
        self,
        folder: JobFolder,
        *,
        rows: int = BLOCK_ROWS,
        seconds: float = BLOCK_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = folder
        self._rows = rows
        self._seconds = seconds
        self._clock = clock
        self._held: list[pa.Table] = []
        self._count = 0
        self._since = 0.0
        self._writing = 0
        self._changed = Condition()

    def add(self, results: pa.Table) -> None:
        """Add rows, and write the block if it is due.

        The caller writes, so that workers wait for a slow disk instead of filling the memory.
        """
        with self._changed:
            if not self._held:
                self._since = self._clock()
            self._held.append(results)
            self._count += results.num_rows
        self.write_if_due()

    def write_if_due(self) -> None:
        """Write the block if it has enough rows, or if its first row has waited long enough."""
        with self._changed:
            if self._count < self._rows and not self._overdue():
                return
            block = self._take()
        self._write(block)

    def write(self) -> None:
        """Write everything, and wait for the blocks that other threads are writing."""
        with self._changed:
            block = self._take()
        self._write(block)
        with self._changed:
            self._changed.wait_for(lambda: not self._writing)

    def _overdue(self) -> bool:
        return bool(self._held) and self._clock() - self._since >= self._seconds

    def _take(self) -> list[pa.Table]:
        block, self._held, self._count = self._held, [], 0
        self._writing += 1
        return block

    def _write(self, block: list[pa.Table]) -> None:
        """Write a block; if that fails, its rows wait for the next attempt."""
        try:
            if block:
                self._folder.write_results(pa.concat_tables(block))
        except BaseException:
            with self._changed:
                self._held = block + self._held
                self._count = sum(table.num_rows for table in self._held)
            raise
        finally:
            with self._changed:
                self._writing -= 1
                self._changed.notify_all()
