"""Dimension checklists (CheckEval): seed questions, more questions from an LLM, and a filter.

All queries share one checklist. Seeds come from a dimension file. An author LLM adds questions
about other aspects of each sub-dimension (diversify) and narrower questions for each seed
(elaborate), both from the seeds only; then it decides which questions stay (filter). Every request
is a separate step, journaled when it is answered.
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
from rocketeval.engines.base import Engine, confirm_recorded, create_engine, status_of
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
    """The dimensions to ask about; default: all dimensions of the file."""
    steps: tuple[Kind, ...] = STEPS
    """Any of diversify, elaborate, filter; with none, only the seeds are used, without an LLM."""
    templates: dict[Kind, Path] = Field(default_factory=dict)
    """Your own prompts by step, relative to the config file; default: the packaged ones."""
    on_failure: Literal["stop", "skip"] = "stop"
    """stop: a failed step leaves the run without a checklist; skip: continue without the step."""

    @field_validator("steps")
    @classmethod
    def _in_order(cls, steps: tuple[Kind, ...]) -> tuple[Kind, ...]:
        if len(set(steps)) < len(steps):
            raise ValueError("a step is listed twice.")
        if "filter" in steps[:-1]:
            raise ValueError("filter must come last: it filters the questions of the other steps.")
        return steps

    @field_validator("dimensions")
    @classmethod
    def _some(cls, names: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if names is not None and not names:
            raise ValueError("this names no dimension; leave it out to use all.")
        return names


@dataclass(frozen=True, slots=True, kw_only=True)
class DimensionProvenance:
    """Provenance of the checklist that all queries share."""

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
"""Maximum tokens that numbering and sub-dimension add to a question in the filter's prompt."""
SHOWN_FAILURES = 3


class DimensionAuthor:
    """Composes one checklist for the configured dimensions, shared by all queries."""

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
        self._outcomes: list[QuestionOutcome] | None = None
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
        """Return an author for the dimension file in `config`, with an engine only if needed."""
        options = parse_options(config.options, DimensionOptions, "author.options")
        if config.template is not None:
            raise ConfigError(
                "author.template does not apply: the dimension author has one prompt per step.",
                hint="Set author.options.templates, such as {filter: my_filter.txt}.",
            )
        file = load_dimensions(options.file)
        if not options.steps:
            return cls(config, options, file, None)
        if config.engine is None:
            raise ConfigError(
                f"`author.kind: dimension` needs an author LLM for {', '.join(options.steps)}.",
                hint="Set author.engine.model, or author.options.steps: [] to use only the seeds.",
            )
        engine = create_engine(config.engine, home)
        return cls(config, options, file, engine, config.engine.model)

    @property
    def usage(self) -> Usage:
        """Return the usage so far, including unusable lists."""
        return self._done.usage

    @property
    def lost(self) -> int:
        """Return the number of requests without an answer."""
        return self._done.lost

    @property
    def pulse(self) -> EngineStatus:
        """Return the current status of its engine."""
        return EngineStatus() if self._engine is None else status_of(self._engine)

    async def prepare(self) -> None:
        """Raise EngineError unless the author LLM, if there is one, answers."""
        if self._engine is not None:
            await self._engine.ready()

    def most(self, query: Query) -> Usage:
        """Return zero usage: a composed checklist costs nothing more."""
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

    def answers_recorded(self, *, everything: bool = False) -> None:
        """Tell its engine that the answers are recorded."""
        confirm_recorded(self._engine, everything=everything)

    async def aclose(self) -> None:
        """Close the engine, if there is one."""
        if self._engine is not None:
            await self._engine.aclose()

    def foresee(self, known: Mapping[bytes, PaidWork]) -> Usage | None:
        """Compose from earlier steps, or return the maximum usage of the remaining ones."""
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
        """Do the remaining steps, then filter; return False if not all could start."""
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
        """Return every considered question with its origin and outcome."""
        outcomes = self._composed()
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
            counts=count_rows(outcomes, self._groups()),
            questions=question_rows(outcomes),
        )

    def summary(self) -> Composition:
        """Return the counts, the number of reused steps, and the failed steps with reasons."""
        return Composition(
            counts=count_rows(self._composed(), self._groups()),
            steps=len(self._done.lines) + len(self._done.failed),
            reused_steps=self._done.reused,
            failed_steps=self._failed_steps(),
        )

    def refusals(self) -> RefusalCounts:
        """Return how many steps were refused at first, and why."""
        return count_refusals(self._done.traces.values())

    def _all_steps(self) -> list[DimensionStep]:
        """Return every finished or failed step, in an order independent of timing."""
        filters = self._steps.filtering(self._pools(self._done)[0])
        return [step for step in (*self._augmenting, *filters) if step in self._done.traces]

    def _composed(self) -> list[QuestionOutcome]:
        if self._outcomes is None:
            raise ChecklistError("the checklist has not been composed.")
        return self._outcomes

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
            hint="Finished steps are kept: run the same command again to retry only these. Or "
            "set author.options.on_failure: skip.",
        )

    def _groups(self) -> list[tuple[str, str]]:
        return [
            (name, part)
            for name, dimension in self._dimensions.items()
            for part in dimension.sub_dimensions
        ]

    def _most_filtering(self, step: DimensionStep, unwritten: int) -> Usage:
        """Return the maximum usage of a filter that will see `unwritten` more lists."""
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
        """Yield the author's questions for a dimension, in an order independent of timing."""
        for step in self._augmenting:
            if step.dimension == dimension:
                origin = _ORIGINS[step.kind]
                for text in done.lines.get(step, ()):
                    yield Question(text, dimension, step.sub_dimension or "", origin, step.seed)

    def _finish(self, done: StepResults[DimensionStep]) -> None:
        """Choose the items; raise ChecklistError if a dimension is left without any."""
        pools, outcomes = self._pools(done)
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
                    hint="Check the seeds (yes must be the better answer), or use another author.",
                )
            outcomes += chosen
        self._done = done
        self._outcomes = in_order(outcomes, self._groups())
