"""The benchmark seam: the protocol of input formats, and a conformance check."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, get_args, runtime_checkable

from rocketeval.benchmarks.reading import format_option, readings
from rocketeval.config import BenchmarkConfig
from rocketeval.errors import BenchmarkError
from rocketeval.records import Checklist, Label, Query, Rating, Response, Vote, Winner
from rocketeval.registry import Registry

__all__ = ["Benchmark", "LeavesOut", "Located", "open_benchmark"]


class Benchmark(Protocol):
    """Reads one benchmark. Each method may be called once or many times, in any order.

    Responses are streamed and may come in any order; everything else fits in memory.
    """

    @classmethod
    def create(cls, config: BenchmarkConfig) -> Benchmark:
        """Return a reader for `config`; raise BenchmarkError if its files are missing."""
        ...

    def queries(self) -> Iterable[Query]:
        """Yield the queries in the benchmark's own order."""
        ...

    def responses(self) -> Iterable[Response]:
        """Yield every candidate's responses."""
        ...

    def checklists(self) -> Iterable[Checklist]:
        """Yield the benchmark's own checklists."""
        ...

    def labels(self) -> Iterable[Label]:
        """Yield human labels."""
        ...

    def votes(self) -> Iterable[Vote]:
        """Yield human votes."""
        ...

    def ratings(self) -> Iterable[Rating]:
        """Yield reference ratings of candidates."""
        ...


@runtime_checkable
class LeavesOut(Protocol):
    """Optional protocol: a benchmark that reports which data it ignores."""

    def left_out(self) -> Mapping[str, int]:
        """Return the number of ignored records, by description."""
        ...


@runtime_checkable
class ReportsFields(Protocol):
    """Optional protocol: a benchmark that reports fields which look misspelled."""

    def odd_fields(self) -> Iterable[str]:
        """Yield a sentence about each such field, once everything was read."""
        ...


@runtime_checkable
class Located(Protocol):
    """Optional protocol: a benchmark that reports where it read its last record, for messages."""

    where: str
    """`file:line`; empty before the first record."""


BENCHMARKS: Registry[Benchmark] = Registry(
    "benchmark",
    {
        "jsonl": "rocketeval.benchmarks.jsonl:JsonlBenchmark",
        "rocketeval": "rocketeval.benchmarks.rocketeval:RocketEvalBenchmark",
        "mt_bench": "rocketeval.benchmarks.mt_bench:MTBench",
        "healthbench": "rocketeval.benchmarks.rubric_files:HealthBench",
        "biggen": "rocketeval.benchmarks.rubric_files:BigGenBench",
        "writingbench": "rocketeval.benchmarks.rubric_files:WritingBench",
        "infobench": "rocketeval.benchmarks.rubric_files:InFoBench",
        "alpaca_eval": "rocketeval.benchmarks.leaderboards:AlpacaEvalOutputs",
        "arena_hard": "rocketeval.benchmarks.leaderboards:ArenaHardAnswers",
        "wildbench": "rocketeval.benchmarks.leaderboards:WildBenchResults",
        "promptfoo": "rocketeval.benchmarks.promptfoo:PromptfooResults",
        "inspect": "rocketeval.benchmarks.inspect_logs:InspectLogs",
        "lm_eval": "rocketeval.benchmarks.eval_datasets:LmEvalSamples",
        "deepeval": "rocketeval.benchmarks.eval_datasets:DeepEvalCases",
        "ragas": "rocketeval.benchmarks.eval_datasets:RagasDataset",
        "openai_logs": "rocketeval.benchmarks.request_logs:ChatLogs",
        "traces": "rocketeval.benchmarks.traces:TraceExport",
        "preference_pairs": "rocketeval.benchmarks.preference_pairs:PreferencePairs",
        "table": "rocketeval.benchmarks.table:TableBenchmark",
    },
)
READERS = (
    "inspect",
    "promptfoo",
    "arena_hard",
    "lm_eval",
    "wildbench",
    "alpaca_eval",
    "traces",
    "openai_logs",
    "preference_pairs",
    "deepeval",
    "ragas",
)
"""Data readers in the order in which they are tried; a table is what none of them recognizes."""


@dataclass(frozen=True, slots=True)
class DetectedFormat:
    """The format of a file or folder of data."""

    kind: str
    """Name of the benchmark kind."""
    title: str
    """Name of the format for people."""


def detect_format(path: Path) -> DetectedFormat:
    """Return the format of the data at `path`.

    Raises BenchmarkError if it has none, or if two formats fit: then the message names both.
    """
    from rocketeval.benchmarks.data import DataBenchmark
    from rocketeval.benchmarks.row_files import Sample, no_rows, not_a_data_file, row_format

    if not path.exists():
        raise BenchmarkError(f"There is no file or folder {path}.", hint=_near_file(path))
    if path.is_file() and row_format(path) is None:
        raise not_a_data_file(path)
    sample = Sample(path)
    if path.is_dir():
        known = _known_folder(sample.names)
        if known is not None:
            return known
        if not sample.files:
            raise BenchmarkError(
                f"{path} has no data file.",
                hint="Give a file such as .csv, .jsonl, .json, .parquet, .xlsx or .eval.",
            )
    found = []
    for kind in READERS:
        reader = BENCHMARKS.get(kind)
        title = reader.recognize(sample) if issubclass(reader, DataBenchmark) else None
        if title is not None:
            found.append(DetectedFormat(kind, title))
    if len(found) > 1:
        raise BenchmarkError(
            f"{path} fits two formats: {found[0].title} and {found[1].title}.",
            hint=readings(*((format_option(each.kind), each.title) for each in found)),
        )
    if found:
        return found[0]
    if "question.jsonl" in sample.names and any("model_answer/" in name for name in sample.names):
        return DetectedFormat("mt_bench", "MT-Bench")
    from rocketeval.benchmarks.table import TableBenchmark

    title = TableBenchmark.recognize(sample)
    if title is None and sample.first_problem is not None:
        bad = sample.first_problem
        raise BenchmarkError(
            f"{path} has no readable row. {bad.where}: {bad.kind}"
            + (f" ({bad.detail})." if bad.detail else "."),
            hint=bad.hint,
        )
    if title is None:
        raise no_rows(sample.files[0])
    return DetectedFormat("table", title)


