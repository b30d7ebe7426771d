"""The steps of a dimension checklist: requests to an author LLM that are journaled for reuse."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

import orjson

from rocketeval.checklists.base import AuthorContext, AuthoringTrace
from rocketeval.checklists.dimension_file import Dimension, DimensionFile, Question
from rocketeval.checklists.instance import MAX_TOKENS, AuthorTrial, Writer, pay_for
from rocketeval.errors import ChecklistError
from rocketeval.hashing import content_hash
from rocketeval.prompts.parse import QuestionVerdict, parse_checklist, read_verdicts
from rocketeval.prompts.render import Template, neutralize
from rocketeval.records import Checklist, Usage
from rocketeval.store.journal import PaidWork
from rocketeval.workers import GRACE_SECONDS, run_workers

FAILED_EARLIER = "it failed in an earlier run, which continued without it."


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorStep:
    """One request to the author."""

    name: str
    """Display name, unique among the steps of one checklist."""
    asked: str
    """The prompt."""
    key: bytes
    """Identity of the work: the author and the prompt."""
    read: Callable[[str], tuple[str, ...]] = field(compare=False)
    """Parses the author's text strictly into lines for the journal."""
    text_of: Callable[[Sequence[str]], str] | None = field(default=None, compare=False)
    """Turns journaled lines back into a text for `read`; None if they are used as they are."""
    max_tokens: int = MAX_TOKENS

    def paid_for(self, known: Mapping[bytes, PaidWork]) -> tuple[str, ...] | None:
        """Return the lines from an earlier run; None if there are no readable ones."""
        lines = known[self.key].items if self.key in known else ()
        if not lines:
            return None
        if self.text_of is None:
            return lines
        try:
            return self.read(self.text_of(lines))
        except ChecklistError:
            return None

    def was_skipped(self, known: Mapping[bytes, PaidWork]) -> bool:
        """Return whether an earlier run skipped it; the journal stores this as no lines."""
        return self.key in known and not known[self.key].items


AnyStep = TypeVar("AnyStep", bound=AuthorStep)


@dataclass
class StepResults(Generic[AnyStep]):
    """Results of several steps."""

    lines: dict[AnyStep, tuple[str, ...]] = field(default_factory=dict)
    """The author's lines, by step."""
    failed: dict[AnyStep, str] = field(default_factory=dict)
    """Failure reasons, by step."""
    traces: dict[AnyStep, AuthoringTrace] = field(default_factory=dict)
    """Authoring traces, by step."""
    reused: int = 0
    """Number of steps reused from earlier runs."""
    usage: Usage = field(default_factory=Usage)
    lost: int = 0
    """Number of requests without an answer."""

    def take_known(
        self, steps: Iterable[AnyStep], known: Mapping[bytes, PaidWork], *, skip: bool
    ) -> list[AnyStep]:
        """Reuse results of earlier runs, and return the remaining steps."""
        left = []
        for step in steps:
            lines = step.paid_for(known)
            if lines is not None:
                paid = known[step.key]
                self.lines[step] = lines
                self.traces[step] = AuthoringTrace.of(len(lines), paid.effort, paid.run)
                self.reused += 1
            elif skip and step.was_skipped(known):
                paid = known[step.key]
                reason = (paid.effort and paid.effort.failure) or FAILED_EARLIER
                self.failed[step] = reason
                self.traces[step] = AuthoringTrace.of(None, paid.effort, paid.run, reason)
            else:
                left.append(step)
        return left


