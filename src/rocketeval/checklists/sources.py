"""Lookup of checklists in a run, a benchmark folder, or a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rocketeval.benchmarks.base import open_benchmark
from rocketeval.benchmarks.load import imported_checklists
from rocketeval.benchmarks.reading import Row, find, read_rows
from rocketeval.checklists.checklist_file import read_checklist_file
from rocketeval.config import BenchmarkConfig, RunConfig
from rocketeval.errors import BenchmarkError, ChecklistError, RocketEvalError, StageMissing
from rocketeval.records import Checklist, Query
from rocketeval.store.run import RunStore

CHECKLIST_FILES = (".yaml", ".yml", ".csv", ".json")
"""File name suffixes of editable checklist files."""
FOR_ALL = "for_all"
"""Key of the checklist for all queries in these files."""


@dataclass(frozen=True, slots=True)
class FoundChecklists:
    """Checklists with their source and, if known, their queries."""

    source: str
    """Display name of the source."""
    checklists: tuple[Checklist, ...]
    queries: Mapping[str, Query]
    """Queries by id; empty if unknown."""


def checklists_of_run(store: RunStore, config: RunConfig) -> FoundChecklists:
    """Return a run's checklists; before it has any, those of its benchmark.

    Raises StageMissing if an author has to write them first.
    """
    try:
        found = store.inputs.checklists()
    except StageMissing:
        if config.author.kind != "imported":
            raise
        return checklists_of_benchmark(config.benchmark, str(config.benchmark.path))
    return FoundChecklists(str(store.path), tuple(found.values()), store.inputs.queries)


def checklists_of_path(path: Path) -> FoundChecklists:
    """Return the checklists of a benchmark folder, an editable file, or a JSON-lines file."""
    if path.suffix in CHECKLIST_FILES and not path.is_dir():
        return _of_file(path)
    if not path.is_dir():
        return _found(str(path), list(map(_row_checklist, read_rows(path))), {})
    ours = find(path, "checklists.jsonl")
    kind = "rocketeval" if ours is None else "jsonl"
    if ours is None and not (path / "checklist").is_dir():
        raise ChecklistError(
            f"There are no checklists in {path}.",
            hint="Give a run directory, a config, a checklist file, or a benchmark folder with "
            "checklists.jsonl.",
        )
    return checklists_of_benchmark(BenchmarkConfig(kind=kind, path=path), str(path))


def checklists_of_benchmark(config: BenchmarkConfig, source: str) -> FoundChecklists:
    """Return a benchmark's own checklists; raise ChecklistError if there are none."""
    benchmark = open_benchmark(config)
    checklists = imported_checklists(benchmark)
    try:
        queries = {query.id: query for query in benchmark.queries()}
    except RocketEvalError:
        # Checklists can be shown without their queries.
        queries = {}
    return _found(source, list(checklists.values()), queries)


def _of_file(path: Path) -> FoundChecklists:
    file = read_checklist_file(path)
    entries = {**({FOR_ALL: file.for_all} if file.for_all else {}), **file.queries}
    queries = {
        query_id: Query(query_id, entry.query)
        for query_id, entry in entries.items()
        if entry.query is not None
    }
    made = [entry.checklist(query_id) for query_id, entry in entries.items()]
    return _found(str(path), made, queries)


def _found(
    source: str, checklists: list[Checklist], queries: Mapping[str, Query]
) -> FoundChecklists:
    if not checklists:
        raise ChecklistError(
            f"There are no checklists in {source}.",
            hint="Run `rocketeval run --only checklist` to have them written, or give a file that "
            "has some.",
        )
    return FoundChecklists(source, tuple(checklists), queries)


def _row_checklist(row: Row) -> Checklist:
    """Return a row's checklist, with our field names or those of the paper's scripts."""
    query = "query_id" if "query_id" in row.values else "session_id"
    items = "items" if "items" in row.values else "checklist"
    if query not in row.values or items not in row.values:
        raise BenchmarkError(
            f"{row.where} is not a checklist.",
            hint="Each line needs `query_id` and `items`, a list of questions.",
        )
    return Checklist.from_items(row.name(query), row.items(items), row.text("author", "imported"))
