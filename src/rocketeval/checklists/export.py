"""Export of checklists for editing; `author.kind: file` reads them back."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from rocketeval.checklists.base import is_shared
from rocketeval.checklists.checklist_file import COLUMNS, DETAIL_COLUMNS
from rocketeval.checklists.rubric import unbound
from rocketeval.config import RunConfig
from rocketeval.errors import ConfigError, ExportError
from rocketeval.items import ItemDetail, item_to_json, without_source
from rocketeval.records import Checklist, Query
from rocketeval.store.files import refuse_inside_run, write_bytes
from rocketeval.store.run import RunStore
from rocketeval.text import count_of, csv_cell, csv_line, disarm


def check_export_path(
    path: Path, *, force: bool, config: RunConfig | None = None, config_file: Path | None = None
) -> None:
    """Raise ExportError unless checklists can be written to `path`.

    Raises ConfigError for the config and the files it names, even with `force`.
    """
    if path.suffix not in (".yaml", ".yml", ".csv"):
        raise ExportError(f"{path} must end in .yaml or .csv.", hint="Rename it.")
    if config_file is not None and _is_same(path, config_file):
        raise ConfigError(
            f"{path} is the config itself; checklists must not overwrite it.",
            hint="Give another path.",
        )
    for setting, own in _named_files(config) if config else ():
        if _is_same(path, own):
            raise ConfigError(
                f"{path} is a file of this run ({setting}); checklists must not overwrite it.",
                hint="Give another path, then compare the two files.",
            )
    refuse_inside_run(path, config.run_path if config else None)
    _check_folder(path)
    if path.is_dir():
        raise ExportError(f"{path} is a folder.", hint="Give the path of a file.")
    # A dangling link counts as existing.
    if os.path.lexists(path) and not force:
        raise ExportError(f"{path} exists already.", hint="Give another path, or use --force.")


def _named_files(config: RunConfig) -> Iterator[tuple[str, Path]]:
    """Yield every file that a config names, and the run's copy of the config."""
    author = config.author
    templates = author.options.get("templates")
    named = {
        "author.options.file": author.options.get("file"),
        "author.template": author.template,
        "judge.template": config.judge.template,
        "evaluator": config.evaluator,
        "prices": config.prices,
        "scorer.fitted": config.scorer.fitted,
        "run.yaml": config.run_path / "run.yaml",
    }
    if isinstance(templates, dict):
        named |= {f"author.options.templates.{step}": own for step, own in templates.items()}
    for setting, own in named.items():
        if isinstance(own, str | Path):
            yield setting, Path(own)


def _is_same(path: Path, own: Path) -> bool:
    """Return whether both paths are the same file, through links too."""
    try:
        return path.samefile(own)
    except OSError:
        return os.path.realpath(path) == os.path.realpath(own)


