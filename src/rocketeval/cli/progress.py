"""Progress for people: a live bar in a terminal, plain lines everywhere else."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
)

from rocketeval.cli.words import clock, failed
from rocketeval.config import RunConfig
from rocketeval.cost import money, shown_money
from rocketeval.observing import Observer
from rocketeval.records import Failure, Judgment, Usage

LINE_SECONDS = 10.0


class Tally:
    """What a stage has done so far, in words."""

    def __init__(self, config: RunConfig) -> None:
        self._price = config.judge.price
        self.begin("", None, 0)

    def begin(self, stage: str, total: int | None, done: int) -> None:
        """Start counting a stage."""
        self.stage, self.total, self.done, self.before = stage, total, done, done
        self.failed = self.missing = 0
        self.spent = Usage()
        self.started = time.monotonic()

    def add(self, judgment: Judgment) -> None:
        """Count a finished judgment."""
        self.done += 1
        self.spent += judgment.usage
        self.missing += sum(answer.p_yes is None for answer in judgment.answers)

    @property
    def rate(self) -> float:
        """Finished per second since the stage began."""
        return (self.done - self.before) / max(1e-9, time.monotonic() - self.started)

    def details(self) -> str:
        """Return rate, tokens, cost and everything that went wrong."""
        parts = [f"{self.rate:.1f}/s"]
        if self.spent.prompt_tokens:
            parts.append(f"{self.spent.prompt_tokens / 1000:,.0f}k tokens")
        if self._price and self.spent.prompt_tokens:
            cost = money(self.spent, self._price)
            parts.append(f"cost {shown_money(cost, self._price.currency)}")
        if self.missing:
            parts.append(f"{self.missing} answers missing")
        if self.failed:
            parts.append(f"{self.failed} failed")
        left = (self.total or 0) - self.done
        if left > 0 and self.rate > 0:
            parts.append(f"{clock(left / self.rate)} left")
        return ", ".join(parts)

    def line(self) -> str:
        """Return the whole state as one line of text."""
        if self.total is None:
            return f"{self.stage}: {self.done}"
        return f"{self.stage}: {self.done}/{self.total} ({self.details()})"


class LineObserver(Observer):
    """Writes a plain line now and then: for pipes, logs and CI."""

    def __init__(self, config: RunConfig) -> None:
        self._tally = Tally(config)
        self._last = time.monotonic()

    def stage_began(self, stage: str, total: int | None = None, done: int = 0) -> None:
        """Say what is to do, and what earlier runs have done."""
        self._tally.begin(stage, total, done)
        if done:
            self._write(f"{stage}: {done} of {total} are already there")

    def advanced(self) -> None:
        """Count a step."""
        self._tally.done += 1
        self._now_and_then()

    def judged(self, judgment: Judgment) -> None:
        """Count a judgment."""
        self._tally.add(judgment)
        self._now_and_then()

    def failed(self, failure: Failure) -> None:
        """Name a failed task."""
        self._tally.failed += 1
        self._write(failed(failure))

    def stage_ended(self, stage: str, facts: Mapping[str, Any]) -> None:
        """Write the last line of a stage."""
        if stage == self._tally.stage:
            self._write(self._tally.line())
        self._write(f"{stage}: done in {facts['seconds']:.1f} s")

    def say(self, text: str) -> None:
        """Write a line that is no progress of its own."""
        self._write(text)

    def _now_and_then(self) -> None:
        if time.monotonic() - self._last >= LINE_SECONDS:
            self._write(self._tally.line())

    def _write(self, text: str) -> None:
        self._last = time.monotonic()
        sys.stderr.write(text + "\n")
        sys.stderr.flush()


class BarObserver(Observer):
    """Shows a live bar for the stages that take time."""

    def __init__(self, config: RunConfig, console: Console) -> None:
        self._tally = Tally(config)
        self._console = console
        self._bar: Progress | None = None

    def stage_began(self, stage: str, total: int | None = None, done: int = 0) -> None:
        """Open a bar; work done earlier is already in it."""
        self._tally.begin(stage, total, done)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[details]}"),
            TimeElapsedColumn(),
            console=self._console,
            transient=True,
        )
        self._task = self._bar.add_task(stage, total=total, completed=done, details="")
        self._bar.start()

    def advanced(self) -> None:
        """Move the bar by one step."""
        self._tally.done += 1
        self._show()

    def judged(self, judgment: Judgment) -> None:
        """Move the bar by one judgment."""
        self._tally.add(judgment)
        self._show()

    def failed(self, failure: Failure) -> None:
        """Name a failed task above the bar."""
        self._tally.failed += 1
        self._console.print(failed(failure), markup=False)
        self._show()

    def stage_ended(self, stage: str, facts: Mapping[str, Any]) -> None:
        """Close the bar and leave one line behind."""
        if self._bar is not None:
            self.closed()
            self._console.print(self._tally.line(), markup=False, highlight=False)

    def say(self, text: str) -> None:
        """Write a line above the bar."""
        self._console.print(text, markup=False, highlight=False)

    def closed(self) -> None:
        """Close the bar, whatever state it is in."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _show(self) -> None:
        if self._bar is not None:
            self._bar.update(self._task, completed=self._tally.done, details=self._tally.details())


def make_observer(config: RunConfig, *, quiet: bool) -> Observer:
    """Return the observer that fits where the output goes."""
    if quiet:
        return Observer()
    console = Console(stderr=True)
    return BarObserver(config, console) if console.is_terminal else LineObserver(config)
