"""Measure the processor time of `rocketeval run` on a finished run, before and after a change.

    python perf/second_run.py --before SRC [--rounds 5] [--only demo] [--record]

SRC is the `src` folder of an earlier checkout. Both versions finish the same two runs first: the
recorded demo, and 20 candidates on 200 queries with 8 items each. Then each runs again in
interleaved rounds, each time in a new process, with pandas and without it, as in a core install
(pyarrow imports pandas if it is there). Prints user and system seconds per run, the ratio of sums
with its range over rounds, and whether both print the same result.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random

import orjson

CORE = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name == "pandas": raise ModuleNotFoundError(name)
if {absent}: sys.meta_path.insert(0, Absent())
sys.argv[0] = "rocketeval"
from rocketeval.cli.main import main
main()
"""
WORDS = ("a", "good", "answer", "names", "facts", "in", "order", "or", "says", "why", "not")
CONFIG = """name: big
benchmark: {kind: jsonl, path: benchmark}
judge: {engine: scripted, model: drawn}
author: {kind: imported}
output: runs
cache: null
"""


def run(source: Path, folder: Path, *words: str, core: bool = False) -> tuple[float, list[str]]:
    """Return the processor time of a command, and what it prints without the time it took."""
    before = os.times()
    done = subprocess.run(
        [sys.executable, "-c", CORE.format(absent=core), *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
    )
    after = os.times()
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if not line.startswith("Time ")]
    return after[2] + after[3] - before[2] - before[3], lines


def make_demo(source: Path, folder: Path) -> Path:
    """Write the recorded demo and return its folder."""
    run(source, folder, "init", "demo", "--recorded")
    return folder / "demo"


def make_big(source: Path, folder: Path) -> Path:
    """Write a benchmark of 20 candidates and 200 queries with 8 items and return its folder."""
    data = folder / "big" / "benchmark"
    (data / "responses").mkdir(parents=True)
    random, queries = Random(1), [f"q{number}" for number in range(200)]
    rows = {
        "queries": [{"id": name, "text": f"Question {name}: what matters?"} for name in queries],
        "checklists": [
            {"query_id": name, "items": [f"Does it cover point {n} of {name}?" for n in range(8)]}
            for name in queries
        ],
    }
    for column in range(20):
        texts = [" ".join(random.choices(WORDS, k=60)) for _ in queries]
        rows[f"responses/c{column:02}"] = [
            {"query_id": name, "text": text} for name, text in zip(queries, texts, strict=True)
        ]
    for name, own in rows.items():
        (data / f"{name}.jsonl").write_bytes(b"\n".join(map(orjson.dumps, own)))
    (folder / "big" / "rocketeval.yaml").write_text(CONFIG)
    return folder / "big"


def measure(before: Path, rounds: int, only: str) -> Iterator[str]:
    """Yield a line per run and environment whose title has the text `only`."""
    sources = {"before": before.resolve(), "after": Path(__file__).parents[1] / "src"}
    for title, make in (("demo", make_demo), ("20 x 200 x 8", make_big)):
        if not any(only in f"{title:14} {each} pandas" for each in ("with", "without")):
            continue
        with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
            folders = {
                name: make(sources[name], Path(place))
                for name, place in (("before", one), ("after", other))
            }
            for name, folder in folders.items():
                run(sources[name], folder, "run")
            for core in (False, True):
                named = f"{title:14} {'without' if core else 'with'} pandas"
                if only not in named:
                    continue
                spent: dict[str, list[float]] = {name: [] for name in sources}
                printed = []
                for _ in range(rounds):
                    for name, folder in folders.items():
                        seconds, lines = run(sources[name], folder, "run", core=core)
                        spent[name].append(seconds)
                        printed.append(lines)
                ratios = [new / old for old, new in zip(*spent.values(), strict=True)]
                sums = {name: sum(own) for name, own in spent.items()}
                yield (
                    f"{named}: "
                    f"{sums['before'] / rounds:.2f} -> {sums['after'] / rounds:.2f} s "
                    f"({min(spent['after']):.2f}-{max(spent['after']):.2f}), ratio of sums "
                    f"{sums['after'] / sums['before']:.2f} ({min(ratios):.2f}-{max(ratios):.2f}), "
                    f"same result: {all(lines == printed[0] for lines in printed)}"
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="lines with this text")
    parser.add_argument("--record", action="store_true")
    args = parser.parse_args()
    lines = [f"processor seconds of a second `run`, {args.rounds} paired rounds"]
    print(lines[0])
    for line in measure(args.before, args.rounds, args.only):
        print(line, flush=True)
        lines.append(line)
    if args.record:
        path = Path(__file__).parent / "recorded" / "second_run.txt"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
