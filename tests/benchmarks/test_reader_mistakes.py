"""Fifteen typical mistakes per reader: the message names the place, the cause and the way out."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rocketeval.benchmarks.base import DetectedFormat, detect_format, open_benchmark
from rocketeval.config import BenchmarkConfig
from rocketeval.errors import RocketEvalError
from support.data_files import MADE, PEERS

Damage = Callable[[Path], None]
Mistake = tuple[str, Damage, tuple[str, ...]]
"""A name, what to do to the file, and words of the message (or of the skipped rows)."""


def rows_in(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a JSON or JSON-lines file."""
    text = path.read_text()
    return json.loads(text) if path.suffix == ".json" else list(map(json.loads, text.splitlines()))


def put(path: Path, rows: list[Any]) -> None:
    """Write rows as the file's suffix says."""
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    path.write_text(json.dumps(rows) if path.suffix == ".json" else lines)


def change(**fields: Any) -> Damage:
    """Set fields of the first row; None removes one."""

    def damage(path: Path) -> None:
        rows = rows_in(path)
        for name, value in fields.items():
            rows[0][name] = value
            if value is None:
                del rows[0][name]
        put(path, rows)

    return damage


def null(*fields: str) -> Damage:
    """Set fields of the first row to null."""

    def damage(path: Path) -> None:
        rows = rows_in(path)
        rows[0].update(dict.fromkeys(fields))
        put(path, rows)

    return damage


def content(text: str | bytes) -> Damage:
    """Replace the whole file."""
    raw = text if isinstance(text, bytes) else text.encode()
    return lambda path: path.write_bytes(raw) and None  # type: ignore[func-returns-value]


