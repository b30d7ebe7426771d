"""Counts and rates of a stage in progress, and their text for a given width."""

from __future__ import annotations

import os
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from rocketeval.cli.text import brief, brief_money, clock
from rocketeval.records import NO_ANSWER, Status
from rocketeval.text import count_of, printable

if TYPE_CHECKING:
    from rocketeval.config import PriceConfig
    from rocketeval.observer import EngineStatus, Expected
    from rocketeval.records import Answer, Judgment


@dataclass(frozen=True, slots=True)
class Marks:
    """Characters for bars, brackets, intervals and verdicts."""

    full: str
    empty: str
    cut: str
    """Replaces the middle of a long name."""
    top: str
    middle: str
    bottom: str
    left: str
    line: str
    point: str
    right: str
    good: str
    bad: str
    arrow: str


FANCY = Marks(*"\u2501\u2500\u2026\u250c\u2502\u2514\u251c\u2500\u25cf\u2524\u2713\u2717\u2192")
PLAIN = Marks("#", "-", "~", "/", "|", "\\", "|", "-", "o", "|", "ok", "X", "->")
ASCII_LOCALES = ("C", "POSIX")


def marks_for(encoding: str | None, environment: Mapping[str, str] = os.environ) -> Marks:
    """Return Unicode marks if the encoding and the locale allow them, else ASCII.

    >>> [marks_for(each, {}).full for each in ("utf-8", "cp1252", None)]
    ['\u2501', '#', '#']
    >>> marks_for("utf-8", {"LANG": "C"}).full
    '#'
    """
    if _asks_for_ascii(environment):
        return PLAIN
    needed = "".join(getattr(FANCY, name) for name in Marks.__slots__)
    try:
        needed.encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return PLAIN
    return FANCY


def _asks_for_ascii(environment: Mapping[str, str]) -> bool:
    """Return whether the user chose the C locale, where Python still writes UTF-8."""
    if environment.get("PYTHONIOENCODING") or environment.get("PYTHONUTF8") == "1":
        return False
    whole, own, rest = (environment.get(name, "") for name in ("LC_ALL", "LC_CTYPE", "LANG"))
    # Python itself sets LC_CTYPE to one of these names in the C locale.
    own = "" if own.lower() in ("c.utf-8", "c.utf8", "utf-8") and rest in ASCII_LOCALES else own
    return (whole or own or rest) in ASCII_LOCALES


def is_live(stream: TextIO) -> bool:
    """Return whether the stream is a terminal that can redraw lines."""
    return stream.isatty() and os.environ.get("TERM", "").lower() not in ("dumb", "unknown", "")


