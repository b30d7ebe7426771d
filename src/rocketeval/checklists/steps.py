"""Steps of making a dimension checklist: each a request to the author that is paid for once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

import orjson

from rocketeval.checklists.asking import MAX_TOKENS, Writer, pay_for
from rocketeval.checklists.base import Desk
from rocketeval.checklists.trace import Trace
from rocketeval.errors import ChecklistError
from rocketeval.prompts.parse import parse_checklist
from rocketeval.prompts.read_verdicts import Verdict, read_verdicts
from rocketeval.records import Checklist, Usage
from rocketeval.store.authored import Paid
from rocketeval.workers import run_workers

Kind = Literal["diversify", "elaborate", "filter"]
VERDICT_TOKENS = 60
"""What one verdict is long at most, as JSON with spaces and a number of any length."""


FAILED_EARLIER = "it failed in an earlier run, which went on without it."


@dataclass(frozen=True, slots=True)
class Step:
    """One request to the author."""

    kind: Kind
    dimension: str
    sub_dimension: str | None
    """None for a filter, which sees the whole dimension."""
    seed: str | None
    """The seed that is elaborated; None for the other kinds."""
    asked: str
    """The prompt."""
    key: bytes
    """Identity of the work: who is asked, and what."""
    read: Callable[[str], tuple[str, ...]] = field(compare=False)
    """Reads the author's text strictly into lines that the journal keeps."""
    max_tokens: int = MAX_TOKENS

    @property
    def name(self) -> str:
        """What it is called for people."""
        part = "" if self.sub_dimension is None else f": {self.sub_dimension}"
        seed = "" if self.seed is None else f" ({self.seed})"
        return f"{self.kind} {self.dimension}{part}{seed}"

    def paid_for(self, known: Mapping[bytes, Paid]) -> tuple[str, ...] | None:
        """Return what an earlier run was given; None when there is nothing that can be read."""
        lines = known[self.key].items if self.key in known else ()
        if not lines:
            return None
        if self.kind != "filter":
            return lines
        try:
            return self.read(f"[{','.join(lines)}]")
        except ChecklistError:
            return None

    def was_skipped(self, known: Mapping[bytes, Paid]) -> bool:
        """Whether an earlier run went on without it, which the journal keeps as no lines at all."""
        return self.key in known and not known[self.key].items


@dataclass
class Done:
    """What came of a number of steps."""

    lines: dict[Step, tuple[str, ...]] = field(default_factory=dict)
    """What the author wrote, by step."""
    failed: dict[Step, str] = field(default_factory=dict)
    """Why others brought nothing."""
    traces: dict[Step, Trace] = field(default_factory=dict)
    """How either came about."""
    reused: int = 0
    """Steps that an earlier run had paid for."""
    usage: Usage = field(default_factory=Usage)
    lost: int = 0
    """Requests that brought no answer."""

    def take_known(
        self, steps: Iterable[Step], known: Mapping[bytes, Paid], *, skip: bool
    ) -> list[Step]:
        """Take over what earlier runs brought; return the steps that are left to do."""
        left = []
        for step in steps:
            lines = step.paid_for(known)
            if lines is not None:
                paid = known[step.key]
                self.lines[step] = lines
                self.traces[step] = Trace(len(lines), paid.effort, paid.run)
                self.reused += 1
            elif skip and step.was_skipped(known):
                paid = known[step.key]
                reason = (paid.effort and paid.effort.failure) or FAILED_EARLIER
                self.failed[step] = reason
                self.traces[step] = Trace(None, paid.effort, paid.run, reason)
            else:
                left.append(step)
        return left


async def do_steps(
    steps: Sequence[Step],
    desk: Desk,
    done: Done,
    *,
    make_writer: Callable[[], Writer],
    author: str,
    in_flight: int,
    durable: bool,
    skip: bool,
) -> bool:
    """Let the author do the steps that are not paid for yet, several at once.

    Each is recorded as it is finished; with `skip` also that it failed, so that a run that went on
    without it does not get another checklist when it is resumed. False when it was stopped, or the
    money was spent, before the last one.
    """
    left = iter(done.take_known(steps, desk.known, skip=skip))

    async def work() -> None:
        for step in left:
            writer = make_writer()
            do = partial(_do, step, writer, desk, done, author, skip=skip)
            most = writer.most(step.asked, step.max_tokens)
            try:
                if not await pay_for(do, writer, most, stop=desk.stop, purse=desk.purse):
                    return
            finally:
                done.usage += writer.usage
                done.lost += writer.lost
            desk.spent(done.usage)

    await run_workers(work, in_flight, drop_at=desk.stop if durable else None)
    return all(step in done.lines or step in done.failed for step in steps)


async def _do(
    step: Step, writer: Writer, desk: Desk, done: Done, author: str, *, skip: bool
) -> None:
    try:
        lines = await writer.write(step.asked, step.read, step.max_tokens)
    except ChecklistError as error:
        done.failed[step] = error.message
        done.traces[step] = Trace(None, writer.effort, desk.run, error.message)
        desk.failed(step.name, error.message)
        if skip:
            desk.record(step.key, Checklist(step.name, (), author), writer.effort)
        return
    desk.record(step.key, Checklist(step.name, lines, author), writer.effort)
    done.lines[step] = lines
    done.traces[step] = Trace(len(lines), writer.effort, desk.run)


def reads_questions(least: int, most: int) -> Callable[[str], tuple[str, ...]]:
    """Return a reader of so many questions."""
    return lambda text: parse_checklist(text, min_items=least, max_items=most)


def reads_verdicts(count: int) -> Callable[[str], tuple[str, ...]]:
    """Return a reader of verdicts on `count` questions, each as the line a journal keeps."""
    return lambda text: tuple(
        _line(number, verdict) for number, verdict in enumerate(read_verdicts(text, count), 1)
    )


def verdicts_in(lines: Sequence[str]) -> tuple[Verdict, ...]:
    """Return the verdicts that a reader turned into lines."""
    return read_verdicts(f"[{','.join(lines)}]", len(lines))


def _line(number: int, verdict: Verdict) -> str:
    row = {
        "question": number,
        "yes_is_better": verdict.yes_is_better,
        "fits": verdict.fits,
        "repeats": verdict.repeats,
    }
    return orjson.dumps(row).decode()
