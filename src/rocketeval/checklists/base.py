"""The author seam: who makes a checklist for a query."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from rocketeval.config import AuthorConfig
from rocketeval.records import Checklist, Query, Usage
from rocketeval.registry import Registry


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


AUTHORS: Registry[Author] = Registry(
    "author",
    {
        "fixed": "rocketeval.checklists.fixed:FixedAuthor",
        "imported": "rocketeval.checklists.imported:ImportedAuthor",
        "instance": "rocketeval.checklists.instance:InstanceAuthor",
    },
)


def create_author(
    config: AuthorConfig, imported: Mapping[str, Checklist], home: Path | None = None
) -> Author:
    """Return the author that `config` names; `home` is a folder for files of its own."""
    return AUTHORS.get(config.kind).create(config, imported, home)
