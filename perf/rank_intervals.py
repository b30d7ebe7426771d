"""Compare intervals of all candidates at once with one call per candidate, in paired rounds.

    python perf/rank_intervals.py [--candidates 1000] [--resamples 1000] [--rounds 7]

Prints the processor seconds of both, and the ratio of their sums with the range over rounds.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from rocketeval.stats.bootstrap import interval, intervals


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--candidates", type=int, default=1000)
    parser.add_argument("--resamples", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    draws = rng.normal(size=(args.resamples, args.candidates))
    values, queries = draws.mean(axis=0), np.full(args.candidates, 1000)
    spent = []
    for _ in range(args.rounds):
        start = time.process_time()
        one = [
            interval(float(value), draws[:, column], queries=1000, level=0.95)
            for column, value in enumerate(values)
        ]
        middle = time.process_time()
        together = intervals(values, draws, queries, 0.95)
        spent.append((middle - start, time.process_time() - middle))
        assert one == together
    before, after = np.array(spent).T
    ratios = after / before
    print(f"{args.candidates} candidates, {args.resamples} resamples, {args.rounds} rounds")
    print(f"one call each {before.sum():.3f} s, together {after.sum():.3f} s of processor time")
    print(f"ratio of sums {after.sum() / before.sum():.2f} ({ratios.min():.2f}-{ratios.max():.2f})")


if __name__ == "__main__":
    main()
