"""What grading a task can cost at most, set aside before the judge is asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rocketeval.budget import TEMPLATE_TOKENS, Purse, most_tokens, most_written
from rocketeval.engines.base import Engine, Graded
from rocketeval.records import NO_ANSWER, Answer, GradingTask, Usage

CONTACT_CALLS = 16
CONTACT_TOKENS = 256
"""To find out how a judge can be asked, it gets at most so many questions of so many tokens."""


def calls(engine: Engine, items: int, *, alone: bool = False) -> int:
    """Return how many requests an engine makes for so many items of one response.

    `alone`: the method asks each item by itself, however many the engine could take at once.
    """
    per_call: int | None = 1 if alone else getattr(engine, "items_per_call", 1)
    return -(-items // (per_call or max(1, items)))


class GradingBudget:
    """Admits a task only if the most it can cost still fits."""

    def __init__(
        self,
        purse: Purse,
        engine: Engine,
        extra_body: Mapping[str, Any],
        written: int = 1,
        *,
        alone: bool = False,
    ) -> None:
        self._purse = purse
        self._engine = engine
        self._alone = alone
        self._written = most_written(written, extra_body)
        self._template = TEMPLATE_TOKENS
        self._reserved: dict[bytes, float] = {}

    async def learn(self) -> None:
        """Ask how long the chat template is, and leave room for the first contact."""
        told = await self._engine.tokenise(["."])
        if told:
            self._template = len(told[0])
        asked = CONTACT_CALLS * (CONTACT_TOKENS + self._template)
        self._purse.keep_back(Usage(prompt_tokens=asked, completion_tokens=CONTACT_CALLS))

    async def admit(
        self, task: GradingTask, known: Mapping[int, Answer], ending: Callable[[], bool]
    ) -> bool:
        """Set aside what the task can cost; False when there is no room, or while `ending`."""
        reserved = await self._purse.reserve(self._most(task, known))
        if reserved is None:
            return False
        if ending():
            self._purse.settle(reserved, Usage())
            return False
        self._reserved[task.key] = reserved
        return True

    def settle(self, task: GradingTask, known: Mapping[int, Answer], graded: Graded) -> None:
        """Count what the task cost.

        Requests that brought no answer may be on the bill all the same, so they count in full, as
        does everything when the engine tells no tokens.
        """
        asked = answered = len(task.suffixes) - len(known)
        if graded.failure:
            answered -= sum(answer.status in NO_ANSWER for answer in graded.answers)
        told = graded.usage
        lost = max(0, told.requests - calls(self._engine, answered, alone=self._alone))
        silent = bool(answered) and not told.prompt_tokens
        untold = silent + lost / max(1, calls(self._engine, asked, alone=self._alone))
        self._purse.settle(self._reserved.pop(task.key), told, untold=untold)

    def _most(self, task: GradingTask, known: Mapping[int, Answer]) -> Usage:
        prefix = most_tokens(task.prefix, self._template)
        asked = [s for place, s in enumerate(task.suffixes) if place not in known]
        return Usage(
            prompt_tokens=sum(prefix + most_tokens(suffix, 0) for suffix in asked),
            completion_tokens=self._written * len(asked),
        )
