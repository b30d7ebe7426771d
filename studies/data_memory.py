"""Peak memory and time of loading a large data file into a run.

    python studies/data_memory.py --gigabytes 1 10 [--formats jsonl parquet] [--folder /scratch]

Writes a synthetic long table (question, model, output) of each size, loads it into a run with the
table reader in a process of its own, and prints the file's size, the rows, the seconds (elapsed and
of the CPU) and the peak memory of that process (on Linux). Responses have 2,400 to 7,200
characters. There is one question per 100 responses, because queries are kept in memory and
responses are not.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

CANDIDATES = 100
WORDS = ["alpha", "beta", "gamma", "delta", "the", "answer", "is", "because", "of", "number"]
POOL_WORDS = 3_000_000
"""Random words from which the responses are cut."""
BATCH = 2000

LOAD = """
import json, re, sys, time
from pathlib import Path
from rocketeval.config import parse_config
from rocketeval.pipeline import Run
path, output = sys.argv[1:]
def peak():
    # Not ru_maxrss: that includes the process which started this one.
    status = Path("/proc/self/status").read_text()
    return round(int(re.search("VmHWM:\\s+([0-9]+)", status)[1]) / 1024)
run = Run(parse_config({
    "name": "load", "output": output, "cache": None,
    "benchmark": {"kind": "table", "path": path},
    "judge": {"model": "m", "engine": "scripted"},
    "author": {"kind": "fixed", "options": {"items": ["Is it right?"]}},
}))
idle = peak()
started, worked = time.monotonic(), time.process_time()
facts = run.load()
print(json.dumps({
    "responses": facts.responses, "queries": facts.queries,
    "seconds": round(time.monotonic() - started, 1),
    "cpu_seconds": round(time.process_time() - worked, 1),
    "idle_mb": idle, "peak_mb": peak(),
}))
"""


def rows(seed: int = 0) -> Iterator[dict[str, str]]:
    """Yield rows without end: each question is answered by every candidate."""
    choose = random.Random(seed)
    pool = " ".join(choose.choices(WORDS, k=POOL_WORDS))
    number = 0
    while True:
        number += 1
        question = f"Question {number}: " + " ".join(choose.choices(WORDS, k=60))
        for candidate in range(CANDIDATES):
            start, size = choose.randrange(len(pool) - 7200), choose.randint(2400, 7200)
            text = pool[start : start + size]
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


def measure(form: str, gigabytes: float, folder: Path) -> None:
    """Write a file, load it, print the figures, and remove both."""
    path, output = folder / f"data.{form}", folder / form
    started = time.monotonic()
    write = write_jsonl if form == "jsonl" else write_parquet
    write(path, int(gigabytes * 1e9))
    made = time.monotonic() - started
    try:
        done = subprocess.run(
            [sys.executable, "-c", LOAD, str(path), str(output)],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        size = path.stat().st_size / 1e9
    finally:
        path.unlink()
        shutil.rmtree(output, ignore_errors=True)
    found = json.loads(done.stdout)
    took = f"{found['seconds']:,} s ({found['cpu_seconds']:,} s of CPU)"
    print(
        f"{form}: {size:.2f} GB (written in {made:.0f} s); {found['responses']:,} responses, "
        f"{found['queries']:,} queries: {took}, "
        f"{found['peak_mb']} MB peak ({found['idle_mb']} MB before loading)",
        flush=True,
    )


def main() -> None:
    """Measure each size and format."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gigabytes", type=float, nargs="+", default=[1.0])
    parser.add_argument("--formats", nargs="+", default=["jsonl", "parquet"])
    parser.add_argument("--folder", type=Path, default=Path("studies/runs/data_memory"))
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    for gigabytes in given.gigabytes:
        for form in given.formats:
            measure(form, gigabytes, given.folder)


if __name__ == "__main__":
    main()
