"""Peak memory and time of loading a large data file into a run.

    python studies/data_memory.py --gigabytes 1 [--formats jsonl parquet] [--folder /scratch]

Writes a synthetic long table (question, model, output) of the given size, loads it into a run with
the table reader in a process of its own, and prints the file's size, the rows, the seconds and the
peak memory of that process. Responses have 2,000 to 6,000 characters; there is one question per 100
responses, because queries are kept in memory and responses are not.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

CANDIDATES = 100
WORDS = ["alpha", "beta", "gamma", "delta", "the", "answer", "is", "because", "of", "number"]
BATCH = 2000

LOAD = """
import json, resource, sys, time
from rocketeval.config import parse_config
from rocketeval.pipeline import Run
path, output = sys.argv[1:]
run = Run(parse_config({
    "name": "load", "output": output, "cache": None,
    "benchmark": {"kind": "table", "path": path},
    "judge": {"model": "m", "engine": "scripted"},
    "author": {"kind": "fixed", "options": {"items": ["Is it right?"]}},
}))
idle = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
started = time.monotonic()
facts = run.load()
print(json.dumps({
    "responses": facts.responses, "queries": facts.queries,
    "seconds": round(time.monotonic() - started, 1),
    "idle_mb": round(idle / 1024), "peak_mb":
        round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
}))
"""


def rows(seed: int = 0) -> Iterator[dict[str, str]]:
    """Yield rows without end: each question is answered by every candidate."""
    choose = random.Random(seed)
    number = 0
    while True:
        number += 1
        question = f"Question {number}: " + " ".join(choose.choices(WORDS, k=60))
        for candidate in range(CANDIDATES):
            text = " ".join(choose.choices(WORDS, k=choose.randint(400, 1200)))
            yield {"question": question, "model": f"model-{candidate}", "output": text}


def write_jsonl(path: Path, size: int) -> None:
    """Write JSON lines up to about `size` bytes."""
    with path.open("w") as stream:
        written = 0
        for row in rows():
            written += stream.write(json.dumps(row) + "\n")
            if written >= size:
                return


def write_parquet(path: Path, size: int) -> None:
    """Write rows of about `size` bytes of text, uncompressed, so that the file has that size."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([(name, pa.string()) for name in ("question", "model", "output")])
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=["model"]) as writer:
        batch, written = [], 0
        for row in rows():
            batch.append(row)
            written += sum(map(len, row.values()))
            if len(batch) == BATCH or written >= size:
                writer.write_table(pa.Table.from_pylist(batch, schema=schema))
                batch = []
            if written >= size:
                return


def main() -> None:
    """Write, load and measure each format."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gigabytes", type=float, default=1.0)
    parser.add_argument("--formats", nargs="+", default=["jsonl", "parquet"])
    parser.add_argument("--folder", type=Path, default=Path("studies/runs/data_memory"))
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    for form in given.formats:
        path = given.folder / f"data.{form}"
        started = time.monotonic()
        write = write_jsonl if form == "jsonl" else write_parquet
        write(path, int(given.gigabytes * 1e9))
        made = time.monotonic() - started
        output = given.folder / form
        done = subprocess.run(
            [sys.executable, "-c", LOAD, str(path), str(output)],
            capture_output=True,
            text=True,
            check=True,
        )
        found = json.loads(done.stdout)
        size = path.stat().st_size / 1e9
        print(f"{form}: {size:.2f} GB, written in {made:.0f} s; {found}", flush=True)
        path.unlink()
        shutil.rmtree(output)
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"(this script itself: {own:.0f} MB)")


if __name__ == "__main__":
    main()
