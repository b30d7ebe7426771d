"""Time judges on the quickstart: doctor's prediction, the actual time, and their accuracy.

    python studies/quickstart/pace.py FOLDER JUDGE... [--limit QUERIES]

A judge is a GGUF file, run in-process by llama.cpp, or NAME@URL for a server. Each gets a fresh run
without a cache. Prints a Markdown table with the load average, because a busy machine is slow.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

PROGRAM = [sys.executable, "-m", "rocketeval.cli.main"]


def rocketeval(*words: str, folder: Path) -> Any:
    """Run a command; return its JSON output. Exit codes 3 and 4 are findings, not errors."""
    done = subprocess.run([*PROGRAM, *words], cwd=folder, capture_output=True, text=True)
    if done.returncode not in (0, 3, 4) or (done.returncode and not done.stdout):
        raise SystemExit(done.stderr)
    return json.loads(done.stdout) if "--json" in words else None


def pace(judge: str, folder: Path, limit: int | None) -> str:
    """Return the judge's row of the table."""
    name, _, address = judge.partition("@")
    name = name if address else str(Path(judge).resolve())
    place = Path(name).stem.replace("/", "-")
    rocketeval(
        "init", place, "--model", name, *(("--base-url", address) if address else ()), folder=folder
    )
    config = folder / place / "rocketeval.yaml"
    text = config.read_text().replace("cache: runs/.cache", "cache: null")
    if limit:
        text = text.replace("path: benchmark", f"path: benchmark\n  limit: {limit}")
    config.write_text(text)
    at = f"{place}/rocketeval.yaml"
    found = rocketeval("doctor", at, "--json", folder=folder)
    figures, run = found["figures"], found["run"]
    started = time.monotonic()
    done = rocketeval("run", at, "--json", folder=folder)
    whole, grade = time.monotonic() - started, done["stages"]["grade"]
    took, responses = grade["seconds"], grade["judged"]
    votes = done["audit"]["agreement"]["judge"]["with_ties"]["value"]
    (folder / f"{place}.json").write_text(json.dumps({"doctor": found, "run": done}))
    return (
        f"| {place} | {figures['auc']:.2f} | {took / responses:.1f} s | {responses} | "
        f"{run['seconds']:.0f} s ({run['seconds_low']:.0f} to {run['seconds_high']:.0f}) | "
        f"{took:.0f} s | {whole:.0f} s | {found['seconds']:.0f} s | {votes:.0%} |"
    )


def main() -> None:
    """Time every judge, one after the other."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("judges", nargs="+")
    parser.add_argument("--limit", type=int, help="judge only the first N queries")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    print(
        "| judge | AUC on known items | per response | responses | predicted | took | whole run | "
        "doctor | votes |\n|---|---|---|---|---|---|---|---|---|"
    )
    for judge in given.judges:
        before = os.getloadavg()[0]
        row = pace(judge, given.folder, given.limit)
        print(
            f"{row} <!-- load {before:.1f} before, {os.getloadavg()[0]:.1f} after -->", flush=True
        )


if __name__ == "__main__":
    main()
