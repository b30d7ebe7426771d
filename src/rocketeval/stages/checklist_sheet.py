"""Write a run's checklists for people to edit; `author.kind: file` reads them back."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from rocketeval.checklists.sheet import COLUMNS
from rocketeval.exports.csv_text import csv_cell, csv_line, disarm
from rocketeval.lint.shared import is_shared
from rocketeval.names import counted
from rocketeval.records import Checklist, Query
from rocketeval.stages.sheet_place import check_place
from rocketeval.store.files import write_bytes
from rocketeval.store.run import RunStore

HEAD = """\
# Checklists to edit: change, add, remove or reorder items; yes is the better answer.
# `query` is there to be read, and not taken over. To grade with this file, set in the config:
#   author: {kind: file, options: {file: THIS FILE}}
# Only items that are new are asked again, where items are asked alone (`method.kind: checklist`).
"""
NEVER_FOLD = 1 << 30


def export_checklists(store: RunStore, path: Path, *, force: bool = False) -> int:
    """Write the run's checklists to `path` (.yaml, .yml or .csv); return how many are in it.

    A checklist that all queries share is written once.
    """
    check_place(path, force=force)
    checklists, queries = store.inputs.checklists(), store.inputs.queries
    shown = checklists
    if is_for_all(checklists, queries):
        shown = {"": next(iter(checklists.values()))}
    made = csv_sheet(shown, queries) if path.suffix == ".csv" else _yaml(shown, queries)
    write_bytes(path, made.encode())
    return len(shown)


def is_for_all(checklists: Mapping[str, Checklist], queries: Mapping[str, Query]) -> bool:
    """Whether one and the same checklist is every query's, so that it is written once."""
    return is_shared(checklists.values()) and len(checklists) == len(queries)


def without_about(path: Path, checklists: Collection[Checklist]) -> str | None:
    """Return in words what a sheet at `path` has no place for; None if nothing is lost."""
    lost = sum(checklist.about is not None for checklist in checklists)
    if path.suffix != ".csv" or not lost:
        return None
    have = counted(lost, "checklist has", "checklists have")
    return (
        f"A sheet has no place for `about`, which {have}: it is not in {path}. Write a .yaml file "
        "to keep it."
    )


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
