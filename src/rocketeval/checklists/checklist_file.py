"""Editable checklist files: YAML, or CSV with one row per item."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from rocketeval.config import Section, parse_options
from rocketeval.errors import ConfigError
from rocketeval.records import Checklist
from rocketeval.registry import nearest
from rocketeval.resources import read_yaml

COLUMNS = ("query_id", "query", "group", "item")
"""CSV columns. `query` is for reference; changes to it are ignored."""
HINT = "`rocketeval checklist --out FILE` writes one to start from."
MOST_BYTES = 256 << 20
_OUTERMOST = re.compile(r"""^["']?(\w+)["']?[ \t]*:(?=\s|$)""", re.MULTILINE)


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("this item is empty.")
    return text


Items = Annotated[tuple[Annotated[str, AfterValidator(_not_blank)], ...], Field(min_length=1)]


class ChecklistEntry(Section):
    """One checklist: its items, or its items by group."""

    query: str | None = None
    """The query, for reference."""
    items: Items | None = None
    groups: dict[str, Items] | None = None
    about: str | None = None
    """Subject of the items, for a judge that sees all of them at once."""

    @model_validator(mode="after")
    def _items_or_groups(self) -> Self:
        if bool(self.items) == bool(self.groups):
            raise ValueError("this needs either `items` or `groups`.")
        return self

    def checklist(self, query_id: str) -> Checklist:
        """Return the entry as the checklist of a query."""
        if self.groups is None:
            return Checklist(query_id, self.items or (), "file", about=self.about)
        pairs = [(group, item) for group, items in self.groups.items() for item in items]
        return Checklist(
            query_id,
            tuple(item for _, item in pairs),
            "file",
            tuple(group for group, _ in pairs),
            self.about,
        )


class ChecklistFile(Section):
    """All checklists of a file."""

    for_all: ChecklistEntry | None = None
    """The checklist of every query without its own."""
    queries: dict[str, ChecklistEntry] = Field(default_factory=dict)
    """Checklists by query id."""

    @model_validator(mode="after")
    def _something(self) -> Self:
        if self.for_all is None and not self.queries:
            raise ValueError("it contains no checklist.")
        return self


def read_checklist_file(path: Path) -> ChecklistFile:
    """Return the checklists in a YAML or CSV file; raise ConfigError that names the mistake."""
    if path.is_file() and path.stat().st_size > MOST_BYTES:
        raise ConfigError(f"{path} is too long.", hint=HINT)
    if path.suffix == ".csv":
        return parse_options(_entries(path), ChecklistFile, str(path))
    raw = read_yaml(path, "checklists", hint=HINT)
    if not isinstance(raw, dict):
        raise ConfigError(f"{path} must be a mapping with `for_all` or `queries`.", hint=HINT)
    return parse_options(raw, ChecklistFile, str(path))


def is_checklist_file(path: Path) -> bool:
    """Return whether a file holds checklists, judging by its suffix and top-level keys.

    The file is not parsed completely, because that is slow for long files.
    """
    if path.suffix == ".csv":
        return True
    try:
        text = path.read_bytes().decode("utf-8-sig", errors="replace")
    except OSError:
        return False
    keys = {found[1] for found in _OUTERMOST.finditer(text)}
    return "benchmark" not in keys and not keys.isdisjoint(ChecklistFile.model_fields)


@dataclass
class _Rows:
    """The rows of one checklist."""

    query: str | None = None
    items: list[str] = field(default_factory=list)
    groups: dict[str, list[str]] = field(default_factory=dict)

    def entry(self) -> Mapping[str, object]:
        listed = {"groups": self.groups} if self.groups else {"items": self.items}
        return {"query": self.query, **listed}


def _entries(path: Path) -> dict[str, object]:
    """Return CSV rows in the structure of the YAML file; a blank query id means all queries."""
    found: dict[str, _Rows] = {}
    for line, row in _rows(path):
        own = found.setdefault(row["query_id"], _Rows())
        if bool(row["group"]) != bool(own.groups) and (own.items or own.groups):
            raise ConfigError(
                f"{path}, line {line}: {row['query_id']!r} has items with and without a group.",
                hint="Give every item of a checklist a group, or none.",
            )
        own.query = own.query or row["query"] or None
        if row["group"]:
            own.groups.setdefault(row["group"], []).append(row["item"])
        else:
            own.items.append(row["item"])
    for_all = found.pop("", None)
    queries = {query_id: rows.entry() for query_id, rows in found.items()}
    return {"queries": queries, **({"for_all": for_all.entry()} if for_all else {})}


def _rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            head = stream.readline()
            stream.seek(0)
            # In some locales spreadsheets write semicolons.
            delimiter = ";" if ";" in head and "," not in head else ","
            reader = csv.DictReader(stream, delimiter=delimiter, strict=True)
            _check_columns(path, list(reader.fieldnames or ()))
            for row in reader:
                if None in row or None in row.values():
                    raise ConfigError(
                        f"{path}, line {reader.line_num}: its columns do not match the first line."
                    )
                if any(value.strip() for value in row.values()):
                    yield reader.line_num, {name: _unescaped(row.get(name, "")) for name in COLUMNS}
    except OSError as error:
        raise ConfigError(f"Cannot read {path}: {error.strerror}.", hint=HINT) from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not text in UTF-8.", hint="Save it as CSV UTF-8.") from None
    except csv.Error as error:
        raise ConfigError(f"{path} is not valid CSV: {error}.", hint=HINT) from None


def _unescaped(text: str) -> str:
    """Return a cell without the apostrophe that protects it from evaluation in spreadsheets."""
    return text.removeprefix("'")


def _check_columns(path: Path, names: list[str]) -> None:
    for name in names:
        if name not in COLUMNS or names.count(name) > 1:
            raise ConfigError(
                f"{path}: the column {name!r} is unknown or occurs twice.",
                hint=nearest(name, list(COLUMNS)),
            )
    for name in ("query_id", "item"):
        if name not in names:
            raise ConfigError(f"{path} has no column {name!r}.", hint=HINT)
