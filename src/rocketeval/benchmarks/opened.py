"""A user's data, opened: its format detected, read once, and described in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rocketeval.benchmarks.base import (
    Benchmark,
    DetectedFormat,
    detect_format,
    open_benchmark,
)
from rocketeval.benchmarks.columns import holds
from rocketeval.benchmarks.data import DataBenchmark, DataSummary
from rocketeval.benchmarks.reading import format_option
from rocketeval.benchmarks.row_files import Sample
from rocketeval.config import BenchmarkConfig
from rocketeval.errors import BenchmarkError, Hint
from rocketeval.records import Label
from rocketeval.text import count_of, join_words

DATASET = "hf:"
"""Start of the name of a Hugging Face dataset."""
FOLDERS = ("jsonl", "rocketeval", "mt_bench")
"""Kinds that read a folder with certain files in it."""
USUAL = (1.0, 10.0)
"""The scale of labels unless they exceed it."""
SHARES = ("promptfoo", "inspect", "lm_eval", "deepeval")
"""Kinds whose scores are from 0 to 1 unless they exceed it."""
TOPS = (1.0, 10.0, 100.0)
"""Upper ends of usual scales, which tell clearly different ranges apart."""
USUAL_SCALES = ((0.0, 10.0), (0.0, 100.0))
"""Scales to choose from if all labels are the same number."""


@dataclass(frozen=True, slots=True)
class OpenedData:
    """A data file with the reader of its format."""

    name: str
    """The file, folder or dataset, as given."""
    title: str
    config: BenchmarkConfig
    benchmark: Benchmark
    queries: int
    checklists: int

    @property
    def reader(self) -> DataBenchmark | None:
        """The data reader; None for a folder that another kind reads, such as MT-Bench."""
        return self.benchmark if isinstance(self.benchmark, DataBenchmark) else None

    @property
    def kind(self) -> str:
        """Name of the benchmark kind."""
        return self.config.kind

    @property
    def summary(self) -> DataSummary | None:
        """What a data reader found."""
        return self.reader.summary if self.reader else None

    @property
    def has_checklists(self) -> bool:
        """Whether every query has a checklist of its own."""
        return bool(self.checklists) and self.checklists == self.queries

    @property
    def scale(self) -> tuple[float, float] | None:
        """The scale of the labels if it is not the usual one."""
        values = (label.value for label in self.benchmark.labels())
        return label_scale(values, shares=self.kind in SHARES)


@dataclass(frozen=True, slots=True)
class DataMapping:
    """How data was read: its format, and where each part comes from."""

    format: str
    parts: Mapping[str, str]
    """The source of each part, such as the column, in words."""
    lines: tuple[str, ...]
    """Format, counts, parts and what was left out, as `rocketeval import` prints them."""

    def __str__(self) -> str:
        return "\n".join(self.lines)


def open_data(given: str, form: str | None, options: Mapping[str, object]) -> OpenedData:
    """Detect the format of a file, a folder or hf:OWNER/NAME[:SPLIT], and read it once."""
    path, chosen = Path(given), dict(options)
    if given.startswith(DATASET):
        name, _, split = given.removeprefix(DATASET).partition(":")
        chosen |= {"dataset": name, "split": split or "train"}
        found = DetectedFormat("table", f"Hugging Face dataset {name}, split {split or 'train'}")
        path = Path()
    elif form:
        found = DetectedFormat(form, form)
        if not path.exists():
            raise BenchmarkError(f"There is no file or folder {path}.")
        if form in FOLDERS and path.is_file():
            drop = Hint.of("Drop ", Hint.option("--format", "`format`"), ".")
            raise BenchmarkError(f"{form} reads a folder; {path} is a file.", hint=drop)
    else:
        found = detect_format(path)
    if found.kind != "table" and (options.get("columns") or options.get("candidates")):
        raise BenchmarkError(
            f"{path} is read as {found.title}, which has no columns to name.",
            hint=Hint.of(
                "Drop ",
                Hint.option("--column and --candidates", "`columns` and `candidates`"),
                ", or add ",
                format_option("table"),
                ".",
            ),
        )
    config = BenchmarkConfig(kind=found.kind, path=path.absolute(), options=chosen)
    try:
        benchmark = open_benchmark(config)
        queries = sum(1 for _ in benchmark.queries())
    except BenchmarkError as error:
        if form or found.kind == "table" or not _may_be_table(path):
            raise
        raise _or_a_table(error, found.title) from None
    return OpenedData(
        name=given,
        title=found.title,
        config=config,
        benchmark=benchmark,
        queries=queries,
        checklists=sum(1 for _ in benchmark.checklists()),
    )


def _may_be_table(path: Path) -> bool:
    """Return whether the columns have the names of a query and a response."""
    rows = Sample(path).rows
    return holds("query", rows) and holds("response", rows)


def _or_a_table(error: BenchmarkError, title: str) -> BenchmarkError:
    """Return an error about a detected format with the hint that the data may be a table."""
    table = Hint.of(
        f"The data was taken for {title}; if it is a plain table, add ", format_option("table"), "."
    )
    return BenchmarkError(
        error.message, hint=Hint.of(error.hint, "\n", table) if error.hint else table
    )


def describe(found: OpenedData) -> DataMapping:
    """Return the detected format, the mapping and what was left out."""
    if found.reader is None:
        return DataMapping(found.title, {}, (f"{found.name}: {found.title}",))
    parts = found.reader.mapping()
    return DataMapping(found.title, parts, tuple(_lines(found, found.reader.summary, parts)))


def _lines(found: OpenedData, summary: DataSummary, parts: Mapping[str, str]) -> Iterator[str]:
    counts = [
        count_of(summary.rows, "row", "rows"),
        count_of(len(summary.candidates), "candidate", "candidates"),
        count_of(len(summary.queries), "query", "queries"),
    ]
    for number, one, many in (
        (summary.responses, "response", "responses"),
        (len(summary.checklists), "checklist", "checklists"),
        (len(summary.labels), "label", "labels"),
        (len(summary.votes), "vote", "votes"),
    ):
        if number:
            counts.append(count_of(number, one, many))
    yield f"{found.name}: {found.title}, {', '.join(counts)}"
    values = [label.value for label in summary.labels]
    shares = found.kind in SHARES
    for part, source in parts.items():
        scale = f": {_scale_in_words(values, shares)}" if part == "label" and values else ""
        yield f"  {part:<10} {source}{scale}"
    different = _different_ranges(summary.labels)
    if different:
        yield f"  {different}"
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


def _scale_in_words(labels: Sequence[float], shares: bool = False) -> str:
    """Return the range of the labels, and the scale that is assumed.

    >>> _scale_in_words([0.2, 0.9])
    '0.2 to 0.9; scale 0 to 1 assumed unless scorer.scale is set'
    """
    low, high = label_scale(labels, shares) or USUAL
    said = f"{min(labels):g} to {max(labels):g}; scale {low:g} to {high:g} assumed unless "
    said += "scorer.scale is set"
    if (low, high) == USUAL and set(labels) <= {1.0, 2.0, 3.0, 4.0, 5.0}:
        said += "; scorer.scale: [1, 5] may be meant"
    return said


def _different_ranges(labels: Sequence[Label]) -> str:
    """Return a note if labelers or metrics use clearly different scales; empty otherwise."""
    values: dict[str, list[float]] = {}
    for label in labels:
        values.setdefault(label.labeler, []).append(label.value)
    scales = {name: label_scale(given) or USUAL for name, given in values.items()}
    tops = {name: next((top for top in TOPS if high <= top), high)
            for name, (_, high) in scales.items()}  # fmt: skip
    if len(set(tops.values())) < 2:
        return ""
    ordered = sorted(values, key=lambda name: (tops[name], name))
    ranges = [f"{name!r} {min(values[name]):g} to {max(values[name]):g}" for name in ordered]
    return (
        f"labels with different ranges are pooled ({join_words(ranges, most=5)}): "
        "remove all but one kind, or put them on one scale"
    )


def label_scale(labels: Iterable[float], shares: bool = False) -> tuple[float, float] | None:
    """Return the scale of labels; None without any, or if they are between 1 and 10.

    `shares`: labels that are all 1 are shares, and the scale is 0 to 1.

    >>> label_scale([0.0, 0.5]), label_scale([20.0, 80.0]), label_scale([50.0]), label_scale([7.0])
    ((0.0, 1.0), (20.0, 80.0), (0.0, 100.0), None)
    """
    values = list(labels)
    low, high = (min(values), max(values)) if values else USUAL
    if shares and values and low == high == 1:
        return 0.0, 1.0
    if low >= USUAL[0] and high <= USUAL[1]:
        return None
    if low >= 0 and high <= 1:
        return 0.0, 1.0
    if low < high:
        return low, high
    fitting = (scale for scale in USUAL_SCALES if scale[0] <= low <= scale[1])
    return next(fitting, (min(0.0, low), max(0.0, low)))
