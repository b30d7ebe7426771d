"""Progress display: a live bar in a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from rocketeval.cli.progress_text import (
    WIDE,
    StageProgress,
    duration,
    ending,
    frame,
    is_live,
    marks_for,
    pack,
    sentence,
    title,
)
from rocketeval.cli.text import failed, make_console
from rocketeval.observer import Observer
from rocketeval.text import printable

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.live import Live

    from rocketeval.config import PriceConfig, RunConfig
    from rocketeval.observer import EngineStatus, Expected, StageEnd
    from rocketeval.records import Failure, Judgment, Status, Usage


LINE_SECONDS = 10.0
"""Seconds between two log lines."""
FIRST_SECONDS = 2.0
"""Seconds before the first line of a stage."""
MOST_FAILURES = 10
"""Failures that are named per stage; further ones are only counted."""
FRAMES = 4
"""Redraws of the bar per second."""
QUIET_SECONDS = 0.5
"""A stage without a total is shown only if it takes longer."""


class StageObserver(Observer):
    """An observer that counts the progress of the current stage; subclasses show it."""

    def __init__(
        self, config: RunConfig | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._prices: dict[str, PriceConfig | None] = {}
        if config is not None:
            author = config.author.price
            self._prices = {
                "grade": config.judge.price,
                "checklist": author,
                "rewrite": author,
                "propose": config.evolve.price,
            }
        self._clock = clock
        self._part = ""
        self.tally = StageProgress(clock=clock)

    @property
    def price(self) -> PriceConfig | None:
        """The price of the current stage's tokens."""
        return self._prices.get(self.tally.stage)

    def part_began(self, name: str, number: int, total: int) -> None:
        """Show the part's name from now on."""
        self._part = f"{name} ({number} of {total})"

    def stage_entered(self, stage: str) -> None:
        """Start a stage without a total."""
        self.tally = self._new(stage)

    def stage_began(self, stage: str, total: int | None = None, done: int = 0) -> None:
        """Start counting from `done`."""
        self.tally = self._new(stage, total, done)

    def reused(self, earlier: int, cached: int) -> None:
        """Record the number of reused steps."""
        self.tally.earlier, self.tally.cached = earlier, cached

    def expected(self, expected: Expected) -> None:
        """Record the plan."""
        self.tally.expected = expected

    def watched(self, pulse: Callable[[], EngineStatus]) -> None:
        """Record the function that returns the engine's status."""
        self.tally.ask_pulse = pulse

    def advanced(self) -> None:
        """Count a step."""
        self.tally.step()

    def judged(self, judgment: Judgment) -> None:
        """Count a judgment."""
        self.tally.add(judgment)

    def counted(self, judgments: int, missing: Mapping[Status, int]) -> None:
        """Count judgments finished by other processes."""
        self.tally.add_many(judgments, missing)

    def spent(self, usage: Usage) -> None:
        """Record the usage so far."""
        self.tally.spent = usage

    def failed(self, failure: Failure) -> None:
        """Count a failed task, and name it if it is one of the first."""
        self.tally.fail(failure.answers)
        self._name_failure(failed(failure))

    def unwritten(self, query_id: str, reason: str) -> None:
        """Count a query without a checklist, and name it if it is one of the first."""
        self.tally.refuse()
        self._name_failure(printable(f"no checklist for {query_id}: {reason}"))

    def stopping(self) -> None:
        """Stop showing the time left."""
        self.tally.stopping = True

    def say(self, text: str) -> None:
        """Show a line of text."""
        raise NotImplementedError

    def tick(self) -> None:
        """Update the display; called about once per second."""

    def _new(self, stage: str, total: int | None = None, done: int = 0) -> StageProgress:
        return StageProgress(stage, total, done, part=self._part, clock=self._clock)

    def _name_failure(self, text: str) -> None:
        if self.tally.failed <= MOST_FAILURES:
            self.say(text)
        if self.tally.failed == MOST_FAILURES:
            self.say("Further failures are counted but not listed.")


