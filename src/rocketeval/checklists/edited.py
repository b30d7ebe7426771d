"""Checklists from a file that a person edits."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rocketeval.checklists.sheet import Sheet, read_sheet
from rocketeval.config import AuthorConfig, Section, parse_options
from rocketeval.errors import ChecklistError
from rocketeval.hashing import content_hash
from rocketeval.records import Checklist, Query, Usage


class FileOptions(Section):
    """Settings of the file author."""

    file: Path
    """A .yaml or .csv file, as `rocketeval checklist --export` writes it."""


class FileAuthor:
    """Hands out the checklists of a file."""

    costly = False
    in_flight = 1
    durable = False
    lost = 0

    def __init__(self, sheet: Sheet) -> None:
        self.digest = content_hash("file", sheet.model_dump(mode="json"))
        self.usage = Usage()
        self._sheet = sheet

    @classmethod
    def create(
        cls, config: AuthorConfig, imported: Mapping[str, Checklist], home: Path | None = None
    ) -> FileAuthor:
        """Return an author of the file in the config's `options`."""
        options = parse_options(config.options, FileOptions, "author.options")
        return cls(read_sheet(options.file))

    async def prepare(self) -> None:
        """Do nothing: the file was read."""

    def most(self, query: Query) -> Usage:
        """Return nothing: these checklists are there."""
        return Usage()

    async def write(self, query: Query) -> Checklist:
        """Return the query's own checklist, or the one for all."""
        entry = self._sheet.queries.get(query.id, self._sheet.for_all)
        if entry is None:
            raise ChecklistError("the file has no checklist for it.")
        return entry.checklist(query.id)

    async def aclose(self) -> None:
        """Do nothing."""
