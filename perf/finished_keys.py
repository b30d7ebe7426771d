"""Measure the memory of finished keys, and the time to add and to find one.

    python perf/finished_keys.py [--keys 1e7] [--record]

Keys are drawn and added in parts of 50,000, as a ledger is read. Peak memory counts everything
above the process before the first key. Compared with a Python set of the same keys.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from rocketeval.store.finished_keys import FinishedKeys

PART = 50_000
MOST_IN_A_SET = 1e7
"""The set is not measured with more: 1e8 keys would take 10 GB."""


def measure(kind: str, keys: int) -> str:
    """Return a line with bytes per key, and microseconds to add and to find one."""
    rng = np.random.default_rng(0)
    found: FinishedKeys | set[bytes] = FinishedKeys() if kind == "arrays" else set()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started, sample = time.process_time(), []
    for _ in range(keys // PART):
        drawn = rng.bytes(16 * PART)
        part = [drawn[at : at + 16] for at in range(0, len(drawn), 16)]
        found.update(part)
        sample.append(part[0])
    added = time.process_time() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    started = time.process_time()
    assert all(key in found for key in sample)
    looked = time.process_time() - started
    assert len(found) == keys
    return (
        f"{kind:6} {keys:>12,} keys: peak {peak / 1024:6.0f} MB, {1024 * peak / keys:5.1f} bytes "
        f"per key; {1e6 * added / keys:.2f} us to add, {1e6 * looked / len(sample):.1f} us to find"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=float, default=1e7)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        print(measure(args.child, int(args.keys)))
        return
    lines = []
    for kind in ("set", "arrays"):
        keys = min(args.keys, MOST_IN_A_SET) if kind == "set" else args.keys
        command = [sys.executable, __file__, "--keys", str(keys), "--child", kind]
        lines.append(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        print(lines[-1], end="", flush=True)
    if args.record:
        path = Path(__file__).parent / "recorded" / "finished_keys.txt"
        path.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