def _check_folder(path: Path) -> None:
    """Raise ExportError unless the folder is writable or can be created."""
    folder = path.absolute().parent
    while not os.path.lexists(folder) and folder != folder.parent:
        folder = folder.parent
    if not folder.is_dir():
        raise ExportError(
            f"{path} cannot be written: {folder} is not a folder.", hint="Give another path."
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ExportError(
            f"{path} cannot be written: no permission for the folder {folder}.",
            hint="Give another path, or change the folder's permissions.",
        )


CHECKLIST_FILE_HEAD = """\
# Checklists to edit: change, add, remove or reorder items. Yes must be the better answer.
# `query` is for reference; changes to it are ignored. To grade with this file, set in the config:
#   author: {kind: file, options: {file: THIS FILE}}
# Only new items are judged if items are asked independently (`method.kind: checklist`).
"""
NEVER_FOLD = 1 << 30


def export_checklists(store: RunStore, path: Path, *, force: bool = False) -> int:
    """Write the run's checklists to `path` (.yaml, .yml or .csv), and return their number.

    A checklist shared by all queries is written once.
    """
    check_export_path(path, force=force)
    return write_checklists(store.inputs.checklists(), store.inputs.queries, path)


def write_checklists(
    checklists: Mapping[str, Checklist], queries: Mapping[str, Query], path: Path
) -> int:
    """Write checklists to the checked `path`, and return their number."""
    shown = checklists
    if is_for_all(checklists, queries):
        shown = {"": next(iter(checklists.values()))}
    made = csv_checklists(shown, queries) if path.suffix == ".csv" else _yaml(shown, queries)
    write_bytes(path, made.encode())
    return len(shown)


def is_for_all(checklists: Mapping[str, Checklist], queries: Mapping[str, Query]) -> bool:
    """Return whether all queries share one checklist, so that it is written once."""
    return is_shared(checklists.values()) and len(checklists) == len(queries)


def without_about(path: Path, checklists: Collection[Checklist]) -> str | None:
    """Return a warning if the CSV at `path` cannot hold `about`; None if nothing is lost."""
    lost = sum(checklist.about is not None for checklist in checklists)
    if path.suffix != ".csv" or not lost:
        return None
    have = count_of(lost, "checklist has", "checklists have")
    return (
        f"CSV cannot store `about`, which {have}: it is not in {path}. Write a .yaml file "
        "to keep it."
    )


def _yaml(checklists: Mapping[str, Checklist], queries: Mapping[str, Query]) -> str:
    entries = {
        query_id: _entry(made, queries.get(query_id)) for query_id, made in checklists.items()
    }
    content = {"for_all": entries[""]} if "" in entries else {"queries": entries}
    return CHECKLIST_FILE_HEAD + dump_yaml(content)


def _entry(checklist: Checklist, query: Query | None) -> dict[str, Any]:
    entry = {} if query is None else {"query": query.text}
    entry |= {} if checklist.about is None else {"about": checklist.about}
    items = replace(unbound(checklist), groups=None).to_json()
    if checklist.groups is None:
        return {**entry, "items": items}
    groups: dict[str, list[object]] = {}
    for group, item in zip(checklist.groups, items, strict=True):
        groups.setdefault(group, []).append(item)
    return {**entry, "groups": groups}


def csv_checklists(checklists: Mapping[str, Checklist], queries: Mapping[str, Query]) -> str:
    """Return checklists as CSV, one row per item; with weights and kinds if there are any."""
    detailed = any(made.details is not None for made in checklists.values())
    head = (*COLUMNS, *DETAIL_COLUMNS) if detailed else COLUMNS
    return csv_line(head) + "".join(
        csv_line(map(_cell, row[: len(head)])) for row in _rows(checklists, queries)
    )


def _rows(
    checklists: Mapping[str, Checklist], queries: Mapping[str, Query]
) -> Iterator[tuple[str, ...]]:
    for query_id, made in checklists.items():
        text = queries[query_id].text if query_id in queries else ""
        for place, item in enumerate(made.items):
            group = made.groups[place] if made.groups else ""
            # Show the query only next to its first item, for readability.
            yield query_id, "" if place else text, group, item, *_details(made.detail(place))


def _details(detail: ItemDetail) -> tuple[str, str]:
    """Return the weight unless it is 1, and everything else as JSON."""
    written = item_to_json("", replace(without_source(detail), weight=1.0))
    further = (
        {name: own for name, own in written.items() if name != "text"}
        if isinstance(written, dict)
        else {}
    )
    weight = "" if detail.weight == 1.0 else _number(detail.weight)
    return weight, json.dumps(further, ensure_ascii=False) if further else ""


def _number(value: float) -> str:
    """Return a number that is read back as the same one; whole numbers have no point."""
    short = f"{value:g}"
    return short if float(short) == value else repr(float(value))


def _cell(text: str) -> str:
    """Return a cell that spreadsheets do not execute as a formula; reading restores the text."""
    safe = disarm(text)
    return csv_cell(f"'{text}" if safe == text and text.startswith("'") else safe, raw=True)


class _Dumper(yaml.SafeDumper):
    """Escapes unusual line endings, so that they survive a round trip."""


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    style = '"' if _OTHER_ENDS & set(text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style)


_Dumper.add_representer(str, _text)
_OTHER_ENDS = frozenset("\r\x85\u2028\u2029")


def dump_yaml(content: object) -> str:
    """Return YAML that preserves every text exactly, including unusual line endings."""
    return yaml.dump(content, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=NEVER_FOLD)
