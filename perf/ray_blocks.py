"""Cost of durable blocks by their size: how many rows should wait for each other?

    python perf/ray_blocks.py [--rows 65536] [--items 8] [--batch 64] [--rounds 3] [--record NAME]

Results arrive as on a cluster, one table per batch, and are written as blocks of several sizes to
this machine's disk, each flushed and renamed. Then they are read back as at the end of a job. CPU
time is that of this process; the time that a disk or an object store takes per file comes on top.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
from harness.table import add_record_option, progress, render, show
from pyarrow import fs

from rocketeval.distributed.driver import BLOCK_ROWS, DurableBlocks
from rocketeval.distributed.staging import RESULTS, JobFolder, judged_row
from rocketeval.records import Answer, Judgment, Status, Usage

SIZES = (64, 256, 1024, 4096, 16_384)
LARGE = 100_000_000


def main() -> None:
    args = parse_arguments()
    batches = make_batches(args.rows, args.items, args.batch)
    found: dict[int, list[tuple[float, float, float]]] = {size: [] for size in SIZES}
    for number in range(args.rounds):
        for size in SIZES[:: 1 if number % 2 == 0 else -1]:
            found[size].append(measure(batches, size))
        progress(f"round {number + 1}")
    show([*heading(args), "", *table(found, args.rows)], args.record)


def make_batches(rows: int, items: int, batch: int) -> list[pa.Table]:
    """Return results of a judge whose probabilities are all different."""
    rng = np.random.default_rng(0)
    batches = []
    for first in range(0, rows, batch):
        made = []
        for number in range(first, min(first + batch, rows)):
            answers = tuple(
                Answer(Status.OK, p, p, p, mass=1 - p / 100, logp_yes=math.log(p), logp_no=-p)
                for p in rng.random(items).tolist()
            )
            judgment = Judgment(
                rng.bytes(16), f"q{number // 10}", f"c{number % 10}", answers, Usage(1, 400, 0, 8)
            )
            made.append(judged_row(number, judgment, "0" * 32))
        batches.append(pa.Table.from_pylist(made, schema=RESULTS))
    return batches


def measure(batches: list[pa.Table], size: int) -> tuple[float, float, float]:
    """Return the CPU seconds of writing and reading blocks of a size, and their bytes."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = JobFolder(fs.LocalFileSystem(), scratch)
        blocks = DurableBlocks(folder, rows=size, seconds=float("inf"))
        started = time.process_time()
        for batch in batches:
            blocks.add(batch)
        blocks.write()
        written = time.process_time()
        rows = sum(part.num_rows for part in folder.result_tables() if part is not None)
        read = time.process_time()
        assert rows == sum(batch.num_rows for batch in batches)
        size_on_disk = sum(path.stat().st_size for path in Path(folder.results).iterdir())
        return written - started, read - written, float(size_on_disk)


def heading(args: argparse.Namespace) -> list[str]:
    """Return the heading with the size of the study."""
    return [
        f"{args.rows} rows of {args.items} answers, in batches of {args.batch}; medians of "
        f"{args.rounds} rounds; the default is {BLOCK_ROWS}"
    ]


def table(found: dict[int, list[tuple[float, float, float]]], rows: int) -> list[str]:
    """Return one line per size."""
    lines = []
    for size, several in found.items():
        write, read, size_on_disk = (median(each) for each in zip(*several, strict=True))
        lines.append(
            (
                f"{size}",
                f"{write / rows * 1e6:.1f}",
                f"{read / rows * 1e6:.1f}",
                f"{size_on_disk / rows:.0f}",
                f"{-(-LARGE // size):,}",
            )
        )
    columns = ("rows per block", "write us/row", "read us/row", "bytes/row", "files at 1e8 rows")
    return render(columns, lines)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=65_536)
    parser.add_argument("--items", type=int, default=8)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    add_record_option(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
