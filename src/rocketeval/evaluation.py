"""`rocketeval.evaluate`: rank the rows of a data frame, a list or a file in one call."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

from rocketeval.api import (
    GENERAL,
    Judge,
    as_judge,
    checklist_items,
    engine_settings,
    finish,
    general_author,
)
from rocketeval.benchmarks.snapshot import snapshot
from rocketeval.config import EngineConfig, RunConfig, parse_options
from rocketeval.engines.base import Engine
from rocketeval.errors import BenchmarkError, ConfigError, in_python
from rocketeval.items import item_to_json
from rocketeval.observer import Observer
from rocketeval.records import Checklist, Judgment

if TYPE_CHECKING:
    from rocketeval.benchmarks.base import Benchmark
    from rocketeval.benchmarks.opened import DataMapping, OpenedData
    from rocketeval.pipeline import Run
    from rocketeval.results import Evaluation

__all__ = ["evaluate", "evaluate_async"]

CHOICES = (
    "Give author=MODEL (an LLM writes one checklist per query), checklists=[...] (the same items "
    'for all queries), checklists={query: [...]}, checklists="general" (seven packaged items), or '
    "a column `checklist` in the data."
)

_OF_BENCHMARK = {"kind": "format", "path": "data", "limit": "limit"}
_OF_FORMAT = {name: name for name in ("columns", "candidates", "bad_rows")}
_OF_FORMAT |= {"dataset": "data", "split": "data"}
"""The argument of `evaluate` that decides a setting of the benchmark, and of its format."""


@dataclass(frozen=True)
class _Prepared:
    """A run that is ready to start."""

    run: Run
    folder: Path | None
    """The temporary folder of an unnamed run."""
    data: DataMapping

    @contextmanager
    def kept_if_stopped(self) -> Iterator[None]:
        """Note where finished judgments are if the run ends with an error."""
        try:
            yield
        except BaseException as error:
            if self.folder is not None:
                error.add_note(
                    "Finished judgments are kept. To continue, add "
                    f'name="{self.run.config.name}", output="{self.folder}".'
                )
            raise


def evaluate(
    data: object,
    *,
    judge: str | Judge | Engine,
    base_url: str | None = None,
    author: str | Judge | None = None,
    author_url: str | None = None,
    checklists: object = None,
    columns: Mapping[str, str] | None = None,
    candidates: Sequence[str] = (),
    format: str | None = None,
    name: str | None = None,
    output: Path | str = "runs",
    limit: int | None = None,
    until: str | None = None,
    bad_rows: str = "refuse",
    config: Mapping[str, object] | None = None,
    progress: bool | Observer = True,
) -> Evaluation:
    """Rank the candidates in `data` with a judge, and return the result.

    >>> import rocketeval
    >>> rows = [
    ...     {"question": "Name a color.", "version": "v1", "output": "Red."},
    ...     {"question": "Name a color.", "version": "v2", "output": "I cannot say."},
    ... ]
    >>> judge = rocketeval.ScriptedEngine(lambda prefix, item: 0.9 if "Red" in prefix else 0.1)
    >>> result = evaluate(rows, judge=judge, checklists=["Does it name a color?"])
    >>> [row.candidate for row in result.ranking]
    ['v1', 'v2']

    Also works where an event loop runs, such as a notebook; `evaluate_async` awaits the same.

    Args:
        data: One row per response, or one per query with a column per candidate: a list of dicts, a
            data frame (pandas, polars, pyarrow), a Hugging Face dataset or its name
            (hf:OWNER/NAME[:SPLIT]), or the path of a file or folder that `rocketeval import` reads.
        judge: The judge's model name, a `Judge`, or an engine object.
        base_url: URL of the judge's server, such as http://127.0.0.1:8000/v1.
        author: LLM that writes a checklist for each query.
        author_url: URL of the author's server; default: the OpenAI API.
        checklists: Items for all queries, each a text or an object such as {"text": "Is it rude?",
            "weight": -1}; a mapping from query (its id, or the text of one or more) to items; the
            path of a checklist file; or "general". Default: the data's own, then the author's.
        columns: The column of each part, such as {"query": "ask"}; others are recognized by name.
        candidates: Columns of a table with one column per candidate.
        format: Name of the data's format, such as "table"; others are recognized.
        name: Name of the run, which is then kept in `output` and continued by the next call.
            Default: a temporary directory, removed with the result.
        output: Folder of named runs.
        limit: Use only the first queries.
        until: Stop grading when this question is answered: "best", "top:K", "beats:CANDIDATE",
            "within:DELTA" or "interval:WIDTH". Default: grade everything.
        bad_rows: "refuse" rows with a mistake, or "skip" and count them.
        config: Further settings of a config, such as {"scorer": {"scale": [0, 1]}} or {"judge":
            {"datamarking": True}}. Paths are relative to the current folder. A setting that an
            argument decides, such as `name` or `benchmark.path`, is refused.
        progress: Show progress, or an observer that does.

    Raises:
        RocketEvalError: The data, the settings or the judge cannot be used; the message says what
            to do.
    """
    prepared = _prepare(
        data,
        judge=judge,
        base_url=base_url,
        author=author,
        author_url=author_url,
        checklists=checklists,
        columns=columns,
        candidates=candidates,
        format=format,
        name=name,
        output=output,
        limit=limit,
        until=until,
        bad_rows=bad_rows,
        config=config,
        progress=progress,
    )
    with prepared.kept_if_stopped():
        return _result(prepared, finish(prepared.run))


async def evaluate_async(
    data: object,
    *,
    judge: str | Judge | Engine,
    base_url: str | None = None,
    author: str | Judge | None = None,
    author_url: str | None = None,
    checklists: object = None,
    columns: Mapping[str, str] | None = None,
    candidates: Sequence[str] = (),
    format: str | None = None,
    name: str | None = None,
    output: Path | str = "runs",
    limit: int | None = None,
    until: str | None = None,
    bad_rows: str = "refuse",
    config: Mapping[str, object] | None = None,
    progress: bool | Observer = True,
) -> Evaluation:
    """Like `evaluate`, for asynchronous code."""
    prepared = _prepare(
        data,
        judge=judge,
        base_url=base_url,
        author=author,
        author_url=author_url,
        checklists=checklists,
        columns=columns,
        candidates=candidates,
        format=format,
        name=name,
        output=output,
        limit=limit,
        until=until,
        bad_rows=bad_rows,
        config=config,
        progress=progress,
    )
    with prepared.kept_if_stopped():
        return _result(prepared, await prepared.run.all())


def _result(prepared: _Prepared, outcome: Any) -> Evaluation:
    from rocketeval.results import Evaluation

    return Evaluation(prepared.run, outcome, prepared.folder, prepared.data)


def _prepare(
    data: object,
    *,
    judge: str | Judge | Engine,
    base_url: str | None,
    author: str | Judge | None,
    author_url: str | None,
    checklists: object,
    columns: Mapping[str, str] | None,
    candidates: Sequence[str],
    format: str | None,
    name: str | None,
    output: Path | str,
    limit: int | None,
    until: str | None,
    bad_rows: str,
    config: Mapping[str, object] | None,
    progress: bool | Observer,
) -> _Prepared:
    """Write the snapshot of the data, and return its run."""
    from rocketeval.benchmarks.opened import describe
    from rocketeval.pipeline import Run

    asked = as_judge(judge, base_url)
    if isinstance(candidates, str):
        raise ConfigError(
            "`candidates` must be a list of columns.",
            hint=f'For one response per row, give columns={{"response": "{candidates}"}}.',
        )
    fixed = ("name", "output", *(["until"] if until is not None else []))
    given = _kept(config or {}, "config", {argument: argument for argument in fixed})
    of_judge = _kept(given.pop("judge", {}), "config.judge", _decided_by(judge, asked))
    of_author = _kept(given.pop("author", {}), "config.author", {})
    of_benchmark = _kept(given.pop("benchmark", {}), "config.benchmark", _OF_BENCHMARK)
    options = _kept(of_benchmark.pop("options", {}), "config.benchmark.options", _OF_FORMAT)
    folder = None if name is not None else Path(mkdtemp(prefix="rocketeval-"))
    where = Path(output) if folder is None else folder
    raw: dict[str, object] = {
        "cache": str(where.absolute() / ".cache"),
        **given,
        "name": name or "run",
        "output": str(where.absolute()),
        "judge": {**of_judge, **asked.settings},
        **({} if until is None else {"until": until}),
    }
    if bad_rows != "refuse":
        options["bad_rows"] = bad_rows
    if columns:
        options["columns"] = dict(columns)
    if candidates:
        options["candidates"] = list(candidates)
    try:
        home = _parsed({**raw, "benchmark": {"path": "."}}).run_path
        opened = _opened(data, home, format, options)
        raw["benchmark"] = {
            **of_benchmark,
            "kind": opened.kind,
            "path": str(opened.config.path),
            "options": opened.config.options,
            "limit": limit,
        }
        raw["author"] = _authored(of_author, author, author_url, checklists, opened.benchmark, home)
        settings = _with_defaults(raw, opened)
        about = describe(opened)
    except BaseException as error:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, BenchmarkError):
            raise type(error)(error.message, hint=in_python(error.hint)) from None
        raise
    observer = progress if isinstance(progress, Observer) else _observer(progress)
    return _Prepared(Run(settings, judge=asked.engine, observer=observer), folder, about)


def _kept(given: object, section: str, decided: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings of a section; refuse those that an argument has `decided`."""
    if not isinstance(given, Mapping):
        raise ConfigError(f"`{section}` must be a mapping of settings.")
    for name in given:
        if name in decided:
            raise ConfigError(
                f"`{section}.{name}` is decided by the argument `{decided[name]}` of `evaluate`.",
                hint="Remove it from `config`, and use the argument.",
            )
    return dict(given)


