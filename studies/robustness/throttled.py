"""Run against a server that answers one request in five seconds, and check the progress output.

    python studies/robustness/throttled.py [--pace 5] [--timeout 120]

60 responses with one or two items each are judged with the settings of a new user: many at once, a
timeout of 120 s. Nothing may fail. From the first tenth on, each remaining time in the log must be
within a factor of two of the actual time.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from stops import Server, start_run

sys.path.insert(0, str(Path(__file__).parents[1]))

from loopback import free_port

QUERIES, CANDIDATES = 20, 3
CONFIG = """\
name: throttled
benchmark: {{path: benchmark}}
judge: {{model: paced, base_url: "http://127.0.0.1:{port}/v1", timeout: {timeout}}}
ranking: {{bootstrap: 50}}
"""
LINE = re.compile(r"grade: (\d+) of (\d+) \(\d+ ?%\)(?:, about ([\d:]+) left)?")
ENDED = re.compile(r"grade: \d+ of \d+ in ")


@dataclass
class Sample:
    """The progress and remaining time in one line of the log."""

    at: float
    done: int
    left: float | None
    """Seconds; None if the line has no remaining time."""


def write_benchmark(folder: Path) -> None:
    """Write queries with one or two items, and responses."""
    (folder / "responses").mkdir(parents=True)
    items = ["Is it right?", "Is it clear?"]
    _write(folder / "queries.jsonl", [{"id": f"q{n}", "text": f"{n}?"} for n in range(QUERIES)])
    checklists = [{"query_id": f"q{n}", "items": items[: 1 + n % 2]} for n in range(QUERIES)]
    _write(folder / "checklists.jsonl", checklists)
    for candidate in range(CANDIDATES):
        texts = [{"query_id": f"q{n}", "text": f"c{candidate} on {n}"} for n in range(QUERIES)]
        _write(folder / "responses" / f"c{candidate}.jsonl", texts)


def _write(path: Path, rows: list[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def read_log(running: subprocess.Popen[str], started: float) -> Iterator[Sample | float]:
    """Yield a sample per progress line and the time when grading ended; show other lines."""
    assert running.stderr is not None
    for line in running.stderr:
        at = time.monotonic() - started
        if ENDED.search(line):
            print(line.strip())
            yield at
        elif (found := LINE.search(line)) is not None:
            yield Sample(at, int(found[1]), _seconds(found[3]))
            if ("retr" in line or "at once" in line) and at < 200:
                print(line.strip())


def _seconds(clock: str | None) -> float | None:
    if clock is None:
        return None
    parts = [int(part) for part in clock.split(":")]
    return float(sum(part * 60**place for place, part in enumerate(reversed(parts))))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--pace", type=float, default=5.0, help="seconds per answer")
    parser.add_argument("--timeout", type=float, default=120.0)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write_benchmark(folder / "benchmark")
        server = Server(folder, free_port())
        config = CONFIG.format(port=server.port, timeout=args.timeout)
        (folder / "rocketeval.yaml").write_text(config)
        server.start("--pace", str(args.pace))
        try:
            running = start_run(folder)
            heard = list(read_log(running, time.monotonic()))
            code, asked = running.wait(), len(server.served(0))
        finally:
            server.kill()
    samples = [each for each in heard if isinstance(each, Sample)]
    end = next(each for each in heard if isinstance(each, float))
    tenth = QUERIES * CANDIDATES / 10
    print("seconds  judged   predicted left   actual left  ratio")
    worst = 1.0
    for each in samples:
        left = end - each.at
        if each.left is None:
            print(f"{each.at:7.0f}  {each.done:6}  {'-':>15}  {left:12.0f}")
            continue
        ratio = each.left / left if left > args.pace else 1.0
        print(f"{each.at:7.0f}  {each.done:6}  {each.left:15.0f}  {left:12.0f}  {ratio:5.2f}")
        if each.done >= tenth:
            worst = max(worst, ratio, 1 / ratio)
    untold = sum(each.left is None and each.done >= tenth for each in samples)
    print(
        f"exit {code}, {asked} answers in {end:.0f} s; from the first tenth on the remaining time "
        f"was at most {worst:.2f} times too long or too short, and missing in {untold} of "
        f"{len(samples)} lines"
    )
    sys.exit(0 if code == 0 and worst <= 2.0 else 1)


if __name__ == "__main__":
    main()
