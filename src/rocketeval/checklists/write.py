"""The checklist stage: every query gets its checklist, or a named reason why it has none."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
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
from rocketeval.checklists.instance import AuthorTrial
from rocketeval.errors import ChecklistError
from rocketeval.hashing import content_hash
from rocketeval.prompts.render import shown
from rocketeval.records import Checklist, Query, Usage
from rocketeval.store.journal import PaidWork
from rocketeval.workers import GRACE_SECONDS, run_workers, unless_stopped


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

    def take_known(
        self,
        author: Author,
        queries: Iterable[Query],
        known: Mapping[bytes, PaidWork],
        advance: Callable[[], None],
    ) -> list[tuple[Query, bytes]]:
        """Take over what was paid for earlier; return the other queries with their identities."""
        unwritten: list[tuple[Query, bytes]] = []
        for query in queries:
            key = authoring_key(author, query)
            if key not in known:
                unwritten.append((query, key))
                continue
            paid = known[key]
            self.checklists[query.id] = Checklist(query.id, paid.items, paid.author)
            self.traces[query.id] = AuthoringTrace.of(len(paid.items), paid.effort, paid.run)
            self.reused += 1
            advance()
        return unwritten


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
    before_paying: Callable[[], Awaitable[None]] | None = None,
) -> AuthoredChecklists:
    """Return a checklist per query; `known` holds what was paid for earlier, by identity.

    Checklists that do not fit into the `budget` are not asked for. `run` is the id of the one that
    pays for the others. An author that has something to write is contacted first, then
    `before_paying` is awaited; whatever either raises comes before the first checklist is asked
    for. Raises EngineRefused when the author's lists cannot be read, again and again.
    """
    authoring = AuthoredChecklists()
    unwritten = authoring.take_known(author, queries, known, advance)
    remaining = iter(unwritten)
    trial = None
    if author.costly:
        attempts = getattr(author, "attempts", 1)
        trial = AuthorTrial(attempts, proven=authoring.reused > 0, gated=not author.durable)

    async def work() -> None:
        for query, key in remaining:
            if stop.is_set() or not await pay(query, key):
                return
            advance()

    async def pay(query: Query, key: bytes) -> bool:
        """Let the author write one; False when it is not to be asked any more."""
        if trial and not await trial.admit():
            return False
        try:
            reserved = await budget.reserve(author.most(query)) if budget else 0.0
            if reserved is None:
                return False
            if stop.is_set():
                if budget:
                    budget.settle(reserved, Usage())
                return False
            await _write_one(author, query, key, authoring, record, run)
            if budget:
                _settle(budget, reserved, authoring, author)
        finally:
            if trial:
                _tell(trial, author, query, authoring)
        if failed and query.id in authoring.failures:
            failed(query.id, authoring.failures[query.id])
        return True

    if unwritten:
        await unless_stopped(author.prepare(), stop)
        if before_paying is not None and author.costly:
            await unless_stopped(before_paying(), stop)
    await run_workers(work, concurrency, stop=stop, grace=0.0 if author.durable else GRACE_SECONDS)
    if trial:
        trial.raise_if_useless(getattr(author, "model", "LLM"), len(authoring.checklists))
    authoring.usage = author.usage
    return authoring


async def share_checklist(
    author: SharedAuthor,
    queries: Sequence[Query],
    context: AuthorContext,
    *,
    advance: Callable[[], None],
    before_paying: Callable[[], Awaitable[None]] | None = None,
) -> AuthoredChecklists:
    """Return one and the same checklist for every query; none when it could not be finished."""
    authoring = AuthoredChecklists()
    there = author.foresee(context.known) is None
    if not there:
        await unless_stopped(author.prepare(), context.stop)
        if before_paying is not None:
            await unless_stopped(before_paying(), context.stop)
    if there or await author.compose(context):
        for query in queries:
            authoring.checklists[query.id] = await author.write(query)
            advance()
    authoring.reused = len(queries) if there and author.costly else 0
    authoring.usage, authoring.lost = author.usage, author.lost
    return authoring


def _tell(trial: AuthorTrial, author: Author, query: Query, authoring: AuthoredChecklists) -> None:
    """Tell the trial what came of a query."""
    if query.id in authoring.checklists:
        trial.succeeded()
    elif query.id in authoring.failures:
        trace = authoring.traces.get(query.id)
        calls = trace.attempts if trace and trace.attempts else 1
        trial.failed(calls, authoring.failures[query.id], getattr(author, "last_words", ""))
    else:
        trial.dropped()


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
