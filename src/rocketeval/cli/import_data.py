"""`rocketeval import`, and the step from a data file to a config for `run` and `init`.

The format is detected and printed with the mapping. `run DATA` writes a config next to nothing
else: it names the reader and its options, so that the mapping can be edited.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rocketeval.cli.help import codes, option, verb
from rocketeval.cli.options import with_format, with_source
from rocketeval.cli.output import Output, with_output
from rocketeval.cli.text import as_argument, printable, printable_lines, shown_path
from rocketeval.errors import BenchmarkError, ConfigError
from rocketeval.text import count_of, join_words

if TYPE_CHECKING:
    from rocketeval.benchmarks.data import DataBenchmark, DataSummary

ENDING = ".rocketeval.yaml"
"""Suffix of a config written for a data file."""
DATASET = "hf:"
"""Start of the name of a Hugging Face dataset."""
GENERAL = "general"
"""Name of the packaged checklist for all queries."""
AUTHOR_TOKENS = 1200
"""Tokens of one authored checklist, prompt and answer: a rough mean, for the first estimate."""


CHOICES = """\
  --author MODEL [--author-url URL]   an LLM writes one for each query (best)
  --checklist general                 seven general items for all queries (free, a start)
  --checklist FILE                    your own, as .yaml or .csv"""


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


def with_data(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Let a verb whose first argument is a config also take a data file or folder, or a run."""

    @wraps(verb)
    def command(
        config: Path,
        form: str | None,
        columns: tuple[str, ...],
        candidates: str | None,
        skip_bad: bool,
        author: str | None,
        author_url: str | None,
        checklist: str | None,
        **own: Any,
    ) -> Any:
        request = DataRequest(
            path=str(config),
            form=form,
            columns=columns,
            candidates=candidates,
            skip_bad=skip_bad,
            judge=own.get("judge"),
            base_url=own.get("base_url"),
            author=author,
            author_url=author_url,
            checklist=checklist,
        )
        typed = [form, columns, candidates, skip_bad, author, author_url, checklist]
        if is_config(config):
            if any(typed):
                raise click.UsageError(
                    f"{config} is a config: set its `benchmark` and `author` there instead of "
                    "--format, --column, --candidates, --skip-bad, --author and --checklist."
                )
            return verb(config=config, **own)
        quiet = bool(own.get("quiet"))
        written = config_for(request, say=None if quiet else _say)
        click.get_current_context().params["config"] = written
        return verb(config=written, **own)

    return with_format(with_source(command))


def _say(line: str) -> None:
    click.echo(printable_lines(line), err=True)


def is_config(path: Path) -> bool:
    """Return whether a path is a config: YAML with a `benchmark`, or nothing that exists."""
    if str(path).startswith(DATASET):
        return False
    if path.suffix not in (".yaml", ".yml"):
        return not path.exists() and not path.suffix
    if not path.is_file():
        return True
    import yaml

    try:
        content = yaml.load(path.read_bytes(), yaml.CSafeLoader)
    except (yaml.YAMLError, AttributeError):
        return True
    known = isinstance(content, dict) and "results" in content and "benchmark" not in content
    return not known


def config_for(request: DataRequest, say: Callable[[str], None] | None) -> Path:
    """Return the config of a run directory or of a data file; write it if there is none yet."""
    path = Path(request.path)
    if path.is_dir() and (path / "manifest.json").exists() and (path / "run.yaml").exists():
        return path / "run.yaml"
    inside = path / "rocketeval.yaml"
    if path.is_dir() and inside.is_file():
        if say:
            say(f"Using {shown_path(inside)}, the config in this folder.")
        return inside
    target = Path(f"{_name_of(request)}{ENDING}")
    if target.exists():
        _check_same(target, request)
        if say:
            say(f"Using {shown_path(target)}, written before. Edit it, or delete it to start over.")
        return target
    found = open_data(request)
    if say:
        for line in describe(found):
            say(line)
    write_config(request, found, target)
    if say:
        say(f"Config: {shown_path(target)} (edit it to change the mapping)\n")
    return target


def _name_of(request: DataRequest) -> str:
    from rocketeval.benchmarks.row_files import stem_of

    if request.path.startswith(DATASET):
        name = request.path.removeprefix(DATASET).partition(":")[0].rpartition("/")[2]
    else:
        path = Path(request.path).resolve()
        name = path.name if path.is_dir() else stem_of(path)
    return name.lstrip(".") or "data"


def _check_same(target: Path, request: DataRequest) -> None:
    """Raise ConfigError if a written config is about other data than the request."""
    from rocketeval.config import load_config

    benchmark = load_config(target).benchmark
    given = Path(request.path).resolve()
    dataset = benchmark.options.get("dataset")
    if dataset is None and benchmark.path.resolve() != given:
        raise ConfigError(
            f"{target} exists and reads {benchmark.path}, not {given}.",
            hint=f"Delete or rename it, or run it: rocketeval run {as_argument(target)}",
        )
    if request.form or request.columns or request.candidates or request.author or request.checklist:
        raise ConfigError(
            f"{target} exists, so the options about the data and the checklists have no effect.",
            hint="Edit it, or delete it to write it again.",
        )


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


