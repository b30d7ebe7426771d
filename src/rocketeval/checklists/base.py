"""The author seam: who makes a checklist for a query, and how its lists came about."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

from rocketeval.budget import PricedBudget
from rocketeval.config import AuthorConfig
from rocketeval.records import Checklist, Query, Usage
from rocketeval.registry import Registry
from rocketeval.store.codec import OPTIONAL, Finding
from rocketeval.store.journal import AuthoringEffort, PaidWork, RefusedList
from rocketeval.store.manifest import Composition, RefusalCounts

__all__ = [
    "Author",
    "AuthorContext",
    "AuthoringTrace",
    "SharedAuthor",
    "TracedAuthor",
    "create_author",
]

Record = Callable[[bytes, Checklist, AuthoringEffort | None], None]
"""Keeps a finished piece of work under its identity, and what it took."""


class Author(Protocol):
    """Makes one checklist per query."""

    digest: bytes
    """Identity of the author: model, prompt and limits. The same digest gives the same work."""
    costly: bool
    """Whether its checklists are worth keeping for the next run."""
    usage: Usage
    """What its work has cost so far, lists that could not be used included."""
    lost: int
    """Requests that brought no answer; they may be on the bill all the same."""

    @property
    def in_flight(self) -> int:
        """How many queries at once it can make use of."""
        ...

    @property
    def durable(self) -> bool:
        """Whether work in flight outlives this process, so that waiting for it can be dropped."""
        ...

    @classmethod
    def create(
        cls, config: AuthorConfig, imported: Mapping[str, Checklist], home: Path | None = None
    ) -> Author:
        """Return an author; `imported` holds the checklists the benchmark came with.

        `home` is a folder where it may keep files of its own from one process to the next.
        """
        ...

    async def prepare(self) -> None:
        """Check that the author can work; raises EngineError if it cannot."""
        ...

    def most(self, query: Query) -> Usage:
        """Return what a checklist for `query` uses at most, for a limit on the money."""
        ...

    async def write(self, query: Query) -> Checklist:
        """Return a checklist for `query`; ChecklistError names why there is none.

        EngineUnavailable ends the stage: what was written is kept, the next run goes on.
        """
        ...

    async def aclose(self) -> None:
        """Release connections."""
        ...


@dataclass(frozen=True, slots=True)
class AuthorContext:
    """What an author needs to work on something that all queries share."""

    known: Mapping[bytes, PaidWork]
    """Work that was paid for earlier, by its identity."""
    record: Record
    """Keeps a finished piece of work at once."""
    failed: Callable[[str, str], None]
    """Hears the name of what could not be done, and why."""
    spent: Callable[[Usage], None]
    """Hears what was used so far."""
    stop: asyncio.Event
    """Set when nothing new shall be begun."""
    budget: PricedBudget | None = None
    """The money there is; None without a limit."""
    run: str | None = None
    """The id of the run that pays."""


@runtime_checkable
class TracedAuthor(Author, Protocol):
    """An author that can tell what each of its lists took."""

    def provenance_of(self, traces: Mapping[str, AuthoringTrace]) -> Finding:
        """Return how it asks, and how each list came about, by query."""
        ...

    def effort(self, query_id: str) -> AuthoringEffort | None:
        """Return what the list for a query took, also one that failed; None if it was not asked."""
        ...


@runtime_checkable
class SharedAuthor(Author, Protocol):
    """An author whose one checklist is for every query: it is composed before it is handed out."""

    def foresee(self, known: Mapping[bytes, PaidWork]) -> Usage | None:
        """Compose from what was paid for earlier, without asking anybody.

        Returns None when that is enough, else the most that the rest uses.
        """
        ...

    async def compose(self, context: AuthorContext) -> bool:
        """Do the work there is to do; False when it was stopped or the money did not suffice.

        ChecklistError names what could not be done; what was done is recorded all the same.
        """
        ...

    def provenance(self) -> Finding:
        """Return where every item came from, and what was not taken; for a composed checklist."""
        ...

    def summary(self) -> Composition:
        """Return the counts of the same, and the steps that failed by name."""
        ...

    def refusals(self) -> RefusalCounts:
        """Return how many of its steps were refused at first, and why."""
        ...


AUTHORS: Registry[Author] = Registry(
    "author",
    {
        "dimension": "rocketeval.checklists.dimension:DimensionAuthor",
        "file": "rocketeval.checklists.simple:FileAuthor",
        "fixed": "rocketeval.checklists.simple:FixedAuthor",
        "imported": "rocketeval.checklists.simple:ImportedAuthor",
        "instance": "rocketeval.checklists.instance:InstanceAuthor",
    },
)


def create_author(
    config: AuthorConfig, imported: Mapping[str, Checklist], home: Path | None = None
) -> Author:
    """Return the author that `config` names; `home` is a folder for files of its own."""
    return AUTHORS.get(config.kind).create(config, imported, home)


@dataclass(frozen=True, slots=True)
class AuthoringTrace:
    """How the list for a query, or of a step, came about."""

    query_id: str = field(default="", metadata=OPTIONAL, kw_only=True)
    step: str = field(default="", metadata=OPTIONAL, kw_only=True)
    items: int | None
    """How many items or lines it has; None when there is no list."""
    attempts: int | None
    """None, as the next two, when a journal of an earlier version did not keep it."""
    refused: tuple[RefusedList, ...] | None
    usage: Usage | None
    run: str | None
    """The id of the run that paid for it; None as above."""
    failure: str | None
    """Why there is no list."""

    @classmethod
    def of(
        cls,
        items: int | None,
        effort: AuthoringEffort | None,
        run: str | None,
        failure: str | None = None,
    ) -> AuthoringTrace:
        """Return how a list of so many items came about."""
        if effort is None:
            return cls(items, None, None, None, run, failure)
        return cls(items, effort.attempts, effort.refused, effort.usage, run, failure)


def count_refusals(traces: Iterable[AuthoringTrace]) -> RefusalCounts:
    """Return how many lists were refused at first, and the mistakes, the most frequent first."""
    listed = list(traces)
    told = [trace.refused for trace in listed if trace.refused is not None]
    mistakes = Counter(refusal.mistake for refused in told for refusal in refused)
    return RefusalCounts(
        lists=len(listed),
        refused_at_first=sum(map(bool, told)),
        refusals=mistakes.total(),
        mistakes=dict(sorted(mistakes.items(), key=lambda pair: (-pair[1], pair[0]))),
        untold=len(listed) - len(told),
    )


def is_shared(checklists: Collection[Checklist]) -> bool:
    """Return whether several queries have one and the same checklist, all of them."""
    return len(checklists) > 1 and len({checklist.content_hash for checklist in checklists}) == 1
