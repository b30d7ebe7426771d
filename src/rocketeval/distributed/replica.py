"""The judge as a worker reaches it: a server among others, or a model of its own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from rocketeval._version import __version__
from rocketeval.config import JudgeConfig
from rocketeval.distributed.counting import Report
from rocketeval.distributed.staging import JobFolder
from rocketeval.engines.base import (
    Engine,
    EngineIdentity,
    Graded,
    create_engine,
    foretold_identity,
    pulse_of,
)
from rocketeval.errors import ConfigError, EngineError, EngineRefused, EngineUnavailable
from rocketeval.grading.methods.base import Ask
from rocketeval.records import Answer, GradingTask

GONE_SECONDS = 60.0
"""How long a replica that was gone is tried last."""


@dataclass(frozen=True)
class Terms:
    """What a worker has to know about the judge. No key: it is read where the worker runs."""

    judge: JudgeConfig
    asking: Callable[[Engine], Ask]
    """How the grading method puts a task to an engine."""
    identity: EngineIdentity
    """Who the judge must be."""
    digest: str
    """Of the judge's fingerprint, in hex: part of every row."""
    replicas: tuple[str, ...] = ()
    """Base addresses of servers with the same model; the judge's own when empty."""
    folder: JobFolder | None = None
    """What every worker must see."""
    version: str = __version__
    """Of rocketeval, where the command was given."""


class Reports:
    """What a worker has to tell, since it last did."""

    def __init__(self) -> None:
        self.now = Report()

    def take(self) -> Report:
        """Return the report so far and begin the next."""
        taken, self.now = self.now, Report()
        return taken


class Replica:
    """One server of the judge, or the judge inside this worker."""

    def __init__(self, terms: Terms, address: str | None, reports: Reports) -> None:
        self._terms = terms
        self._config = terms.judge.model_copy(update={"base_url": address})
        self._reports = reports
        self._opening = asyncio.Lock()
        self._engine: Engine | None = None
        self._retries = 0
        self._gone_until = 0.0
        self.busy = 0
        """Tasks that are being asked, or wait for a place."""

    @property
    def gone(self) -> bool:
        """Whether it was gone of late."""
        return time.monotonic() < self._gone_until

    def lost(self) -> None:
        """Try the others first for a while."""
        self._gone_until = time.monotonic() + GONE_SECONDS

    async def open(self) -> Engine:
        """Return the engine, once it has shown that it is the run's judge."""
        async with self._opening:
            if self._engine is None:
                engine = _create(self._config)
                try:
                    with _refusing():
                        self._check(await engine.identify())
                except EngineError:
                    await engine.aclose()
                    raise
                self._places = asyncio.Semaphore(self._config.concurrency or engine.in_flight)
                self._ask = self._terms.asking(engine)
                self._engine = engine
            return self._engine

    def _check(self, found: EngineIdentity) -> None:
        if found != self._terms.identity:
            raise EngineRefused(
                f"{self._config.base_url or 'A worker'} is another judge: {found}, not "
                f"{self._terms.identity}.",
                hint="A run never mixes two judges: give every replica the same model, engine "
                "and version.",
            )

    async def ask(self, task: GradingTask, known: Mapping[int, Answer]) -> Graded:
        """Put a task to the engine; all calls of a worker together keep to its places."""
        self.busy += 1
        try:
            async with self._places:
                self._reports.now.asked += 1
                try:
                    graded = await self._ask(task, known)
                finally:
                    self._reports.now.answered += 1
                self._reports.now.usage += graded.usage
                return graded
        finally:
            self.busy -= 1

    async def aclose(self) -> None:
        """Release connections."""
        if self._engine is not None:
            await self._engine.aclose()

    def new_retries(self) -> int:
        """Return how many requests were sent again since the last time."""
        total = pulse_of(self._engine).retries
        new, self._retries = total - self._retries, total
        return new


def identify(judge: JudgeConfig, replicas: tuple[str, ...]) -> EngineIdentity | EngineError:
    """Return who the judge is, as a worker sees it, or why it cannot be used.

    Of several replicas, the first that answers tells it. A model inside the worker is not loaded
    for it where the engine knows itself before; each worker compares what it has loaded.
    """
    return asyncio.run(_identify(judge, replicas))


async def _identify(judge: JudgeConfig, replicas: tuple[str, ...]) -> EngineIdentity | EngineError:
    error: EngineError | None = None
    for address in replicas or (judge.base_url,):
        try:
            engine = _create(judge.model_copy(update={"base_url": address}))
        except EngineRefused as refused:
            return refused
        try:
            with _refusing():
                return await foretold_identity(engine)
        except EngineUnavailable as unavailable:
            error = error or unavailable
        except EngineError as refused:
            return refused
        finally:
            await engine.aclose()
    assert error is not None
    return error


def _create(judge: JudgeConfig) -> Engine:
    with _refusing():
        return create_engine(judge)


@contextmanager
def _refusing() -> Iterator[None]:
    """Say as the judge's refusal what only a worker finds wrong, such as a package it lacks."""
    try:
        yield
    except ConfigError as error:
        raise EngineRefused(error.message, hint=error.hint) from error
