"""Steps of a long piece of authored work: each a request to an LLM that is paid for once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, TypeVar

from rocketeval.checklists.asking import MAX_TOKENS, Writer, pay_for
from rocketeval.checklists.base import Desk
from rocketeval.checklists.trace import Trace
from rocketeval.errors import ChecklistError
from rocketeval.records import Checklist, Usage
from rocketeval.store.authored import Paid
from rocketeval.workers import run_workers

FAILED_EARLIER = "it failed in an earlier run, which went on without it."


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One request to the author."""

    name: str
    """What it is called for people; no two of one piece of work are called the same."""
    asked: str
    """The prompt."""
    key: bytes
    """Identity of the work: who is asked, and what."""
    read: Callable[[str], tuple[str, ...]] = field(compare=False)
    """Reads the author's text strictly into lines that the journal keeps."""
    text_of: Callable[[Sequence[str]], str] | None = field(default=None, compare=False)
    """Makes a text of journaled lines that `read` reads again; None for lines that need it not."""
    max_tokens: int = MAX_TOKENS

    def paid_for(self, known: Mapping[bytes, Paid]) -> tuple[str, ...] | None:
        """Return what an earlier run was given; None when there is nothing that can be read."""
        lines = known[self.key].items if self.key in known else ()
        if not lines:
            return None
        if self.text_of is None:
            return lines
        try:
            return self.read(self.text_of(lines))
        except ChecklistError:
            return None

    def was_skipped(self, known: Mapping[bytes, Paid]) -> bool:
        """Whether an earlier run went on without it, which the journal keeps as no lines at all."""
        return self.key in known and not known[self.key].items


AnyStep = TypeVar("AnyStep", bound=Step)


@dataclass
class Done(Generic[AnyStep]):
    """What came of a number of steps."""

    lines: dict[AnyStep, tuple[str, ...]] = field(default_factory=dict)
    """What the author wrote, by step."""
    failed: dict[AnyStep, str] = field(default_factory=dict)
    """Why others brought nothing."""
    traces: dict[AnyStep, Trace] = field(default_factory=dict)
    """How either came about."""
    reused: int = 0
    """Steps that an earlier run had paid for."""
    usage: Usage = field(default_factory=Usage)
    lost: int = 0
    """Requests that brought no answer."""

    def take_known(
        self, steps: Iterable[AnyStep], known: Mapping[bytes, Paid], *, skip: bool
    ) -> list[AnyStep]:
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
    steps: Sequence[AnyStep],
    desk: Desk,
    done: Done[AnyStep],
    *,
    make_writer: Callable[[], Writer],
    author: str,
    in_flight: int,
    durable: bool,
    skip: bool,
) -> bool:
    """Let the author do the steps that are not paid for yet, several at once.

    Each is recorded as it is finished; with `skip` also that it failed, so that a run that went on
    without it does not get another result when it is resumed. False when it was stopped, or the
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
    step: AnyStep, writer: Writer, desk: Desk, done: Done[AnyStep], author: str, *, skip: bool
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
