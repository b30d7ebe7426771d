"""Writes a checklist for every query, or records the reason why it has none."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from rocketeval.budget import PricedBudget, Reservation
from rocketeval.checklists.base import (
    Author,
    AuthorContext,
    AuthoringTrace,
    Record,
    SharedAuthor,
    TracedAuthor,
)
from rocketeval.checklists.instance import AuthorTrial
from rocketeval.errors import ChecklistError, EngineError
from rocketeval.hashing import content_hash
from rocketeval.prompts.render import shown
from rocketeval.records import Checklist, Query, Usage
from rocketeval.store.journal import PaidWork
from rocketeval.workers import GRACE_SECONDS, run_workers, unless_stopped


@dataclass
class AuthoredChecklists:
    """The written checklists, and the failures."""

    checklists: dict[str, Checklist] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    """Failure reason by query id."""
    traces: dict[str, AuthoringTrace] = field(default_factory=dict)
    """Authoring trace by query id, for authors that record it."""
    usage: Usage = field(default_factory=Usage)
    lost: int = 0
    """Number of requests without an answer."""
    reused: int = 0
    """Number of checklists reused from earlier runs."""

    def take_known(
        self,
        author: Author,
        queries: Iterable[Query],
        known: Mapping[bytes, PaidWork],
        advance: Callable[[], None],
    ) -> list[tuple[Query, bytes]]:
        """Reuse earlier checklists; return the other queries with their identities."""
        unwritten: list[tuple[Query, bytes]] = []
        for query in queries:
            key = authoring_key(author, query)
            if key not in known:
                unwritten.append((query, key))
                continue
            paid = known[key]
            self.checklists[query.id] = paid.checklist(query.id)
            self.traces[query.id] = AuthoringTrace.of(len(paid.items), paid.effort, paid.run)
            self.reused += 1
            advance()
        return unwritten


def authoring_key(author: Author, query: Query) -> bytes:
    """Return a checklist's identity: the author, and everything it sees of the query."""
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
    """Return a checklist per query; `known` holds earlier work by identity, which is reused.

    Checklists that exceed the `budget` are not requested. `run` is the id of the run that pays.
    If there is anything to write, the author is contacted first, then `before_paying` is awaited;
    both may raise before the first checklist is requested. Raises EngineRefused if the author's
    lists repeatedly cannot be read. If its engine fails, lists in flight have a few seconds to
    finish, as after a stop.
    """
    authoring = AuthoredChecklists()
    unwritten = authoring.take_known(author, queries, known, advance)
    remaining = iter(unwritten)
    trial = None
    if author.costly:
        attempts = getattr(author, "attempts", 1)
        trial = AuthorTrial(attempts, proven=authoring.reused > 0, gated=not author.durable)

    refused = False

    async def work() -> None:
        nonlocal refused
        for query, key in remaining:
            try:
                if stop.is_set() or refused or not await pay(query, key):
                    return
            except EngineError:
                refused = True
                raise
            advance()

    async def pay(query: Query, key: bytes) -> bool:
        """Have the author write one checklist; return False if no more should be requested."""
        if trial and not await trial.admit():
            return False
        try:
            reserved = await budget.reserve(author.most(query)) if budget else Reservation()
            if reserved is None:
                return False
            if stop.is_set() or refused:
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
    grace = 0.0 if author.durable else GRACE_SECONDS
    await run_workers(work, concurrency, stop=stop, grace=grace, grace_on_error=True)
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
    """Return one shared checklist for every query; none if it could not be finished."""
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
    """Report a query's outcome to the trial."""
    if query.id in authoring.checklists:
        trial.succeeded()
    elif query.id in authoring.failures:
        trace = authoring.traces.get(query.id)
        calls = trace.attempts if trace and trace.attempts else 1
        trial.failed(calls, authoring.failures[query.id], getattr(author, "last_words", ""))
    else:
        trial.dropped()


def _settle(
    budget: PricedBudget, reserved: Reservation, authoring: AuthoredChecklists, author: Author
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
