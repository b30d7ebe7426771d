"""The benchmark seam: what every input format offers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol, runtime_checkable

from rocketeval.config import BenchmarkConfig
from rocketeval.records import Checklist, Label, Query, Rating, Response, Vote
from rocketeval.registry import Registry


class Benchmark(Protocol):
    """Reads one benchmark. Each method may be called once or many times, in any order.

    Responses are streamed and may come in any order; everything else fits in memory.
    """

    @classmethod
    def create(cls, config: BenchmarkConfig) -> Benchmark:
        """Return a reader for `config`; raises BenchmarkError when its files are not there."""
        ...

    def queries(self) -> Iterable[Query]:
        """Yield the queries in the benchmark's own order."""
        ...

    def responses(self) -> Iterable[Response]:
        """Yield every candidate's responses."""
        ...

    def checklists(self) -> Iterable[Checklist]:
        """Yield the checklists that come with the benchmark."""
        ...

    def labels(self) -> Iterable[Label]:
        """Yield gold scores."""
        ...

    def votes(self) -> Iterable[Vote]:
        """Yield gold preferences."""
        ...

    def ratings(self) -> Iterable[Rating]:
        """Yield reference ratings of candidates."""
        ...


@runtime_checkable
class LeavesOut(Protocol):
    """A benchmark that passes over something its files hold, and says so. No one has to."""

    def left_out(self) -> Mapping[str, int]:
        """Return how much is passed over, by what it is."""
        ...


BENCHMARKS: Registry[Benchmark] = Registry(
    "benchmark",
    {
        "jsonl": "rocketeval.benchmarks.jsonl:JsonlBenchmark",
        "rocketeval": "rocketeval.benchmarks.rocketeval:RocketEvalBenchmark",
        "mt_bench": "rocketeval.benchmarks.mt_bench:MTBench",
    },
)


def open_benchmark(config: BenchmarkConfig) -> Benchmark:
    """Return the benchmark that `config` names."""
    return BENCHMARKS.get(config.kind).create(config)
