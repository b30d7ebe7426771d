"""Dimension checklists after CheckEval: seeds, more questions from an LLM, and a filter.

One checklist is for every query. Seeds come from a dimension file; an author LLM looks at each
sub-dimension from other sides (diversify) and takes each seed apart (elaborate), both from seeds
alone; then it says of each question whether it stays (filter). Every request is a step of its own,
journaled as it is answered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field, field_validator

from rocketeval.checklists.base import AuthorContext, AuthoringTrace, count_refusals
from rocketeval.checklists.dimension_file import (
    Dimension,
    DimensionFile,
    Question,
    QuestionOrigin,
    QuestionOutcome,
    QuestionRow,
    count_rows,
    in_order,
    judge_pool,
    load_dimensions,
    question_rows,
    without_duplicates,
)
from rocketeval.checklists.dimension_steps import (
    VERDICT_TOKENS,
    DimensionStep,
    Kind,
    StepMaker,
    StepResults,
    do_steps,
    verdicts_in,
)
from rocketeval.checklists.instance import MAX_TOKENS, AuthorTrial, Writer
from rocketeval.config import AuthorConfig, Section, parse_options
from rocketeval.engines.base import Engine, create_engine, status_of
from rocketeval.errors import ChecklistError, ConfigError
from rocketeval.hashing import content_hash
from rocketeval.observer import EngineStatus
from rocketeval.records import Checklist, Query, Usage
from rocketeval.store.journal import PaidWork
from rocketeval.store.manifest import Composition, RefusalCounts, SubDimensionCounts

STEPS: tuple[Kind, ...] = ("diversify", "elaborate", "filter")


class DimensionOptions(Section):
    """Settings of the dimension author."""

    file: str
    """summarization, dialogue, or the path of your own dimension file (.yaml)."""
    dimensions: tuple[str, ...] | None = None
    """The dimensions to ask about; all of the file when absent."""
    steps: tuple[Kind, ...] = STEPS
    """diversify, elaborate, filter, or some of them; none: the seeds alone, without an LLM."""
    templates: dict[Kind, Path] = Field(default_factory=dict)
    """Your own prompts by step, relative to where the command is run; the packaged when absent."""
    on_failure: Literal["stop", "skip"] = "stop"
    """stop: a step that fails leaves the run without a checklist; skip: it goes on without it."""

    @field_validator("steps")
    @classmethod
    def _in_order(cls, steps: tuple[Kind, ...]) -> tuple[Kind, ...]:
        if len(set(steps)) < len(steps):
            raise ValueError("a step stands here twice.")
        if "filter" in steps[:-1]:
            raise ValueError("filter comes last: it looks at what the other steps brought.")
        return steps

    @field_validator("dimensions")
    @classmethod
    def _some(cls, names: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if names is not None and not names:
            raise ValueError("this names no dimension; leave it out to take all.")
        return names


@dataclass(frozen=True, slots=True, kw_only=True)
class DimensionProvenance:
    """How the checklist of all queries was composed."""

    FILE: ClassVar[str] = "checklist_provenance"
    COMMAND: ClassVar[str] = "run --only checklist"
    SCHEMA: ClassVar[int] = 1

    kind: str
    author: str
    file: str
    steps: tuple[Kind, ...]
    templates: Mapping[Kind, str]
    task: str
    dimensions: Mapping[str, Dimension]
    failed_steps: Mapping[str, str]
    asked: tuple[AuthoringTrace, ...]
    counts: tuple[SubDimensionCounts, ...]
    questions: tuple[QuestionRow, ...]


_ORIGINS = {"diversify": QuestionOrigin.DIVERSIFIED, "elaborate": QuestionOrigin.ELABORATED}
NUMBERING_TOKENS = 100
"""What a number and the name of a sub-dimension add to a question in the filter's prompt."""
SHOWN_FAILURES = 3