class LineObserver(StageObserver):
    """Writes time-stamped lines at intervals, for pipes, logs and CI."""

    def __init__(
        self, config: RunConfig | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(config, clock=clock)
        self._due = clock() + FIRST_SECONDS

    def stage_began(self, stage: str, total: int | None = None, done: int = 0) -> None:
        """Start counting; report steps that earlier runs finished."""
        super().stage_began(stage, total, done)
        self._due = self._clock() + FIRST_SECONDS
        if done and total is not None:
            self.say(f"{title(self.tally)}: {done:,} of {total:,} already done")

    def advanced(self) -> None:
        """Count a step, and write a line if one is due."""
        super().advanced()
        self.tick()

    def judged(self, judgment: Judgment) -> None:
        """Count a judgment, and write a line if one is due."""
        super().judged(judgment)
        self.tick()

    def stage_ended(self, stage: str, facts: StageEnd) -> None:
        """Write the last line of a stage."""
        seconds = facts.seconds or 0.0
        if stage == self.tally.stage and self.tally.total is not None:
            self.say(", ".join(ending(self.tally, self.price, seconds)))
        else:
            self.say(f"{title(self._new(stage))}: done in {duration(seconds)}")

    def stage_kept(self, stage: str) -> None:
        """Write that a stage has nothing to do."""
        self.say(f"{title(self._new(stage))}: unchanged")

    def tick(self) -> None:
        """Write a line if one is due."""
        if self.tally.stage and self._clock() >= self._due:
            self._due = self._clock() + LINE_SECONDS
            self.say(sentence(self.tally, self.price))

    def say(self, text: str) -> None:
        """Write a line."""
        sys.stderr.write(f"{time.strftime('%H:%M:%S')} {text}\n")
        sys.stderr.flush()


class BarObserver(StageObserver):
    """Shows a live bar, and leaves a summary of each counted stage."""

    def __init__(
        self,
        config: RunConfig | None,
        console: Console,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(config, clock=clock)
        self._console = console
        self._marks = marks_for(console.encoding)
        self._live: Live | None = None

    def stage_entered(self, stage: str) -> None:
        """Show the stage if it takes long."""
        super().stage_entered(stage)
        self._open()

    def stage_began(self, stage: str, total: int | None = None, done: int = 0) -> None:
        """Show the bar of the stage."""
        super().stage_began(stage, total, done)
        self._open()

    def stage_ended(self, stage: str, facts: StageEnd) -> None:
        """Remove the bar; print the summary of a counted stage."""
        self.closed()
        if stage == self.tally.stage and self.tally.total is not None:
            for line in self._kept(facts.seconds or 0.0):
                self.say(line)

    def say(self, text: str) -> None:
        """Write a line above the bar."""
        self._console.print(text, markup=False, highlight=False)

    def closed(self) -> None:
        """Remove the bar."""
        if self._live is not None:
            live, self._live = self._live, None
            live.stop()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the lines to draw now."""
        from rich.text import Text

        if self.tally.total is None and self.tally.pace.elapsed < QUIET_SECONDS:
            return
        first, *rest = frame(self.tally, self.price, options.max_width, self._marks)
        bar = Text(first, no_wrap=True, overflow="crop")
        bar.highlight_regex(f"{self._marks.full}{{3,}}", "green")
        yield bar
        for line in rest:
            yield Text(line, no_wrap=True, overflow="crop", style="dim")

    def _open(self) -> None:
        from rich.live import Live

        if self._live is None:
            self._live = Live(
                self, console=self._console, refresh_per_second=FRAMES, transient=True
            )
            self._live.start()

    def _kept(self, seconds: float) -> list[str]:
        pieces = ending(self.tally, self.price, seconds)
        width, whole = self._console.width - 1, ", ".join(pieces)
        if width + 1 >= WIDE and len(whole) <= width:
            return [whole]
        first, *rest = pack(pieces, width)
        return [first.lstrip(), *rest]


def make_observer(config: RunConfig | None, *, quiet: bool) -> Observer:
    """Return an observer for a terminal, a pipe, or quiet mode."""
    if quiet:
        return Observer()
    if is_live(sys.stderr):
        return BarObserver(config, make_console(stderr=True))
    return LineObserver(config)
