"""Damaged files of any kind: a message or a reading, never another exception."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from rocketeval.benchmarks.base import detect_format, open_benchmark
from rocketeval.config import BenchmarkConfig
from rocketeval.errors import RocketEvalError
from support.data_files import PEERS

FILES = (
    "inspect/good.eval",
    "inspect_json/good.json",
    "promptfoo/results.json",
    "promptfoo/results.jsonl",
    "promptfoo/results.yaml",
    "deepeval/cases.csv",
    "ragas/single.jsonl",
    "otel_genai.jsonl",
    "openinference.jsonl",
    "long.csv",
    "long.parquet",
    "hf_dataset/data-00000-of-00001.arrow",
)
WAYS = 40
"""Damages per file."""


def damage(content: bytes, seed: int) -> bytes:
    """Cut, flip, repeat or insert bytes, as the seed says."""
    choose = random.Random(seed)
    raw = bytearray(content)
    place = choose.randrange(len(raw))
    way = seed % 5
    if way == 0:
        return bytes(raw[:place])
    if way == 1:
        for _ in range(10):
            raw[choose.randrange(len(raw))] = choose.randrange(256)
    elif way == 2:
        raw[place:place] = raw[place : place + 200]
    elif way == 3:
        raw[place:place] = choose.choice([b"\x00", b"\xff\xfe", b"NaN", b'"', b"{", b"\n", b"null"])
    else:
        del raw[place : place + choose.randrange(1, 50)]
    return bytes(raw)


@pytest.mark.parametrize("name", FILES)
def test_damaged_files(name: str, tmp_path: Path) -> None:
    """Every damage is a RocketEvalError, or rows that are all used or named."""
    content = (PEERS / name).read_bytes()
    for seed in range(WAYS):
        folder = tmp_path / str(seed)
        folder.mkdir()
        path = folder / Path(name).name
        path.write_bytes(damage(content, seed))
        try:
            kind = detect_format(path).kind
            options = {"bad_rows": "skip"} if kind != "mt_bench" else {}
            reader = open_benchmark(BenchmarkConfig(kind=kind, path=path, options=options))
            summary = reader.summary  # type: ignore[attr-defined]
            assert summary.rows == summary.used + summary.unused
            assert len(list(reader.responses())) == summary.responses
        except RocketEvalError:
            pass
        shutil.rmtree(folder)


@pytest.mark.parametrize(
    "line",
    [
        '{"question": ' + "[" * 100_000 + "]" * 100_000 + "}",
        '{"question": "Q?", "output": ' + "9" * 5000 + "}",
        '{"question": "Q?", "output": "\\ud800"}',
        '{"question": true, "output": false}',
        '{"question": {"a": {"b": 1}}, "output": [[["x"]]]}',
        '{"question": "Q?", "output": "' + "x" * 5_000_000 + '"}',
        '{"": "Q?", "output": "x"}',
        '{"question": "Q?", "output": "x", "question": "R?"}',
    ],
    ids=["deep", "long number", "surrogate", "booleans", "nested", "long text", "no name", "twice"],
)
def test_hostile_rows(line: str, tmp_path: Path) -> None:
    """Strange rows are read, skipped or refused with a message."""
    path = tmp_path / "x.jsonl"
    path.write_text('{"question": "One?", "output": "1"}\n' + line + "\n")
    told = "x.jsonl"
    try:
        reader = open_benchmark(BenchmarkConfig(kind=detect_format(path).kind, path=path))
        summary = reader.summary  # type: ignore[attr-defined]
        assert summary.rows == summary.used + summary.unused
    except RocketEvalError as error:
        told = str(error)
    assert "x.jsonl" in told
