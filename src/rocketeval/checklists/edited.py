"""Checklists from a file that a person edits."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Protocol, runtime_checkable

from rocketeval.checklists.sheet import Sheet, read_sheet
from rocketeval.config import AuthorConfig, Section, parse_options
from rocketeval.errors import ChecklistError
from rocketeval.hashing import content_hash
from rocketeval.records import Checklist, Query, Usage

MOST_GUESSED = 20
"""Unknown ids for which the nearest known one is looked for."""
MOST_COMPARED = 2000
"""Queries without a checklist among which it is looked for; among more it would take minutes."""


@runtime_checkable
class FiledAuthor(Protocol):
    """An author whose checklists lie ready under the ids of their queries."""

    def unknown(self, query_ids: Collection[str]) -> Mapping[str, str | None]:
        """Return the ids of no query, each with the id that may have been meant."""
        ...


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

    def unknown(self, query_ids: Collection[str]) -> dict[str, str | None]:
        """Return the file's ids of no query, each with the id that may have been meant.

        What is meant has no checklist, and is looked for by the first ids and among few queries
        only. Where there is a checklist for all, nothing is guessed: no query lacks one.
        """
        known = set(query_ids)
        strange = [name for name in self._sheet.queries if name not in known]
        without = [name for name in query_ids if name not in self._sheet.queries]
        guessed: dict[str, str | None] = dict.fromkeys(strange)
        if self._sheet.for_all is not None or len(without) > MOST_COMPARED:
            return guessed
        for name in strange[:MOST_GUESSED]:
            guessed[name] = next(iter(difflib.get_close_matches(name, without, n=1)), None)
        return guessed

    async def aclose(self) -> None:
        """Do nothing."""
