"""How far a cluster is, told to whoever watches a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rocketeval.distributed.counting import Progress
from rocketeval.grading.grade import USELESS_AFTER, USELESS_QUERIES, Grading
from rocketeval.observing import Observer, Pulse
from rocketeval.records import Failure, Usage


class Watched:
    """Tells an observer how far a cluster is."""

    def __init__(self, observer: Observer, *, proven: bool) -> None:
        self._observer = observer
        self._proven = proven
        self._judged = 0
        self._missing: dict[Any, int] = {}
        self._retries = 0
        self._failures: list[Failure] = []
        self._useless = False
        self._lacking: Callable[[], str] = str
        self.spent = Usage()
        self._before = Usage()
        self._retries_before = 0

    def begin(self, lacking: Callable[[], str], *, proven: bool) -> None:
        """Hear of a job from its beginning; `lacking` tells what the cluster waits for."""
        self._proven = self._proven or proven or bool(self._judged)
        self._judged, self._missing = 0, {}
        self._before, self._retries_before = self.spent, self._retries
        self._lacking = lacking
        self._observer.watched(self._pulse)

    def _pulse(self) -> Pulse:
        lacking = self._lacking()
        return Pulse(retries=self._retries, waiting=f"waiting for {lacking}" if lacking else "")

    def __call__(self, progress: Progress) -> bool:
        """Tell what is new; return whether it is worth going on."""
        if progress.judged > self._judged:
            fresh = {
                status: count - self._missing.get(status, 0)
                for status, count in progress.missing.items()
            }
            self._observer.counted(progress.judged - self._judged, fresh)
            self._judged, self._missing = progress.judged, dict(progress.missing)
        self.spent = self._before + progress.usage
        self._retries = self._retries_before + progress.retries
        self._observer.spent(self.spent)
        for failure in progress.failures:
            self._failures.append(failure)
            self._observer.failed(failure)
        self._useless = (
            not (self._proven or self._judged)
            and progress.failed >= USELESS_AFTER
            and progress.failed_queries >= USELESS_QUERIES
        )
        return not self._useless

    def useless(self) -> Grading:
        """Return how grading ended, as far as the judge is to blame."""
        return Grading(failures=self._failures, useless=self._useless)