def shortened(name: str, width: int, cut: str) -> str:
    """Cut the middle of a name that is wider than `width`; versions differ at the ends.

    >>> shortened("qwen2.5-3b-instruct-awq", 12, "~")
    'qwen2.~t-awq'
    """
    from rich.cells import cell_len, set_cell_size

    if cell_len(name) <= width:
        return name
    if width <= cell_len(cut):
        return cut[:width]
    room = width - cell_len(cut)
    head = set_cell_size(name, (room + 1) // 2).rstrip()
    end = set_cell_size(name[::-1], room - cell_len(head))[::-1].lstrip()
    return head + cut + end


WINDOW = 30.0
"""Seconds of the recent rate."""
FEWEST = 20
"""Minimum number of finished steps for a recent rate, if there are that many."""

ENOUGH = 5
"""Finished steps before the time left is shown, or a tenth of all if that is less."""
STALLED = 10.0
"""Seconds without a finished step after which a stage counts as stalled."""


class StepRate:
    """Rate of finished steps, recent and overall."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.started = clock()
        self.last = self.started
        """Time of the last finished step."""
        self.steps = 0
        self._seconds: deque[tuple[float, float, int]] = deque()
        """First time, last time and number of steps, per recent second."""
        self._recent = 0
        self._since = self.started
        """Time of the last step before the recent ones."""

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
        """Seconds since the start."""
        return self._clock() - self.started

    @property
    def idle(self) -> float:
        """Seconds since the last step, or since the start."""
        return self._clock() - self.last

    @property
    def mean(self) -> float:
        """Steps per second since the start."""
        return self.steps / max(1e-9, self.elapsed)

    def recent(self) -> tuple[float, float]:
        """Return recent steps per second, and the number of seconds they cover."""
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


class StageProgress:
    """Progress of one stage."""

    def __init__(
        self,
        stage: str = "",
        total: int | None = None,
        done: int = 0,
        *,
        part: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        from rocketeval.observer import EngineStatus
        from rocketeval.records import Usage

        self.stage, self.total, self.done, self.part = stage, total, done, part
        self.earlier = self.cached = 0
        """Steps reused from earlier runs and from the cache."""
        self.failed = 0
        self.missing: Counter[Status] = Counter()
        """Unanswered items, by reason."""
        self.spent = Usage()
        self.expected: Expected | None = None
        self.ask_pulse: Callable[[], EngineStatus] = EngineStatus
        self.stopping = False
        """True after a request to stop."""
        self.pace = StepRate(clock)
        """Rate of finished steps."""
        self.tried = StepRate(clock)
        """Rate of all steps, including failed ones, which predicts the time left."""
        self._refused = 0
        self._answers = 0
        """Answers of finished and failed responses."""
        self._squares = 0
        """Sum of the squared numbers of answers per finished response."""
        self._begun: deque[tuple[float, float]] = deque()
        """Recent times, with the number of partly answered responses at each."""

    def step(self) -> None:
        """Count a finished step, unless `refuse` was called for it."""
        if self.done < self.earlier + self.cached:
            # A reused step does not count for the rate.
            self.done += 1
            return
        self.tried.step()
        if self._refused:
            self._refused -= 1
            return
        self.done += 1
        self.pace.step()

    def add(self, judgment: Judgment) -> None:
        """Count a finished judgment."""
        self._answers += len(judgment.answers)
        self._squares += len(judgment.answers) ** 2
        self.step()
        self.spent += judgment.usage
        self.missing.update(answer.status for answer in judgment.answers if answer.p_yes is None)

    def add_many(self, judgments: int, missing: Mapping[Status, int]) -> None:
        """Count judgments finished by other processes; their cost is reported as a sum."""
        self.done += judgments
        self.pace.step(judgments)
        self.tried.step(judgments)
        self.missing.update(missing)

    def fail(self, answers: Sequence[Answer] = ()) -> None:
        """Count a failed task and the answers it got."""
        self._answers += sum(answer.status not in NO_ANSWER for answer in answers)
        self.failed += 1
        self.tried.step()

    def refuse(self) -> None:
        """Count the next step as failed."""
        self.failed += 1
        self._refused += 1

    @property
    def left(self) -> int:
        """Remaining steps; failed ones are not retried now."""
        return max(0, (self.total or 0) - self.done - self.failed)

    @property
    def stalled(self) -> bool:
        """True if no step finished or failed for much longer than steps took so far."""
        pace = self.tried
        usual = (pace.last - pace.started) / pace.steps if pace.steps else 0.0
        return self.left > 0 and pace.idle >= max(STALLED, 5.0 * usual)

    @property
    def seconds_left(self) -> float | None:
        """Seconds left at the recent rate; None if unknown.

        Partly answered responses count in part. Otherwise, with many in flight, the estimate
        would not move until they all finish at about the same time.
        """
        if self.stopping or self.stalled or not self.left:
            return None
        if self.tried.steps < min(ENOUGH, -(-(self.tried.steps + self.left) // 10)):
            return None
        rate, window = self.tried.recent()
        begun, before = self._in_the_making(window)
        rate += (begun - before) / max(1e-9, window)
        return max(0.0, self.left - begun) / rate if rate > 0.0 else None

    def _in_the_making(self, window: float) -> tuple[float, float]:
        """Return the sum of partial responses now, and one window ago."""
        answered, now = self.ask_pulse().answered, self.tried.elapsed
        # Responses in flight have more items than average, because they take longer.
        each = self._squares / max(1, self._answers)
        begun = max(0.0, answered - self._answers) / each if each else 0.0
        begun = min(begun, float(self.left))
        if not self._begun or now - self._begun[-1][0] >= 1.0:
            self._begun.append((now, begun))
        while len(self._begun) > 1 and self._begun[1][0] <= now - window:
            self._begun.popleft()
        # At the start of the stage, no response was in flight.
        before = self._begun[0][1] if now - window >= 1.0 else 0.0
        return begun, before


WIDE = 100
"""Minimum width for showing everything below the bar on one line."""
SHORTEST_BAR = 8
LONGEST_BAR = 60
INDENT = "  "
MISSING = {
    Status.UNBOUNDED: "bounds too wide",
    Status.HIDDEN: "yes and no hidden",
    Status.LOW_MASS: "low mass on yes and no",
    Status.NO_LOGPROBS: "no log-probabilities",
    Status.THINKING: "judge was thinking",
    Status.UNSOUND: "unsound",
    Status.UNREADABLE: "unreadable",
    Status.CHECK_FAILED: "check failed",
    Status.ERROR: "call failed",
}
"""Reasons for unanswered items."""


def frame(tally: StageProgress, price: PriceConfig | None, width: int, marks: Marks) -> list[str]:
    """Return the lines that show a stage now, none wider than `width`."""
    # Some terminals wrap a line when its last column is written.
    width = max(20, width - 1)
    if tally.total is None:
        first = f"{shortened(title(tally), width - 10, marks.cut)}  {clock(tally.pace.elapsed)}"
        return [first, *pack(_waiting(tally), width)]
    first = _bar_line(tally, width, marks)
    work, rest = [*_waiting(tally), *_work(tally, price)], list(_rest(tally))
    if width + 1 >= WIDE and len(both := pack([*work, *rest], width)) == 1:
        return [first, *both]
    return [first, *pack(work, width), *pack(rest, width)]


def sentence(tally: StageProgress, price: PriceConfig | None) -> str:
    """Return the progress as one line of text, for a log."""
    if tally.total is None:
        so_far = f"{clock(tally.pace.elapsed)} so far"
        return f"{title(tally)}: {', '.join([so_far, *_waiting(tally)])}"
    left = tally.seconds_left
    waiting = _waiting(tally)
    parts = [f"{tally.done:,} of {tally.total:,} ({_percent(tally)})"]
    parts += [] if left is None or waiting else [f"about {clock(left)} left"]
    parts += [*waiting, *_work(tally, price), *_rest(tally)]
    return f"{title(tally)}: {', '.join(parts)}"


UNITS = {"checklist": "queries", "grade": "responses"}


def ending(tally: StageProgress, price: PriceConfig | None, seconds: float) -> list[str]:
    """Return the summary of a finished stage, in pieces."""
    total = f" of {tally.total:,}" if tally.total is not None else ""
    unit = f" {UNITS[tally.stage]}" if tally.stage in UNITS else ""
    parts = [f"{title(tally)}: {tally.done:,}{total}{unit} in {duration(seconds)}"]
    if tally.pace.steps and seconds >= 1.0:
        parts.append(f"{shown_rate(tally.pace.steps / seconds)} overall")
    return [*parts, *_use(tally, price), *_rest(tally)]


def _waiting(tally: StageProgress) -> list[str]:
    waiting = tally.ask_pulse().waiting
    return [printable(waiting)] if waiting else []


def title(tally: StageProgress) -> str:
    """Return the stage's name, with its part if there are several."""
    return printable(f"{tally.stage} {tally.part}".strip())


def pack(pieces: Sequence[str], width: int) -> list[str]:
    """Pack pieces into indented lines, broken only between pieces.

    >>> pack(["one", "two", "three"], 12)
    ['  one, two,', '  three']
    """
    from rich.cells import cell_len

    lines: list[str] = []
    for piece in pieces:
        if lines and cell_len(lines[-1]) + cell_len(piece) + 3 <= width:
            lines[-1] += f", {piece}"
            continue
        if lines:
            lines[-1] += ","
        lines.append(shortened(INDENT + piece, width - 1, "~"))
    return lines


def _bar_line(tally: StageProgress, width: int, marks: Marks) -> str:
    from rich.cells import cell_len

    counts = f"{tally.done:,}/{tally.total or 0:,}"
    left = None if tally.ask_pulse().waiting else tally.seconds_left
    ahead = "" if left is None else f"  about {clock(left)} left"
    after = f"{counts}  {_percent(tally):>4}{ahead}"
    room = width - len(after) - 4
    name = shortened(title(tally), max(8, room - SHORTEST_BAR), marks.cut)
    cells = min(LONGEST_BAR, room - cell_len(name))
    if cells < SHORTEST_BAR:
        return shortened(f"{name}  {after}", width, marks.cut)
    filled = int(cells * _share(tally))
    return f"{name}  {marks.full * filled}{marks.empty * (cells - filled)}  {after}"


def _share(tally: StageProgress) -> float:
    return min(1.0, (tally.done + tally.failed) / tally.total) if tally.total else 1.0


def _percent(tally: StageProgress) -> str:
    # Rounded down, so that 100% means done.
    return f"{int(100 * tally.done / tally.total) if tally.total else 100}%"


def _work(tally: StageProgress, price: PriceConfig | None) -> list[str]:
    return [*_speed(tally), *_use(tally, price)]


def _speed(tally: StageProgress) -> Iterator[str]:
    pace = tally.pace
    so_far = f"{clock(pace.elapsed)} so far"
    if not pace.steps:
        idle = tally.stalled and not tally.ask_pulse().waiting
        yield f"{so_far}, nothing finished yet" if idle else so_far
        return
    yield f"{so_far} at {shown_rate(pace.mean)}"
    rate, window = pace.recent()
    if pace.elapsed - window >= 1.0:
        yield f"{shown_rate(rate)} in the last {window:.0f} s"
    if tally.stalled:
        yield f"nothing finished for {clock(tally.tried.idle)}"


def _use(tally: StageProgress, price: PriceConfig | None) -> Iterator[str]:
    from rocketeval.observer import Expected
    from rocketeval.prices import money

    expected = tally.expected or Expected(None, None)
    about = "" if expected.exact else "about "
    used = tally.spent.prompt_tokens
    if expected.prompt_tokens:
        yield f"{brief(used)} of {about}{brief(expected.prompt_tokens)} prompt tokens"
    elif used:
        yield f"{brief(used)} prompt tokens"
    if price is None or not (used or expected.cost):
        return
    cost = brief_money(money(tally.spent, price))
    if expected.repriced:
        yield f"{cost} {price.currency or 'money'}, planned at a different price"
        return
    if expected.cost is None:
        yield f"{cost} {price.currency or 'money'}"
        return
    bound = "at most " if expected.at_most else about
    least = "" if expected.least_cost is None else f"{brief_money(expected.least_cost)} to "
    most = f"{brief_money(expected.cost)} {price.currency or 'money'} planned"
    yield f"{cost} of {bound}{least}{most}"


def _rest(tally: StageProgress) -> Iterator[str]:
    """Yield reused steps, retries, failures and missing answers."""
    if tally.earlier:
        yield f"{tally.earlier:,} reused from earlier runs"
    if tally.cached:
        yield f"{tally.cached:,} reused from the cache"
    yield from _push_back(tally.ask_pulse())
    if tally.failed:
        yield f"{tally.failed:,} failed"
    if tally.missing:
        some = count_of(tally.missing.total(), "answer", "answers")
        whys = [f"{count:,} {MISSING.get(why, why)}" for why, count in tally.missing.most_common()]
        yield f"{some} missing: {whys[0]}"
        yield from whys[1:]


def _push_back(status: EngineStatus) -> Iterator[str]:
    """Yield the retries with their reasons, and a lowered concurrency."""
    if status.retries:
        yield retries_in_words(status.retries, status.retry_reasons)
    if status.at_once is not None:
        yield f"{status.at_once} in flight instead of {status.usually_at_once}"


def retries_in_words(retries: int, reasons: Mapping[str, int]) -> str:
    """Return the number of retries and their reasons.

    >>> retries_in_words(12, {"HTTP 503": 3, "timeout": 9}), retries_in_words(1, {})
    ('12 retries (timeout 9, HTTP 503 3)', '1 retry')
    """
    count = count_of(retries, "retry", "retries")
    listed = sorted(reasons.items(), key=lambda pair: (-pair[1], pair[0]))
    whys = ", ".join(f"{reason} {times:,}" for reason, times in listed)
    return f"{count} ({whys})" if whys else count


def shown_rate(rate: float) -> str:
    """Format a rate per second, or per minute if it is slow.

    >>> shown_rate(123.4), shown_rate(9.81), shown_rate(0.05)
    ('123/s', '9.8/s', '3.0/min')
    """
    if rate < 0.1:
        return f"{60 * rate:.1f}/min"
    return f"{rate:,.0f}/s" if rate >= 100 else f"{rate:.1f}/s"


def duration(seconds: float) -> str:
    """Format a duration.

    >>> duration(0.34), duration(64)
    ('0.3 s', '1:04')
    """
    return f"{seconds:.1f} s" if seconds < 10 else clock(seconds)
