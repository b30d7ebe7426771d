"""One task asked over HTTP: its items call by call, and what is kept when a call fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rocketeval.engines.base import Graded
from rocketeval.engines.meter import Meter
from rocketeval.engines.transports.base import Transport
from rocketeval.errors import EngineUnavailable, RequestRejected
from rocketeval.records import Answer, GradingTask, Status

MOST_ITEMS = 64
"""Items in one call at most: every one repeats the prefix on the wire."""

Failure = tuple[int, EngineUnavailable | RequestRejected]
"""The item that failed, and why."""


class Asking:
    """Asks for every item of a task that is not already known."""

    def __init__(
        self,
        transport: Transport,
        task: GradingTask,
        known: Mapping[int, Answer],
        headers: Mapping[str, str],
    ) -> None:
        self._transport = transport
        self._task = task
        self._answers = dict(known)
        self._headers = headers
        self._meter = Meter()

    async def graded(self) -> Graded:
        """Return the answers to all items, up to a failure."""
        items = range(len(self._task.suffixes))
        waiting = [item for item in items if item not in self._answers]
        most = items_per_call(self._transport)
        failure: Failure | None = None
        for start in range(0, len(waiting), most):
            failure = await self._ask(waiting[start : start + most])
            if failure is not None:
                # The other items share the prefix, so they would fail the same way.
                break
        return Graded(
            tuple(self._answers.get(item, Answer(Status.ERROR)) for item in items),
            self._meter.usage,
            failure=None if failure is None else f"item {failure[0] + 1}: {failure[1].message}",
            unavailable=failure is not None and isinstance(failure[1], EngineUnavailable),
        )

    async def _ask(self, items: Sequence[int]) -> Failure | None:
        prompts = [self._task.prefix + self._task.suffixes[item] for item in items]
        try:
            answers = await self._transport.ask(prompts, self._headers, self._meter)
        except EngineUnavailable as error:
            return items[0], error
        except RequestRejected as error:
            return await self._ask_apart(items) if len(items) > 1 else (items[0], error)
        self._answers.update(zip(items, answers, strict=True))
        return None

    async def _ask_apart(self, items: Sequence[int]) -> Failure | None:
        """Ask one by one, because one item may have spoiled the call for all."""
        first: Failure | None = None
        for item in items:
            failure = await self._ask([item])
            first = first or failure
            if failure is not None and isinstance(failure[1], EngineUnavailable):
                return failure
        return first


def items_per_call(transport: Transport) -> int:
    """Return how many items of a response one call asks."""
    return MOST_ITEMS if transport.several else 1
