"""Measure the memory of finished keys, and the time to add and to find one.

    python perf/finished_keys.py [--keys 1e7] [--filled 1e8] [--record]

Keys are drawn and added in parts of 50,000, as a ledger is read. Peak memory counts everything
above the process before the first key. Compared with a Python set of the same keys. `--filled`
makes the arrays of so many keys at once, because adding them one by one takes half an hour, and
then adds three times as many as the arrays take up at a time.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from rocketeval.store.finished_keys import KEY, NEWEST, FinishedKeys

PART = 50_000


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


def measure_filled(keys: int) -> str:
    """Return a line with the peak memory of this many keys, and of some more added to them."""
    rng = np.random.default_rng(0)
    found = FinishedKeys()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for first in range(256):
        rest = np.frombuffer(rng.bytes((KEY - 1) * (keys // 256)), np.uint8)
        found._keep(first, np.sort(rest.view(f"S{KEY - 1}")))
    found._settled = int(found._starts[:, -1].sum())
    for _ in range(3 * NEWEST // PART + 1):
        drawn = rng.bytes(KEY * PART)
        found.update(drawn[at : at + KEY] for at in range(0, len(drawn), KEY))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return f"filled {len(found):>12,} keys: peak {peak / 1024:6.0f} MB"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=float, default=1e7)
    parser.add_argument("--filled", type=float, default=1e8)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        keys = int(args.keys)
        print(measure_filled(keys) if args.child == "filled" else measure(args.child, keys))
        return
    lines = []
    for kind, keys in (("set", args.keys), ("arrays", args.keys), ("filled", args.filled)):
        command = [sys.executable, __file__, "--keys", str(keys), "--child", kind]
        lines.append(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        print(lines[-1], end="", flush=True)
    if args.record:
        path = Path(__file__).parent / "recorded" / "finished_keys.txt"
        path.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
