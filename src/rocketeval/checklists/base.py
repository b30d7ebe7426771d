"""The author seam: protocols for authors of checklists, and traces of their work."""

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
"""Stores finished work under its identity, with the effort it took."""


class Author(Protocol):
    """Creates one checklist per query."""

    digest: bytes
    """Identity of the author (model, prompt and limits); work is reused under the same digest."""
    costly: bool
    """Whether its checklists are kept for later runs."""
    usage: Usage
    """Usage so far, including unusable lists."""
    lost: int
    """Number of requests without an answer; the provider may still charge for them."""

    @property
    def in_flight(self) -> int:
        """Return how many queries it can work on at once."""
        ...

    @property
    def durable(self) -> bool:
        """Return whether work in flight survives this process, so that it need not be awaited."""
        ...

    @classmethod
    def create(
        cls, config: AuthorConfig, imported: Mapping[str, Checklist], home: Path | None = None
    ) -> Author:
        """Return an author; `imported` holds the benchmark's own checklists.

        `home` is a folder where it may keep files between processes.
        """
        ...

    async def prepare(self) -> None:
        """Raise EngineError unless the author can work."""
        ...

    def most(self, query: Query) -> Usage:
        """Return the maximum usage of a checklist for `query`, to enforce a cost limit."""
        ...

    async def write(self, query: Query) -> Checklist:
        """Return a checklist for `query`; raise ChecklistError with the reason if there is none.

        EngineUnavailable ends the stage. Finished lists are kept, and the next run continues.
        """
        ...

    async def aclose(self) -> None:
        """Release connections."""
        ...


@dataclass(frozen=True, slots=True)
class AuthorContext:
    """Context for an author whose work is shared by all queries."""

    known: Mapping[bytes, PaidWork]
    """Work paid for earlier, by identity."""
    record: Record
    """Stores finished work immediately."""
    failed: Callable[[str, str], None]
    """Called with the name of failed work and the reason."""
    spent: Callable[[Usage], None]
    """Called with the usage so far."""
    stop: asyncio.Event
    """Set when no new work may start."""
    budget: PricedBudget | None = None
    """The remaining budget; None without a limit."""
    run: str | None = None
    """Id of the run that pays."""


@runtime_checkable
class TracedAuthor(Author, Protocol):
    """An author that records the effort of each list."""

    def provenance_of(self, traces: Mapping[str, AuthoringTrace]) -> Finding:
        """Return the provenance of all lists, with a trace per query."""
        ...

    def effort(self, query_id: str) -> AuthoringEffort | None:
        """Return the effort of a query's list, even a failed one; None if it was not requested."""
        ...


@runtime_checkable
class SharedAuthor(Author, Protocol):
    """An author that composes one checklist for all queries."""

    def foresee(self, known: Mapping[bytes, PaidWork]) -> Usage | None:
        """Compose the checklist from earlier work, without sending requests.

        Returns None if that is enough, otherwise the maximum usage of the rest.
        """
        ...

    async def compose(self, context: AuthorContext) -> bool:
        """Do the remaining work; return False if it was stopped or the budget ran out.

        Raises ChecklistError that names the failed work; finished work is recorded anyway.
        """
        ...

    def provenance(self) -> Finding:
        """Return the origin of every item and the rejected questions of a composed checklist."""
        ...

    def summary(self) -> Composition:
        """Return counts of the provenance, and the failed steps by name."""
        ...

    def refusals(self) -> RefusalCounts:
        """Return how many steps were refused at first, and why."""
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
    """Return the author that `config` names; `home` is a folder for its files."""
    return AUTHORS.get(config.kind).create(config, imported, home)


@dataclass(frozen=True, slots=True)
class AuthoringTrace:
    """How a query's list, or a step's list, was written."""

    query_id: str = field(default="", metadata=OPTIONAL, kw_only=True)
    step: str = field(default="", metadata=OPTIONAL, kw_only=True)
    items: int | None
    """Number of items or lines; None without a list."""
    attempts: int | None
    """Number of attempts; this and the next two are None in journals of earlier versions."""
    refused: tuple[RefusedList, ...] | None
    usage: Usage | None
    run: str | None
    """Id of the run that paid for it; may be None as above."""
    failure: str | None
    """Reason why there is no list."""

    @classmethod
    def of(
        cls,
        items: int | None,
        effort: AuthoringEffort | None,
        run: str | None,
        failure: str | None = None,
    ) -> AuthoringTrace:
        """Return the trace of a list with `items` items."""
        if effort is None:
            return cls(items, None, None, None, run, failure)
        return cls(items, effort.attempts, effort.refused, effort.usage, run, failure)


def count_refusals(traces: Iterable[AuthoringTrace]) -> RefusalCounts:
    """Return the number of lists refused at first, and the mistakes, most frequent first."""
    listed = list(traces)
    known = [trace.refused for trace in listed if trace.refused is not None]
    mistakes = Counter(refusal.mistake for refused in known for refusal in refused)
    return RefusalCounts(
        lists=len(listed),
        refused_at_first=sum(map(bool, known)),
        refusals=mistakes.total(),
        mistakes=dict(sorted(mistakes.items(), key=lambda pair: (-pair[1], pair[0]))),
        untold=len(listed) - len(known),
    )


def is_shared(checklists: Collection[Checklist]) -> bool:
    """Return whether there are several queries and all share one checklist."""
    return len(checklists) > 1 and len({checklist.scoring_hash for checklist in checklists}) == 1
