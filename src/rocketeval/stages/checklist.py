"""checklist: every query gets its checklist."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any

from rocketeval.benchmarks.base import open_benchmark
from rocketeval.benchmarks.load import imported_checklists
from rocketeval.budget import Budget, Purse
from rocketeval.checklists.base import Desk, SharedAuthor, create_author
from rocketeval.checklists.write import (
    Authoring,
    authoring_key,
    share_checklist,
    write_checklists,
)
from rocketeval.config import PriceConfig, RunConfig
from rocketeval.cost import usage_facts
from rocketeval.engines.base import pulse_of
from rocketeval.errors import ChecklistError
from rocketeval.observing import Expected, Observer
from rocketeval.records import Query
from rocketeval.stages.bill import same_price
from rocketeval.store.run import RunStore


async def make_checklists(
    store: RunStore,
    config: RunConfig,
    observer: Observer,
    stop: asyncio.Event,
    budget: Budget | None = None,
) -> dict[str, Any]:
    """Write the run's checklists; return counts, cost and every query that has none, named."""
    price = config.author.price
    queries = store.inputs.queries
    observer.stage_began("checklist", len(queries))
    benchmark = open_benchmark(config.benchmark)
    author = create_author(
        config.author, imported_checklists(benchmark), store.engine_home("author")
    )
    journal = store.authored(config.cache)
    known = journal.known() if author.costly else {}
    observer.watched(partial(pulse_of, author))
    shared = author if isinstance(author, SharedAuthor) else None
    if shared:
        there = len(queries) if author.costly and shared.foresee(known) is None else 0
    else:
        there = sum(authoring_key(author, query) in known for query in queries.values())
    observer.reused(there, 0)
    expected = _expected(store.plan(), len(queries) - there, price) if author.costly else None
    if expected is not None:
        observer.expected(expected)

    def advance() -> None:
        observer.advanced()
        observer.spent(author.usage)

    purse = Purse(budget, price) if budget and price else None
    try:
        if shared:
            desk = Desk(known, journal.append, observer.unwritten, observer.spent, stop, purse)
            authoring = await share_checklist(shared, list(queries.values()), desk, advance=advance)
        else:
            authoring = await write_checklists(
                author,
                queries.values(),
                known=known,
                record=journal.append if author.costly else None,
                advance=advance,
                failed=observer.unwritten,
                concurrency=author.in_flight,
                stop=stop,
                purse=purse,
            )
    finally:
        await author.aclose()
    left = len(queries) - len(authoring.checklists) - len(authoring.failures)
    if not left:
        store.inputs.save_provenance(shared.provenance() if shared else None)
        _save(store, queries, authoring)
    composed = {"composition": shared.summary()} if shared and not left else {}
    return {
        **composed,
        "checklists": len(authoring.checklists),
        "items": sum(len(made.items) for made in authoring.checklists.values()),
        "reused": authoring.reused,
        "failures": authoring.failures,
        "unwritten": left,
        "usage": usage_facts(authoring.usage, price),
    }


def _expected(
    plan: Mapping[str, Any] | None, to_write: int, price: PriceConfig | None
) -> Expected | None:
    """Return the most that the plan lets the author cost; None if it was made for other work."""
    if plan is None or plan["author_cost"] is None or plan["checklists_to_write"] != to_write:
        return None
    if not same_price(plan.get("author_price"), price):
        return Expected(None, None, repriced=True)
    return Expected(None, plan["author_cost"], at_most=True)


def _save(store: RunStore, queries: Mapping[str, Query], authoring: Authoring) -> None:
    if not authoring.checklists:
        query_id, reason = next(iter(authoring.failures.items()))
        raise ChecklistError(
            f"No query has a checklist. Query {query_id!r}: {reason}",
            hint="See the author's settings in the config.",
        )
    made = authoring.checklists
    if store.inputs.save_checklists(made[query] for query in queries if query in made):
        store.drop_from("score")
