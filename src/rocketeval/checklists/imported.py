"""Checklists that come with the benchmark."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rocketeval.config import AuthorConfig, NoOptions, parse_options
from rocketeval.errors import ChecklistError
from rocketeval.hashing import content_hash
from rocketeval.records import Checklist, Query, Usage


class ImportedAuthor:
    """Hands out the benchmark's own checklists."""

    costly = False
    in_flight = 1
    durable = False
    lost = 0

    def __init__(self, checklists: Mapping[str, Checklist]) -> None:
        self.digest = content_hash("imported")
        self.usage = Usage()
        self._checklists = checklists

    @classmethod
    def create(
        cls, config: AuthorConfig, imported: Mapping[str, Checklist], home: Path | None = None
    ) -> ImportedAuthor:
        """Return an author of the `imported` checklists."""
        parse_options(config.options, NoOptions, "author.options")
        return cls(imported)

    async def prepare(self) -> None:
        """Fail when the benchmark came without any checklist."""
        if not self._checklists:
            raise ChecklistError(
                "The benchmark has no checklists.",
                hint="Add them, or set `author.kind: instance` so that an LLM writes them.",
            )

    def most(self, query: Query) -> Usage:
        """Return nothing: these checklists are there."""
        return Usage()

    async def write(self, query: Query) -> Checklist:
        """Return the checklist of `query`."""
        found = self._checklists.get(query.id)
        if found is None:
            raise ChecklistError("the benchmark has no checklist for it.")
        if not found.items or not all(item.strip() for item in found.items):
            raise ChecklistError("its checklist is empty or holds an empty item.")
        return found

    async def aclose(self) -> None:
        """Do nothing."""
