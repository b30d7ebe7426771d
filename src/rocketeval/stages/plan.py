"""plan: what a run would do, without contacting or writing anything."""

from __future__ import annotations

from dataclasses import dataclass

from rocketeval.benchmarks.base import open_benchmark
from rocketeval.benchmarks.load import imported_checklists, load
from rocketeval.config import RunConfig
from rocketeval.grading.judge import grading_prompt
from rocketeval.store.ledger import count_rows
from rocketeval.store.run import RunStore

CHARACTERS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Plan:
    """The size of a run before it starts."""

    queries: int
    candidates: int
    responses: int
    tasks: int
    """Responses whose query has a checklist."""
    items: int
    """Answers the judge will be asked for; those of queries without a checklist are unknown."""
    prompt_tokens: int
    """Estimated from characters; prefix caching makes most of them cheap."""
    checklists_to_write: int
    without_checklist: int
    finished: int | None
    """Judgments in the run's ledger; None if the run does not exist yet."""


def make_plan(config: RunConfig) -> Plan:
    """Return the size of the run that `config` describes."""
    benchmark = open_benchmark(config.benchmark)
    loaded = load(benchmark, config.benchmark)
    writes = config.author.kind != "imported"
    checklists = {} if writes else imported_checklists(benchmark)
    queries = {query.id: query for query in loaded.queries}
    frame = len(grading_prompt(config.judge.template).template.text)
    candidates, responses, tasks, items, characters = set(), 0, 0, 0, 0
    for response in loaded.responses():
        responses += 1
        candidates.add(response.candidate)
        checklist = checklists.get(response.query_id)
        if checklist is None:
            continue
        shared = frame + len(queries[response.query_id].text) + len(response.text)
        tasks += 1
        items += len(checklist.items)
        characters += sum(shared + len(item) for item in checklist.items)
    store = RunStore(config.run_path)
    missing = sum(query_id not in checklists for query_id in queries)
    return Plan(
        queries=len(queries),
        candidates=len(candidates),
        responses=responses,
        tasks=tasks,
        items=items,
        prompt_tokens=characters // CHARACTERS_PER_TOKEN,
        checklists_to_write=missing if writes else 0,
        without_checklist=0 if writes else missing,
        finished=count_rows(store.ledger_folder) if store.ledger_folder.is_dir() else None,
    )
