"""load: snapshot the benchmark into the run."""

from __future__ import annotations

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