def _known_folder(names: set[str]) -> DetectedFormat | None:
    """Return the format of a folder with well-known file names."""
    inside = {name.partition("/")[0] for name in names if "/" in name}
    if "queries.jsonl" in names and ("responses" in inside or "responses.jsonl" in names):
        return DetectedFormat("jsonl", "RocketEval's own folder (queries and responses)")
    if names & {"query.jsonl", "queries.jsonl"} and "response" in inside:
        return DetectedFormat("rocketeval", "the layout of the paper's scripts")
    return None


def _near_file(path: Path) -> str:
    from rocketeval.text import near_name

    folder = path.parent
    names = [each.name for each in folder.iterdir()] if folder.is_dir() else []
    meant = near_name(path.name, names)
    return f"Did you mean {folder / meant}?" if meant else "Check the path."


def open_benchmark(config: BenchmarkConfig) -> Benchmark:
    """Return the benchmark that `config` names."""
    return BENCHMARKS.get(config.kind).create(config)


def check_benchmark(benchmark: Benchmark) -> None:
    """Raise AssertionError unless `benchmark` conforms to the benchmark seam."""
    responses = _twice(benchmark.responses, Response)
    queries = _twice(benchmark.queries, Query)
    _require(bool(queries), "there is no query")
    _require(bool(responses), "there is no response")
    _distinct("query id", [query.id for query in queries])
    known = {query.id for query in queries}
    for query in queries:
        _named("query id", query.id)
        _require(isinstance(query.text, str), f"the text of query {query.id!r} is not a string")
        _require(len(query.content_hash) == 16, f"query {query.id!r} cannot be hashed")
    _check_responses(responses, known)
    _check_checklists(_twice(benchmark.checklists, Checklist), known)
    _check_gold(benchmark, known)


def _check_responses(responses: Sequence[Response], known: set[str]) -> None:
    _distinct("response", [(response.query_id, response.candidate) for response in responses])
    for response in responses:
        what = f"the response of {response.candidate!r} to {response.query_id!r}"
        _known(what, response.query_id, known)
        _named("candidate", response.candidate)
        _require(isinstance(response.text, str), f"{what} is not a string")
        _require(len(response.content_hash) == 16, f"{what} cannot be hashed")


def _check_checklists(checklists: Sequence[Checklist], known: set[str]) -> None:
    _distinct("query with a checklist", [checklist.query_id for checklist in checklists])
    for checklist in checklists:
        what = f"the checklist of {checklist.query_id!r}"
        _known(what, checklist.query_id, known)
        _require(isinstance(checklist.items, tuple), f"{what} is not a tuple of items")
        _require(all(isinstance(item, str) for item in checklist.items), f"{what} is not all text")


def _check_gold(benchmark: Benchmark, known: set[str]) -> None:
    for label in _twice(benchmark.labels, Label):
        what = f"the label of {label.candidate!r} on {label.query_id!r}"
        _known(what, label.query_id, known)
        _named("candidate", label.candidate)
        _require(math.isfinite(label.value), f"{what} is {label.value}")
    for vote in _twice(benchmark.votes, Vote):
        what = f"a vote on {vote.query_id!r}"
        _known(what, vote.query_id, known)
        _require(vote.winner in get_args(Winner), f"{what} has the winner {vote.winner!r}")
        _require(vote.candidate_a != vote.candidate_b, f"{what} compares a candidate with itself")
    ratings = _twice(benchmark.ratings, Rating)
    _distinct("rated candidate", [rating.candidate for rating in ratings])
    for rating in ratings:
        _require(math.isfinite(rating.value), f"{rating.candidate!r} is rated {rating.value}")


def _twice(read: Callable[[], Iterable[Any]], kind: type[Any]) -> list[Any]:
    name = getattr(read, "__name__", "it")
    first = list(read())
    _require(first == list(read()), f"`{name}` yields something else the second time")
    wrong = [record for record in first if not isinstance(record, kind)]
    _require(not wrong, f"`{name}` yields {wrong[:1]}, which is not a {kind.__name__}")
    return first


def _known(what: str, query_id: str, known: set[str]) -> None:
    _require(query_id in known, f"{what} belongs to no query")


def _named(what: str, name: object) -> None:
    _require(isinstance(name, str) and bool(name.strip()), f"a {what} is {name!r}")


def _distinct(what: str, names: Sequence[object]) -> None:
    seen: set[object] = set()
    for name in names:
        _require(name not in seen, f"the {what} {name!r} occurs twice")
        seen.add(name)


def _require(kept: bool, broken: str) -> None:
    if not kept:
        raise AssertionError(broken)
