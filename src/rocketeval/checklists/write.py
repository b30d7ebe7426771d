"""The checklist stage: every query gets its checklist, or a named reason why it has none."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from rocketeval.checklists.base import Author
from rocketeval.errors import ChecklistError
from rocketeval.hashing import content_hash
from rocketeval.records import Checklist, Query, Usage
from rocketeval.workers import run_workers


@dataclass
class Authoring:
    """The checklists that were made, and what is missing."""

    checklists: dict[str, Checklist] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    """Reason by query id."""
    usage: Usage = field(default_factory=Usage)
    reused: int = 0
    """Checklists an earlier run had paid for."""


def authoring_key(author: Author, query: Query) -> bytes:
    """Identity of a checklist: who writes it, and all the author sees of the query."""
    return content_hash("authored", author.digest.hex(), query.content_hash.hex(), query.reference)


async def write_checklists(
    author: Author,
    queries: Iterable[Query],
    *,
    known: Mapping[bytes, tuple[str, tuple[str, ...]]],
    record: Callable[[bytes, Checklist], None] | None,
    advance: Callable[[], None],
    concurrency: int,
    stop: asyncio.Event,
) -> Authoring:
    """Return a checklist per query; `known` maps keys to (author, items) paid for earlier."""
    authoring = Authoring()
    remaining = iter(queries)

    async def work() -> None:
        for query in remaining:
            if stop.is_set():
                return
            key = authoring_key(author, query)
            if key in known:
                author_name, items = known[key]
                authoring.checklists[query.id] = Checklist(query.id, items, author_name)
                authoring.reused += 1
            else:
                await _write_one(author, query, key, authoring, record)
            advance()

    await author.prepare()
    await run_workers(work, concurrency, drop_at=stop if author.durable else None)
    authoring.usage = author.usage
    return authoring


async def _write_one(
    author: Author,
    query: Query,
    key: bytes,
    authoring: Authoring,
    record: Callable[[bytes, Checklist], None] | None,
) -> None:
    try:
        checklist = await author.write(query)
    except ChecklistError as error:
        authoring.failures[query.id] = error.message
        return
    if record is not None:
        record(key, checklist)
    authoring.checklists[query.id] = checklist
