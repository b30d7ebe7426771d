"""Large files stream: memory does not grow with the number of responses."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

CODE = """
import resource, sys
from pathlib import Path
from rocketeval.benchmarks.table import TableBenchmark, TableOptions
reader = TableBenchmark(Path(sys.argv[1]), TableOptions())
count = sum(len(each.text) > 0 for each in reader.responses())
print(count, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""
ROWS = 20_000


def write(path: Path, rows: int) -> None:
    """Write a long table of 20 queries; each response has 5,000 characters."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    def row(number: int) -> dict[str, str]:
        asked, model = number % 20, number // 20
        return {"question": f"Q{asked}?", "model": f"m{model}", "output": f"{number} " * 800}

    if path.suffix == ".parquet":
        with pq.ParquetWriter(path, pa.schema([(n, pa.string()) for n in row(0)])) as writer:
            for start in range(0, rows, 1000):
                part = [row(start + place) for place in range(min(1000, rows - start))]
                writer.write_table(pa.Table.from_pylist(part))
        return
    with path.open("w") as stream:
        for number in range(rows):
            stream.write(json.dumps(row(number)) + "\n")


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_memory_is_bounded(suffix: str, tmp_path: Path) -> None:
    """Twenty times the rows, about 90 MB more of text, need at most 40 MB more memory."""
    peaks = []
    for rows in (ROWS // 20, ROWS):
        path = tmp_path / f"{rows}{suffix}"
        write(path, rows)
        done = subprocess.run(
            [sys.executable, "-c", CODE, str(path)], capture_output=True, text=True, check=True
        )
        count, peak = map(int, done.stdout.split())
        assert count == rows
        peaks.append(peak)
    assert peaks[1] - peaks[0] < 40, peaks
