"""What a stage has done so far: counts, rates and what is left, with no word about how it looks."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Mapping

from rocketeval.observing import Expected, Pulse
from rocketeval.records import Judgment, Status, Usage

WINDOW = 30.0
"""Seconds that count as recent."""
FEWEST = 20
"""Finished steps that a recent rate rests on at least, where there are so many."""

STALLED = 10.0
"""Seconds without a finished step that are worth a word, where steps are quicker."""


class Pace:
    """How fast steps are finished, of late and since the beginning."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.started = clock()
        self.last = self.started
        """When the last step was finished."""
        self.steps = 0
        self._seconds: deque[tuple[float, float, int]] = deque()
        """First and last time, and number, of the steps of each second that is recent."""
        self._recent = 0
        self._since = self.started
        """When the last step was finished that is not recent any more."""

    def step(self, steps: int = 1) -> None:
        """Count finished steps."""
        now = self._clock()
        self.last, self.steps, self._recent = now, self.steps + steps, self._recent + steps
        if self._seconds and now - self._seconds[-1][0] < 1.0:
            first, _, count = self._seconds.pop()
            self._seconds.append((first, now, count + steps))
        else:
            self._seconds.append((now, now, steps))
        self._forget(now)

    @property
    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return self._clock() - self.started

    @property
    def idle(self) -> float:
        """Seconds since the last step, or since the beginning."""
        return self._clock() - self.last

    @property
    def mean(self) -> float:
        """Steps a second since the beginning."""
        return self.steps / max(1e-9, self.elapsed)

    def recent(self) -> tuple[float, float]:
        """Return steps a second of late, and how many seconds that is about."""
        now = self._clock()
        self._forget(now)
        window = now - self._since
        return self._recent / max(1e-9, window), window

    def _forget(self, now: float) -> None:
        while self._seconds:
            _, last, count = self._seconds[0]
            if now - last <= WINDOW or self._recent - count < FEWEST:
                return
            self._seconds.popleft()
            self._recent -= count
            self._since = last


class Tally:
    """One stage so far."""

    def __init__(
        self,
        stage: str = "",
        total: int | None = None,
        done: int = 0,
        *,
        part: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.stage, self.total, self.done, self.part = stage, total, done, part
        self.earlier = self.cached = 0
        """Steps that cost nothing now."""
        self.failed = 0
        self.missing: Counter[Status] = Counter()
        """Answers without a probability, by why."""
        self.spent = Usage()
        self.expected: Expected | None = None
        self.ask_pulse: Callable[[], Pulse] = Pulse
        self.stopping = False
        """Whether it was asked to stop: what is left is not waited for."""
        self.pace = Pace(clock)
        """Of finished steps."""
        self.tried = Pace(clock)
        """Of all steps, also those that failed: what is left takes as long."""
        self._refused = 0

    def step(self) -> None:
        """Count a finished step, or one that was refused just before."""
        self.tried.step()
        if self._refused:
            self._refused -= 1
            return
        self.done += 1
        self.pace.step()

    def add(self, judgment: Judgment) -> None:
        """Count a finished judgment."""
        self.step()
        self.spent += judgment.usage
        self.missing.update(answer.status for answer in judgment.answers if answer.p_yes is None)

    def add_many(self, judgments: int, missing: Mapping[Status, int]) -> None:
        """Count judgments that were finished elsewhere; what they cost is told as a sum."""
        self.done += judgments
        self.pace.step(judgments)
        self.tried.step(judgments)
        self.missing.update(missing)

    def fail(self) -> None:
        """Count a task that was tried in vain."""
        self.failed += 1
        self.tried.step()

    def refuse(self) -> None:
        """Count the step that is about to be counted as one that failed."""
        self.failed += 1
        self._refused += 1

    @property
    def left(self) -> int:
        """Steps that are still to do; those that failed are not tried again now."""
        return max(0, (self.total or 0) - self.done - self.failed)

    @property
    def stalled(self) -> bool:
        """Whether nothing was finished, or failed, for much longer than a step took so far."""
        pace = self.tried
        usual = (pace.last - pace.started) / pace.steps if pace.steps else 0.0
        return self.left > 0 and pace.idle >= max(STALLED, 5.0 * usual)

    @property
    def seconds_left(self) -> float | None:
        """How long it will take at the recent rate; None while nobody can tell."""
        if self.stopping or self.stalled:
            return None
        rate, _ = self.tried.recent()
        return self.left / rate if self.left and rate > 0.0 else None
