"""An event loop whose clock moves only when nothing else is left to do.

Waiting costs nothing and takes exactly as long as the code asked for, whatever else runs on the
machine, so that times can be compared.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from types import ModuleType, SimpleNamespace
from typing import Any, TypeVar

import pytest

T = TypeVar("T")


class _Selector(selectors.DefaultSelector):
    """A selector that moves a clock on instead of waiting for it."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        assert timeout is not None, "every task waits for something that no timer will bring"
        self.now += timeout
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop with a clock of its own; for tasks that wait for timers and for each other."""

    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        """Return the seconds that tasks have waited since the loop was created."""
        return self._virtual.now


def run_in_virtual_time(
    work: Coroutine[Any, Any, T], monkeypatch: pytest.MonkeyPatch, *modules: ModuleType
) -> T:
    """Run a coroutine to its end; the modules' `time.monotonic` is the loop's clock meanwhile."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner, monkeypatch.context() as patch:
        clock = SimpleNamespace(monotonic=runner.get_loop().time)
        for module in modules:
            patch.setattr(module, "time", clock)
        return runner.run(work)
