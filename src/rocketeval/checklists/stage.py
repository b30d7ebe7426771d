"""The checklist stage: every query gets its checklist."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import islice

from rocketeval.benchmarks.base import open_benchmark
from rocketeval.benchmarks.load import imported_checklists
from rocketeval.budget import Budget, PricedBudget
from rocketeval.checklists.base import (
    Author,
    AuthorContext,
    SharedAuthor,
    TracedAuthor,
    count_refusals,
    create_author,
)
from rocketeval.checklists.rubric import (
    bind_checklist,
    rubric_notes,
    rubric_options,
    weight_notes,
)
from rocketeval.checklists.simple import FiledAuthor, FixedAuthor, ImportedAuthor, leaves_out
from rocketeval.checklists.write import (
    AuthoredChecklists,
    authoring_key,
    share_checklist,
    write_checklists,
)
from rocketeval.config import PriceConfig, RunConfig
from rocketeval.engines.base import confirm_recorded, status_of
from rocketeval.errors import ChecklistError, EngineError
from rocketeval.observer import EngineStatus, Expected, Observer
from rocketeval.prices import priced
from rocketeval.records import Checklist, Query, Usage
from rocketeval.store.codec import Finding
from rocketeval.store.journal import PaidWork
from rocketeval.store.manifest import ChecklistFacts, Plan, RefusalCounts
from rocketeval.store.run import RunStore
from rocketeval.text import join_words

SHOWN_FAILURES = 3
"""Number of failures to name when no query has a checklist."""
MOST_UNKNOWN = 20
"""Number of unknown ids to name; all are counted."""


async def make_checklists(
    store: RunStore,
    config: RunConfig,
    observer: Observer,
    stop: asyncio.Event,
    budget: Budget | None = None,
    *,
    before_paying: Callable[[], Awaitable[None]] | None = None,
) -> ChecklistFacts:
    """Write the run's checklists; return counts, cost and the queries without a checklist.

    `before_paying` is awaited after the author was contacted and before it writes anything; it
    raises if the checklists would be useless. It is skipped if all checklists exist.
    """
    price = config.author.price
    queries = store.inputs.queries
    observer.stage_began("checklist", len(queries))
    benchmark = open_benchmark(config.benchmark)
    author = create_author(
        config.author, imported_checklists(benchmark), store.engine_home("author")
    )
    journal = store.authored(config.cache)
    run = store.manifest().run_id
    record = partial(journal.append, run=run)
    known = journal.known() if author.costly else {}
    observer.watched(partial(_first_contact, author, config))

    async def check() -> None:
        journal.check_writable()
        if before_paying is not None:
            await before_paying()
        observer.watched(partial(status_of, author))

    shared = author if isinstance(author, SharedAuthor) else None
    keys = [] if shared else [authoring_key(author, query) for query in queries.values()]
    there = {key: known[key] for key in keys if key in known}
    reused = sum(key in there for key in keys)
    if shared and author.costly and shared.foresee(known) is None:
        reused = len(queries)
    observer.reused(reused, 0)
    expected = _expected(store, len(queries) - reused, price) if author.costly else None
    if expected is not None:
        observer.expected(expected)

    def advance() -> None:
        observer.advanced()
        observer.spent(author.usage)

    limit = PricedBudget(budget, price) if budget and price else None
    try:
        if shared:
            context = AuthorContext(
                known, record, observer.unwritten, observer.spent, stop, limit, run
            )
            authoring = await share_checklist(
                shared,
                list(queries.values()),
                context,
                advance=advance,
                before_paying=check,
            )
        else:
            authoring = await write_checklists(
                author,
                queries.values(),
                known=known,
                record=record if author.costly else None,
                advance=advance,
                failed=observer.unwritten,
                concurrency=author.in_flight,
                stop=stop,
                budget=limit,
                run=run,
                before_paying=check,
            )
        done = len(authoring.checklists) + len(authoring.failures)
        confirm_recorded(author, everything=done == len(queries))
    except (ChecklistError, EngineError):
        # Finished lists are recorded, and unreadable ones must be requested again.
        confirm_recorded(author)
        raise
    finally:
        await author.aclose()
    unusable = _bind(authoring, author, queries, config, observer)
    left = len(queries) - len(authoring.checklists) - len(authoring.failures)
    unscored = weight_notes(authoring.checklists, config.scorer, complete=not left)
    if not left:
        _save(store, queries, authoring)
        store.inputs.save_provenance(_provenance(author, queries, authoring))
    unknown = _unknown(author, queries, config)
    made = authoring.checklists
    in_all = _earlier_usage(store, there.values()) + authoring.usage
    return ChecklistFacts(
        composition=shared.summary() if shared and not left else None,
        refusals=_refusals(author, authoring),
        unknown=None if unknown is None else dict(islice(unknown.items(), MOST_UNKNOWN)),
        unknown_count=None if unknown is None else len(unknown),
        notes=(
            *(() if shared or isinstance(author, FixedAuthor) else _notes(made)),
            *unscored,
            *rubric_notes(made, queries, store.inputs.heads),
            *unusable,
        ),
        checklists=len(authoring.checklists),
        items=sum(len(made.items) for made in authoring.checklists.values()),
        reused=authoring.reused,
        failures=authoring.failures,
        unwritten=left,
        usage=priced(authoring.usage, price),
        usage_of_run=priced(in_all, price) if in_all.requests else None,
    )


def _bind(
    authoring: AuthoredChecklists,
    author: Author,
    queries: Mapping[str, Query],
    config: RunConfig,
    observer: Observer,
) -> list[str]:
    """Bind every checklist to the config; one that cannot be asked counts as a failure.

    Of a benchmark's own checklists only the wrong items are left out; return notes on them.
    """
    options = rubric_options(config)
    left_out: list[str] | None = [] if leaves_out(author) else None
    for query_id, made in list(authoring.checklists.items()):
        try:
            bound = bind_checklist(made, queries[query_id], options, left_out)
            authoring.checklists[query_id] = bound
        except ChecklistError as error:
            del authoring.checklists[query_id]
            authoring.failures[query_id] = error.message
            observer.unwritten(query_id, error.message)
    if not left_out:
        return []
    some = "; ".join(left_out[:SHOWN_FAILURES])
    return [f"items left out because they cannot be checked: {len(left_out):,} ({some})."]


def _first_contact(author: Author, config: RunConfig) -> EngineStatus:
    """Return the status to show before the first checklist."""
    status = status_of(author)
    if config.author.engine is None:
        return status
    return replace(status, waiting=f"waiting for the author {config.author.engine.model}")


def _unknown(
    author: Author, queries: Mapping[str, Query], config: RunConfig
) -> Mapping[str, str | None] | None:
    """Return the ids in an author's file without a query, with the nearest query.

    Returns None under a limit, because an id may belong to a query that was cut off.
    """
    part = config.benchmark.limit is not None or config.benchmark.queries is not None
    if not isinstance(author, FiledAuthor) or part:
        return None
    found = author.unknown(queries)
    # A benchmark may have more queries than the run uses.
    return found or (None if isinstance(author, ImportedAuthor) else found)


def _notes(checklists: Mapping[str, Checklist]) -> Iterator[str]:
    """Yield warnings about unusual but valid lists."""
    made = checklists.values()
    twice = [repr(each.query_id) for each in made if len(set(each.items)) < len(each.items)]
    if twice:
        yield (
            f"checklists with the same item twice: {len(twice):,} "
            f"({join_words(twice, most=SHOWN_FAILURES)}). The item counts twice: "
            "`rocketeval lint` shows it."
        )
    single = [repr(each.query_id) for each in made if len(each.items) == 1]
    if single:
        yield (
            f"checklists of one item: {len(single):,} ({join_words(single, most=SHOWN_FAILURES)}). "
            "Their scores depend on a single answer."
        )


def _expected(store: RunStore, to_write: int, price: PriceConfig | None) -> Expected | None:
    """Return the planned maximum cost of the author; None if the plan is for other work."""
    plan = store.read_if_made(Plan)
    if plan is None or plan.author_cost is None or plan.checklists_to_write != to_write:
        return None
    if plan.author_price != price:
        return Expected(None, None, repriced=True)
    return Expected(None, plan.author_cost, at_most=True)


def _provenance(
    author: Author, queries: Iterable[str], authoring: AuthoredChecklists
) -> Finding | None:
    """Return the checklists' provenance; None if the author does not record it."""
    if isinstance(author, SharedAuthor):
        return author.provenance()
    if not isinstance(author, TracedAuthor):
        return None
    return author.provenance_of({query: authoring.traces[query] for query in queries})