async def do_steps(
    steps: Sequence[AnyStep],
    context: AuthorContext,
    done: StepResults[AnyStep],
    *,
    make_writer: Callable[[], Writer],
    author: str,
    in_flight: int,
    durable: bool,
    skip: bool,
    trial: AuthorTrial | None = None,
) -> bool:
    """Have the author do the remaining steps concurrently.

    Each step is recorded when it finishes. With `skip`, failures are recorded too, except faults of
    the moment, so that a resumed run keeps the same result. Returns False if a stop or an empty
    budget left steps undone. Raises EngineRefused if the author fails its `trial`.
    """
    left = iter(done.take_known(steps, context.known, skip=skip))

    async def work() -> None:
        for step in left:
            if trial and not await trial.admit():
                return
            writer = make_writer()
            do = partial(_do, step, writer, context, done, author, skip=skip)
            most = writer.most(step.asked, step.max_tokens)
            try:
                if not await pay_for(do, writer, most, stop=context.stop, budget=context.budget):
                    return
            finally:
                done.usage += writer.usage
                done.lost += writer.lost
                if trial:
                    trial.settled(step in done.lines, done.failed.get(step), writer)
            context.spent(done.usage)

    grace = 0.0 if durable else GRACE_SECONDS
    await run_workers(work, in_flight, stop=context.stop, grace=grace)
    if trial:
        trial.raise_if_useless(author, len(done.lines))
    return all(step in done.lines or step in done.failed for step in steps)


async def _do(
    step: AnyStep,
    writer: Writer,
    context: AuthorContext,
    done: StepResults[AnyStep],
    author: str,
    *,
    skip: bool,
) -> None:
    try:
        lines = await writer.write(step.asked, step.read, step.max_tokens)
    except ChecklistError as error:
        done.failed[step] = error.message
        done.traces[step] = AuthoringTrace.of(None, writer.effort, context.run, error.message)
        context.failed(step.name, error.message)
        if skip and not writer.faulty:
            context.record(step.key, Checklist(step.name, (), author), writer.effort)
        return
    context.record(step.key, Checklist(step.name, lines, author), writer.effort)
    done.lines[step] = lines
    done.traces[step] = AuthoringTrace.of(len(lines), writer.effort, context.run)


Kind = Literal["diversify", "elaborate", "filter"]
VERDICT_TOKENS = 60
"""Maximum tokens of one verdict as JSON."""
_ABOUT = ("task", "dimension", "definition")
_PART = (*_ABOUT, "sub_dimension", "sub_definition", "least", "most")
NEEDS: Mapping[Kind, tuple[str, ...]] = {
    "diversify": (*_PART, "seeds"),
    "elaborate": (*_PART, "seed"),
    "filter": (*_ABOUT, "others", "questions"),
}
"""Placeholders of each step's template."""
NO_OTHERS = "(none)"


@dataclass(frozen=True, slots=True, kw_only=True)
class DimensionStep(AuthorStep):
    """One request about a dimension."""

    kind: Kind
    dimension: str
    sub_dimension: str | None = None
    """None for a filter, which covers the whole dimension."""
    seed: str | None = None
    """The seed to elaborate; None for other kinds."""


