"""`hf:` names with the real datasets package, on folders of this machine; skipped without it.

The package is too large for CI. Recorded with datasets 5.2.0: all tests pass.
"""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rocketeval.benchmarks.data import DataBenchmark
from rocketeval.benchmarks.opened import OpenedData, open_data
from rocketeval.errors import BenchmarkError
from support.needs import need

ROWS = [
    {"question": f"What is {number}?", "model": model, "output": f"{model} says {number}"}
    for number in range(3)
    for model in ("a", "b")
]


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real package, offline, with a cache of its own."""
    need("datasets", "Hugging Face names need the package datasets", in_ci=False)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))


def counts(opened: OpenedData) -> tuple[int, int, dict[str, int]]:
    """Return rows, used rows, and responses by candidate."""
    reader = opened.benchmark
    assert isinstance(reader, DataBenchmark)
    found = reader.summary
    assert len(list(reader.responses())) == found.responses
    return found.rows, found.used, dict(found.candidates)


def test_folder_of_json_lines(tmp_path: Path) -> None:
    """A folder with a file per split is a dataset; the default split is train."""
    folder = tmp_path / "data"
    folder.mkdir()
    for split, rows in (("train", ROWS), ("test", ROWS[:2])):
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{split}.jsonl").write_text(lines)
    assert counts(open_data(f"hf:{folder}", None, {})) == (6, 6, {"a": 3, "b": 3})
    opened = open_data(f"hf:{folder}:test", None, {})
    assert counts(opened) == (2, 2, {"a": 1, "b": 1})
    assert "split test" in opened.title


def test_columns_of_parquet_can_be_named(tmp_path: Path) -> None:
    """Named columns apply to a dataset as to a file; a missing value is no response."""
    folder = tmp_path / "data"
    folder.mkdir()
    rows = [{"ask": row["question"], "who": row["model"], "text": row["output"]} for row in ROWS]
    rows[0]["text"] = None  # type: ignore[assignment]
    pq.write_table(pa.Table.from_pylist(rows), folder / "train-00000-of-00001.parquet")
    columns = {"query": "ask", "candidate": "who", "response": "text"}
    assert counts(open_data(f"hf:{folder}", None, {"columns": columns})) == (
        6,
        5,
        {"b": 3, "a": 2},
    )


@pytest.mark.parametrize(
    ("name", "words"),
    [("hf:{0}/nowhere", "cannot be read"), ("hf:{0}:validation", "split validation"),
     ("hf:nobody/nothing", "hf:OWNER/NAME:SPLIT")],
)  # fmt: skip
def test_mistakes_are_explained(name: str, words: str, tmp_path: Path) -> None:
    """A missing folder, split or dataset is a message with the form of a name."""
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    with pytest.raises(BenchmarkError) as refused:
        counts(open_data(name.format(folder), None, {}))
    assert words in str(refused.value)


def test_damaged_file_is_explained(tmp_path: Path) -> None:
    """A file that breaks while it is streamed is a message, too."""
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "train.jsonl").write_text(json.dumps(ROWS[0]) + "\n{broken\n")
    with pytest.raises(BenchmarkError, match="cannot be read"):
        counts(open_data(f"hf:{folder}", None, {}))