def write_config(request: DataRequest, found: OpenedData, target: Path) -> None:
    """Write the smallest config for a data file; ask or refuse if something is missing."""
    judge = request.judge or _ask("Judge model (its name on the server)", "judge", "--judge MODEL")
    sections = [
        f"# Written from {found.path.name or found.name}. Edit it, then: rocketeval run "
        f"{shlex.quote(target.name)}",
        _dumped({"name": _folder_name(_name_of(request))}),
        _dumped({"benchmark": _benchmark(request, found, target)}),
        _dumped({"judge": _engine(judge, request.base_url)}),
        _dumped({"author": _author(request, found)}),
    ]
    scale = _scale(found)
    if scale is not None:
        sections.append(
            f"# The labels are between {scale[0]:g} and {scale[1]:g}.\n"
            + _dumped({"scorer": {"scale": list(scale)}})
        )
    sections.append("output: runs\ncache: runs/.cache       # judgments shared between runs\n")
    target.write_text("\n".join(sections), encoding="utf-8")


def _folder_name(name: str) -> str:
    return re.sub(r"[^\w .()+-]", "-", name)


def _dumped(section: Mapping[str, object]) -> str:
    import yaml

    return yaml.safe_dump(dict(section), sort_keys=False, allow_unicode=True, width=10_000)


def _benchmark(request: DataRequest, found: OpenedData, target: Path) -> dict[str, object]:
    settings = dict(found.reader.settings()) if found.reader else {}
    if request.skip_bad:
        settings["bad_rows"] = "skip"
    path = found.path.resolve()
    shown = os.path.relpath(path, target.resolve().parent)
    named: dict[str, object] = {"kind": found.kind, "path": shown}
    return {**named, "options": settings} if settings else named


def _engine(model: str, base_url: str | None) -> dict[str, object]:
    if model.endswith(".gguf"):
        return {"engine": "llamacpp", "model": str(Path(model).expanduser().absolute())}
    return {"model": model, **({"base_url": base_url} if base_url else {})}


def _author(request: DataRequest, found: OpenedData) -> dict[str, object]:
    if request.author and request.checklist:
        raise click.UsageError("--author and --checklist exclude each other: drop one of them.")
    if request.author:
        return {"kind": "instance", "engine": _engine(request.author, request.author_url)}
    if request.checklist == GENERAL:
        return _general()
    if request.checklist:
        path = Path(request.checklist)
        if not path.is_file():
            raise ConfigError(
                f"There is no checklist file {path}.", hint="Give a .yaml or .csv file, or general."
            )
        return {"kind": "file", "options": {"file": str(path.absolute())}}
    if found.checklists and found.checklists == found.queries:
        return {"kind": "imported"}
    return _ask_for_checklists(found.checklists, found.queries)


def _ask_for_checklists(own: int, queries: int) -> dict[str, object]:
    """Ask where the checklists come from; without a terminal, refuse with the choices."""
    have = f"only {own:,} of {queries:,} queries have one" if own else "the data has none"
    needed = (
        f"Checklists are needed, and {have}. An author LLM writes one per query: "
        f"{count_of(queries, 'request', 'requests')}, about {queries * AUTHOR_TOKENS:,} tokens in "
        "all."
    )
    if not sys.stdin.isatty():
        raise ConfigError(needed, hint=f"Choose:\n{CHOICES}")
    click.echo(needed, err=True)
    model = _prompt("Author model (empty: seven general items for all queries)")
    if not model:
        return _general()
    return {
        "kind": "instance",
        "engine": _engine(model, _prompt("Its base URL (empty: the OpenAI API)") or None),
    }


def _general() -> dict[str, object]:
    from rocketeval.checklists.simple import GENERAL_ITEMS

    return {"kind": "fixed", "options": {"items": list(GENERAL_ITEMS)}}


def _prompt(question: str) -> str:
    return str(click.prompt(question, default="", show_default=False, err=True)).strip()


def _ask(question: str, what: str, flag: str) -> str:
    """Ask on a terminal; elsewhere, name the missing option."""
    if sys.stdin.isatty():
        return str(click.prompt(question, err=True))
    raise ConfigError(
        f"No {what} is named.",
        hint=f"Add {flag} and, unless it is the OpenAI API, --base-url URL; or a GGUF file as "
        "MODEL.",
    )


def _scale(found: OpenedData) -> tuple[float, float] | None:
    """Return the scale of the labels if it is not the usual 1 to 10."""
    values = [label.value for label in found.summary.labels] if found.summary else []
    if not values or (min(values) >= 1 and max(values) <= 10):
        return None
    if min(values) >= 0 and max(values) <= 1:
        return 0.0, 1.0
    return float(min(values)), float(max(values))


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
        click.echo(f"Next: rocketeval run {printable(shlex.quote(found.name))}")
    else:
        click.echo(f"Written: {shown_path(out)} (benchmark.kind: jsonl)")
