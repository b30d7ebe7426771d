"""Asking: a judge answers every perspective about every case, each question paid for once.

Perspectives that are asked alike make a sheet, which is graded as a run inside the run. When the
pool grows, its checklist is an edited one: only what is new is asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rocketeval.budget import Budget
from rocketeval.config import EngineConfig, RunConfig
from rocketeval.engines.base import Engine, create_engine
from rocketeval.errors import BenchmarkError
from rocketeval.evolve.cases import Case, CaseTable
from rocketeval.evolve.perspective import Perspective
from rocketeval.evolve.sheets import QUERIES, Asking, Sheet
from rocketeval.observing import Observer
from rocketeval.prompts.perspectives import pair_up, query_alone
from rocketeval.records import Checklist, JudgeFingerprint, Query, Response
from rocketeval.stages.evolve.said import Said, SheetAnswers, by_sheet
from rocketeval.stages.grade import grade_responses
from rocketeval.stages.who_judges import judge_of
from rocketeval.store.run import RunStore

MakeEngine = Callable[[EngineConfig, Path | None], Engine]
CheckJudge = Callable[[str, JudgeFingerprint], None]
"""Gets the name of a sheet and who would answer it; raises if it must be somebody else."""


@dataclass(frozen=True)
class Asked:
    """What a judge said about some cases, and what it took."""

    table: CaseTable
    judges: Mapping[str, JudgeFingerprint]
    """Who answered, by the name of the sheet."""
    sheets: Mapping[str, Mapping[str, Any]]
    """Counts and cost of each sheet's grading, by its name."""

    @property
    def unfinished(self) -> int:
        """How many prompts were not put to the judge before it was stopped."""
        return sum(facts["unfinished"] - facts["failed"] for facts in self.sheets.values())

    @property
    def questions(self) -> int:
        """How many requests this asking made."""
        return sum(facts["usage"]["requests"] for facts in self.sheets.values())


class Asker:
    """Puts perspectives to the judge of a run and reads its answers as a table of cases.

    Each sheet is graded in `folder` of the run; what the same sheet in the folders `also` named
    has answered is not asked again.
    """

    def __init__(
        self,
        store: RunStore,
        config: RunConfig,
        observer: Observer,
        stop: asyncio.Event,
        budget: Budget | None = None,
        *,
        asking: Asking,
        folder: str = "evolve",
        also: Sequence[str] = (),
        make_engine: MakeEngine = create_engine,
        check_judge: CheckJudge | None = None,
    ) -> None:
        self._store = store
        self._config = config
        self._observer = observer
        self._stop = stop
        self._budget = budget
        self._asking = asking
        self._folder = folder
        self._also = also
        self._make_engine = make_engine
        self._check_judge = check_judge

    async def ask(self, pool: Iterable[Perspective], cases: Sequence[Case]) -> Asked:
        """Return what the judge says about every case from every perspective."""
        pool = tuple(pool)
        sheets = by_sheet(pool, self._asking)
        facts: dict[str, Mapping[str, Any]] = {}
        said: list[SheetAnswers] = []
        judges: dict[str, JudgeFingerprint] = {}
        responses = self._responses(cases)
        for number, (sheet, perspectives) in enumerate(sheets.items(), 1):
            self._observer.part_began(sheet.name, number, len(sheets))
            self._observer.stage_entered("grade")
            inside = self._lay_out(sheet, perspectives, cases, responses)
            facts[sheet.name] = await self._grade(sheet, inside)
            judges[sheet.name] = inside.judge()
            said.append(SheetAnswers(sheet, inside, perspectives))
        return Asked(Said(pool, said).table(cases), judges, facts)

    def _responses(self, cases: Sequence[Case]) -> dict[tuple[str, str], Response]:
        wanted = {(case.query_id, name) for case in cases for name in case.candidates}
        found = {
            (response.query_id, response.candidate): response
            for response in self._store.inputs.responses()
            if (response.query_id, response.candidate) in wanted
        }
        absent = sorted(wanted - found.keys())
        if absent:
            query_id, candidate = absent[0]
            raise BenchmarkError(
                f"There is gold on {len(absent):,} responses that the benchmark does not have, "
                f"such as that of {candidate!r} to query {query_id!r}.",
                hint="Add the responses, or remove their votes or labels.",
            )
        return found

    def _lay_out(
        self,
        sheet: Sheet,
        perspectives: Sequence[Perspective],
        cases: Sequence[Case],
        responses: Mapping[tuple[str, str], Response],
    ) -> RunStore:
        """Return the run inside the run that this sheet is graded in, with its inputs."""
        inside = self._store.inside(self._folder, sheet.name)
        queries = _queries(self._store.inputs.queries, cases)
        shown = {
            (response.query_id, response.candidate): response
            for case in cases
            for response in show(sheet, case, queries[case.query_id], responses)
        }
        inside.inputs.save(list(queries.values()), shown.values(), (), (), ())
        items = tuple(perspective.text for perspective in perspectives)
        inside.inputs.save_checklists(Checklist(name, items, "evolve") for name in queries)
        inside.freeze(sheet_config(self._config, sheet))
        return inside

    async def _grade(self, sheet: Sheet, inside: RunStore) -> dict[str, Any]:
        config = sheet_config(self._config, sheet)
        engine = self._make_engine(config.judge, inside.engine_home("judge"))
        try:
            if self._check_judge is not None:
                judge = await judge_of(inside, config, sheet.method(), engine)
                self._check_judge(sheet.name, judge)
            with inside.locked():
                facts = await grade_responses(
                    inside,
                    config,
                    engine,
                    self._observer,
                    self._stop,
                    self._budget,
                    method=sheet.method(),
                    also=sheets_in(self._store, self._also, sheet),
                )
                inside.note("grade", facts)
        finally:
            await engine.aclose()
        return facts


def sheets_in(store: RunStore, folders: Iterable[str], sheet: Sheet) -> list[RunStore]:
    """Return the runs that a sheet was graded in, as far as these folders of a run have any."""
    insides = (store.inside(folder, sheet.name) for folder in folders)
    return [inside for inside in insides if inside.inputs.exist]


def sheet_config(config: RunConfig, sheet: Sheet) -> RunConfig:
    """Return the config of the run that a sheet is graded in: its judge has the sheet's labels."""
    judge = config.judge.model_copy(update={"labels": sheet.labels, "template": None})
    return config.model_copy(update={"judge": judge})


def _queries(known: Mapping[str, Query], cases: Sequence[Case]) -> dict[str, Query]:
    """Return the queries of the cases, in the order of the benchmark."""
    wanted = {case.query_id for case in cases}
    return {name: query for name, query in known.items() if name in wanted}


def show(
    sheet: Sheet, case: Case, query: Query, responses: Mapping[tuple[str, str], Response]
) -> list[Response]:
    """Return what a judge is shown of one case: the query alone, each response, or both as one."""
    if sheet is QUERIES:
        return [query_alone(query)]
    own = [responses[case.query_id, candidate] for candidate in case.candidates]
    return [pair_up(own[0], own[1])] if sheet.signed else own
