"""Time and memory of one run of 1,000 candidates x 1,000 queries x 8 items through every stage.

    python perf/million.py [--candidates 1000] [--queries 1000] [--items 8] [--folder DIR]

The benchmark is written to disk as ordinary JSON lines. The judge is the scripted engine, so the
figures are RocketEval's own cost, not a model's. Peak memory is that of the whole process.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import resource
import tempfile
import time
from pathlib import Path

from rocketeval.config import parse_config
from rocketeval.observer import Observer, StageEnd
from rocketeval.pipeline import Run
from rocketeval.store.files import write_jsonl

WORDS = ("a", "good", "answer", "names", "the", "facts", "in", "order", "or", "says", "why", "not")


def write_benchmark(folder: Path, candidates: int, queries: int, items: int) -> None:
    """Write queries, checklists and one response file per candidate."""
    write_jsonl(
        folder / "queries.jsonl",
        ({"id": f"q{q:05d}", "text": f"Question {q}: what matters here?"} for q in range(queries)),
    )
    write_jsonl(
        folder / "checklists.jsonl",
        (
            {
                "query_id": f"q{q:05d}",
                "items": [f"Does it cover point {i} of {q}?" for i in range(items)],
            }
            for q in range(queries)
        ),
    )
    rng = random.Random(0)
    for c in range(candidates):
        name = f"candidate-{c:04d}"
        rows = (
            {"query_id": f"q{q:05d}", "text": f"{name}: {' '.join(rng.choices(WORDS, k=40))}"}
            for q in range(queries)
        )
        write_jsonl(folder / "responses" / f"{name}.jsonl", rows)


def peak_mb() -> float:
    """Return the peak memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


class Stopwatch(Observer):
    """An observer that prints one line per stage."""

    def stage_ended(self, stage: str, facts: StageEnd) -> None:
        print(f"{stage:<12}{facts.seconds or 0.0:>9.1f} s{peak_mb():>10.0f} MB peak", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--candidates", type=int, default=1000)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--items", type=int, default=8)
    parser.add_argument("--folder", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.folder) as scratch:
        folder = Path(scratch)
        started = time.monotonic()
        write_benchmark(folder / "benchmark", args.candidates, args.queries, args.items)
        print(f"{args.candidates} candidates x {args.queries} queries x {args.items} items")
        print(f"{'(benchmark)':<12}{time.monotonic() - started:>9.1f} s{peak_mb():>10.0f} MB peak")
        config = parse_config(
            {
                "name": "million",
                "benchmark": {"path": str(folder / "benchmark")},
                "judge": {"engine": "scripted", "model": "scripted"},
                "output": str(folder / "runs"),
                "cache": None,
            }
        )
        started = time.monotonic()
        outcome = asyncio.run(Run(config, observer=Stopwatch()).all())
        print(f"{'all':<12}{time.monotonic() - started:>9.1f} s{peak_mb():>10.0f} MB peak")
        size = sum(path.stat().st_size for path in outcome.path.rglob("*") if path.is_file())
        print(f"run directory {size / 1e6:.0f} MB, {len(outcome.ranking.rows)} candidates ranked")


if __name__ == "__main__":
    main()
