"""Export of a run's results to another format, outside the run directory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from rocketeval.audit.audit import Audit
from rocketeval.audit.conclusion import doubt
from rocketeval.config import RunConfig, load_config
from rocketeval.errors import ExportError
from rocketeval.explain.groups import GroupScore, find_groups, group_columns, groups_are
from rocketeval.explain.stage import Explanation
from rocketeval.exports.display import (
    TextTable,
    beyond_ascii,
    latex,
    markdown,
    show_audit,
    show_ranking,
    show_wins,
)
from rocketeval.exports.folder import Exported, export_folder, refuse_to_overwrite
from rocketeval.exports.formats import WRITTEN_BACK, ExportRequest, make_request
from rocketeval.exports.official import match_rows, unmade_pairs
from rocketeval.exports.tables import (
    GROUP_SCORES,
    JUDGMENTS,
    RUBRIC_JUDGMENTS,
    ExportNames,
    answer_rows,
    audit_table,
    group_score_rows,
    groups_table,
    score_rows,
    score_schema,
    show_groups,
    wins_matrix,
    wins_pairs,
)
from rocketeval.exports.write_back import write_inspect_logs, write_rows_back
from rocketeval.ranking.rank import Ranking, WinMatrix
from rocketeval.ranking.stage import read_ranking
from rocketeval.ranking.summary import ranking_table
from rocketeval.scoring.read_answers import rubric_of, scored_answers
from rocketeval.scoring.rubric import POINTS
from rocketeval.scoring.stage import read_grid
from rocketeval.store.files import replacing
from rocketeval.store.run import RunStore
from rocketeval.text import BOM, count_of, csv_text

ROWS_AT_ONCE = 100_000
"""Rows to convert at once, to text or to a row group."""


def export_run(
    store: RunStore, config: RunConfig, request: ExportRequest, path: Path, *, force: bool = False
) -> Exported:
    """Write the requested export to `path`; replace an existing one only with `force`."""
    refuse_to_overwrite(store, request, path, force=force)
    if request.form.name == "inspect":
        return write_inspect_logs(store, path)
    if request.form.is_folder:
        return export_folder(store, config, request, path)
    with replacing(path) as temporary, temporary.open("wb") as stream:
        done = export_stream(store, request, stream)
    return replace(done, path=path)


def export_stream(store: RunStore, request: ExportRequest, stream: BinaryIO) -> Exported:
    """Write a single-file format to an open stream."""
    if request.form.name == "matches":
        return _write_matches(store, stream)
    if request.form.name in WRITTEN_BACK:
        return write_rows_back(store, request.form.name, stream)
    if request.form.name in _PAGES:
        return _write_page(store, request, stream)
    return _write_table(store, request, stream)


def _write_matches(store: RunStore, stream: BinaryIO) -> Exported:
    grid, margin = read_grid(store), read_ranking(store).tie_margin
    turns = {
        query.id: 1 + sum(turn.role == "user" for turn in query.history)
        for query in store.inputs.queries.values()
    }
    rows = 0
    ties = 0
    for row in match_rows(grid, margin, store.judge().model, turns):
        stream.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))
        rows += 1
        ties += row["winner"] == "tie"
    left_out = {"pairs in which a response has no score": unmade_pairs(grid)}
    all_made = count_of(rows, "match", "matches")
    note = f"{ties:,} of {all_made} are ties (scores that differ by less than {margin:g})."
    return Exported(rows, left_out, (note,))


_PAGES = {"markdown": markdown, "latex": latex}


def _write_page(store: RunStore, request: ExportRequest, stream: BinaryIO) -> Exported:
    table = _display(store, request.what)
    text = _PAGES[request.form.name](table)
    stream.write(text.encode())
    notes = ("Compile with XeLaTeX or LuaLaTeX: the table has non-ASCII characters.",)
    beyond = request.form.name == "latex" and beyond_ascii(text)
    return Exported(len(table.rows), notes=notes if beyond else ())


def _display(store: RunStore, what: str) -> TextTable:
    judge = store.judge().name
    if what == "audit":
        return show_audit(store.read(Audit), judge)
    if what == "groups":
        config = load_config(store.path / "run.yaml")
        about = groups_are(config.scorer.kind, rubric_of(config, store.inputs.checklists()))
        return show_groups(*_groups(store), judge, about)
    ranking = read_ranking(store)
    table = show_wins(ranking, judge) if what == "wins" else show_ranking(ranking, judge)
    caution = doubt(store.read_if_made(Audit))
    return replace(table, notes=(*table.notes, caution)) if caution else table


def _write_table(store: RunStore, request: ExportRequest, stream: BinaryIO) -> Exported:
    tables = _read_table(store, request)
    rows = 0

    def sliced() -> Iterator[pa.Table]:
        nonlocal rows
        for table in tables.parts:
            rows += table.num_rows
            for start in range(0, table.num_rows, ROWS_AT_ONCE):
                yield table.slice(start, ROWS_AT_ONCE)

    if request.form.name == "csv":
        stream.write((BOM if request.bom else "").encode())
        for piece in csv_text(tables.schema.names, sliced(), raw=request.raw):
            stream.write(piece.encode())
    elif request.form.name == "jsonl":
        _write_lines(sliced(), stream)
    else:
        with pq.ParquetWriter(stream, tables.schema, compression="zstd") as writer:
            for table in sliced():
                writer.write_table(table)
    return Exported(rows, tables.left_out, tables.notes)


def _write_lines(tables: Iterable[pa.Table], stream: BinaryIO) -> None:
    for table in tables:
        names = table.column_names
        for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
            line = dict(zip(names, row, strict=True))
            stream.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))


@dataclass(frozen=True)
class _Table:
    """A table of a run in parts, with counts of what was left out."""

    schema: pa.Schema
    parts: Iterable[pa.Table]
    left_out: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def _read_table(store: RunStore, request: ExportRequest) -> _Table:
    if request.what in ("scores", "judgments", "group_scores"):
        return _read_rows(store, request.what)
    if request.what == "audit":
        table, left_out = audit_table(store.read(Audit)), {}
    elif request.what == "groups":
        found, many = _groups(store)
        table, left_out = groups_table(found), {"groups beyond the limit": many}
    else:
        ranking = read_ranking(store)
        left_out = {"candidates without a score": len(ranking.unranked)}
        if request.what == "ranking":
            table = ranking_table(ranking)
        else:
            as_matrix = request.form.name == "csv"
            table = (wins_matrix if as_matrix else wins_pairs)(_wins(ranking))
    return _Table(table.schema, (table,), left_out)


def read_run_table(store: RunStore, what: str) -> pa.Table:
    """Return a table of a run as a whole: ranking, scores or judgments."""
    found = _read_table(store, make_request("parquet", what))
    return pa.concat_tables([found.schema.empty_table(), *found.parts])


def _read_rows(store: RunStore, what: str) -> _Table:
    checklists = store.inputs.checklists()
    names = ExportNames(store.judge().model, store.inputs.queries, checklists)
    if what == "scores":
        scores = store.scores()
        unscored = scores["score"].null_count
        note = f"Responses without a score (empty cells): {unscored:,}."
        schema = score_schema(scores)
        return _Table(schema, score_rows(scores, names), notes=(note,) if unscored else ())
    if what == "judgments":
        cells = store.scores(["query_id", "candidate", "judgment", "items"])
        unjudged = sum(items == 0 for items in cells["items"].to_pylist())
        parts = answer_rows(cells, store.judgments(), names)
        detailed = any(made.details is not None for made in names.checklists.values())
        schema = RUBRIC_JUDGMENTS if detailed else JUDGMENTS
        return _Table(schema, parts, {"responses that were not judged": unjudged})
    groups = find_groups(checklists)
    if not groups:
        raise _no_groups()
    cells = store.scores(["query_id", "candidate"])
    points = store.manifest().stages.score.scorer == POINTS
    columns = group_columns(scored_answers(store)[0], checklists, groups, points=points)
    return _Table(GROUP_SCORES, (group_score_rows(column, cells, names) for column in columns))


def _groups(store: RunStore) -> tuple[tuple[GroupScore, ...], int]:
    """Return the groups in explain.json and the number of groups it leaves out."""
    explain = store.read(Explanation)
    if not explain.groups:
        raise _no_groups()
    return explain.groups, explain.groups_left_out


def _no_groups() -> ExportError:
    return ExportError(
        "The run's checklists have no groups.",
        hint="Dimension checklists have groups, and edited ones can: see docs/howto/dimensions.md. "
        "For a run from an older version, run `rocketeval explain` first.",
    )


def _wins(ranking: Ranking) -> WinMatrix:
    if ranking.wins is None:
        raise ExportError(
            f"The run has no win matrix: {len(ranking.rows)} candidates are too many.",
            hint="Use --to matches and count the wins.",
        )
    return ranking.wins
