"""load: snapshot the benchmark into the run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rocketeval.benchmarks.base import open_benchmark
from rocketeval.benchmarks.load import load
from rocketeval.config import RunConfig
from rocketeval.store.run import RunStore


def load_inputs(store: RunStore, config: RunConfig) -> dict[str, Any]:
    """Write the run's inputs; return counts and content hashes."""
    loaded = load(open_benchmark(config.benchmark), config.benchmark)
    before = store.inputs.summary() if store.inputs.exist else None
    summary = store.inputs.save(
        loaded.queries, loaded.responses(), loaded.labels(), loaded.votes(), loaded.ratings()
    )
    if summary != before:
        store.drop_from("score")
    return {**summary, "left_out_by_config": dict(loaded.skipped)}


def absent_responses(load: Mapping[str, Any]) -> int:
    """Return how many responses the benchmark lacks, of one for each query and candidate.

    >>> absent_responses({"queries": 3, "candidates": 2, "responses": 5})
    1
    """
    return max(0, all_responses(load) - int(load.get("responses", 0)))


def all_responses(load: Mapping[str, Any]) -> int:
    """Return how many responses there were if every candidate answered every query."""
    return int(load.get("queries", 0)) * int(load.get("candidates", 0))