class StepMaker:
    """Creates the steps of one author for some dimensions of a file."""

    def __init__(
        self,
        file: DimensionFile,
        dimensions: Mapping[str, Dimension],
        *,
        kinds: Sequence[Kind],
        own_templates: Mapping[Kind, Path],
        author: tuple[str, Mapping[str, Any]],
        limits: tuple[int, int],
    ) -> None:
        """`author`: its model and settings; `limits`: minimum and maximum questions per list."""
        self._file = file
        self._dimensions = dimensions
        self._kinds = kinds
        self._author = author
        self._limits = limits
        self._templates = {
            kind: Template.load(kind, own_templates.get(kind), needs=NEEDS[kind]) for kind in kinds
        }
        self.hashes = {kind: template.hash for kind, template in self._templates.items()}
        """Hashes of the templates, by step."""

    def augmenting(self) -> list[DimensionStep]:
        """Return the steps that add questions; each sees only seeds."""
        return [
            step
            for kind in self._kinds
            if kind != "filter"
            for name, dimension in self._dimensions.items()
            for step in self._augmenting_one(kind, name, dimension)
        ]

    def filtering(self, pools: Mapping[str, Sequence[Question]]) -> list[DimensionStep]:
        """Return the steps that filter the questions of each dimension."""
        if "filter" not in self._kinds:
            return []
        return [self._filter(name, pool) for name, pool in pools.items()]

    def _augmenting_one(
        self, kind: Kind, name: str, dimension: Dimension
    ) -> Iterator[DimensionStep]:
        least, most = self._limits
        for part, sub in dimension.sub_dimensions.items():
            values = {
                **self._about(name),
                "sub_dimension": part,
                "sub_definition": sub.definition,
                "least": str(least),
                "most": str(most),
            }
            if kind == "diversify":
                listed = "\n".join(f"- {seed}" for seed in sub.seeds)
                yield self._augment(kind, name, part, None, {**values, "seeds": listed})
            else:
                for seed in sub.seeds:
                    yield self._augment(kind, name, part, seed, {**values, "seed": seed})

    def _augment(
        self, kind: Kind, name: str, part: str, seed: str | None, values: Mapping[str, str]
    ) -> DimensionStep:
        asked = self._fill(kind, values)
        return DimensionStep(
            name=f"{kind} {name}: {part}" + ("" if seed is None else f" ({seed})"),
            asked=asked,
            key=self._key(asked),
            read=reads_questions(*self._limits),
            kind=kind,
            dimension=name,
            sub_dimension=part,
            seed=seed,
        )

    def _filter(self, name: str, pool: Sequence[Question]) -> DimensionStep:
        others = [
            f"- {other}: {dimension.definition}"
            for other, dimension in self._file.dimensions.items()
            if other != name
        ]
        listed = [
            f"{number}. [{question.sub_dimension}] {question.text}"
            for number, question in enumerate(pool, 1)
        ]
        asked = self._fill(
            "filter",
            {
                **self._about(name),
                "others": "\n".join(others) or NO_OTHERS,
                "questions": "\n".join(listed),
            },
        )
        return DimensionStep(
            name=f"filter {name}",
            asked=asked,
            key=self._key(asked),
            read=reads_verdicts(len(pool)),
            text_of=_as_json,
            max_tokens=(len(pool) + 1) * VERDICT_TOKENS,
            kind="filter",
            dimension=name,
        )

    def _about(self, name: str) -> dict[str, str]:
        definition = self._dimensions[name].definition
        return {"task": self._file.task, "dimension": name, "definition": definition}

    def _fill(self, kind: Kind, values: Mapping[str, str]) -> str:
        safe = {name: neutralize(text).text for name, text in values.items()}
        return self._templates[kind].fill(safe)

    def _key(self, asked: str) -> bytes:
        # The prompt contains the file, the template and, for a filter, all earlier questions.
        return content_hash("authored step", *self._author, asked, *self._limits)


def reads_questions(least: int, most: int) -> Callable[[str], tuple[str, ...]]:
    """Return a parser for a list of `least` to `most` questions."""
    return lambda text: parse_checklist(text, min_items=least, max_items=most)


def reads_verdicts(count: int) -> Callable[[str], tuple[str, ...]]:
    """Return a parser for verdicts on `count` questions, one journal line per verdict."""
    return lambda text: tuple(
        _line(number, verdict) for number, verdict in enumerate(read_verdicts(text, count), 1)
    )


def verdicts_in(lines: Sequence[str]) -> tuple[QuestionVerdict, ...]:
    """Return the verdicts in journal lines."""
    return read_verdicts(_as_json(lines), len(lines))


def _as_json(lines: Sequence[str]) -> str:
    return f"[{','.join(lines)}]"


def _line(number: int, verdict: QuestionVerdict) -> str:
    row = {
        "question": number,
        "yes_is_better": verdict.yes_is_better,
        "fits": verdict.fits,
        "repeats": verdict.repeats,
    }
    return orjson.dumps(row).decode()
