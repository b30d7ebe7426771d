"""How far a stage is, in words that fit a width."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len

from rocketeval.cli.tally import Tally
from rocketeval.cli.terminal import Marks, shortened
from rocketeval.cli.words import clock, printable
from rocketeval.config import PriceConfig
from rocketeval.cost import money
from rocketeval.names import counted
from rocketeval.observing import Expected
from rocketeval.records import Status

WIDE = 100
"""Columns from which a terminal counts as wide: everything below the bar may stand in one line."""
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
    Status.ERROR: "call failed",
}
"""Why answers are missing."""


def frame(tally: Tally, price: PriceConfig | None, width: int, marks: Marks) -> list[str]:
    """Return the lines that show a stage at this moment, none wider than `width`."""
    # The last column stays free: some terminals break the line when it is written to.
    width = max(20, width - 1)
    if tally.total is None:
        first = f"{shortened(title(tally), width - 10, marks.cut)}  {clock(tally.pace.elapsed)}"
        return [first, *pack(_waiting(tally), width)]
    first = _bar_line(tally, width, marks)
    work, rest = list(_work(tally, price)), [*_unpaid(tally), *_trouble(tally)]
    work[:0] = _waiting(tally)
    if width + 1 >= WIDE and len(both := pack([*work, *rest], width)) == 1:
        return [first, *both]
    return [first, *pack(work, width), *pack(rest, width)]


def sentence(tally: Tally, price: PriceConfig | None) -> str:
    """Return the same as one line of text, for a log."""
    if tally.total is None:
        so_far = f"{clock(tally.pace.elapsed)} so far"
        return f"{title(tally)}: {', '.join([so_far, *_waiting(tally)])}"
    left = tally.seconds_left
    waiting = _waiting(tally)
    parts = [
        f"{tally.done:,} of {tally.total:,} ({_percent(tally)})",
        *([] if left is None or waiting else [f"about {clock(left)} left"]),
        *waiting,
        *_work(tally, price),
        *_unpaid(tally),
        *_trouble(tally),
    ]
    return f"{title(tally)}: {', '.join(parts)}"


def ending(tally: Tally, price: PriceConfig | None, seconds: float) -> list[str]:
    """Return what is worth keeping of a stage that is over, piece by piece."""
    total = f" of {tally.total:,}" if tally.total is not None else ""
    parts = [f"{title(tally)}: {tally.done:,}{total} in {duration(seconds)}"]
    if tally.pace.steps and seconds >= 1.0:
        parts.append(f"{shown_rate(tally.pace.steps / seconds)} overall")
    return [*parts, *_use(tally, price), *_unpaid(tally), *_trouble(tally)]


def _waiting(tally: Tally) -> list[str]:
    waiting = tally.ask_pulse().waiting
    return [printable(waiting)] if waiting else []


def title(tally: Tally) -> str:
    """Return the stage, with the part of the work it belongs to."""
    return printable(f"{tally.stage} {tally.part}".strip())


def pack(pieces: Sequence[str], width: int) -> list[str]:
    """Return the pieces in as few indented lines as hold them, broken between them.

    >>> pack(["one", "two", "three"], 12)
    ['  one, two,', '  three']
    """
    lines: list[str] = []
    for piece in pieces:
        if lines and cell_len(lines[-1]) + cell_len(piece) + 3 <= width:
            lines[-1] += f", {piece}"
            continue
        if lines:
            lines[-1] += ","
        lines.append(shortened(INDENT + piece, width - 1, "~"))
    return lines


def _bar_line(tally: Tally, width: int, marks: Marks) -> str:
    counts = f"{tally.done:,}/{tally.total or 0:,}"
    left = None if tally.ask_pulse().waiting else tally.seconds_left
    ahead = "" if left is None else f"  about {clock(left)} left"
    after = f"{counts}  {_percent(tally):>5}{ahead}"
    room = width - len(after) - 4
    name = shortened(title(tally), max(8, room - SHORTEST_BAR), marks.cut)
    cells = min(LONGEST_BAR, room - cell_len(name))
    if cells < SHORTEST_BAR:
        return shortened(f"{name}  {after}", width, marks.cut)
    filled = int(cells * _share(tally))
    return f"{name}  {marks.full * filled}{marks.empty * (cells - filled)}  {after}"


def _share(tally: Tally) -> float:
    return min(1.0, (tally.done + tally.failed) / tally.total) if tally.total else 1.0


def _percent(tally: Tally) -> str:
    # Rounded down: a hundred percent means that nothing is left.
    return f"{int(100 * tally.done / tally.total) if tally.total else 100} %"


def _work(tally: Tally, price: PriceConfig | None) -> Iterator[str]:
    yield from _speed(tally)
    yield from _use(tally, price)


def _speed(tally: Tally) -> Iterator[str]:
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


def _use(tally: Tally, price: PriceConfig | None) -> Iterator[str]:
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
        yield f"{cost} {price.currency or 'money'}, planned at another price"
        return
    if expected.cost is not None:
        bound = "at most " if expected.at_most else about
        least = expected.least_cost
        most = brief_money(expected.cost)
        between = f"{brief_money(least)} to {most}" if least is not None else most
        cost = f"{cost} of {bound}{between}"
    planned = "" if expected.cost is None else " planned"
    yield f"{cost} {price.currency or 'money'}{planned}"


def _unpaid(tally: Tally) -> Iterator[str]:
    if tally.earlier:
        yield f"{tally.earlier:,} from earlier runs"
    if tally.cached:
        yield f"{tally.cached:,} from the cache"


def _trouble(tally: Tally) -> Iterator[str]:
    retries = tally.ask_pulse().retries
    if retries:
        yield counted(retries, "retry", "retries")
    if tally.failed:
        yield f"{tally.failed:,} failed"
    if tally.missing:
        some = counted(tally.missing.total(), "answer", "answers")
        whys = [f"{count:,} {MISSING.get(why, why)}" for why, count in tally.missing.most_common()]
        yield f"{some} missing: {whys[0]}"
        yield from whys[1:]


def shown_rate(rate: float) -> str:
    """Return a rate with the digits it has, by the minute where a second is too short.

    >>> shown_rate(123.4), shown_rate(9.81), shown_rate(0.05)
    ('123/s', '9.8/s', '3.0/min')
    """
    if rate < 0.1:
        return f"{60 * rate:.1f}/min"
    return f"{rate:,.0f}/s" if rate >= 100 else f"{rate:.1f}/s"


def duration(seconds: float) -> str:
    """Return how long something took.

    >>> duration(0.34), duration(64)
    ('0.3 s', '1:04')
    """
    return f"{seconds:.1f} s" if seconds < 10 else clock(seconds)


def brief(count: int) -> str:
    """Return a count in three digits or so.

    >>> brief(950), brief(12_345), brief(3_400_000)
    ('950', '12.3k', '3.4M')
    """
    if count < 1000:
        return str(count)
    for size, letter in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        scaled = count / size
        if scaled >= 0.9995:
            return f"{scaled:.0f}{letter}" if scaled >= 99.95 else f"{scaled:.1f}{letter}"
    raise AssertionError(count)


def brief_money(amount: float) -> str:
    """Return an amount in two or three digits.

    >>> brief_money(0.1234), brief_money(0.001234), brief_money(1234.5), brief_money(0.00001)
    ('0.12', '0.0012', '1,234', '<0.0001')
    """
    if amount >= 100:
        return f"{amount:,.0f}"
    if amount >= 0.1 or not amount:
        return f"{amount:.2f}"
    return f"{amount:.2g}" if amount >= 0.0001 else "<0.0001"