def _refusals(author: Author, authoring: AuthoredChecklists) -> RefusalCounts | None:
    """Return how often lists were refused; None if the author does not record it."""
    if not author.costly:
        return None
    if isinstance(author, SharedAuthor):
        return author.refusals()
    traced = isinstance(author, TracedAuthor)
    return count_refusals(authoring.traces.values()) if traced else None


def _earlier_usage(store: RunStore, known: Iterable[PaidWork]) -> Usage:
    """Return the author's usage in earlier commands of the run.

    The manifest lacks commands that did not end; the journal lacks lists that were refused.
    """
    manifest = store.manifest()
    own = (work.effort for work in known if work.run == manifest.run_id)
    journaled = sum((effort.usage for effort in own if effort), Usage())
    counted = manifest.stages.checklist.paid.usage
    return max(counted, journaled, key=lambda usage: usage.requests)


def _save(store: RunStore, queries: Mapping[str, Query], authoring: AuthoredChecklists) -> None:
    if not authoring.checklists:
        named = [f"Query {query!r}: {why}" for query, why in authoring.failures.items()]
        more = len(named) - SHOWN_FAILURES
        raise ChecklistError(
            "No query has a checklist. "
            + "\n".join(named[:SHOWN_FAILURES])
            + (f"\nand {more:,} more." if more > 0 else ""),
            hint="Check these items, and the author's settings in the config.",
        )
    made = authoring.checklists
    if store.inputs.save_checklists(made[query] for query in queries if query in made):
        store.drop_from("attack")