def _decided_by(judge: str | Judge | Engine, asked: Judge) -> dict[str, str]:
    """Return the settings of the section `judge` that arguments decide, with these arguments."""
    own = {"model", "base_url", "engine", *asked.settings}
    if asked.engine is not None:
        own |= set(EngineConfig.model_fields) - {"concurrency"}
    decided = dict.fromkeys(own, "judge")
    return {**decided, "base_url": "base_url"} if isinstance(judge, str) else decided


def _parsed(raw: Mapping[str, object]) -> RunConfig:
    """Return the config, with paths relative to the current folder."""
    return parse_options(raw, RunConfig, "The config", Path.cwd())


def _with_defaults(raw: dict[str, object], opened: OpenedData) -> RunConfig:
    """Return the config with what its method shows and the scale of the labels."""
    if opened.summary and opened.summary.contexts:
        raw.setdefault("method", {"options": {"shows": ["context"]}})
    if opened.scale is not None:
        raw.setdefault("scorer", {"scale": list(opened.scale)})
    return _parsed(raw)


def _opened(
    data: object, home: Path, form: str | None, options: Mapping[str, object]
) -> OpenedData:
    """Return the data, read once; data in memory is first written into the run directory."""
    from rocketeval.benchmarks.base import detect_format
    from rocketeval.benchmarks.opened import DATASET, open_data

    if isinstance(data, str | Path):
        given = str(data)
        if not given.startswith(DATASET) and Path(given).suffix in (".yaml", ".yml"):
            _refuse_config(Path(given))
        return open_data(given if given.startswith(DATASET) else str(Path(given)), form, options)
    path = snapshot(data, home).absolute()
    named = "table" if {"columns", "candidates"} & set(options) else form
    kind = named or detect_format(path).kind
    if kind in ("table", "deepeval", "ragas"):
        # These datasets are tables, too; their readers would name the candidate after the file.
        found = open_data(str(path), "table", {"candidate": "responses", **options})
    else:
        found = open_data(str(path), form, options)
    return replace(found, name="data in memory")


