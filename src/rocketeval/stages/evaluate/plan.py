"""plan, with an evaluator: each of its sheets is planned like a run, and all of them add up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from rocketeval.benchmarks.base import open_benchmark
from rocketeval.benchmarks.load import Loaded, load
from rocketeval.config import RunConfig
from rocketeval.evolve.cases import Case
from rocketeval.evolve.sheets import Sheet
from rocketeval.grading.judge import fingerprint
from rocketeval.hashing import content_hash
from rocketeval.records import Checklist, Query, Response
from rocketeval.stages.evaluate.cases import Cases
from rocketeval.stages.evaluate.given import ANSWERED, FOLDER, Given, check_judge
from rocketeval.stages.evaluate.totals import KNOWN, total
from rocketeval.stages.evolve.ask import MakeEngine, sheet_config, sheets_in, show
from rocketeval.stages.plan import MOST_PROMPTS, Plan, plan_grading
from rocketeval.stages.work import Checklists
from rocketeval.store.run import RunStore

Row = tuple[str, str]
"""A query and a candidate."""
_SUMMED = (
    "tasks",
    "finished",
    "from_cache",
    "to_judge",
    "items",
    "requests",
    "prompt_tokens",
    "computed_tokens",
    "prompts_counted",
    "cost",
    "cost_with_reuse",
    "seconds",
)


@dataclass(frozen=True)
class _Shown:
    """What a judge is shown on one sheet."""

    queries: Sequence[Query]
    shown: Sequence[Response]

    def responses(self) -> Iterator[Response]:
        """Yield what stands for responses."""
        return iter(self.shown)


async def plan_with_evaluator(
    store: RunStore,
    config: RunConfig,
    given: Given,
    make_engine: MakeEngine | None,
    *,
    most_prompts: int | None = MOST_PROMPTS,
    rate: float | None = None,
    probe: bool = False,
) -> Plan:
    """Return the size of the run, and keep each sheet's plan inside it, for its bill.

    Without `make_engine` nothing is contacted or written.
    """
    loaded = load(open_benchmark(config.benchmark), config.benchmark)
    responses = {(each.query_id, each.candidate): each for each in loaded.responses()}
    asked = _cases(loaded, responses, given).asked()
    plans = []
    for sheet, perspectives in given.sheets.items():
        material = _material(sheet, loaded, asked, responses)
        items = tuple(each.text for each in perspectives)
        checklists = Checklists({q.id: Checklist(q.id, items) for q in material.queries})
        inside, settings = store.inside(FOLDER, sheet.name), sheet_config(config, sheet)
        engine = make_engine(settings.judge, inside.engine_home("judge")) if make_engine else None
        try:
            if engine is not None:
                judge = fingerprint(await engine.identify(), sheet.method())
                check_judge(given, sheet.name, judge)
            plan = await plan_grading(
                inside,
                settings,
                engine,
                material,
                checklists,
                sheet.method(),
                also=sheets_in(store, ANSWERED, sheet),
                most_prompts=most_prompts,
                rate=rate,
                probe=probe,
            )
        finally:
            if engine is not None:
                await engine.aclose()
        if make_engine is not None:
            inside.save_plan(asdict(plan))
        plans.append(plan)
    return replace(
        _total(plans),
        queries=len(loaded.queries),
        candidates=len({candidate for _, candidate in responses}),
        responses=len(responses),
    )


def _cases(loaded: Loaded, responses: Iterable[Row], given: Given) -> Cases:
    """Return what the run would decide about, in the order that it would be loaded in."""
    by_query: dict[str, list[str]] = {query.id: [] for query in loaded.queries}
    for query_id, candidate in sorted(responses):
        by_query[query_id].append(candidate)
    answered = {query_id: names for query_id, names in by_query.items() if names}
    return Cases(answered, loaded.votes(), given.evaluator)


def _material(
    sheet: Sheet, loaded: Loaded, asked: Sequence[Case], responses: Mapping[Row, Response]
) -> _Shown:
    cases: dict[str, list[Case]] = {}
    for case in asked:
        cases.setdefault(case.query_id, []).append(case)
    queries = [query for query in loaded.queries if query.id in cases]
    shown = {
        (one.query_id, one.candidate): one
        for query in queries
        for case in cases[query.id]
        for one in show(sheet, case, query, responses)
    }
    return _Shown(queries, tuple(shown.values()))


def _total(plans: Sequence[Plan]) -> Plan:
    """Return the plan of all sheets together."""
    sums: dict[str, Any] = {
        name: total([getattr(plan, name) for plan in plans]) for name in _SUMMED
    }
    seconds, items = sums["seconds"], sums["items"]
    return replace(
        plans[0],
        **sums,
        made_for=content_hash([plan.made_for for plan in plans]).hex(),
        # Every sheet has a judge of its own.
        judge_digest=None,
        tokens_known=max((plan.tokens_known for plan in plans), key=KNOWN.index),
        items_per_second=items / seconds if items and seconds else None,
        rate_from=next((one.rate_from for one in plans if one.seconds is None), plans[0].rate_from),
    )
