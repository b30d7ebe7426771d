"""Ask a judge every perspective about every case, and read its answers into a table.

Perspectives with the same prompt and labels form a question set, which is graded as a run inside
the run. When the pool grows, only new perspectives are asked.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, Self, cast

import numpy as np

from rocketeval.arrays import Floats
from rocketeval.budget import Budget
from rocketeval.config import EngineConfig, EvolveConfig, RunConfig
from rocketeval.engines.base import (
    Engine,
    EngineAnswers,
    RefusedPartway,
    ask_engine,
    create_engine,
)
from rocketeval.errors import BenchmarkError
from rocketeval.evolve.cases import Case, CaseTable
from rocketeval.evolve.perspective import (
    QUERIES,
    Asking,
    Perspective,
    PerspectiveKind,
    Pool,
    QuestionSet,
    question_set_of,
)
from rocketeval.grading.stage import grade_responses, judge_of
from rocketeval.grading.work import PlannedChecklists, PlannedInputs, WorkList
from rocketeval.observer import Observer
from rocketeval.prompts.variants import QUERY_ALONE, pair_name, pair_up, query_alone
from rocketeval.records import (
    Answer,
    Checklist,
    GradingTask,
    JudgeFingerprint,
    Query,
    Response,
    Status,
    Usage,
)
from rocketeval.scoring.read_answers import read_answers
from rocketeval.store.manifest import GradeFacts
from rocketeval.store.run import RunStore
from rocketeval.workers import unless_stopped


def by_question_set(
    pool: Iterable[Perspective], asking: Asking
) -> dict[QuestionSet, list[Perspective]]:
    """Return the perspectives of each question set, in pool order."""
    found: dict[QuestionSet, list[Perspective]] = {}
    for perspective in pool:
        found.setdefault(question_set_of(perspective, asking), []).append(perspective)
    return found


class QuestionSetAnswers:
    """The answers to a question set, by query and name of the shown text."""

    def __init__(
        self,
        question_set: QuestionSet,
        perspectives: Sequence[Perspective],
        rows: Mapping[tuple[str, str], Floats],
    ) -> None:
        self._question_set = question_set
        self.perspectives = tuple(perspectives)
        self._rows = rows
        self._unanswered = np.full(len(perspectives), np.nan)

    @classmethod
    def read(
        cls, question_set: QuestionSet, inside: RunStore, perspectives: Sequence[Perspective]
    ) -> Self:
        """Return the answers stored in the run of a question set."""
        answers, _ = read_answers(inside)
        names = zip(answers.query_ids, answers.candidates, strict=True)
        bounds = answers.offsets.tolist()
        rows = {
            name: answers.p_yes[start:stop]
            for name, start, stop in zip(names, bounds[:-1], bounds[1:], strict=True)
        }
        return cls(question_set, perspectives, rows)

    def matrix(self, cases: Sequence[Case]) -> Floats:
        """Return one row per case, one column per perspective; NaN is a missing answer."""
        rows = [self._row(case) for case in cases]
        return np.stack(rows) if rows else np.zeros((0, len(self.perspectives)))

    def _row(self, case: Case) -> Floats:
        """Return a case's answers; for pairs, from -1 (b is better) to 1 (a is better)."""
        names = shown_names(self._question_set, case)
        rows = [self._answered(case.query_id, name) for name in names]
        if self._question_set.signed:
            return 2.0 * rows[0] - 1.0
        return rows[0] - rows[1] if len(rows) == 2 else rows[0]

    def _answered(self, query_id: str, name: str) -> Floats:
        row = self._rows.get((query_id, name), self._unanswered)
        return row if len(row) else self._unanswered


def shown_names(question_set: QuestionSet, case: Case) -> tuple[str, ...]:
    """Return the names of the texts that a question set shows for one case; see `show`."""
    if question_set is QUERIES:
        return (QUERY_ALONE,)
    if question_set.signed:
        first, second = case.candidates
        return (pair_name(first, second),)
    return case.candidates


