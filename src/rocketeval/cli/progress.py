"""Progress for people: a live bar in a terminal, plain lines everywhere else."""

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
from rocketeval.cli.text import failed, make_console, printable
from rocketeval.observer import Observer

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.live import Live

    from rocketeval.config import PriceConfig, RunConfig
    from rocketeval.observer import EngineStatus, Expected, StageEnd
    from rocketeval.records import Failure, Judgment, Status, Usage


LINE_SECONDS = 10.0
"""Between two lines of a log."""
FIRST_SECONDS = 2.0
"""Before the first line of a stage: a person may be watching."""
MOST_FAILURES = 10
"""Failures that are named in one stage; the others are counted."""
FRAMES = 4
"""Times a second that a bar is drawn."""
QUIET_SECONDS = 0.5
"""A stage without a count is named only if it takes longer."""


class StageObserver(Observer):
    """Keeps the tally of the current stage; what is shown of it is up to the subclasses."""

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
        """What the current stage's tokens cost."""
        return self._prices.get(self.tally.stage)

    def part_began(self, name: str, number: int, total: int) -> None:
        """Name the part in everything that follows."""
        self._part = f"{name} ({number} of {total})"

    def stage_entered(self, stage: str) -> None:
        """Start a tally without a total."""
        self.tally = self._new(stage)

    def stage_began(self, stage: str, total: int | None = None, done: int = 0) -> None:
        """Start counting; work done earlier is already in it."""
        self.tally = self._new(stage, total, done)

    def reused(self, earlier: int, cached: int) -> None:
        """Remember what cost nothing."""
        self.tally.earlier, self.tally.cached = earlier, cached

    def expected(self, expected: Expected) -> None:
        """Remember the plan."""
        self.tally.expected = expected

    def watched(self, pulse: Callable[[], EngineStatus]) -> None:
        """Remember whom to ask."""
        self.tally.ask_pulse = pulse

    def advanced(self) -> None:
        """Count a step."""
        self.tally.step()

    def judged(self, judgment: Judgment) -> None:
        """Count a judgment."""
        self.tally.add(judgment)

    def counted(self, judgments: int, missing: Mapping[Status, int]) -> None:
        """Count judgments that were finished elsewhere."""
        self.tally.add_many(judgments, missing)

    def spent(self, usage: Usage) -> None:
        """Remember the cost so far."""
        self.tally.spent = usage

    def failed(self, failure: Failure) -> None:
        """Count a failed task, and name it if it is among the first."""
        self.tally.fail(failure.answers)
        self._name_failure(failed(failure))

    def unwritten(self, query_id: str, reason: str) -> None:
        """Count a query without a checklist, and name it if it is among the first."""
        self.tally.refuse()
        self._name_failure(printable(f"no checklist for {query_id}: {reason}"))

    def stopping(self) -> None:
        """The work was asked to stop: no time left is told any more."""
        self.tally.stopping = True

    def say(self, text: str) -> None:
        """Show a line that is no progress of its own."""
        raise NotImplementedError

    def tick(self) -> None:
        """Time has passed; called about once a second."""

    def _new(self, stage: str, total: int | None = None, done: int = 0) -> StageProgress:
        return StageProgress(stage, total, done, part=self._part, clock=self._clock)

    def _name_failure(self, text: str) -> None:
        if self.tally.failed <= MOST_FAILURES:
            self.say(text)
        if self.tally.failed == MOST_FAILURES:
            self.say("Further failures are counted, not named.")


class LineObserver(StageObserver):
    """Writes a plain line now and then, with the time of day: for pipes, logs and CI."""

    def __init__(
        self, config: RunConfig | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(config, clock=clock)
        self._due = clock() + FIRST_SECONDS

    def stage_began(self, stage: str, total: int | None = None, done: int = 0) -> None:
        """Say what is to do, and what earlier runs have done."""
        super().stage_began(stage, total, done)
        self._due = self._clock() + FIRST_SECONDS
        if done and total is not None:
            self.say(f"{title(self.tally)}: {done:,} of {total:,} are already there")

    def advanced(self) -> None:
        """Count a step, and tell it if the last line was long ago."""
        super().advanced()
        self.tick()

    def judged(self, judgment: Judgment) -> None:
        """Count a judgment, and tell it if the last line was long ago."""
        super().judged(judgment)
        self.tick()

    def stage_ended(self, stage: str, facts: StageEnd) -> None:
        """Write the last line of a stage."""
        seconds = facts.seconds or 0.0
        if stage == self.tally.stage and self.tally.total is not None:
            self.say(", ".join(ending(self.tally, self.price, seconds)))
        else:
            self.say(f"{title(self._new(stage))}: done in {duration(seconds)}")

    def tick(self) -> None:
        """Write a line if the last one was long ago."""
        if self.tally.stage and self._clock() >= self._due:
            self._due = self._clock() + LINE_SECONDS
            self.say(sentence(self.tally, self.price))

    def say(self, text: str) -> None:
        """Write a line."""
        sys.stderr.write(f"{time.strftime('%H:%M:%S')} {text}\n")
        sys.stderr.flush()


class BarObserver(StageObserver):
    """Shows a live bar, and leaves one line of every stage that took work."""

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
        """Show the stage, should it take long."""
        super().stage_entered(stage)
        self._open()

    def stage_began(self, stage: str, total: int | None = None, done: int = 0) -> None:
        """Show how far the stage is."""
        super().stage_began(stage, total, done)
        self._open()

    def stage_ended(self, stage: str, facts: StageEnd) -> None:
        """Take the bar away; of a stage that was counted, leave its figures."""
        self.closed()
        if stage == self.tally.stage and self.tally.total is not None:
            for line in self._kept(facts.seconds or 0.0):
                self.say(line)

    def say(self, text: str) -> None:
        """Write a line above the bar."""
        self._console.print(text, markup=False, highlight=False)

    def closed(self) -> None:
        """Take the bar away, whatever state it is in."""
        if self._live is not None:
            live, self._live = self._live, None
            live.stop()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield what is to be drawn at this moment."""
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
    """Return the observer that fits where the output goes."""
    if quiet:
        return Observer()
    if is_live(sys.stderr):
        return BarObserver(config, make_console(stderr=True))
    return LineObserver(config)
