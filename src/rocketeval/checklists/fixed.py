"""The same items for every query."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import Field

from rocketeval.config import AuthorConfig, Section, parse_options
from rocketeval.errors import ConfigError
from rocketeval.hashing import content_hash
from rocketeval.records import Checklist, Query, Usage

REFERENCE = "A response that is known to be good, to compare it with:"
"""What introduces the reference."""


class FixedOptions(Section):
    """Settings of the fixed author."""

    items: Annotated[tuple[str, ...], Field(min_length=1)]
    """The items, in order."""
    reference: bool = False
    """Put the query's reference response behind every item; a query without one gets none."""


class FixedAuthor:
    """Gives every query one and the same checklist, with the query's reference if wanted."""

    costly = False
    in_flight = 1
    durable = False
    lost = 0

    def __init__(self, items: tuple[str, ...], *, reference: bool = False) -> None:
        self.digest = content_hash("fixed", list(items), reference)
        self.usage = Usage()
        self._items = items
        self._reference = reference

    @classmethod
    def create(
        cls, config: AuthorConfig, imported: Mapping[str, Checklist], home: Path | None = None
    ) -> FixedAuthor:
        """Return an author of the items in the config's `options`."""
        options = parse_options(config.options, FixedOptions, "author.options")
        if not all(item.strip() for item in options.items):
            raise ConfigError("author.options.items holds an empty item.")
        return cls(options.items, reference=options.reference)

    async def prepare(self) -> None:
        """Do nothing: the items are there."""

    def most(self, query: Query) -> Usage:
        """Return nothing: these items cost nothing."""
        return Usage()

    async def write(self, query: Query) -> Checklist:
        """Return the items for `query`."""
        behind = ""
        if self._reference and query.reference is not None:
            behind = f"\n\n{REFERENCE}\n{query.reference}"
        return Checklist(query.id, tuple(item + behind for item in self._items), "fixed")

    async def aclose(self) -> None:
        """Do nothing."""