class AnswersTable:
    """The answers of all question sets."""

    def __init__(
        self, pool: Iterable[Perspective], question_sets: Iterable[QuestionSetAnswers]
    ) -> None:
        self._pool = Pool(pool)
        self._question_sets = tuple(question_sets)

    def table(self, cases: Sequence[Case]) -> CaseTable:
        """Return the answers of every perspective about every case."""
        columns: dict[str, Floats] = {}
        for question_set in self._question_sets:
            matrix = question_set.matrix(cases)
            columns |= {
                each.id: matrix[:, place] for place, each in enumerate(question_set.perspectives)
            }
        dependent, independent = (
            self._pool.of(PerspectiveKind.RESPONSE),
            self._pool.of(PerspectiveKind.QUERY),
        )
        return CaseTable(
            tuple(cases),
            dependent,
            _matrix(columns, dependent, len(cases)),
            independent,
            _matrix(columns, independent, len(cases)),
        )


def _matrix(
    columns: Mapping[str, Floats], perspectives: Sequence[Perspective], cases: int
) -> Floats:
    own = [columns[each.id] for each in perspectives]
    return np.stack(own, axis=1) if own else np.zeros((cases, 0))


MakeEngine = Callable[[EngineConfig, Path | None], Engine]
CheckJudge = Callable[[str, JudgeFingerprint], None]
"""Gets a question set's name and its judge; raises if another judge is required."""


@dataclass(frozen=True)
class JudgedCases:
    """A judge's answers about some cases, with counts and cost."""

    table: CaseTable
    judges: Mapping[str, JudgeFingerprint]
    """Fingerprint of the judge, by question set name."""
    question_sets: Mapping[str, GradeFacts]
    """Counts and cost of grading, by question set name."""

    @property
    def unfinished(self) -> int:
        """Return the number of prompts not sent before the command was stopped."""
        return sum(facts.unfinished - facts.failed for facts in self.question_sets.values())


