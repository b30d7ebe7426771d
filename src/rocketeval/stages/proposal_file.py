"""Write proposed checklists for `author.kind: file`, with what items were before as comments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import indent

from rocketeval.lint.fixes import Change, Fixes, Outcome
from rocketeval.lint.shared import is_shared
from rocketeval.records import Checklist, Query
from rocketeval.stages.checklist_sheet import csv_sheet, dump_yaml, is_for_all
from rocketeval.store.files import write_bytes

HEAD = """\
# Checklists that `rocketeval lint --fix` proposes, all of the run: look at them, change what is not
# good. What an item was before stands above it. To grade with this file, set in the config:
#   author: {kind: file, options: {file: THIS FILE}}
# Only items that are new are asked again, where items are asked alone (`method.kind: checklist`).
"""
STEP = "  "


def write_proposal(
    path: Path, fixes: Fixes, before: Mapping[str, Checklist], queries: Mapping[str, Query]
) -> None:
    """Write all checklists of a proposal; one that all queries share is written once."""
    proposed = {checklist.query_id: checklist for checklist in fixes.checklists}
    if is_for_all(before, queries):
        first = next(iter(before))
        proposed, before = {"": proposed[first]}, {"": before[first]}
    if path.suffix == ".csv":
        text = csv_sheet(proposed, queries)
    else:
        text = "".join(_yaml(before, queries, fixes.changes))
    write_bytes(path, text.encode())


def _yaml(
    before: Mapping[str, Checklist], queries: Mapping[str, Query], changes: Sequence[Change]
) -> Iterator[str]:
    """Yield the file in pieces. Comments cannot be dumped: each item is, with one above it."""
    by_query: dict[str, dict[int, Change]] = {}
    for change in changes:
        by_query.setdefault(change.query_id, {})[change.item] = change
    # All changes of a shared checklist are under its first query.
    shared = next(iter(by_query.values()), {})
    yield HEAD
    if "" in before:
        yield "for_all:\n"
        yield indent("".join(_entry(before[""], None, shared)), STEP)
        return
    yield "queries:\n"
    one_for_all = is_shared(before.values())
    for query_id, checklist in before.items():
        own = shared if one_for_all else by_query.get(query_id, {})
        yield indent(_key(query_id), STEP)
        yield indent("".join(_entry(checklist, queries.get(query_id), own)), 2 * STEP)


def _entry(
    checklist: Checklist, query: Query | None, changes: Mapping[int, Change]
) -> Iterator[str]:
    if query is not None:
        yield dump_yaml({"query": query.text})
    if checklist.about is not None:
        yield dump_yaml({"about": checklist.about})
    numbers = range(1, len(checklist.items) + 1)
    if checklist.groups is None:
        yield "items:\n"
        yield from (_item(checklist.items[number - 1], changes.get(number)) for number in numbers)
        return
    yield "groups:\n"
    for group in dict.fromkeys(checklist.groups):
        own = [number for number in numbers if checklist.groups[number - 1] == group]
        lines = [_item(checklist.items[number - 1], changes.get(number)) for number in own]
        if all(_is_dropped(changes.get(number)) for number in own):
            # A group without items would be refused.
            yield from (indent(line, STEP) for line in lines)
            continue
        yield indent(_key(group), STEP)
        yield from (indent(line, 2 * STEP) for line in lines)


def _item(old: str, change: Change | None) -> str:
    if change is None or change.outcome is Outcome.LEFT:
        told = f"# left as it was ({', '.join(change.kinds)})\n" if change else ""
        return told + dump_yaml([old])
    if change.outcome is Outcome.DROPPED:
        return f"# dropped ({', '.join(change.kinds)}): {_comment(old)}\n"
    return f"# was ({', '.join(change.kinds)}): {_comment(old)}\n{dump_yaml([change.new])}"


def _is_dropped(change: Change | None) -> bool:
    return change is not None and change.outcome is Outcome.DROPPED


def _comment(text: str) -> str:
    """Return a text as one line that cannot end the comment it stands in.

    >>> _comment("two\\nlines\\x1b")
    'two lines\ufffd'
    """
    line = " ".join(text.split())
    return "".join(mark if mark.isprintable() else "\ufffd" for mark in line)


def _key(name: str) -> str:
    """Return the line, or lines, of a key whose value stands below it, one step further in."""
    return dump_yaml({name: None}).removesuffix(" null\n") + "\n"
