"""Functions that execute a whole run in one call."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from rocketeval.config import RunConfig, load_config, parse_config
from rocketeval.engines.base import Engine
from rocketeval.observer import Observer
from rocketeval.pipeline import Outcome, Run

Config = RunConfig | Mapping[str, Any] | Path | str
"""A config, a mapping of settings as in YAML, or the path of a YAML file."""


async def arun(
    config: Config,
    *,
    judge: Engine | None = None,
    observer: Observer | None = None,
) -> Outcome:
    """Run every stage and return the outcome; `judge` replaces the config's engine."""
    return await _open(config, judge, observer).all()


def run(
    config: Config,
    *,
    judge: Engine | None = None,
    observer: Observer | None = None,
) -> Outcome:
    """Like `arun`, for synchronous code; also works in a notebook with a running event loop."""
    return finish(_open(config, judge, observer))


def finish(opened: Run) -> Outcome:
    """Run every stage of an opened run from synchronous code, also inside a running event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(opened.all())
    loops: list[asyncio.AbstractEventLoop] = []

    async def work() -> Outcome:
        loops.append(asyncio.get_running_loop())
        return await opened.all()

    with ThreadPoolExecutor(1, thread_name_prefix="rocketeval") as pool:
        outcome = pool.submit(asyncio.run, work())
        try:
            return outcome.result()
        except KeyboardInterrupt:
            # Stop the thread's run, so that it spends nothing more; its loop may be asleep.
            for loop in loops:
                loop.call_soon_threadsafe(opened.stop.set)
            raise


def _open(config: Config, judge: Engine | None, observer: Observer | None) -> Run:
    if isinstance(config, Mapping):
        chosen = parse_config(dict(config))
    elif isinstance(config, RunConfig):
        chosen = config
    else:
        chosen = load_config(config)
    return Run(chosen, judge=judge, observer=observer)
