"""Write a run's checklists for people to edit; `author.kind: file` reads them back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from rocketeval.checklists.sheet import COLUMNS
from rocketeval.errors import ExportError
from rocketeval.exports.csv_text import csv_cell, csv_line, disarm
from rocketeval.records import Checklist, Query
from rocketeval.store.files import write_bytes
from rocketeval.store.run import RunStore

HEAD = """\
# Checklists to edit: change, add, remove or reorder items; yes is the better answer.
# `query` is there to be read, and not taken over. To grade with this file, set in the config:
#   author: {kind: file, options: {file: THIS FILE}}
# Only items that are new are asked again.
"""
NEVER_FOLD = 1 << 30


def check_place(path: Path, *, force: bool) -> None:
    """Raise ExportError unless checklists can be written to `path`."""
    if path.suffix not in (".yaml", ".yml", ".csv"):
        raise ExportError(f"{path} ends in neither .yaml nor .csv.", hint="Name it so.")
    if path.exists() and not force:
        raise ExportError(f"{path} exists already.", hint="Give another path, or --force.")


def export_checklists(store: RunStore, path: Path, *, force: bool = False) -> int:
    """Write the run's checklists to `path` (.yaml, .yml or .csv); return how many are in it.

    A checklist that all queries share is written once.
    """
    check_place(path, force=force)
    checklists, queries = store.inputs.checklists(), store.inputs.queries
    shared = len(checklists) > 1 and len({c.content_hash for c in checklists.values()}) == 1
    if shared and len(checklists) == len(queries):
        shown = {"": next(iter(checklists.values()))}
    else:
        shown = checklists
    made = csv_sheet(shown, queries) if path.suffix == ".csv" else _yaml(shown, queries)
    write_bytes(path, made.encode())
    return len(shown)


def _yaml(checklists: Mapping[str, Checklist], queries: Mapping[str, Query]) -> str:
    entries = {
        query_id: _entry(made, queries.get(query_id)) for query_id, made in checklists.items()
    }
    content = {"for_all": entries[""]} if "" in entries else {"queries": entries}
    return HEAD + dump_yaml(content)


def _entry(checklist: Checklist, query: Query | None) -> dict[str, Any]:
    told = {} if query is None else {"query": query.text}
    told |= {} if checklist.about is None else {"about": checklist.about}
    if checklist.groups is None:
        return {**told, "items": list(checklist.items)}
    groups: dict[str, list[str]] = {}
    for group, item in zip(checklist.groups, checklist.items, strict=True):
        groups.setdefault(group, []).append(item)
    return {**told, "groups": groups}


def csv_sheet(checklists: Mapping[str, Checklist], queries: Mapping[str, Query]) -> str:
    """Return checklists as a sheet, one row an item."""
    return csv_line(COLUMNS) + "".join(
        csv_line(map(_cell, row)) for row in _rows(checklists, queries)
    )


def _rows(
    checklists: Mapping[str, Checklist], queries: Mapping[str, Query]
) -> Iterator[tuple[str, str, str, str]]:
    for query_id, made in checklists.items():
        text = queries[query_id].text if query_id in queries else ""
        for place, item in enumerate(made.items):
            # The query stands beside its first item alone: a sheet of repeats cannot be read.
            yield query_id, "" if place else text, made.groups[place] if made.groups else "", item


def _cell(text: str) -> str:
    """Return a cell that is not computed, and from which `checklists.sheet` gets the text back."""
    safe = disarm(text)
    return csv_cell(f"'{text}" if safe == text and text.startswith("'") else safe, raw=True)


class _Dumper(yaml.SafeDumper):
    """Writes line ends of other kinds than ours as escapes, which come back as they were."""


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    style = '"' if _OTHER_ENDS & set(text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style)


_Dumper.add_representer(str, _text)
_OTHER_ENDS = frozenset("\r\x85\u2028\u2029")


def dump_yaml(content: object) -> str:
    """Return YAML that gives every text back as it was, also one with line ends of other kinds."""
    return yaml.dump(content, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=NEVER_FOLD)