class DimensionAuthor:
    """Gives every query the one checklist of the dimensions it was told."""

    def __init__(
        self,
        config: AuthorConfig,
        options: DimensionOptions,
        file: DimensionFile,
        engine: Engine | None,
        model: str = "dimension",
    ) -> None:
        self._config = config
        self._options = options
        self._file = file
        self._dimensions = file.only(options.dimensions or tuple(file.dimensions))
        self._engine = engine
        self._model = model
        self._extra_body = config.engine.extra_body if config.engine and engine else {}
        self._steps = StepMaker(
            file,
            self._dimensions,
            kinds=options.steps,
            own_templates=options.templates,
            author=(model, self._extra_body),
            limits=(config.min_items, config.max_items),
        )
        self._augmenting = self._steps.augmenting()
        self._done: StepResults[DimensionStep] = StepResults()
        self._fates: list[QuestionOutcome] | None = None
        self.costly = bool(options.steps)
        self.in_flight = engine.in_flight if engine else 1
        self.durable = bool(engine and engine.durable)
        self.digest = content_hash(
            "dimension",
            model,
            self._extra_body,
            {name: dimension.model_dump() for name, dimension in self._dimensions.items()},
            self._steps.hashes,
            config.min_items,
            config.max_items,
        )

    @classmethod
    def create(
        cls, config: AuthorConfig, imported: Mapping[str, Checklist], home: Path | None = None
    ) -> DimensionAuthor:
        """Return an author of the dimension file in `config`; an engine only if a step needs it."""
        options = parse_options(config.options, DimensionOptions, "author.options")
        if config.template is not None:
            raise ConfigError(
                "author.template: the dimension author has a prompt for each step.",
                hint="Set author.options.templates, such as {filter: my_filter.txt}.",
            )
        file = load_dimensions(options.file)
        if not options.steps:
            return cls(config, options, file, None)
        if config.engine is None:
            raise ConfigError(
                f"`author.kind: dimension` needs an author LLM for {', '.join(options.steps)}.",
                hint="Set author.engine.model, or author.options.steps: [] to use the seeds alone.",
            )
        engine = create_engine(config.engine, home)
        return cls(config, options, file, engine, config.engine.model)

    @property
    def usage(self) -> Usage:
        """What its work has cost so far, lists that could not be used included."""
        return self._done.usage

    @property
    def lost(self) -> int:
        """Requests that brought no answer."""
        return self._done.lost

    @property
    def pulse(self) -> EngineStatus:
        """How its engine fares at this moment."""
        return EngineStatus() if self._engine is None else status_of(self._engine)

    async def prepare(self) -> None:
        """Check that the author LLM answers, if there is one."""
        if self._engine is not None:
            await self._engine.ready()

    def most(self, query: Query) -> Usage:
        """Return nothing: a composed checklist costs nothing more."""
        return Usage()

    async def write(self, query: Query) -> Checklist:
        """Return the composed checklist for `query`."""
        questions = [fate.question for fate in self._composed() if fate.dropped is None]
        return Checklist(
            query.id,
            tuple(question.text for question in questions),
            self._model,
            tuple(question.group for question in questions),
            "\n".join(
                f"{name}: {dimension.definition}" for name, dimension in self._dimensions.items()
            ),
        )

    async def aclose(self) -> None:
        """Close the engine, if there is one."""
        if self._engine is not None:
            await self._engine.aclose()

    def foresee(self, known: Mapping[bytes, PaidWork]) -> Usage | None:
        """Compose from what was paid for; or return the most that the other steps use."""
        done: StepResults[DimensionStep] = StepResults()
        unasked = done.take_known(self._augmenting, known, skip=self._skips)
        most = Usage()
        for step in unasked:
            most += self._writer().most(step.asked, step.max_tokens)
        filters = self._steps.filtering(self._pools(done)[0])
        for step in filters if unasked else done.take_known(filters, known, skip=self._skips):
            unwritten = sum(other.dimension == step.dimension for other in unasked)
            most += self._most_filtering(step, unwritten)
        if most != Usage():
            return most
        self._finish(done)
        return None

    async def compose(self, context: AuthorContext) -> bool:
        """Do the steps that are not paid for, then choose; False when not all could be begun."""
        proven = any(step.paid_for(context.known) for step in self._augmenting)
        trial = AuthorTrial(self._config.attempts, proven=proven, gated=not self.durable)
        if not await self._do(self._augmenting, context, trial):
            return False
        self._stop_at_failures()
        if not await self._do(self._steps.filtering(self._pools(self._done)[0]), context, trial):
            return False
        self._stop_at_failures()
        self._finish(self._done)
        return True

    def provenance(self) -> DimensionProvenance:
        """Return every question that was considered, where it came from and what became of it."""
        fates = self._composed()
        return DimensionProvenance(
            kind="dimension",
            author=self._model,
            file=self._options.file,
            steps=self._options.steps,
            templates=self._steps.hashes,
            task=self._file.task,
            dimensions=self._dimensions,
            failed_steps=self._failed_steps(),
            asked=tuple(
                replace(self._done.traces[step], step=step.name) for step in self._all_steps()
            ),
            counts=count_rows(fates, self._groups()),
            questions=question_rows(fates),
        )

    def summary(self) -> Composition:
        """Return the counts, how many steps were reused, and which failed and why."""
        return Composition(
            counts=count_rows(self._composed(), self._groups()),
            steps=len(self._done.lines) + len(self._done.failed),
            reused_steps=self._done.reused,
            failed_steps=self._failed_steps(),
        )

    def refusals(self) -> RefusalCounts:
        """Return how many of its steps were refused at first, and why."""
        return count_refusals(self._done.traces.values())

    def _all_steps(self) -> list[DimensionStep]:
        """Return every step that was done or tried, in an order its speed does not change."""
        filters = self._steps.filtering(self._pools(self._done)[0])
        return [step for step in (*self._augmenting, *filters) if step in self._done.traces]

    def _composed(self) -> list[QuestionOutcome]:
        if self._fates is None:
            raise ChecklistError("the checklist has not been composed.")
        return self._fates

    def _failed_steps(self) -> dict[str, str]:
        return {step.name: reason for step, reason in self._done.failed.items()}

    @property
    def _skips(self) -> bool:
        return self._options.on_failure == "skip"

    def _writer(self) -> Writer:
        assert self._engine is not None, "an author with steps has an engine"
        return Writer(self._engine, self._config.attempts, self._extra_body)

    async def _do(
        self, steps: list[DimensionStep], context: AuthorContext, trial: AuthorTrial
    ) -> bool:
        return await do_steps(
            steps,
            context,
            self._done,
            make_writer=self._writer,
            author=self._model,
            in_flight=self.in_flight,
            durable=self.durable,
            skip=self._skips,
            trial=trial,
        )

    def _stop_at_failures(self) -> None:
        failed = self._done.failed
        if not failed or self._skips:
            return
        named = [f"{step.name}: {reason}" for step, reason in failed.items()][:SHOWN_FAILURES]
        more = f"\nand {len(failed) - SHOWN_FAILURES} more." if len(failed) > SHOWN_FAILURES else ""
        raise ChecklistError(
            f"{len(failed)} of {len(failed) + len(self._done.lines)} steps of the checklist "
            "failed:\n" + "\n".join(named) + more,
            hint="What was written is kept: run the same command again to ask for these alone. Or "
            "set author.options.on_failure: skip.",
        )

    def _groups(self) -> list[tuple[str, str]]:
        return [
            (name, part)
            for name, dimension in self._dimensions.items()
            for part in dimension.sub_dimensions
        ]

    def _most_filtering(self, step: DimensionStep, unwritten: int) -> Usage:
        """Return what a filter uses at most when it sees so many lists that are not there yet."""
        questions = unwritten * self._config.max_items
        most = self._writer().most(step.asked, step.max_tokens + questions * VERDICT_TOKENS)
        unread = unwritten * MAX_TOKENS + questions * NUMBERING_TOKENS
        return most + Usage(prompt_tokens=self._config.attempts * unread)

    def _pools(
        self, done: StepResults[DimensionStep]
    ) -> tuple[dict[str, list[Question]], list[QuestionOutcome]]:
        """Return the distinct questions of each dimension, seeds first, and the duplicates."""
        pools: dict[str, list[Question]] = {}
        dropped: list[QuestionOutcome] = []
        for name, dimension in self._dimensions.items():
            seeds = [
                Question(seed, name, part, QuestionOrigin.SEED) for part, seed in dimension.seeds()
            ]
            pools[name], same = without_duplicates([*seeds, *self._written(done, name)])
            dropped += same
        return pools, dropped

    def _written(self, done: StepResults[DimensionStep], dimension: str) -> Iterator[Question]:
        """Yield what the author wrote for a dimension, in an order its speed does not change."""
        for step in self._augmenting:
            if step.dimension == dimension:
                origin = _ORIGINS[step.kind]
                for text in done.lines.get(step, ()):
                    yield Question(text, dimension, step.sub_dimension or "", origin, step.seed)

    def _finish(self, done: StepResults[DimensionStep]) -> None:
        """Choose the items; ChecklistError when a dimension is left without any."""
        pools, fates = self._pools(done)
        verdicts = {
            step.dimension: verdicts_in(lines)
            for step, lines in done.lines.items()
            if step.kind == "filter"
        }
        for name, pool in pools.items():
            judged = name in verdicts
            chosen = (
                judge_pool(pool, verdicts[name])
                if judged
                else [QuestionOutcome(each) for each in pool]
            )
            if all(fate.dropped for fate in chosen):
                raise ChecklistError(
                    f"The filter left no question of the dimension {name!r}.",
                    hint="Look at the seeds, or use another author: yes must be the better answer.",
                )
            fates += chosen
        self._done = done
        self._fates = in_order(fates, self._groups())
