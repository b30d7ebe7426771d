"""Fifteen typical mistakes per reader: the message names the place, the cause and the way out.

`python tests/benchmarks/test_reader_mistakes.py` writes all messages to
docs/reference/data_mistakes.md.
"""

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
from support.data_files import MADE, PEERS, log_likelihoods

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "data_mistakes.md"
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
            ("no rejected", null("rejected"), ("skipped", "no response")),
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
            ("doc_id is a list", change(doc_id=[1]), ("doc_id", "text")),
            (
                "log-likelihoods",
                change(**log_likelihoods(new=True)),
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
            ("the same row", again(), ("same labeler again: the label is dropped",)),
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
    told = told_about(kind, damage, tmp_path)
    for word in words:
        expected = word.format(name=Path(OWN[kind][0]).stem.partition(".")[0])
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


INSPECT: list[Mistake] = [
    ("empty file", content(""), ("log.json",)),
    ("an empty object", content("{}"), ("log.json",)),
    ("an array of numbers", content("[1]"), ("log.json",)),
    ("cut file", cut, ("log.json", "cut off")),
    ("UTF-16", encoded("utf-16"), ("log.json",)),
    ("named .gz", zipped, ("not gzipped",)),
    ("unknown suffix", renamed(".txt"), (".txt",)),
    ("a JSON log named .eval", renamed(".eval"), ("not a readable ZIP",)),
    ("no samples", whole_log(samples=[]), ("no usable row",)),
    ("no header", whole_log(eval={}), ("log.json",)),
    ("no id", inspect_log(id=None), ("log.json sample 1", "no id")),
    ("no input", inspect_log(input=None), ("no input",)),
    ("no output", inspect_log(output={}, messages=[]), ("no output",)),
    ("a repetition", inspect_log(epoch=2), ("epoch 2 or later",)),
    ("a missing attachment", inspect_log(input="attachment://nothing"), ("attachment is missing",)),
    (
        "a failed sample",
        inspect_log(output={}, messages=[], error={"message": "x"}),
        ("ended with an error",),
    ),
    ("an id of another sample", inspect_log(id="sum", input="Another?"), ("another query text",)),
]


@pytest.mark.parametrize(("name", "damage", "words"), INSPECT)
def test_inspect_messages(
    name: str, damage: Damage, words: tuple[str, ...], tmp_path: Path
) -> None:
    """Mistakes with Inspect logs are messages or named skips."""
    told = message(damaged_log(damage, tmp_path))
    for word in words:
        assert word in told, f"{name}: {told}"


def damaged_log(damage: Damage, folder: Path) -> Path:
    """Write a real log and damage it; return its path, which may have changed."""
    path = folder / "log.json"
    shutil.copy(PEERS / "inspect_json" / "good.json", path)
    damage(path)
    return next(iter(folder.iterdir()))


CSV: list[tuple[str, str, tuple[str, ...]]] = [
    ("an empty file", "", ("x.csv",)),
    ("no rows", "question,output\n", ("x.csv",)),
    ("a column twice", "question,question,output\nOne?,1,2\n", ("two columns named 'question'",)),
    ("too few cells", "question,output\nOne?\n", ("another number of cells", "x.csv:2")),
    ("too many cells", "question,output\nOne?,1,2\n", ("3 cells, 2 columns",)),
    ("an open quote", 'question,output\n"One?,1\nTwo?,2\n', ("x.csv:2", "never closed")),
    (
        "a misspelled query",
        "questionn,output\nOne?,1\n",
        ("Is 'questionn' the query?", "--column query="),
    ),
    (
        "a misspelled response",
        "question,outputt\nOne?,1\n",
        ("Is 'outputt' the response?", "--column response="),
    ),
    ("no response column", "question\nOne?\n", ("no column looks like a response",)),
    ("an empty query", "question,output\n,1\nTwo?,2\n", ("the query is empty", "x.csv:2")),
    ("an empty response", "question,output\nOne?,\nTwo?,2\n", ("no response", "x.csv:2")),
    (
        "two responses, no candidate",
        "question,output\nOne?,1\nOne?,2\n",
        ("second, different response", "x.csv:3"),
    ),
    (
        "an id of two queries",
        "id,question,output\na,One?,1\na,Two?,2\n",
        ("another query text", "x.csv:3"),
    ),
    ("a label that is no number", "question,output,score\nOne?,1,7\nTwo?,2,nan\n", ("score",)),
    ("two possible responses", "question,answer,output\nOne?,1,2\n", ("Choose a reading",)),
    (
        "an empty candidate",
        "question,model,output\nOne?,,2\nTwo?,b,2\n",
        ("the candidate is empty",),
    ),
    ("semicolons", "question;output\nOne?;1\nTwo?;2\n", ("",)),
    ("Latin-1", "question,output\nO\xf9?,1\n", ("UTF-8",)),
    ("not text", "\x00\x00", ("x.csv",)),
]


@pytest.mark.parametrize(("name", "text", "words"), CSV)
def test_csv_messages(name: str, text: str, words: tuple[str, ...], tmp_path: Path) -> None:
    """Mistakes in CSV files name the line, the column and the nearest name."""
    told = message(csv_file(text, tmp_path))
    for word in words:
        assert word in told, f"{name}: {told}"


def csv_file(text: str, folder: Path) -> Path:
    """Write a CSV file in Latin-1, which is UTF-8 for plain letters."""
    path = folder / "x.csv"
    path.write_bytes(text.encode("latin-1"))
    return path


HEAD = """\
# Messages: data files

What `rocketeval run DATA`, `rocketeval import` and `rocketeval.evaluate` say about typical
mistakes. Every reader is tested with all mistakes of the first section, and with its own.

<!-- Generated by tests/benchmarks/test_reader_mistakes.py; do not edit. -->
"""


def told_about(kind: str, damage: Damage, folder: Path) -> str:
    """Return the message about a damaged file of a reader."""
    path, damaged = write(kind, folder)
    damage(damaged)
    if path == damaged and not path.exists():
        path = next(iter(folder.iterdir()))
    # In a folder, a broken file is found by the reader that the other files ask for.
    return message(path, kind if path.is_dir() else None)


def page() -> str:
    """Return docs/reference/data_mistakes.md."""
    from tempfile import TemporaryDirectory

    lines = [HEAD]

    def add(name: str, make: Callable[[Path], str]) -> None:
        with TemporaryDirectory() as folder:
            inside = Path(folder) / "logs"
            inside.mkdir()
            told = make(inside).replace(f"{inside}/", "").replace(str(inside), "logs")
        lines.append(f"**{name[:1].upper()}{name[1:]}**\n\n```\n{told}\n```\n")

    lines.append("## Any JSON or JSON-lines file\n")
    for name, damage, _ in JSON_FILE:
        add(name, lambda folder, own=damage: told_about("table", own, folder))  # type: ignore[misc]
    lines.append("## CSV\n")
    for name, text, words in CSV:
        if words != ("",):
            add(name, lambda folder, own=text: message(csv_file(own, folder)))  # type: ignore[misc]
    lines.append("## inspect\n")
    for name, damage, _ in INSPECT:
        add(name, lambda folder, own=damage: message(damaged_log(own, folder)))  # type: ignore[misc]
    for kind, (_, _, mistakes) in OWN.items():
        lines.append(f"## {kind}\n")
        for name, damage, _ in mistakes:
            add(name, lambda folder, k=kind, own=damage: told_about(k, own, folder))  # type: ignore[misc]
    return "\n".join(lines)


def test_page() -> None:
    """docs/reference/data_mistakes.md shows the current messages."""
    assert PAGE.read_text(encoding="utf-8") == page(), f"python {Path(__file__).name} writes it"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
