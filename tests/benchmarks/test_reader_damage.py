"""Damaged files of any kind: a message or a reading, never another exception."""

from __future__ import annotations

import contextlib
import copy
import gzip
import json
import math
import random
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from rocketeval.benchmarks.base import detect_format, open_benchmark
from rocketeval.benchmarks.opened import open_data
from rocketeval.benchmarks.snapshot import snapshot
from rocketeval.config import BenchmarkConfig
from rocketeval.errors import ConfigError, RocketEvalError
from rocketeval.resources import repeated_key
from support.data_files import MADE, PEERS

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


WRONG: tuple[Any, ...] = (None, 7, 1.5, "x", "", True, [], {}, [1], [[]], {"a": 1}, [{"b": None}])
"""Values of a type that a field may not expect."""
PEER_JSON = (
    "inspect_json/good.json",
    "promptfoo/results.json",
    "promptfoo/results.jsonl",
    "deepeval/cases.jsonl",
    "ragas/single.jsonl",
    "otel_genai.jsonl",
    "openinference.jsonl",
)


def mutate(value: Any, choose: random.Random) -> Any:
    """Return a JSON value in which one value inside has another type, or is missing."""
    if isinstance(value, dict | list) and value and choose.random() < 0.85:
        places = list(value) if isinstance(value, dict) else range(len(value))
        place = choose.choice(list(places))
        changed = copy.copy(value)
        if choose.random() < 0.1:
            del changed[place]
        else:
            changed[place] = mutate(value[place], choose)
        return changed
    return choose.choice(WRONG)


def mutate_file(path: Path, choose: random.Random) -> None:
    """Change one value in a JSON or JSON-lines file."""
    if path.suffix == ".json":
        path.write_text(json.dumps(mutate(json.loads(path.read_text()), choose)))
        return
    rows = list(map(json.loads, path.read_text().splitlines()))
    place = choose.randrange(len(rows))
    rows[place] = mutate(rows[place], choose)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.parametrize("name", [*PEER_JSON, *(name for name in MADE if name != "wide_csv")])
def test_wrong_types(name: str, tmp_path: Path) -> None:
    """A value of another type anywhere is a message, a skip or a reading, never a traceback."""
    for seed in range(WAYS):
        choose = random.Random(seed)
        folder = tmp_path / str(seed)
        folder.mkdir()
        if name in MADE:
            kind, make = MADE[name]
            path = make(folder)
        else:
            path = folder / Path(name).name
            shutil.copy(PEERS / name, path)
            kind = detect_format(path).kind
        files = sorted(each for each in folder.rglob("*") if each.suffix in (".json", ".jsonl"))
        mutate_file(choose.choice(files), choose)
        with contextlib.suppress(RocketEvalError):
            detect_format(path)
        try:
            reader = open_benchmark(BenchmarkConfig(kind=kind, path=path))
            summary = reader.summary  # type: ignore[attr-defined]
            reader.mapping()  # type: ignore[attr-defined]
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


ROW = '{"question": "q", "output": "A"}'
FAR = b"question,output\n" + b"q,aaaaaaaaaaaaaaaaaaaa\n" * 2000 + b"q\xe9,a\n"
MISTAKES = [
    ("a.jsonl", f'{ROW}\n{{"question": "r", "output": 1, "output": 2}}\n', "a.jsonl:2"),
    (
        "a.jsonl",
        '{"question": "q", "output": 1, "output": 2}\n',
        "a.jsonl:1: an object has the key",
    ),
    ("a.json", '[{"question": "q", "output": 1, "output": 2}]', "the key 'output' twice"),
    ("a.json", f'{{"data": [{ROW}], "results": [1]}}', "several of its fields may hold rows"),
    ("a.json", f"\n\n{ROW}\n{{bad\n{ROW}\n", "a.json:4: "),
    ("a.csv", FAR, "a.csv:2002: not UTF-8 text: byte 2 is 0xe9"),
    ("a.csv", "\nquestion,output\nq,a,b\n", "a.csv:3: the row has another number of cells"),
]


def message_about(path: Path) -> str:
    """Return the message about a file that cannot be read."""
    with pytest.raises(RocketEvalError) as error:
        open_data(str(path), None, {})
    return str(error.value)


@pytest.mark.parametrize(("name", "content", "part"), MISTAKES)
def test_messages_name_the_place(
    name: str, content: str | bytes, part: str, tmp_path: Path
) -> None:
    """The line in the file, and what is wrong there."""
    raw = content if isinstance(content, bytes) else content.encode()
    (tmp_path / name).write_bytes(raw)
    assert part in message_about(tmp_path / name)


def test_curly_quotes_of_windows_are_not_converted_from_latin_1(tmp_path: Path) -> None:
    """In Latin-1, the bytes of curly quotes are control characters."""
    (tmp_path / "a.csv").write_bytes("question,output\nq,“a”\n".encode("cp1252"))
    with pytest.raises(RocketEvalError) as error:
        open_data(str(tmp_path / "a.csv"), None, {})
    assert "iconv -f CP1252" in error.value.hint


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", b"\n \r\nquestion,output\nq,A\n"),
        ("a.csv", b"sep=;\r\nquestion;output\r\nq;A\r\n"),
        ("a.csv", b"\xef\xbb\xbfsep=|\nquestion|output\n,,,|B\nq|A\n"),
        ("a.csv", b'"sep=\t"\nquestion\toutput\nq\tA\n'),
        ("a.yaml.gz", gzip.compress(b"- {question: q, output: A}\n")),
        ("a.json", f'{{"data": [{ROW}], "results": []}}'.encode()),
    ],
)
def test_unusual_forms_are_read(name: str, content: bytes, tmp_path: Path) -> None:
    """Blank lines and Excel's separator above the header, compressed YAML, an empty list."""
    (tmp_path / name).write_bytes(content)
    found = open_data(str(tmp_path / name), None, {}).benchmark
    assert [response.text for response in found.responses()][-1] == "A"


def test_only_the_start_of_a_large_file_is_checked_for_repeated_keys(tmp_path: Path) -> None:
    """The check must not slow down large files."""
    rows = [json.dumps({"question": f"q{n}", "output": "x" * 1000}) for n in range(1100)]
    twice = '{"question": "r", "output": 1, "output": 2}'
    (tmp_path / "a.jsonl").write_text("\n".join([*rows, twice]))
    assert open_data(str(tmp_path / "a.jsonl"), None, {}).queries == 1101


def test_a_repeated_key_among_many_is_found_in_time() -> None:
    """The time grows with the number of keys, not with its square."""
    keys = ",".join(f'"key{n}": 0' for n in range(30_000))
    before = time.process_time()
    found = repeated_key(f'{{{keys}, "key29999": 1, "last": 2}}'.encode())
    assert time.process_time() - before < 1
    assert found == "an object has the key 'key29999' twice"


@pytest.mark.parametrize(
    ("row", "part"),
    [
        ({"question": "q", "output": "a", "score": math.inf}, "'score' is inf"),
        ({"question": "q", 1: "a", "1": "b"}, "two columns named '1'"),
    ],
)
def test_rows_in_memory_that_json_would_change(
    row: dict[Any, Any], part: str, tmp_path: Path
) -> None:
    """JSON has no infinity, and only texts as keys."""
    with pytest.raises(ConfigError, match=part):
        snapshot([row], tmp_path)
    assert snapshot([{"question": "q", "output": "a", "score": math.nan}], tmp_path).exists()
