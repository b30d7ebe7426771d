"""Bytes per judgment on disk: in the ledger, in its journal and in the scores.

    python perf/bytes_per_judgment.py [--candidates 100] [--queries 200] [--record]

The script makes real runs, judged by the scripted engine, with checklists of several lengths. It
measures the files in the run directory and fits a line `per judgment + per answer` to their sizes.
A scripted judge is always certain (its `mass` is 1, its log-probabilities follow from `p_yes`), so
these columns compress well. The ledger is therefore measured again with these columns filled with
numbers as varied as a real judge's. `rocketeval plan --cluster` uses that figure for a run without
a ledger.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from pathlib import Path

import numpy as np
import orjson
import pyarrow as pa

from rocketeval.config import parse_config
from rocketeval.pipeline import Run
from rocketeval.store.files import write_jsonl, write_parquet
from rocketeval.store.ledger import live_files, read_tables
from rocketeval.store.schema import judgment_to_row, row_to_judgment

RECORDED = Path(__file__).parent / "recorded" / "bytes_per_judgment.txt"
LENGTHS = (2, 8, 20)
KINDS = ("ledger", "ledger, numbers all different", "journal", "scores.parquet")


def write_benchmark(folder: Path, candidates: int, queries: int, items: int) -> None:
    """Write queries, checklists and one response file per candidate."""
    names = [f"q{number:05d}" for number in range(queries)]
    write_jsonl(
        folder / "queries.jsonl", [{"id": q, "text": f"What matters in {q}?"} for q in names]
    )
    asked = [f"Does it cover point {number}?" for number in range(items)]
    write_jsonl(folder / "checklists.jsonl", [{"query_id": q, "items": asked} for q in names])
    for number in range(candidates):
        name = f"candidate-{number:04d}"
        rows = [{"query_id": q, "text": f"{name} says of {q} what it knows"} for q in names]
        write_jsonl(folder / "responses" / f"{name}.jsonl", rows)


def all_different(table: pa.Table) -> pa.Table:
    """Return the ledger with independent masses and log-probabilities."""
    rng = np.random.default_rng(0)
    for name in ("mass", "logp_yes", "logp_no"):
        column = table[name].combine_chunks()
        numbers = pa.array(-rng.exponential(size=len(column.values)))
        filled = pa.ListArray.from_arrays(column.offsets, numbers)
        table = table.set_column(table.schema.get_field_index(name), name, filled)
    return table


def journal_bytes(table: pa.Table) -> int:
    """Return the size of the rows in the journal, before they were rolled into a part."""
    return sum(
        len(orjson.dumps(judgment_to_row(row_to_judgment(row), row["judge"]))) + 1
        for row in table.to_pylist()
    )


def weigh(folder: Path, candidates: int, queries: int, items: int) -> dict[str, float]:
    """Return bytes per judgment of a real run, by kind of file."""
    write_benchmark(folder / "benchmark", candidates, queries, items)
    config = {
        "name": "weighed",
        "benchmark": {"path": str(folder / "benchmark")},
        "judge": {"engine": "scripted", "model": "scripted"},
        "output": str(folder / "runs"),
        "cache": None,
    }
    run = Run(parse_config(config))
    asyncio.run(run.to_judgments())
    run.score()
    table = pa.concat_tables(read_tables(run.store.ledger_folder))
    assert table.num_rows == candidates * queries
    different = folder / "different.parquet"
    write_parquet(different, all_different(table))
    sizes = (
        sum(path.stat().st_size for path in live_files(run.store.ledger_folder)),
        different.stat().st_size,
        journal_bytes(table),
        (run.store.path / "scores.parquet").stat().st_size,
    )
    return {kind: size / table.num_rows for kind, size in zip(KINDS, sizes, strict=True)}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--candidates", type=int, default=100)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--record", action="store_true", help=f"write {RECORDED.name}")
    args = parser.parse_args()
    found = []
    for items in LENGTHS:
        with tempfile.TemporaryDirectory() as scratch:
            found.append(weigh(Path(scratch), args.candidates, args.queries, items))
    lines = [
        f"{args.candidates} candidates x {args.queries} queries, scripted engine, "
        f"pyarrow {pa.__version__}; bytes per judgment",
        f"{'':<32}" + "".join(f"{items:>4} items" for items in LENGTHS) + "  fitted",
    ]
    for kind in KINDS:
        sizes = [weighed[kind] for weighed in found]
        # Adding zero removes the sign of a slope that rounds to zero.
        per_answer, per_judgment = np.round(np.polyfit(LENGTHS, sizes, 1), 1) + 0.0
        shown = "".join(f"{size:>10.1f}" for size in sizes)
        lines.append(f"{kind:<32}{shown}  {per_judgment:.1f} + {per_answer:.1f} per answer")
    result = "\n".join(lines) + "\n"
    print(result, end="")
    if args.record:
        RECORDED.write_text(result)


if __name__ == "__main__":
    main()
