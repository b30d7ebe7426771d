"""A whole run in one call, from a script, a notebook or an async program."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

from rocketeval.config import RunConfig, load_config
from rocketeval.engines.base import Engine
from rocketeval.observing import Observer
from rocketeval.pipeline import Outcome, Run

T = TypeVar("T")


async def arun(
    config: RunConfig | Path | str,
    *,
    judge: Engine | None = None,
    observer: Observer | None = None,
) -> Outcome:
    """Run every stage and return what was found; `judge` replaces the config's engine."""
    chosen = config if isinstance(config, RunConfig) else load_config(config)
    return await Run(chosen, observer=observer, judge=judge).all()


def run(
    config: RunConfig | Path | str,
    *,
    judge: Engine | None = None,
    observer: Observer | None = None,
) -> Outcome:
    """Like `arun`, for code that is not async; works inside a notebook's running loop too."""
    return wait_for(arun(config, judge=judge, observer=observer))


def wait_for(coroutine: Coroutine[Any, Any, T]) -> T:
    """Return the coroutine's value, on a thread of its own if a loop is already running here."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    outcome: list[T] = []
    problem: list[BaseException] = []

    def work() -> None:
        try:
            outcome.append(asyncio.run(coroutine))
        except BaseException as error:  # noqa: BLE001 - handed to the caller's thread
            problem.append(error)

    thread = threading.Thread(target=work, name="rocketeval")
    thread.start()
    thread.join()
    if problem:
        raise problem[0]
    return outcome[0]
