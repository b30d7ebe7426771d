"""Restart a real vLLM server in two precisions, and check when it counts as the same judge.

    python studies/robustness/same_judge.py JUDGE [--restarts 10] [--record FILE]
    python studies/robustness/same_judge.py --read studies/robustness/recorded/same_judge.jsonl

JUDGE is a name or folder for studies/judges/serve_vllm.sh. The server is started `--restarts` times
with float32 and as often with bfloat16, in turn. Each start is identified quietly and with other
requests in flight, and a small run of its own name takes what it can from one shared cache. All
starts of one precision must be one judge and share every judgment; the two precisions must be two
judges and share none.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from importlib import resources
from pathlib import Path
from typing import Any

from rocketeval.config import EngineConfig, parse_config
from rocketeval.engines.base import EngineIdentity
from rocketeval.engines.openai_http import OpenAIEngine
from rocketeval.pipeline import Run
from rocketeval.precision import Measured
from rocketeval.records import GradingTask

SERVE = Path(__file__).parents[1] / "judges" / "serve_vllm.sh"
DTYPES = ("float32", "bfloat16")
IN_FLIGHT = 8
START_SECONDS = 900.0


@contextmanager
def served(judge: str, dtype: str, log: Path) -> Iterator[tuple[str, str]]:
    """Serve the judge for the length of the `with` block; give its address and name."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = ["bash", str(SERVE), judge, str(port), "--dtype", dtype, "--enforce-eager"]
    url, end = f"http://127.0.0.1:{port}/v1", time.monotonic() + START_SECONDS
    with log.open("a") as errors:
        process = subprocess.Popen(
            command, stdout=errors, stderr=errors, start_new_session=True, env=dict(os.environ)
        )
        try:
            while True:
                if process.poll() is not None or time.monotonic() > end:
                    raise SystemExit(f"vLLM did not start; see {log}")
                with suppress(OSError), urllib.request.urlopen(f"{url}/models") as reply:
                    yield url, json.load(reply)["data"][0]["id"]
                    return
                time.sleep(0.5)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            process.wait(120)


async def identified(url: str, model: str, *, busy: bool) -> EngineIdentity:
    """Return who answers, `busy` with other requests in flight all the while."""
    config = EngineConfig(model=model, base_url=url, transport="chat", min_mass=0.0)
    engine, other, ended = OpenAIEngine(config), OpenAIEngine(config), asyncio.Event()

    async def keep_busy(worker: int) -> None:
        turn = 0
        while not ended.is_set():
            turn += 1
            prefix = f"Number {worker}, turn {turn}. " + "Some words to read. " * 20
            await other.grade(GradingTask(b"", "q", "c", prefix, ("Is it short? Answer:",)), {})

    workers = [asyncio.create_task(keep_busy(number)) for number in range(IN_FLIGHT * busy)]
    try:
        return await engine.identify()
    finally:
        ended.set()
        await asyncio.gather(*workers)
        await engine.aclose()
        await other.aclose()


async def judged(folder: Path, name: str, url: str, model: str) -> tuple[int, int, str]:
    """Grade two queries under a name of its own; give judgments made, taken over, and by whom."""
    packaged = Path(str(resources.files("rocketeval"))) / "examples" / "quickstart"
    config = parse_config(
        {
            "name": name,
            "benchmark": {"path": str(packaged), "limit": 2, "candidates": ["careful", "broken"]},
            "judge": {"model": model, "base_url": url, "min_mass": 0.0},
            "output": str(folder / "runs"),
            "cache": str(folder / "cache"),
        }
    )
    run = Run(config)
    facts = await run.to_judgments()
    return facts.judged, facts.from_cache, run.store.judge().digest.hex()[:12]


def main() -> None:
    """Start, look, and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("judge", nargs="?")
    parser.add_argument("--read", type=Path, help="print the summary of recorded contacts")
    parser.add_argument("--restarts", type=int, default=10)
    parser.add_argument("--record", type=Path, help="write every contact as a line of JSON")
    args = parser.parse_args()
    if args.read:
        sys.exit(told([json.loads(line) for line in args.read.read_text().splitlines()]))
    if not args.judge:
        parser.error("name a judge, or --read a record")
    contacts: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        for start in range(args.restarts):
            for dtype in DTYPES:
                with served(args.judge, dtype, folder / "vllm.log") as (url, model):
                    quiet = asyncio.run(identified(url, model, busy=False))
                    busy = asyncio.run(identified(url, model, busy=True))
                    outcome = asyncio.run(judged(folder, f"{dtype}-{start}", url, model))
                row: dict[str, Any] = {"start": start, "dtype": dtype}
                row |= dict(zip(("judged", "from_cache", "judge"), outcome, strict=True))
                row |= {"quiet": asdict(quiet), "busy": asdict(busy)}
                contacts.append(row)
                print(f"{start:3} {dtype:9} {quiet.precision:30} {outcome}", flush=True)
                if args.record:
                    lines = "".join(json.dumps(each) + "\n" for each in contacts)
                    args.record.write_text(lines, encoding="utf-8")
    sys.exit(told(contacts))


def told(contacts: list[dict[str, Any]]) -> int:
    """Print what the contacts show; return 1 if a judge was taken for another."""
    wrong = 0
    found = {
        dtype: [
            Measured.parse(row[state]["measured"])
            for row in contacts
            if row["dtype"] == dtype
            for state in ("quiet", "busy")
        ]
        for dtype in DTYPES
    }
    for dtype, measured in found.items():
        first, rows = measured[0], [row for row in contacts if row["dtype"] == dtype]
        apart = sum(not first.same_as(other) for other in measured[1:])
        again = sum(row["judged"] for row in rows[1:])
        wrong += apart + again
        print(
            f"{dtype}: {len(rows)} starts, {len(measured)} contacts; {apart} taken for another "
            f"judge; judged again after the first start: {again} "
            f"(taken over: {sum(row['from_cache'] for row in rows[1:])}); "
            f"names: {sorted({one.name for one in measured})}"
        )
    fine, coarse = (found[dtype] for dtype in DTYPES)
    mixed = sum(one.same_as(other) for one in fine for other in coarse)
    first = [next(row for row in contacts if row["dtype"] == dtype) for dtype in DTYPES]
    shared = sum(row["from_cache"] for row in first)
    print(f"{len(fine) * len(coarse)} pairs of both precisions: {mixed} taken for one judge")
    print(f"judgments shared by the two: {shared}")
    return int(bool(wrong or mixed or shared))


if __name__ == "__main__":
    main()
