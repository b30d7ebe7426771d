"""`rocketeval import`: detect the format of a data file, read it, and print or convert it."""

from __future__ import annotations

import csv
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocketeval.cli.help import codes, option, verb
from rocketeval.cli.options import with_format
from rocketeval.cli.output import Output, with_output
from rocketeval.cli.text import shown_path
from rocketeval.errors import BenchmarkError
from rocketeval.text import printable, printable_lines

if TYPE_CHECKING:
    from rocketeval.benchmarks.opened import DataMapping, OpenedData


@dataclass(frozen=True, slots=True)
class DataRequest:
    """What a command line says about a data file."""

    path: str
    """A file, a folder, or hf:OWNER/NAME[:SPLIT]."""
    form: str | None = None
    columns: tuple[str, ...] = ()
    """PART=COLUMN, as typed."""
    candidates: str | None = None
    skip_bad: bool = False
    judge: str | None = None
    base_url: str | None = None
    author: str | None = None
    author_url: str | None = None
    checklist: str | None = None
    """`general`, or a file of checklists."""


@dataclass(frozen=True, slots=True)
class ImportedData:
    """The result of `import`, in the form of its JSON document."""

    format: str
    kind: str
    mapping: Mapping[str, str]
    rows: int
    used: int
    skipped: Mapping[str, int]
    queries: int
    responses: int
    candidates: tuple[str, ...]
    checklists: int
    labels: int
    votes: int
    out: Path | None


def opened(request: DataRequest) -> OpenedData:
    """Return the data that a command line names, read once."""
    from rocketeval.benchmarks.opened import open_data

    options: dict[str, object] = {"bad_rows": "skip"} if request.skip_bad else {}
    if request.columns or request.candidates:
        options |= _table_options(request)
    return open_data(request.path, request.form, options)


def _table_options(request: DataRequest) -> dict[str, object]:
    columns = {}
    for typed in request.columns:
        part, equals, column = typed.partition("=")
        if not (part and equals):
            raise click.UsageError(f"--column {typed!r} is not PART=NAME, such as query=question.")
        columns[part] = column
    named = next(csv.reader([request.candidates or ""], skipinitialspace=True), [])
    wide = [each.strip() for each in named if each.strip()]
    return {"columns": columns, **({"candidates": wide} if wide else {})}


@verb(
    "import",
    examples=[
        ("rocketeval import answers.csv", "show what is in it"),
        ("rocketeval import logs/ --out benchmark", "convert a folder of logs"),
        ("rocketeval import x.csv --column query=ask", "name a column"),
    ],
    exit_codes=codes(2),
)
@click.argument("data", metavar="DATA")
@option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Write queries, responses and reference data as JSON lines.",
)
@with_format
@with_output
def command(
    data: str,
    out: Path | None,
    form: str | None,
    columns: tuple[str, ...],
    candidates: str | None,
    skip_bad: bool,
    output: Output,
) -> int:
    """Show what a data file holds, or convert it to JSON lines.

    DATA is a file or folder: CSV, TSV, JSON, JSON lines, Parquet, Excel, results of promptfoo,
    Inspect, lm-eval, DeepEval or ragas, OpenAI logs and batches, OpenTelemetry and Langfuse traces,
    AlpacaEval, Arena-Hard, WildBench, preference pairs, or hf:OWNER/NAME for a Hugging Face
    dataset. `rocketeval run DATA` reads the same files without converting them.
    """
    request = DataRequest(data, form, columns, candidates, skip_bad)
    from rocketeval.benchmarks.opened import describe

    found = opened(request)
    if found.reader is None or found.summary is None:
        raise BenchmarkError(
            f"{data} is {found.title}, which needs no conversion.",
            hint=f"Set benchmark.kind to {found.kind} in a config.",
        )
    if out is not None:
        from rocketeval.benchmarks.jsonl import write_folder

        write_folder(found.reader, out)
    summary, about = found.summary, describe(found)
    done = ImportedData(
        format=found.title,
        kind=found.kind,
        mapping=about.parts,
        rows=summary.rows,
        used=summary.used,
        skipped={reason: each.count for reason, each in summary.skipped.items()},
        queries=len(summary.queries),
        responses=summary.responses,
        candidates=tuple(summary.candidates),
        checklists=len(summary.checklists),
        labels=len(summary.labels),
        votes=len(summary.votes),
        out=out,
    )
    output.give(done, lambda: _show(found, about, out))
    return 0


def _show(found: OpenedData, about: DataMapping, out: Path | None) -> None:
    for line in about.lines:
        click.echo(printable_lines(line))
    if out is None:
        command = (
            f"rocketeval run {printable(shlex.quote(found.name))} --judge MODEL --base-url URL"
        )
        click.echo(f"Next: {command}" + ("" if found.has_checklists else " --author MODEL"))
        if not found.has_checklists:
            click.echo("      (no author? --checklist general: seven general items, a start)")
    else:
        click.echo(f"Written: {shown_path(out)} (benchmark.kind: jsonl)")