def cut(path: Path) -> None:
    """Cut the file in the middle of its last row, as an interrupted download does."""
    raw = path.read_bytes().rstrip()
    path.write_bytes(raw[: len(raw) - len(raw) // 5])


def encoded(codec: str) -> Damage:
    """Save the file in another encoding, with a letter that UTF-8 writes differently."""

    def damage(path: Path) -> None:
        text = path.read_text().replace("What is", "Où est").replace("says", "où")
        path.write_bytes(text.encode(codec))

    return damage


def again(**fields: Any) -> Damage:
    """Append the first row again, changed."""

    def damage(path: Path) -> None:
        rows = rows_in(path)
        put(path, [*rows, {**rows[0], **fields}])

    return damage


def extra(row: Any) -> Damage:
    """Append a row."""
    return lambda path: put(path, [*rows_in(path), row])


def renamed(suffix: str) -> Damage:
    """Give the file another suffix."""
    return lambda path: path.rename(path.with_suffix(suffix)) and None  # type: ignore[func-returns-value]


def zipped(path: Path) -> None:
    """Name the file .gz without compressing it."""
    path.rename(path.with_name(path.name + ".gz"))


def half_zipped(path: Path) -> None:
    """Cut a compressed file."""
    whole = gzip.compress(path.read_bytes())
    path.with_name(path.name + ".gz").write_bytes(whole[: len(whole) // 2])
    path.unlink()


JSON_FILE: list[Mistake] = [
    ("empty file", content(""), ("{name}",)),
    ("blank lines only", content("\n\n"), ("{name}",)),
    ("not JSON", content("hello\nworld\n"), ("{name}",)),
    ("cut file", cut, ("{name}",)),
    ("UTF-16", encoded("utf-16"), ("{name}",)),
    ("Latin-1", encoded("latin-1"), ("{name}", "UTF-8")),
    ("named .gz", zipped, (".gz", "not gzipped")),
    ("cut .gz", half_zipped, ("truncated",)),
    ("unknown suffix", renamed(".txt"), (".txt",)),
    ("numbers as rows", lambda path: put(path, [1, 2, 3]), ("{name}",)),
    ("unrelated rows", lambda path: put(path, [{"a": 1}, {"a": 2}]), ("{name}",)),
]
"""Mistakes with any JSON or JSON-lines file; `{name}` is the file's name."""
TEXT = ["a", "b"]

OWN: dict[str, tuple[str, str, list[Mistake]]] = {
    # reader: the file that is damaged, how it is made, and mistakes of its own
    "alpaca_eval": (
        "small/model_outputs.json",
        "alpaca_eval",
        [
            ("no instruction", null("instruction"), ("small/model_outputs.json[1]", "instruction")),
            ("empty instruction", change(instruction=" "), ("instruction", "empty")),
            ("no generator", null("generator"), ("generator",)),
            ("output is a list", change(output=TEXT), ("output", "text")),
            ("an instruction twice", again(output="x"), ("occurs twice",)),
        ],
    ),
    "arena_hard": (
        "model_answer/small.jsonl",
        "arena_hard",
        [
            ("unknown question", change(question_id="qq"), ("question.jsonl", "qq")),
            ("no model", change(model_id=None), ("model_id",)),
            ("no choices", change(choices=[]), ("turns",)),
            ("a second answer", again(choices=[{"turns": [{"content": "x"}]}]), ("second",)),
            ("no answer", change(choices=[{"turns": [{"content": ""}]}]), ("no answer",)),
        ],
    ),
    "wildbench": (
        "result_dirs/small.json",
        "wildbench",
        [
            ("no session", null("session_id"), ("session_id",)),
            ("output is text", change(output="x"), ("output", "list")),
            ("no output", change(output=[]), ("no output",)),
            ("unknown session", change(session_id="s9", chat_history=None), ("chat_history",)),
            ("a second output", again(output=["x"]), ("second",)),
        ],
    ),
    "preference_pairs": (
        "pairs.jsonl",
        "preference_pairs",
        [
            ("no rejected", null("rejected"), ("pairs.jsonl:1", "rejected")),
            ("empty prompt", change(prompt=""), ("prompt", "empty")),
            ("same texts", change(rejected="One."), ("same text",)),
            ("no prompt at all", change(prompt=None), ("prompt",)),
            (
                "messages without a user",
                change(prompt=[{"role": "system", "content": "x"}]),
                ("no user message",),
            ),
        ],
    ),
    "openai_logs": (
        "log.jsonl",
        "chat_logs",
        [
            ("no messages", null("messages"), ("log.jsonl:1", "messages")),
            ("empty messages", change(messages=[]), ("messages",)),
            (
                "no user",
                change(messages=[{"role": "system", "content": "x"}]),
                ("no user message",),
            ),
            ("no choices", change(choices=[]), ("no output",)),
            (
                "a second answer",
                again(choices=[{"message": {"role": "assistant", "content": "x"}}]),
                ("second",),
            ),
        ],
    ),
    "traces": (
        "observations.jsonl",
        "langfuse",
        [
            ("no input", null("input"), ("observations.jsonl:1", "messages")),
            ("no output", null("output"), ("no output",)),
            ("a span", change(type="SPAN"), ("not an LLM call",)),
            ("a second output", again(output="x"), ("second",)),
            (
                "messages without a user",
                change(input=[{"role": "assistant", "content": "x"}]),
                ("no user message",),
            ),
        ],
    ),
    "lm_eval": (
        "org__small/samples_trivia_2026-11-01T00-00-00.000000.jsonl",
        "lm_eval",
        [
            ("no arguments", change(arguments=[]), ("prompt", ":1")),
            ("no doc_id", null("doc_id"), ("doc_id",)),
            (
                "log-likelihoods",
                change(resps=[[-1.0, True]], filtered_resps=[[-1.0, True]]),
                ("log-likelihood",),
            ),
            ("empty prompt", change(arguments=[["", {}]]), ("prompt",)),
            ("a metric that is text", change(exact_match="yes"), ("another filter",)),
        ],
    ),
    "deepeval": (
        "cases.jsonl",
        "peer deepeval/cases.jsonl",
        [
            ("no input", null("input"), ("cases.jsonl:1", "input")),
            ("input is a list", change(input=TEXT), ("input",)),
            ("not run yet", null("actual_output"), ("not run",)),
            ("a second output", again(actual_output="x"), ("second",)),
            ("the same row", again(), ("same response again",)),
        ],
    ),
    "ragas": (
        "single.jsonl",
        "peer ragas/single.jsonl",
        [
            ("no user_input", null("user_input"), ("single.jsonl:1", "user_input")),
            ("user_input is a number", change(user_input=7), ("user_input", "7")),
            ("no response", null("response"), ("no response",)),
            ("a second response", again(response="x"), ("second",)),
            (
                "messages without a user",
                change(user_input=[{"type": "ai", "content": "x"}]),
                ("no user message",),
            ),
        ],
    ),
    "promptfoo": (
        "results.jsonl",
        "peer promptfoo/results.jsonl",
        [
            ("no output", change(response={}), ("no output",)),
            ("a provider error", change(response=None, failureReason=2), ("returned an error",)),
            ("no variables and no prompt", change(vars={}, prompt={"label": "x"}), ("prompt",)),
            ("a second output", again(response={"output": "x"}), ("second",)),
            ("the same row", again(), ("same response again",)),
        ],
    ),
    "table": (
        "data.jsonl",
        "table",
        [
            ("no query", null("question"), ("data.jsonl:1", "the query is empty")),
            ("a field is missing", change(output=None), ("data.jsonl:1", "output")),
            ("no candidate", null("model"), ("candidate is empty",)),
            ("a second response", again(output="x"), ("second", "'a' on")),
            ("no response", null("output"), ("no response",)),
        ],
    ),
}


def table(folder: Path) -> Path:
    """A long table of two candidates."""
    path = folder / "data.jsonl"
    rows = [
        {"question": f"What is {n}?", "model": model, "output": f"{model} says {n}"}
        for model in "ab"
        for n in range(3)
    ]
    put(path, rows)
    return path


def write(kind: str, folder: Path) -> tuple[Path, Path]:
    """Write a reader's file; return what is read and what is damaged."""
    name, made, _ = OWN[kind]
    if made == "table":
        return table(folder), folder / name
    if made.startswith("peer "):
        shutil.copy(PEERS / made.removeprefix("peer "), folder / name)
        return folder / name, folder / name
    path = MADE[made][1](folder)
    return path, path if path.is_file() else folder / name


CASES = [
    pytest.param(kind, damage, words, id=f"{kind}: {name}")
    for kind, (_, _, own) in OWN.items()
    for name, damage, words in [*JSON_FILE, *own]
]


def message(path: Path, kind: str | None = None) -> str:
    """Return what a user sees: the error, or the lines about skipped rows."""
    try:
        found = detect_format(path) if kind is None else DetectedFormat(kind, kind)
        reader: Any = open_benchmark(BenchmarkConfig(kind=found.kind, path=path))
        summary = reader.summary
        reader.mapping()
    except RocketEvalError as error:
        return str(error)
    assert summary.rows == summary.used + summary.unused
    return "\n".join(summary.lines())


@pytest.mark.parametrize(("kind", "damage", "words"), CASES)
def test_message(kind: str, damage: Damage, words: tuple[str, ...], tmp_path: Path) -> None:
    """Every mistake is a message with these words, or a named skip; never a traceback."""
    path, damaged = write(kind, tmp_path)
    damage(damaged)
    if path == damaged and not path.exists():
        path = next(iter(tmp_path.iterdir()))
    # In a folder, a broken file is found by the reader that the other files ask for.
    told = message(path, kind if path.is_dir() else None)
    for word in words:
        expected = word.format(name=damaged.stem.partition(".")[0])
        assert expected in told, told or "nothing was said"


def test_fifteen_each() -> None:
    """Every reader is tried with at least fifteen mistakes."""
    for kind, (_, _, own) in OWN.items():
        assert len(JSON_FILE) + len(own) >= 15, kind


def inspect_log(**fields: Any) -> Damage:
    """Change fields of the first sample of a JSON log."""

    def damage(path: Path) -> None:
        log = json.loads(path.read_text())
        for name, value in fields.items():
            log["samples"][0][name] = value
        path.write_text(json.dumps(log))

    return damage


def whole_log(**fields: Any) -> Damage:
    """Change fields of a JSON log."""

    def damage(path: Path) -> None:
        path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))

    return damage


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (content(""), ("log.json",)),
        (content("{}"), ("log.json",)),
        (content("[1]"), ("log.json",)),
        (cut, ("log.json", "cut off")),
        (encoded("utf-16"), ("log.json",)),
        (zipped, ("not gzipped",)),
        (renamed(".txt"), (".txt",)),
        (renamed(".eval"), ("not a readable ZIP",)),
        (whole_log(samples=[]), ("no usable row",)),
        (whole_log(eval={}), ("log.json",)),
        (inspect_log(id=None), ("log.json sample 1", "no id")),
        (inspect_log(input=None), ("no input",)),
        (inspect_log(output={}, messages=[]), ("no output",)),
        (inspect_log(epoch=2), ("epoch 2 or later",)),
        (inspect_log(input="attachment://nothing"), ("attachment is missing",)),
        (inspect_log(output={}, messages=[], error={"message": "x"}), ("ended with an error",)),
        (inspect_log(id="sum", input="Another?"), ("another query text",)),
    ],
)
def test_inspect_messages(damage: Damage, words: tuple[str, ...], tmp_path: Path) -> None:
    """Mistakes with Inspect logs are messages or named skips."""
    path = tmp_path / "log.json"
    shutil.copy(PEERS / "inspect_json" / "good.json", path)
    damage(path)
    told = message(next(iter(tmp_path.iterdir())))
    for word in words:
        assert word in told, told


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ("x.csv",)),
        ("question,output\n", ("x.csv",)),
        ("question,question,output\nOne?,1,2\n", ("two columns named 'question'",)),
        ("question,output\nOne?\n", ("another number of cells", "x.csv:2")),
        ("question,output\nOne?,1,2\n", ("3 cells, 2 columns",)),
        ('question,output\n"One?,1\nTwo?,2\n', ("cells",)),
        ("questionn,output\nOne?,1\n", ("Is 'questionn' the query?", "--column query=")),
        ("question,outputt\nOne?,1\n", ("Is 'outputt' the response?", "--column response=")),
        ("question\nOne?\n", ("no column looks like a response",)),
        ("question,output\n,1\nTwo?,2\n", ("the query is empty", "x.csv:2")),
        ("question,output\nOne?,\nTwo?,2\n", ("no response", "x.csv:2")),
        ("question,output\nOne?,1\nOne?,2\n", ("second, different response", "x.csv:3")),
        ("id,question,output\na,One?,1\na,Two?,2\n", ("another query text", "x.csv:3")),
        ("question,output,score\nOne?,1,7\nTwo?,2,nan\n", ("score",)),
        ("question,answer,output\nOne?,1,2\n", ("Choose a reading",)),
        ("question,model,output\nOne?,,2\nTwo?,b,2\n", ("the candidate is empty",)),
        ("question;output\nOne?;1\nTwo?;2\n", ("",)),
        ("question,output\nO\xf9?,1\n", ("UTF-8",)),
        ("\x00\x00", ("x.csv",)),
    ],
)
def test_csv_messages(text: str, words: tuple[str, ...], tmp_path: Path) -> None:
    """Mistakes in CSV files name the line, the column and the nearest name."""
    path = tmp_path / "x.csv"
    path.write_bytes(text.encode("latin-1"))
    told = message(path)
    for word in words:
        assert word in told, told
