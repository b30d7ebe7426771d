"""`rocketeval import`: detect the format of a data file, read it, and print or convert it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocketeval.cli.help import codes, option, verb
from rocketeval.cli.options import with_format
from rocketeval.cli.output import Output, with_output
from rocketeval.cli.text import printable, printable_lines, shown_path
from rocketeval.errors import BenchmarkError
from rocketeval.text import count_of, join_words

if TYPE_CHECKING:
    from rocketeval.benchmarks.data import DataBenchmark, DataSummary

DATASET = "hf:"
"""Start of the name of a Hugging Face dataset."""


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


@dataclass(frozen=True, slots=True)
class OpenedData:
    """A data file with the reader of its format."""

    name: str
    """The file, folder or dataset, as typed."""
    title: str
    reader: DataBenchmark | None
    """None for a folder that is not read by a data reader, such as MT-Bench."""
    kind: str
    path: Path
    summary: DataSummary | None
    queries: int
    checklists: int

    @property
    def has_checklists(self) -> bool:
        """Whether every query has a checklist of its own."""
        return bool(self.checklists) and self.checklists == self.queries


def open_data(request: DataRequest) -> OpenedData:
    """Detect the format of a data file, and read it once."""
    from rocketeval.benchmarks.base import DetectedFormat, detect_format, open_benchmark
    from rocketeval.benchmarks.data import DataBenchmark
    from rocketeval.config import BenchmarkConfig

    options: dict[str, object] = {"bad_rows": "skip"} if request.skip_bad else {}
    path = Path(request.path)
    if request.path.startswith(DATASET):
        name, _, split = request.path.removeprefix(DATASET).partition(":")
        options |= {"dataset": name, "split": split or "train"}
        found = DetectedFormat("table", f"Hugging Face dataset {name}, split {split or 'train'}")
        path = Path()
    elif request.form:
        found = DetectedFormat(request.form, request.form)
        if not path.exists():
            raise BenchmarkError(f"There is no file or folder {path}.")
    else:
        found = detect_format(path)
    if request.columns or request.candidates:
        if found.kind != "table":
            raise BenchmarkError(
                f"{path} is read as {found.title}, which has no columns to name.",
                hint="Drop --column and --candidates, or add --format table.",
            )
        options |= _table_options(request)
    config = BenchmarkConfig(kind=found.kind, path=path.absolute(), options=options)
    reader = open_benchmark(config)
    return OpenedData(
        name=request.path,
        title=found.title,
        reader=reader if isinstance(reader, DataBenchmark) else None,
        kind=found.kind,
        path=path,
        summary=reader.summary if isinstance(reader, DataBenchmark) else None,
        queries=sum(1 for _ in reader.queries()),
        checklists=sum(1 for _ in reader.checklists()),
    )


def _table_options(request: DataRequest) -> dict[str, object]:
    columns = {}
    for typed in request.columns:
        part, equals, column = typed.partition("=")
        if not (part and equals):
            raise click.UsageError(f"--column {typed!r} is not PART=NAME, such as query=question.")
        columns[part] = column
    wide = [each.strip() for each in (request.candidates or "").split(",") if each.strip()]
    return {"columns": columns, **({"candidates": wide} if wide else {})}


def describe(found: OpenedData) -> Iterator[str]:
    """Yield the detected format, the mapping and what was left out."""
    summary = found.summary
    if found.reader is None or summary is None:
        yield f"{found.name}: {found.title}"
        return
    candidates = count_of(len(summary.candidates), "candidate", "candidates")
    queries = count_of(len(summary.queries), "query", "queries")
    parts = [count_of(summary.rows, "row", "rows"), candidates, queries]
    for number, one, many in (
        (summary.responses, "response", "responses"),
        (len(summary.checklists), "checklist", "checklists"),
        (len(summary.labels), "label", "labels"),
        (len(summary.votes), "vote", "votes"),
    ):
        if number:
            parts.append(count_of(number, one, many))
    yield f"{found.name}: {found.title}, {', '.join(parts)}"
    for part, source in found.reader.mapping().items():
        yield f"  {part:<10} {source}"
    for line in summary.lines():
        yield f"  {line}"
    lacking = {
        name: len(summary.queries) - number
        for name, number in summary.candidates.items()
        if number < len(summary.queries)
    }
    if lacking:
        named = (f"{name} lacks {number:,}" for name, number in lacking.items())
        yield f"  not every candidate answers every query: {join_words(named, most=5)}"


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
    found = open_data(request)
    if found.reader is None or found.summary is None:
        raise BenchmarkError(
            f"{data} is {found.title}, which needs no conversion.",
            hint=f"Set benchmark.kind to {found.kind} in a config.",
        )
    if out is not None:
        from rocketeval.benchmarks.jsonl import write_folder

        write_folder(found.reader, out)
    summary = found.summary
    done = ImportedData(
        format=found.title,
        kind=found.kind,
        mapping=found.reader.mapping(),
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
    output.give(done, lambda: _show(found, out))
    return 0


def _show(found: OpenedData, out: Path | None) -> None:
    for line in describe(found):
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