@dataclass(frozen=True)
class PerspectiveAsker:
    """Asks a run's judge perspectives and reads its answers into a table of cases."""

    store: RunStore
    config: RunConfig
    observer: Observer
    stop: asyncio.Event
    budget: Budget | None = None
    _: KW_ONLY
    asking: Asking
    folder: str = "evolve"
    """Folder inside the run for the question sets."""
    also: Sequence[str] = ()
    """Folders with earlier answers to the same question sets, which are reused."""
    make_engine: MakeEngine = create_engine
    check_judge: CheckJudge | None = None

    async def ask(self, pool: Iterable[Perspective], cases: Sequence[Case]) -> JudgedCases:
        """Return the judge's answers to every perspective about every case."""
        pool = tuple(pool)
        question_sets = by_question_set(pool, self.asking)
        facts: dict[str, GradeFacts] = {}
        answers: list[QuestionSetAnswers] = []
        judges: dict[str, JudgeFingerprint] = {}
        responses = self._responses(cases)
        for number, (question_set, perspectives) in enumerate(question_sets.items(), 1):
            self.observer.part_began(question_set.name, number, len(question_sets))
            self.observer.stage_entered("grade")
            inside = self._lay_out(question_set, perspectives, cases, responses)
            facts[question_set.name] = await self._grade(question_set, inside)
            judges[question_set.name] = inside.judge()
            answers.append(QuestionSetAnswers.read(question_set, inside, perspectives))
        return JudgedCases(AnswersTable(pool, answers).table(cases), judges, facts)

    def count_unanswered(self, pool: Iterable[Perspective], cases: Sequence[Case]) -> int:
        """Return the number of questions that `ask` would send; cached answers are not counted."""
        responses = self._responses(cases)
        return sum(
            self._count_unanswered(question_set, perspectives, cases, responses)
            for question_set, perspectives in by_question_set(pool, self.asking).items()
        )

    def _count_unanswered(
        self,
        question_set: QuestionSet,
        perspectives: Sequence[Perspective],
        cases: Sequence[Case],
        responses: Mapping[tuple[str, str], Response],
    ) -> int:
        inside = self.store.inside(self.folder, question_set.name)
        queries, shown = self._shown(question_set, cases, responses)
        checklists = _checklists(perspectives, queries)
        judge = inside.manifest().judge if inside.inputs.exist else None
        work = WorkList(
            inside,
            PlannedInputs(queries, lambda: iter(shown), PlannedChecklists(checklists)),
            question_set.method(),
            judge,
            inside.finished(),
        )
        known = work.known()
        return sum(len(perspectives) - len(known.get(key, ())) for key in work.unfinished())

    def _responses(self, cases: Sequence[Case]) -> dict[tuple[str, str], Response]:
        wanted = {(case.query_id, name) for case in cases for name in case.candidates}
        found = {
            (response.query_id, response.candidate): response
            for response in self.store.inputs.responses()
            if (response.query_id, response.candidate) in wanted
        }
        absent = sorted(wanted - found.keys())
        if absent:
            query_id, candidate = absent[0]
            raise BenchmarkError(
                f"There are votes or labels on {len(absent):,} responses that the benchmark lacks, "
                f"such as that of {candidate!r} to query {query_id!r}.",
                hint="Add the responses, or remove their votes or labels.",
            )
        return found

    def _lay_out(
        self,
        question_set: QuestionSet,
        perspectives: Sequence[Perspective],
        cases: Sequence[Case],
        responses: Mapping[tuple[str, str], Response],
    ) -> RunStore:
        """Write the inputs of a question set and return the run it is graded in."""
        inside = self.store.inside(self.folder, question_set.name)
        queries, shown = self._shown(question_set, cases, responses)
        inside.inputs.save(list(queries.values()), shown, (), (), ())
        inside.inputs.save_checklists(_checklists(perspectives, queries).values())
        inside.freeze(question_set_config(self.config, question_set))
        return inside

    def _shown(
        self,
        question_set: QuestionSet,
        cases: Sequence[Case],
        responses: Mapping[tuple[str, str], Response],
    ) -> tuple[dict[str, Query], list[Response]]:
        """Return the queries of the cases and the texts shown to the judge, each once."""
        queries = _queries(self.store.inputs.queries, cases)
        shown = {
            (response.query_id, response.candidate): response
            for case in cases
            for response in show(question_set, case, queries[case.query_id], responses)
        }
        return queries, list(shown.values())

    async def _grade(self, question_set: QuestionSet, inside: RunStore) -> GradeFacts:
        config = question_set_config(self.config, question_set)
        engine = self.make_engine(config.judge, inside.engine_home("judge"))
        try:
            if self.check_judge is not None:
                found = judge_of(inside, config, question_set.method(), engine)
                judge = await unless_stopped(found, self.stop)
                self.check_judge(question_set.name, judge)
            with inside.locked():
                facts = await grade_responses(
                    inside,
                    config,
                    engine,
                    self.observer,
                    self.stop,
                    self.budget,
                    method=question_set.method(),
                    also=question_sets_in(self.store, self.also, question_set),
                )
                inside.record_stage("grade", facts)
        finally:
            await engine.aclose()
        return facts


def question_sets_in(
    store: RunStore, folders: Iterable[str], question_set: QuestionSet
) -> list[RunStore]:
    """Return the runs in these folders that graded a question set."""
    insides = (store.inside(folder, question_set.name) for folder in folders)
    return [inside for inside in insides if inside.inputs.exist]


def question_set_config(config: RunConfig, question_set: QuestionSet) -> RunConfig:
    """Return the config of a question set's run, with its labels."""
    judge = config.judge.model_copy(update={"labels": question_set.labels, "template": None})
    return config.model_copy(update={"judge": judge})


def _checklists(
    perspectives: Sequence[Perspective], queries: Iterable[str]
) -> dict[str, Checklist]:
    """Return the perspectives as the checklist of every query."""
    items = tuple(perspective.text for perspective in perspectives)
    return {name: Checklist(name, items, "evolve") for name in queries}


def _queries(known: Mapping[str, Query], cases: Sequence[Case]) -> dict[str, Query]:
    """Return the queries of the cases, in benchmark order."""
    wanted = {case.query_id for case in cases}
    return {name: query for name, query in known.items() if name in wanted}