def _refuse_config(path: Path) -> None:
    """Raise ConfigError if a YAML file is a config instead of data."""
    import yaml

    from rocketeval.benchmarks.row_files import WRAPPERS
    from rocketeval.resources import top_keys

    first = None
    with suppress(OSError, yaml.YAMLError, ValueError):
        decides = ("benchmark", *WRAPPERS)
        first = next((key for key in top_keys(path) or () if key in decides), None)
    if first == "benchmark":
        raise ConfigError(f"{path} is a config.", hint=f'Use rocketeval.run("{path}").')


def _authored(
    given: dict[str, Any],
    author: str | Judge | None,
    author_url: str | None,
    checklists: object,
    benchmark: Benchmark,
    home: Path,
) -> dict[str, Any]:
    """Return the `author` section: what the arguments say, and what else is `given`."""
    if author is None and checklists is None and "kind" in given:
        return given
    argument = "checklists" if author is None else "author"
    _kept(given, "config.author", {"kind": argument, "engine": "author"})
    own = _author(author, author_url, checklists, benchmark, home)
    decided = dict.fromkeys(own.get("options", {}), argument)
    options = _kept(given.get("options", {}), "config.author.options", decided)
    return {**given, **own, "options": {**options, **own.get("options", {})}}


def _author(
    author: str | Judge | None,
    author_url: str | None,
    checklists: object,
    benchmark: Benchmark,
    home: Path,
) -> dict[str, Any]:
    """Return what the arguments say about where the checklists come from."""
    if author is not None:
        if checklists is not None:
            raise ConfigError("Give either an author or checklists, not both.")
        if isinstance(author, Judge):
            if author.engine is not None:
                raise ConfigError("The author must be a model on a server, not an engine object.")
            return {"kind": "instance", "engine": author.settings}
        return {"kind": "instance", "engine": engine_settings(author, author_url, {})}
    if checklists is None:
        if next(iter(benchmark.checklists()), None) is not None:
            return {"kind": "imported"}
        raise ConfigError("There are no checklists.", hint=CHOICES)
    if isinstance(checklists, str | Path):
        if checklists == GENERAL:
            return general_author()
        if not Path(checklists).is_file():
            if "?" in str(checklists):
                checklist_items(checklists, "checklists")
            raise ConfigError(f"There is no checklist file {str(checklists)!r}.", hint=CHOICES)
        return {"kind": "file", "options": {"file": str(Path(checklists).absolute())}}
    if isinstance(checklists, Mapping):
        return _checklists_by_query(checklists, benchmark, home)
    items = checklist_items(checklists, "checklists")
    written = [item_to_json(item.text, item.detail, item.group) for item in items]
    return {"kind": "fixed", "options": {"items": written}}


