"""Editable checklist files: YAML, or CSV with one row per item."""

from __future__ import annotations

import csv
import logging
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, model_validator

from rocketeval.config import Section, parse_options
from rocketeval.errors import ConfigError
from rocketeval.items import parse_item
from rocketeval.records import Checklist
from rocketeval.registry import nearest
from rocketeval.resources import load_json, read_yaml
from rocketeval.text import count_of, disarm

COLUMNS = ("query_id", "query", "group", "item")
"""CSV columns. `query` is for reference; changes to it are ignored."""
DETAIL_COLUMNS = ("weight", "details")
"""Further CSV columns, written if some item has a weight or kind: `details` is JSON."""
HINT = "`rocketeval checklist --out FILE` writes one to start from."
MOST_BYTES = 256 << 20
_log = logging.getLogger("rocketeval.checklists")
_OUTERMOST = re.compile(r"""^["']?(\w+)["']?[ \t]*:(?=\s|$)""", re.MULTILINE)


def _is_item(given: object) -> object:
    if isinstance(given, str) and not given.strip():
        raise ValueError("this item is empty.")
    parse_item(given)
    return given


WrittenItem = Annotated[str | dict[str, Any], BeforeValidator(_is_item)]
"""An item as written: a text, or an object with `text` and details."""


def _not_empty(given: object) -> object:
    # Before the items are validated: a limit on the valid ones would count wrong items as missing.
    if isinstance(given, list | tuple) and not given:
        raise ValueError("this list has no items.")
    return given


Items = Annotated[tuple[WrittenItem, ...], BeforeValidator(_not_empty)]


class ChecklistEntry(Section):
    """One checklist: its items, or its items by group."""

    query: str | None = None
    """The query, for reference."""
    items: Items | None = None
    groups: dict[str, Items] | None = None
    about: str | None = None
    """Subject of the items, for a judge that sees all of them at once."""

    @model_validator(mode="before")
    @classmethod
    def _items_alone(cls, given: Any) -> Any:
        if isinstance(given, list):
            return {"items": given}
        if isinstance(given, Mapping | ChecklistEntry):
            return given
        raise ValueError("this must be a list of items, or a mapping with `items` or `groups`.")

    @model_validator(mode="after")
    def _items_or_groups(self) -> Self:
        if bool(self.items) == bool(self.groups):
            raise ValueError("this needs either `items` or `groups`.")
        return self

    def checklist(self, query_id: str) -> Checklist:
        """Return the entry as the checklist of a query."""
        if self.groups is None:
            parsed = [parse_item(item) for item in self.items or ()]
        else:
            parsed = [
                replace(parse_item(item), group=group)
                for group, items in self.groups.items()
                for item in items
            ]
        return Checklist.from_items(query_id, parsed, "file", self.about)


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
    if path.suffix == ".json":
        return parse_options(_rubrics(path), ChecklistFile, str(path))
    raw = read_yaml(path, "checklists", hint=HINT)
    if not isinstance(raw, dict):
        raise ConfigError(f"{path} must be a mapping with `for_all` or `queries`.", hint=HINT)
    return parse_options(raw, ChecklistFile, str(path))


