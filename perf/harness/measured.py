"""The result of one pass of a method over the workload, and the interface of a method."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol


@dataclass
class Measured:
    """One pass over the workload."""

    p_yes: list[float | None]
    """One per answer, in workload order; None if the method got no probability."""
    prompt_tokens: int = 0
    """As counted by the engine, including cached ones."""
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    """CPU time of the client's process only."""


class Method(Protocol):
    """A way to grade the workload."""

    def run(self) -> Measured:
        """Grade the whole workload once."""
        ...

    def close(self) -> None:
        """Release what it holds."""
        ...


@dataclass
class Stopwatch:
    """Wall and CPU time of a block."""

    seconds: float = 0.0
    cpu_seconds: float = 0.0


@contextmanager
def timed() -> Iterator[Stopwatch]:
    """Time the block; the figures are available when it ends."""
    watch = Stopwatch()
    wall, cpu = time.perf_counter(), time.process_time()
    yield watch
    watch.seconds = time.perf_counter() - wall
    watch.cpu_seconds = time.process_time() - cpu


def share(yes: Sequence[float], no: Sequence[float]) -> float | None:
    """Return `p(yes) / (p(yes) + p(no))` from log-probabilities; None if a side is missing."""
    if not yes or not no:
        return None
    p_yes = math.fsum(map(math.exp, yes))
    p_no = math.fsum(map(math.exp, no))
    return p_yes / (p_yes + p_no) if p_yes + p_no > 0 else None
