"""Measure the peak memory of the report's pairwise comparisons, with and without blocks of flips.

    python perf/report_pairs.py [--rounds 3]

Each measurement is a process of its own; `before` holds the sums of all flips at once. Prints peak
memory and processor seconds for 100 candidates on 125, and on 1,000 queries, and that both agree.
"""

from __future__ import annotations

import argparse
import hashlib
import resource
import subprocess
import sys
import time

import numpy as np

from rocketeval.grid import ScoreGrid
from rocketeval.report import all_pairs

SHAPES = ((125, 100), (1000, 100))


def measure(queries: int, candidates: int, *, whole: bool) -> str:
    """Return peak megabytes, processor seconds and a hash of the comparisons."""
    if whole:
        all_pairs.FLIPPED_CELLS = 10**12
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(queries, candidates)) + np.linspace(0, 1, candidates)
    names = tuple(f"c{column:03d}" for column in range(candidates))
    start = time.process_time()
    found = all_pairs.compare_all(ScoreGrid(tuple(map(str, range(queries))), names, scores))
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    digest = hashlib.sha256(found.p_value.tobytes() + found.low.tobytes()).hexdigest()[:12]
    return f"{peak:.0f} {seconds:.2f} {digest}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--child", nargs=3, type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        print(measure(*args.child[:2], whole=bool(args.child[2])))
        return
    for queries, candidates in SHAPES:
        rows: dict[str, list[list[str]]] = {"before": [], "after": []}
        for _ in range(args.rounds):
            for whole, name in ((1, "before"), (0, "after")):
                command = [
                    sys.executable,
                    __file__,
                    "--child",
                    *map(str, (queries, candidates, whole)),
                ]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                rows[name].append(done.stdout.split())
        peaks = {name: max(float(row[0]) for row in own) for name, own in rows.items()}
        times = {name: sum(float(row[1]) for row in own) for name, own in rows.items()}
        same = len({row[2] for own in rows.values() for row in own}) == 1
        print(
            f"{candidates} candidates x {queries} queries: peak {peaks['before']:.0f} -> "
            f"{peaks['after']:.0f} MB, processor time {times['after'] / times['before']:.2f} of "
            f"before (ratio of sums, {args.rounds} rounds), same results: {same}"
        )


if __name__ == "__main__":
    main()
