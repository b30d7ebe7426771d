"""Authors without an LLM: imported from the benchmark, fixed items, or a file."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Protocol, runtime_checkable

from pydantic import Field

from rocketeval.checklists.checklist_file import (
    ChecklistFile,
    WrittenItem,
    read_checklist_file,
)
from rocketeval.config import AuthorConfig, NoOptions, Section, parse_options
from rocketeval.errors import ChecklistError
from rocketeval.hashing import content_hash
from rocketeval.items import ParsedItem, parse_item
from rocketeval.records import Checklist, Query, Usage


class FreeAuthor:
    """Base of authors whose checklists exist already and cost nothing."""

    costly = False
    in_flight = 1
    durable = False
    lost = 0

    def __init__(self, digest: bytes) -> None:
        self.digest = digest
        self.usage = Usage()

    async def prepare(self) -> None:
        """Do nothing: the checklists exist."""

    def most(self, query: Query) -> Usage:
        """Return zero usage: these checklists cost nothing."""
        return Usage()

    async def aclose(self) -> None:
        """Do nothing."""


def leaves_out(author: object) -> bool:
    """Return whether wrong items of an author's checklists are left out, and the others used.

    A benchmark may come from another tool, and its user cannot correct it.
    """
    return isinstance(author, ImportedAuthor)


class ImportedAuthor(FreeAuthor):
    """Returns the benchmark's own checklists."""

    def __init__(self, checklists: Mapping[str, Checklist]) -> None:
        super().__init__(content_hash("imported"))
        self._checklists = checklists

    @classmethod
    def create(
        cls, config: AuthorConfig, imported: Mapping[str, Checklist], home: Path | None = None
    ) -> ImportedAuthor:
        """Return an author of the `imported` checklists."""
        parse_options(config.options, NoOptions, "author.options")
        return cls(imported)

    async def prepare(self) -> None:
        """Raise ChecklistError if the benchmark has no checklists."""
        if not self._checklists:
            raise ChecklistError(
                "The benchmark has no checklists (checklists.jsonl for kind jsonl).",
                hint="Add them, or set `author.kind: instance` to have an LLM write them.",
            )

    async def write(self, query: Query) -> Checklist:
        """Return the checklist of `query`."""
        found = self._checklists.get(query.id)
        if found is None:
            raise ChecklistError("the benchmark has no checklist for it.")
        if not found.items or not all(item.strip() for item in found.items):
            raise ChecklistError("its checklist is empty or has an empty item.")
        return found

    def unknown(self, query_ids: Collection[str]) -> dict[str, str | None]:
        """Return checklist ids without a query, each with the id that was probably meant."""
        return near_ids(self._checklists, query_ids)


REFERENCE = "A response that is known to be good, to compare it with:"
"""Text before the reference response."""


GENERAL_ITEMS = (
    "Does the response answer what was asked?",
    "Is everything the response states correct?",
    "Does the response follow every instruction and constraint of the query?",
    "Does the response cover all parts of the query?",
    "Is the response free of irrelevant or repeated content?",
    "Is the response clear and easy to follow?",
    "Could a reader use the response as it is, without correcting it?",
)
"""A checklist for any query: a start without an author, weaker than one written for the query."""


class FixedOptions(Section):
    """Settings of the fixed author."""

    items: Annotated[tuple[WrittenItem, ...], Field(min_length=1)]
    """The items, in order: texts or objects."""
    reference: bool = False
    """Append the query's reference response, if it has one, to every item."""


class FixedAuthor(FreeAuthor):
    """Gives every query the same items, optionally with the query's reference response."""

    def __init__(self, items: Sequence[ParsedItem], *, reference: bool = False) -> None:
        written = Checklist.from_items("", items).to_json()
        super().__init__(content_hash("fixed", written, reference))
        self._items = items
        self._reference = reference

    @classmethod
    def create(
        cls, config: AuthorConfig, imported: Mapping[str, Checklist], home: Path | None = None
    ) -> FixedAuthor:
        """Return an author of the items in the config's `options`."""
        options = parse_options(config.options, FixedOptions, "author.options")
        return cls(list(map(parse_item, options.items)), reference=options.reference)

    async def write(self, query: Query) -> Checklist:
        """Return the items for `query`."""
        behind = ""
        if self._reference and query.reference is not None:
            behind = f"\n\n{REFERENCE}\n{query.reference}"
        items = [replace(item, text=item.text + behind) for item in self._items]
        return Checklist.from_items(query.id, items, "fixed")


MOST_GUESSED = 20
"""Maximum number of unknown ids for which to look up the nearest known one."""
MOST_COMPARED = 2000
"""Maximum number of queries to compare with; more would take minutes."""


@runtime_checkable
class FiledAuthor(Protocol):
    """An author whose checklists are stored by query id."""

    def unknown(self, query_ids: Collection[str]) -> Mapping[str, str | None]:
        """Return ids without a query, each with the id that was probably meant."""
        ...


class FileOptions(Section):
    """Settings of the file author."""

    file: Path
    """A .yaml or .csv file, as `rocketeval checklist --out FILE` writes it."""


class FileAuthor(FreeAuthor):
    """Returns the checklists of a file."""

    def __init__(self, file: ChecklistFile) -> None:
        super().__init__(content_hash("file", file.model_dump(mode="json")))
        self._file = file

    @classmethod
    def create(
        cls, config: AuthorConfig, imported: Mapping[str, Checklist], home: Path | None = None
    ) -> FileAuthor:
        """Return an author of the file in the config's `options`."""
        options = parse_options(config.options, FileOptions, "author.options")
        return cls(read_checklist_file(options.file))

    async def write(self, query: Query) -> Checklist:
        """Return the query's own checklist, or the one for all queries."""
        entry = self._file.queries.get(query.id, self._file.for_all)
        if entry is None:
            raise ChecklistError("the file has no checklist for it.")
        return entry.checklist(query.id)

    def unknown(self, query_ids: Collection[str]) -> dict[str, str | None]:
        """Return the file's ids without a query, each with the id that was probably meant.

        With a checklist for all queries there are no guesses, because no query lacks one.
        """
        guess = self._file.for_all is None
        return near_ids(self._file.queries, query_ids, guess=guess)


def near_ids(
    given: Collection[str], query_ids: Collection[str], *, guess: bool = True
) -> dict[str, str | None]:
    """Return the given ids without a query, each with the query id that was probably meant.

    Guesses are queries without a checklist, limited by `MOST_GUESSED` and `MOST_COMPARED`.
    """
    known = set(query_ids)
    strange = [name for name in given if name not in known]
    without = [name for name in query_ids if name not in given]
    guessed: dict[str, str | None] = dict.fromkeys(strange)
    if not guess or len(without) > MOST_COMPARED:
        return guessed
    for name in strange[:MOST_GUESSED]:
        guessed[name] = next(iter(difflib.get_close_matches(name, without, n=1)), None)
    return guessed
