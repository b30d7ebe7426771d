"""How an examination of a judge looks in a terminal, while it runs and afterwards."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from rocketeval.cli.tables import PIPE_WIDTH
from rocketeval.cli.words import counted, printable
from rocketeval.config import JudgeConfig
from rocketeval.cost import money, shown_money
from rocketeval.doctor.examination import Examination, Verdict
from rocketeval.engines.base import Finding
from rocketeval.engines.openai_http import base_url
from rocketeval.observing import Observer

MARKS = {"good": "\u2713", "note": "!", "bad": "\u2717", "advice": "\u2192"}
ASCII_MARKS = {"good": "ok", "note": "!", "bad": "X", "advice": "->"}
STYLES = {"good": "green", "note": "yellow", "bad": "red"}
VERDICT_STYLES = {Verdict.READY: "green", Verdict.CARE: "yellow", Verdict.UNUSABLE: "red"}
FIRST_LINE = 2.0
NEXT_LINE = 10.0


def show_examination(examination: Examination, settings: JudgeConfig) -> None:
    """Print a line per finding, then the verdict and what the examination cost."""
    console = Console() if sys.stdout.isatty() else Console(width=PIPE_WIDTH)
    marks = MARKS if _can_show("".join(MARKS.values())) else ASCII_MARKS
    console.print(Text(printable(f"Judge {settings.model}{_where(settings)}"), style="bold"))
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for finding in examination.findings:
        mark = Text(marks[finding.level], style=STYLES[finding.level])
        table.add_row(mark, Text(printable(finding.name)), _told(finding, marks["advice"]))
    console.print(table)
    console.print(_verdict(examination))
    if examination.usage.requests:
        console.print(_cost(examination, settings), style="dim", highlight=False, markup=False)


def _told(finding: Finding, arrow: str) -> Text:
    told = Text(printable(finding.told), style="red" if finding.level == "bad" else "")
    if finding.advice:
        told.append(f"\n{arrow} {printable(finding.advice)}", style="dim")
    return told


def _verdict(examination: Examination) -> Text:
    verdict = examination.verdict
    names = ", ".join(printable(finding.name.strip()) for finding in examination.reasons)
    reasons = f" ({names})" if names else ""
    return Text(f"Verdict: {verdict}{reasons}", style=f"bold {VERDICT_STYLES[verdict]}")


def _cost(examination: Examination, settings: JudgeConfig) -> str:
    usage, price = examination.usage, settings.price
    parts = [
        counted(usage.requests, "request", "requests"),
        f"{usage.prompt_tokens:,} prompt tokens",
    ]
    if price is not None:
        parts.append(shown_money(money(usage, price), price.currency))
    asked = ", ".join(parts)
    judge = examination.fingerprint
    digest = f" Judge {judge.digest.hex()[:12]}." if judge else ""
    return f"Asked {asked} (the probe not counted), {examination.seconds:.1f} s in all.{digest}"


def _where(settings: JudgeConfig) -> str:
    at = f" at {base_url(settings)}" if settings.engine == "openai" else ""
    return f"{at} (engine {settings.engine})"


def _can_show(marks: str) -> bool:
    try:
        marks.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


@contextmanager
def examining() -> Iterator[Observer]:
    """Show on stderr how far the examination is, for as long as the `with` block lasts."""
    console = Console(stderr=True)
    observer = _Bar(console) if console.is_terminal else _Lines()
    try:
        yield observer
    finally:
        observer.closed()


class _Bar(Observer):
    """A bar that leaves nothing behind."""

    def __init__(self, console: Console) -> None:
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[count]}"),
            TimeElapsedColumn(),
            console=console,
            transient=True,
        )
        self._task: TaskID | None = None
        self._bar.start()

    def stage_began(self, stage: str, total: int | None = None, done: int = 0) -> None:
        """Show what is being done."""
        if self._task is not None:
            self._bar.remove_task(self._task)
        self._total, self._done = total, done
        self._task = self._bar.add_task(stage, total=total, completed=done, count=self._count)

    def advanced(self) -> None:
        """Move the bar."""
        self._done += 1
        if self._task is not None:
            self._bar.update(self._task, completed=self._done, count=self._count)

    @property
    def _count(self) -> str:
        return "" if self._total is None else f"{self._done}/{self._total}"

    def closed(self) -> None:
        """Take the bar away."""
        self._bar.stop()


class _Lines(Observer):
    """A plain line now and then, for pipes and logs; none when it is soon over."""

    def __init__(self) -> None:
        self._stage, self._total, self._done = "", 0, 0
        self._next = time.monotonic() + FIRST_LINE

    def stage_began(self, stage: str, total: int | None = None, done: int = 0) -> None:
        """Count a stage."""
        self._stage, self._total, self._done = stage, total or 0, done

    def advanced(self) -> None:
        """Count a step, and tell it if the last line was long ago."""
        self._done += 1
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + NEXT_LINE
            sys.stderr.write(f"{self._stage}: {self._done}/{self._total}\n")
            sys.stderr.flush()