def show(
    question_set: QuestionSet,
    case: Case,
    query: Query,
    responses: Mapping[tuple[str, str], Response],
) -> list[Response]:
    """Return the texts shown to the judge for one case: the query, each response, or the pair."""
    if question_set is QUERIES:
        return [query_alone(query)]
    own = [responses[case.query_id, candidate] for candidate in case.candidates]
    return [pair_up(own[0], own[1])] if question_set.signed else own


Settle = Callable[[Usage, int], None]
"""Gets the usage and the number of answered questions."""
SETTLE_SECONDS = 2.0


def metered(engine: Engine, settle: Settle) -> Engine:
    """Return the engine, wrapped so that its usage is passed to `settle` while it works.

    A killed command loses the usage of the last `SETTLE_SECONDS`.
    """
    return cast(Engine, _Metered(engine, settle))


class _Metered:
    def __init__(self, engine: Engine, settle: Settle) -> None:
        self._engine = engine
        self._settle = settle
        self._usage = Usage()
        self._questions = 0
        self._settled = time.monotonic()

    def __getattr__(self, name: str) -> Any:
        # Forward everything else: engines may offer more than the protocol, such as `pulse`.
        return getattr(self._engine, name)

    async def grade(self, task: GradingTask, known: Mapping[int, Answer]) -> EngineAnswers:
        try:
            graded = await ask_engine(self._engine, task, known)
        except RefusedPartway as refused:
            self._usage += refused.usage
            raise
        self._usage += graded.usage
        self._questions += sum(
            place not in known and answer.status is not Status.ERROR
            for place, answer in enumerate(graded.answers)
        )
        if time.monotonic() - self._settled >= SETTLE_SECONDS:
            self._settle_now()
        return graded

    async def aclose(self) -> None:
        try:
            await self._engine.aclose()
        finally:
            self._settle_now()

    def _settle_now(self) -> None:
        self._settle(self._usage, self._questions)
        self._usage, self._questions = Usage(), 0
        self._settled = time.monotonic()


class PrefixedObserver(Observer):
    """Forwards everything to another observer, with a prefix before every part's name."""

    def __init__(self, observer: Observer, name: str) -> None:
        self._observer = observer
        self._name = name
        # Forward every event; only part names change.
        for hook in vars(Observer):
            if not hook.startswith("_") and hook != "part_began":
                setattr(self, hook, getattr(observer, hook))

    def part_began(self, name: str, number: int, total: int) -> None:
        """Forward the event with the prefixed name."""
        self._observer.part_began(f"{self._name}, {name}", number, total)


def shown(cases: Iterable[Case], asking: Asking) -> int:
    """Return the number of responses, or pairs of responses, shown to the judge.

    >>> pairs = [Case("q", ("x", "y"), 1.0), Case("q", ("x", "z"), 0.0)]
    >>> shown(pairs, "each"), shown(pairs, "pairs")
    (3, 2)
    """
    if asking == "pairs":
        return len({(case.query_id, case.candidates) for case in cases})
    return len({(case.query_id, name) for case in cases for name in case.candidates})


def questions(perspectives: Iterable[Perspective], cases: Collection[Case], asking: Asking) -> int:
    """Return the number of questions that perspectives need on cases, answered ones included."""
    counts = dict.fromkeys(PerspectiveKind, 0)
    for each in perspectives:
        counts[each.kind] += 1
    queries = len({case.query_id for case in cases})
    return (
        counts[PerspectiveKind.RESPONSE] * shown(cases, asking)
        + counts[PerspectiveKind.QUERY] * queries
    )


def most_questions(pool: Pool, cases: Collection[Case], settings: EvolveConfig) -> int:
    """Return the maximum number of questions for a pool's selection plus the overall question."""
    kept = [
        *pool.of(PerspectiveKind.RESPONSE)[: settings.most_about_responses + 1],
        *pool.of(PerspectiveKind.QUERY)[: settings.most_about_queries],
    ]
    return questions(kept, cases, settings.asking)