def _checklists_by_query(
    given: Mapping[Any, Any], benchmark: Benchmark, home: Path
) -> dict[str, object]:
    """Write checklists that are named by the query's id or text, and return their author."""
    from rocketeval.checklists.export import write_checklists
    from rocketeval.text import did_you_mean

    queries = {query.id: query for query in benchmark.queries()}
    by_text: dict[str, list[str]] = {}
    for query in queries.values():
        by_text.setdefault(query.text, []).append(query.id)
    found: dict[str, Checklist] = {}
    for key, items in given.items():
        by_id = str(key) in queries
        named = [str(key)] if by_id else by_text.get(str(key), [])
        if not named:
            raise ConfigError(
                f"`checklists` names the query {str(key)!r}, which is not in the data.",
                hint=did_you_mean(str(key), [*queries, *by_text]),
            )
        parsed = checklist_items(items, f"checklists[{str(key)!r}]")
        for query_id in named:
            if by_id or query_id not in found:
                found[query_id] = Checklist.from_items(query_id, parsed)
    lacking = [query.text for name, query in queries.items() if name not in found]
    if lacking:
        raise ConfigError(
            f"`checklists` has none for {len(lacking)} of {len(queries)} queries, such as "
            f"{lacking[0][:60]!r}.",
            hint="Add them, or give a list of items for all queries.",
        )
    path = home / "checklists.yaml"
    home.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    write_checklists(found, queries, path)
    return {"kind": "file", "options": {"file": str(path.absolute())}}


class ProgressLine(Observer):
    """Progress on one line that is rewritten: of stderr, or of a notebook's output."""

    def __init__(self, handle: Any = None) -> None:
        self._stage, self._total, self._done = "", 0, 0
        self._width = 0
        self._handle = handle
        """A display of IPython; None for a terminal."""

    def stage_began(self, stage: str, total: int | None = None, done: int = 0) -> None:
        """Show the stage and its size."""
        self._stage, self._total, self._done = stage, total or 0, done
        self._show()

    def advanced(self) -> None:
        """Count a step."""
        self._done += 1
        self._show()

    def judged(self, judgment: Judgment) -> None:
        """Count a judgment."""
        self.advanced()

    def stage_ended(self, stage: str, facts: object) -> None:
        """Remove the line."""
        if self._width:
            self._write("")

    def _show(self) -> None:
        of = f" {self._done:,} of {self._total:,}" if self._total else ""
        self._write(f"rocketeval: {self._stage}{of}")

    def _write(self, line: str) -> None:
        if self._handle is not None:
            self._handle.update({"text/plain": line}, raw=True)
        else:
            sys.stderr.write("\r" + line.ljust(self._width) + ("" if line else "\r"))
            sys.stderr.flush()
        self._width = len(line)


def _observer(progress: bool) -> Observer | None:
    """Return an observer for a terminal or a notebook; elsewhere nothing is shown."""
    from rocketeval.results import in_notebook

    if not progress:
        return None
    if in_notebook():
        from importlib import import_module

        show = import_module("IPython.display").display
        return ProgressLine(show({"text/plain": ""}, raw=True, display_id=True))
    return ProgressLine() if sys.stderr.isatty() else None
