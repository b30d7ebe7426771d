"""The library's own log, shown where a run's progress is shown."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rocketeval.cli.progress import StageObserver
from rocketeval.cli.words import printable
from rocketeval.observing import Observer


class LogLines(logging.Handler):
    """Hands every record on as one line, safe for any terminal."""

    def __init__(self, say: Callable[[str], None]) -> None:
        super().__init__(logging.INFO)
        self._say = say

    def emit(self, record: logging.LogRecord) -> None:
        """Say one record."""
        self._say(printable(record.getMessage()))


@contextmanager
def log_shown(observer: Observer) -> Iterator[None]:
    """Show the log beside the progress for a while, unless the observer shows nothing."""
    if not isinstance(observer, StageObserver):
        yield
        return
    logger, lines = logging.getLogger("rocketeval"), LogLines(observer.say)
    before = logger.level
    logger.addHandler(lines)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(lines)
        logger.setLevel(before)
