"""The checklist stage: every query gets its checklist, or a named reason why it has none."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from rocketeval.budget import PricedBudget
from rocketeval.checklists.base import (
    Author,
    AuthorContext,
    AuthoringTrace,
    Record,
    SharedAuthor,
    TracedAuthor,
)
from rocketeval.errors import ChecklistError
from rocketeval.hashing import content_hash
from rocketeval.prompts.render import shown
from rocketeval.records import Checklist, Query, Usage
from rocketeval.store.journal import PaidWork
from rocketeval.workers import run_workers


@dataclass
class AuthoredChecklists:
    """The checklists that were made, and what is missing."""

    checklists: dict[str, Checklist] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    """Reason by query id."""
    traces: dict[str, AuthoringTrace] = field(default_factory=dict)
    """How each came about, by query id; of authors that tell."""
    usage: Usage = field(default_factory=Usage)
    lost: int = 0
    """Requests that brought no answer."""
    reused: int = 0
    """Checklists an earlier run had paid for."""


def authoring_key(author: Author, query: Query) -> bytes:
    """Identity of a checklist: who writes it, and all the author sees of the query."""
    turns = (turn.content for turn in query.history)
    seen = shown(query.content_hash, query.text, query.reference or "", *turns)
    return content_hash("authored", author.digest.hex(), seen.hex(), query.reference)


async def write_checklists(
    author: Author,
    queries: Iterable[Query],
    *,
    known: Mapping[bytes, PaidWork],
    record: Record | None,
    advance: Callable[[], None],
    failed: Callable[[str, str], None] | None = None,
    concurrency: int,
    stop: asyncio.Event,
    budget: PricedBudget | None = None,
    run: str | None = None,
) -> AuthoredChecklists:
    """Return a checklist per query; `known` holds what was paid for earlier, by identity.

    Checklists that do not fit into the `budget` are not asked for. `run` is the id of the one that
    pays for the others.
    """
    authoring = AuthoredChecklists()
    remaining = iter(queries)

    async def work() -> None:
        for query in remaining:
            if stop.is_set():
                return
            key = authoring_key(author, query)
            if key in known:
                paid = known[key]
                authoring.checklists[query.id] = Checklist(query.id, paid.items, paid.author)
                authoring.traces[query.id] = AuthoringTrace.of(
                    len(paid.items), paid.effort, paid.run
                )
                authoring.reused += 1
            else:
                reserved = await budget.reserve(author.most(query)) if budget else 0.0
                if reserved is None:
                    return
                if budget and stop.is_set():
                    budget.settle(reserved, Usage())
                    return
                await _write_one(author, query, key, authoring, record, run)
                if failed and query.id in authoring.failures:
                    failed(query.id, authoring.failures[query.id])
                if budget:
                    _settle(budget, reserved, authoring, author)
            advance()

    await author.prepare()
    await run_workers(work, concurrency, drop_at=stop if author.durable else None)
    authoring.usage = author.usage
    return authoring


async def share_checklist(
    author: SharedAuthor,
    queries: Sequence[Query],
    context: AuthorContext,
    *,
    advance: Callable[[], None],
) -> AuthoredChecklists:
    """Return one and the same checklist for every query; none when it could not be finished."""
    authoring = AuthoredChecklists()
    there = author.foresee(context.known) is None
    if not there:
        await author.prepare()
    if there or await author.compose(context):
        for query in queries:
            authoring.checklists[query.id] = await author.write(query)
            advance()
    authoring.reused = len(queries) if there and author.costly else 0
    authoring.usage, authoring.lost = author.usage, author.lost
    return authoring


def _settle(
    budget: PricedBudget, reserved: float, authoring: AuthoredChecklists, author: Author
) -> None:
    used, authoring.usage = author.usage - authoring.usage, author.usage
    lost, authoring.lost = author.lost - authoring.lost, author.lost
    budget.settle(reserved, used, untold=lost + (0 if used.prompt_tokens else 1))


async def _write_one(
    author: Author,
    query: Query,
    key: bytes,
    authoring: AuthoredChecklists,
    record: Record | None,
    run: str | None,
) -> None:
    traced = author if isinstance(author, TracedAuthor) else None
    try:
        checklist = await author.write(query)
    except ChecklistError as error:
        authoring.failures[query.id] = error.message
        if traced:
            effort = traced.effort(query.id)
            authoring.traces[query.id] = AuthoringTrace.of(None, effort, run, error.message)
        return
    effort = traced.effort(query.id) if traced else None
    if record is not None:
        record(key, checklist, effort)
    authoring.checklists[query.id] = checklist
    if traced:
        authoring.traces[query.id] = AuthoringTrace.of(len(checklist.items), effort, run)