def _rubrics(path: Path) -> dict[str, object]:
    """Return a JSON file in the structure of the YAML file.

    It may have that structure, or be a list of criteria for all queries, or such lists by query id,
    as AutoRubric writes them.
    """
    try:
        raw = load_json(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ConfigError(f"Cannot read {path}: {error.strerror}.", hint=HINT) from None
    except ValueError as error:
        raise ConfigError(f"{path} is not valid JSON: {error}.", hint=HINT) from None
    except RecursionError:
        raise ConfigError(f"{path} is nested too deeply.", hint=HINT) from None
    if isinstance(raw, list):
        return {"for_all": {"items": _criteria(raw, f"{path}")}}
    if not isinstance(raw, dict):
        raise ConfigError(f"{path} must be a list of criteria or an object.", hint=HINT)
    if isinstance(raw.get("rubric"), list):
        return {"for_all": {"items": _criteria(raw["rubric"], f"{path}")}}
    if raw and "for_all" not in raw and all(isinstance(own, list) for own in raw.values()):
        queries = {
            name: {"items": _criteria(own, f"{path}, {name!r}")} for name, own in raw.items()
        }
        return {"queries": queries}
    return raw


def _criteria(listed: list[Any], where: str) -> list[object]:
    """Return a list of items, in which AutoRubric's criteria are rewritten as items."""
    items: list[object] = []
    for number, given in enumerate(listed, 1):
        if not isinstance(given, dict) or "requirement" not in given:
            items.append(given)
            continue
        place = f"{where}, criterion {number}"
        unknown = set(given) - _AUTORUBRIC
        if unknown:
            raise ConfigError(f"{place}: unknown field {min(unknown)!r}.")
        if given.get("scale_type") == "nominal" and given.get("options"):
            raise ConfigError(
                f"{place}: its options are not ordered (scale_type nominal).",
                hint="Ask one yes/no question per option instead.",
            )
        requirement = given["requirement"]
        if not isinstance(requirement, str) or not requirement.strip():
            raise ConfigError(
                f"{place}: `requirement` must be a text that is not empty.",
                hint="Write what the response must do, or remove the criterion.",
            )
        requirement = requirement.strip()
        item: dict[str, object] = {"text": requirement}
        if given.get("name"):
            item["tags"] = [str(given["name"])]
        if given.get("weight") is not None:
            item["weight"] = given["weight"]
        if given.get("options"):
            item |= _even_levels(given["options"], place)
        elif not requirement.endswith("?"):
            item["text"] = f"Does the response meet this criterion? {requirement}"
        items.append(item)
    unused = sum(isinstance(given, dict) and bool(given.get("aggregation")) for given in listed)
    if unused:
        _log.warning(
            "%s: `aggregation` of %s is not used: each item is answered by one judge.",
            where,
            count_of(unused, "criterion", "criteria"),
        )
    return items


_AUTORUBRIC = {"requirement", "weight", "name", "options", "scale_type", "aggregation"}


def _even_levels(options: Any, where: str) -> dict[str, object]:
    """Return graded options as levels, worst first; they must be evenly spaced."""
    try:
        graded = [option for option in options if not option.get("na")]
        pairs = sorted((float(option["value"]), str(option["label"])) for option in graded)
    except (AttributeError, TypeError, KeyError, ValueError, OverflowError):
        raise ConfigError(
            f"{where}: an option needs a `label` and a `value`, which is a number."
        ) from None
    if not all(math.isfinite(value) for value, _ in pairs):
        raise ConfigError(f"{where}: the value of an option is not a finite number.")
    if len({value for value, _ in pairs}) < len(pairs):
        raise ConfigError(
            f"{where}: two of its options have the same value.",
            hint="Each level counts for itself: change a value, or remove an option.",
        )
    steps = [after[0] - before[0] for before, after in pairwise(pairs)]
    if steps and max(steps) - min(steps) > 1e-6 * max(map(abs, steps)):
        raise ConfigError(
            f"{where}: the values of its options are not evenly spaced.",
            hint="Levels count evenly from worst to best: change the values, or split the item.",
        )
    levels: dict[str, object] = {"levels": [label for _, label in pairs]}
    return {**levels, "na": True} if len(graded) < len(options) else levels


def is_checklist_file(path: Path) -> bool:
    """Return whether a file holds checklists, judging by its suffix and top-level keys.

    The file is not parsed completely, because that is slow for long files.
    """
    if path.suffix in (".csv", ".json"):
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
    items: list[object] = field(default_factory=list)
    groups: dict[str, list[object]] = field(default_factory=dict)

    def entry(self) -> Mapping[str, object]:
        listed = {"groups": self.groups} if self.groups else {"items": self.items}
        return {"query": self.query, **listed}


def _entries(path: Path) -> dict[str, object]:
    """Return CSV rows in the structure of the YAML file; rows without a query id are `for_all`."""
    found: dict[str, _Rows] = {}
    for line, row in _rows(path):
        own = found.setdefault(row["query_id"], _Rows())
        if bool(row["group"]) != bool(own.groups) and (own.items or own.groups):
            raise ConfigError(
                f"{path}, line {line}: {row['query_id']!r} has items with and without a group.",
                hint="Give every item of a checklist a group, or none.",
            )
        own.query = own.query or row["query"] or None
        item = _item(path, line, row)
        if row["group"]:
            own.groups.setdefault(row["group"], []).append(item)
        else:
            own.items.append(item)
    for_all = found.pop("", None)
    queries = {query_id: rows.entry() for query_id, rows in found.items()}
    return {"queries": queries, **({"for_all": for_all.entry()} if for_all else {})}


def _item(path: Path, line: int, row: Mapping[str, str]) -> object:
    """Return the item of a row: its text, or an object if it has a weight or details."""
    if not row["weight"] and not row["details"]:
        return row["item"]
    try:
        item: dict[str, Any] = load_json(row["details"] or "{}")
        if not isinstance(item, dict):
            raise ValueError("it is not an object")
        weight = {"weight": float(row["weight"])} if row["weight"] else {}
    except RecursionError:
        raise ConfigError(f"{path}, line {line}: `details` is nested too deeply.") from None
    except ValueError as error:
        raise ConfigError(
            f"{path}, line {line}: `weight` must be a number and `details` a JSON object: {error}."
        ) from None
    return {"text": row["item"], **item, **weight}


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
                    names = (*COLUMNS, *DETAIL_COLUMNS)
                    yield reader.line_num, {name: _unescaped(row.get(name, "")) for name in names}
    except OSError as error:
        raise ConfigError(f"Cannot read {path}: {error.strerror}.", hint=HINT) from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not text in UTF-8.", hint="Save it as CSV UTF-8.") from None
    except csv.Error as error:
        raise ConfigError(f"{path} is not valid CSV: {error}.", hint=HINT) from None


def _unescaped(text: str) -> str:
    """Return a cell without the apostrophe that the export puts before a formula or another one.

    >>> _unescaped("'=1+1"), _unescaped("''Paris' is named"), _unescaped("'Paris' is named")
    ('=1+1', "'Paris' is named", "'Paris' is named")
    """
    rest = text.removeprefix("'")
    return rest if rest.startswith("'") or disarm(rest) != rest else text


def _check_columns(path: Path, names: list[str]) -> None:
    for name in names:
        if name not in (*COLUMNS, *DETAIL_COLUMNS) or names.count(name) > 1:
            raise ConfigError(
                f"{path}: the column {name!r} is unknown or occurs twice.",
                hint=nearest(name, [*COLUMNS, *DETAIL_COLUMNS]),
            )
    for name in ("query_id", "item"):
        if name not in names:
            raise ConfigError(f"{path} has no column {name!r}.", hint=HINT)
