"""An engine whose work is counted, also where it ends in an error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from rocketeval.engines.base import Engine, Graded
from rocketeval.records import Answer, GradingTask, Status, Usage

Settle = Callable[[Usage, int], None]
"""Hears what was used, and how many questions were answered."""


def metered(engine: Engine, settle: Settle) -> Engine:
    """Return the engine; `settle` hears what its judgments took when it is closed."""
    return cast(Engine, _Metered(engine, settle))


class _Metered:
    def __init__(self, engine: Engine, settle: Settle) -> None:
        self._engine = engine
        self._settle = settle
        self._usage = Usage()
        self._questions = 0

    def __getattr__(self, name: str) -> Any:
        # Engines offer more than the protocol says, such as a pulse: all of it is passed on.
        return getattr(self._engine, name)

    async def grade(self, task: GradingTask, known: Mapping[int, Answer]) -> Graded:
        graded = await self._engine.grade(task, known)
        self._usage += graded.usage
        self._questions += sum(
            place not in known and answer.status is not Status.ERROR
            for place, answer in enumerate(graded.answers)
        )
        return graded

    async def aclose(self) -> None:
        try:
            await self._engine.aclose()
        finally:
            self._settle(self._usage, self._questions)
            self._usage, self._questions = Usage(), 0
