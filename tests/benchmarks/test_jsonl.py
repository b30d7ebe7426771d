"""The generic format: all files and fields, and errors that name the line."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from contracts.benchmark_contract import BenchmarkContract
from contracts.benchmark_folders import TWELVE_ITEMS, jsonl_folder, write_jsonl
from rocketeval.benchmarks.jsonl import JsonlBenchmark
from rocketeval.config import BenchmarkConfig
from rocketeval.errors import BenchmarkError
from rocketeval.records import Checklist, Label, Query, Rating, Response, Turn, Vote


class TestContract(BenchmarkContract):
    """The generic format passes the checks for all benchmarks."""

    @pytest.fixture
    def config(self, tmp_path: Path) -> BenchmarkConfig:
        """A small folder with every file."""
        return BenchmarkConfig(kind="jsonl", path=jsonl_folder(tmp_path / "data"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small folder with every file."""
    return jsonl_folder(tmp_path / "data")


def refusal(read: Any) -> str:
    """The error message of a failed read."""
    with pytest.raises(BenchmarkError) as refused:
        list(read())
    return str(refused.value)


def test_every_file_is_read(folder: Path) -> None:
    """Each field of each file arrives in its record; numeric ids become text."""
    found = JsonlBenchmark(folder)
    greeting = (Turn("user", "Hi"), Turn("assistant", "Hello"))
    assert list(found.queries()) == [
        Query("one", "What is 1?", reference="A number.", category="maths"),
        Query("2", "And 2?", history=greeting),
    ]
    assert list(found.checklists()) == [
        Checklist("one", ("Is it a number?",)),
        Checklist("2", tuple(TWELVE_ITEMS), "Ann"),
    ]
    assert list(found.labels()) == [
        Label("one", "left", 7.0),
        Label("2", "right", 3.5, "gpt-4"),
    ]
    assert list(found.votes()) == [
        Vote("one", "left", "right", "a"),
        Vote("2", "left", "right", "tie", "Ben"),
    ]
    assert list(found.ratings()) == [Rating("left", 1100.0)]


def test_only_queries_and_responses_are_required(folder: Path) -> None:
    """Without gold and checklists a folder is still a benchmark."""
    for name in ("checklists", "labels", "votes", "ratings"):
        (folder / f"{name}.jsonl").unlink()
    found = JsonlBenchmark(folder)
    assert [*found.checklists(), *found.labels(), *found.votes(), *found.ratings()] == []


def test_one_file_per_candidate(folder: Path) -> None:
    """The file name is the candidate; files are read in alphabetical order."""
    assert list(JsonlBenchmark(folder).responses())[:3] == [
        Response("one", "left", "left on one"),
        Response("2", "left", "left on 2"),
        Response("one", "right", "right on one"),
    ]


@pytest.mark.parametrize(
    "name", ["my model (v2).jsonl", "模型-é.jsonl", "gpt-4.1.jsonl", "a b.jsonl.gz"]
)
def test_unusual_file_names(folder: Path, name: str) -> None:
    """Spaces, dots, any script and .gz: the candidate is the name without the suffix."""
    write_jsonl(folder / "responses" / name, [{"query_id": "one", "text": "x"}])
    candidates = {response.candidate for response in JsonlBenchmark(folder).responses()}
    assert candidates == {"left", "right", name.removesuffix(".gz").removesuffix(".jsonl")}


def test_candidate_in_the_row_overrides_the_file_name(folder: Path) -> None:
    """A row that names its candidate is believed."""
    write_jsonl(
        folder / "responses" / "left.jsonl", [{"query_id": "one", "candidate": "c", "text": "x"}]
    )
    assert next(iter(JsonlBenchmark(folder).responses())).candidate == "c"


def test_hidden_files_are_ignored(folder: Path) -> None:
    """`._left.jsonl` and .DS_Store are not responses."""
    (folder / "responses" / "._left.jsonl").write_bytes(b"\x00\x05\x16\x07")
    (folder / "responses" / ".DS_Store").write_bytes(b"\x00")
    assert len(list(JsonlBenchmark(folder).responses())) == 4


def one_file(folder: Path, rows: list[Any], name: str = "responses.jsonl") -> JsonlBenchmark:
    """The folder with all responses in one file."""
    for path in (folder / "responses").iterdir():
        path.unlink()
    (folder / "responses").rmdir()
    write_jsonl(folder / name, rows)
    return JsonlBenchmark(folder)


@pytest.mark.parametrize("name", ["responses.jsonl", "responses.jsonl.gz"])
def test_all_responses_in_one_file(folder: Path, name: str) -> None:
    """The other layout: rows that name their candidates, gzipped or not."""
    rows = [{"query_id": 2, "candidate": 7, "text": "x", "history": None}]
    assert list(one_file(folder, rows, name).responses()) == [Response("2", "7", "x")]


def test_one_file_requires_the_candidate(folder: Path) -> None:
    """The error lists the fields that exist."""
    message = refusal(one_file(folder, [{"query_id": 2, "model": "m", "text": "x"}]).responses)
    assert "responses.jsonl:1: the field 'candidate' is missing." in message
    assert "It has: query_id, model, text." in message


def test_both_layouts_at_once_are_refused(folder: Path) -> None:
    """Otherwise half of the responses would be silently ignored."""
    write_jsonl(folder / "responses.jsonl", [])
    assert "Keep one of them." in refusal(JsonlBenchmark(folder).responses)


def test_an_empty_responses_folder_is_named(folder: Path) -> None:
    """The error says what is expected."""
    for path in (folder / "responses").iterdir():
        path.rename(path.with_suffix(".md"))
    assert "There is no .jsonl file in" in refusal(JsonlBenchmark(folder).responses)


def test_unsupported_file_is_named(folder: Path) -> None:
    """A candidate in another format is not silently left out."""
    (folder / "responses" / "late.json").write_text("[]")
    assert "late.json is not read" in refusal(JsonlBenchmark(folder).responses)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("late.ndjson", "Rename it to late.jsonl"),
        ("late.JSONL", "Rename it to late.jsonl"),
        ("late.yaml", "Save it as <candidate>.jsonl"),
        ("late.txt", "Save it as <candidate>.jsonl"),
        ("meta-llama/Llama-3.jsonl", "name the candidate in each row: `candidate`"),
    ],
)
def test_a_candidate_that_is_not_read_is_refused(folder: Path, name: str, hint: str) -> None:
    """Other suffixes and subfolders must not remove a candidate from the ranking."""
    path = folder / "responses" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text('{"query_id": "one", "text": "x"}\n')
    message = refusal(JsonlBenchmark(folder).responses)
    assert f"{name} is not read" in message
    assert hint in message


def test_files_that_are_not_read_are_named(folder: Path) -> None:
    """Near names get a guess; notes, configs and files that the config names are no oddity."""
    for name in ("label.jsonl", "Votes.csv", "human.json", "responses/plot.png"):
        (folder / name).write_text("x")
    for name in ("README.md", "my.yaml", "checklists.yaml", "mine.jsonl", ".DS_Store", "responses"):
        (folder / name).touch()
    (folder / "label").mkdir()
    (folder / "runs").mkdir()
    found = JsonlBenchmark(folder, [folder / "mine.jsonl"])
    assert len(list(found.responses())) == 4
    assert list(found.odd_fields()) == [
        "files of the benchmark that are not read: Votes.csv (did you mean votes.jsonl?), "
        "human.json, label (did you mean labels.jsonl?), label.jsonl (did you mean labels.jsonl?), "
        "responses/plot.png"
    ]


@pytest.mark.parametrize("name", ["labeler", "rater", "rater_id", "annotator", "annotator_id"])
def test_the_labeler_may_have_the_names_of_tables(folder: Path, name: str) -> None:
    """Otherwise all labels would be those of one person."""
    row = {"query_id": "one", "candidate": "left", "value": 7}
    write_jsonl(folder / "labels.jsonl", [{**row, name: "Ada"}, {**row, name: None}])
    vote = {"query_id": "one", "candidate_a": "left", "candidate_b": "right", "winner": "a"}
    write_jsonl(folder / "votes.jsonl", [{**vote, name: "Ada"}, {**vote, "voter": "Bob"}])
    found = JsonlBenchmark(folder)
    assert [label.labeler for label in found.labels()] == ["Ada", "human"]
    assert [vote.voter for vote in found.votes()] == ["Ada", "Bob"]
    assert list(found.odd_fields()) == []


def test_empty_file_is_an_error(folder: Path) -> None:
    """Otherwise the candidate would be missing from the ranking."""
    (folder / "responses" / "left.jsonl").write_text("\n")
    assert "left.jsonl has no responses" in refusal(JsonlBenchmark(folder).responses)


def test_gzip_is_read_everywhere(folder: Path) -> None:
    """Every file may be gzipped."""
    plain = JsonlBenchmark(folder)
    before = [list(plain.queries()), list(plain.labels()), list(plain.votes())]
    for path in folder.glob("*.jsonl"):
        path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    packed = JsonlBenchmark(folder)
    assert [list(packed.queries()), list(packed.labels()), list(packed.votes())] == before


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda packed: packed[:-10], id="cut off"),
        pytest.param(lambda packed: b"plain text", id="not gzip"),
        pytest.param(lambda packed: packed[:15] + b"\xff" * 20 + packed[35:], id="flipped"),
    ],
)
def test_a_damaged_gzip_file_is_named(folder: Path, damage: Any) -> None:
    """A truncated download gives an error with the path, not an EOFError or zlib.error."""
    packed = gzip.compress((folder / "queries.jsonl").read_bytes())
    (folder / "queries.jsonl").unlink()
    (folder / "queries.jsonl.gz").write_bytes(damage(packed))
    message = refusal(JsonlBenchmark(folder).queries)
    assert message.startswith(f"Cannot read {folder / 'queries.jsonl.gz'}: ")


def test_response_can_have_its_own_history(folder: Path) -> None:
    """An empty one counts too; without one the query's history applies."""
    own = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "What?"}]
    rows = [
        {"query_id": 2, "text": "x", "history": own},
        {"query_id": "one", "text": "y", "history": []},
        {"query_id": "one", "text": "z", "history": None},
    ]
    write_jsonl(folder / "responses" / "left.jsonl", rows)
    first, second, third, *_ = JsonlBenchmark(folder).responses()
    assert first.history == (Turn("user", "Hi"), Turn("assistant", "What?"))
    assert second.history == ()
    assert third.history is None


MESSY = {
    "byte-order mark": b'\xef\xbb\xbf{"id": "a", "text": "t"}\n',
    "CRLF": b'{"id": "a", "text": "t"}\r\n',
    "blank lines": b'\n  \n{"id": "a", "text": "t"}\n\n\t\n',
    "no last newline": b'{"id": "a", "text": "t"}',
    "unknown fields": b'{"id": "a", "text": "t", "source": {"url": "x"}, "n": null}\n',
    "optional null": b'{"id": "a", "text": "t", "reference": null, "category": null}\n',
}


@pytest.mark.parametrize("content", MESSY.values(), ids=MESSY.keys())
def test_harmless_formatting_is_accepted(folder: Path, content: bytes) -> None:
    """What editors and exporters add around the rows changes nothing."""
    (folder / "queries.jsonl").write_bytes(content)
    (found,) = JsonlBenchmark(folder).queries()
    assert replace(found, metadata={}) == Query("a", "t")
    assert found.content_hash == Query("a", "t").content_hash


def test_file_with_only_a_byte_order_mark_is_empty(folder: Path) -> None:
    """As saved by Windows Notepad."""
    (folder / "queries.jsonl").write_bytes(b"\xef\xbb\xbf\r\n")
    assert list(JsonlBenchmark(folder).queries()) == []


def test_line_separators_inside_a_text_do_not_split_the_row(folder: Path) -> None:
    """U+2028, U+0085 and form feeds are text, not line ends."""
    text = "one\u2028two\u0085three\x0c\x1c"
    write_jsonl(folder / "queries.jsonl", [{"id": "a", "text": text}])
    assert [query.text for query in JsonlBenchmark(folder).queries()] == [text]


def test_huge_lines_and_empty_texts_are_read(folder: Path) -> None:
    """A five-megabyte response and an empty one are both responses."""
    rows = [{"query_id": "one", "text": "x" * 5_000_000}, {"query_id": 2, "text": ""}]
    write_jsonl(folder / "responses" / "left.jsonl", rows)
    huge, empty, *_ = JsonlBenchmark(folder).responses()
    assert (len(huge.text), empty.text) == (5_000_000, "")


DEFECTS: dict[str, tuple[str, str, str]] = {
    "not JSON": ("queries", '{"id": "b", ', "queries.jsonl:3: not valid JSON"),
    "NaN": (
        "labels",
        '{"query_id": 2, "candidate": "c", "value": NaN}',
        "labels.jsonl:3: JSON has no NaN",
    ),
    "a list": (
        "queries",
        '["b", "text"]',
        "queries.jsonl:3: expected one JSON object per line, but found",
    ),
    "another encoding": ("queries", "\udce9", "queries.jsonl:3: not UTF-8 text: byte 1"),
    "half a character": ("queries", r'{"id": "b", "text": "\ud800"}', "queries.jsonl:3: not valid"),
    "no id": ("queries", '{"text": "t"}', "queries.jsonl:3: the field 'id' is missing."),
    "empty id": ("queries", '{"id": " ", "text": "t"}', "queries.jsonl:3: the field 'id' is emp"),
    "null text": (
        "queries",
        '{"id": "b", "text": null}',
        "queries.jsonl:3: the field 'text' should be text, but is null.",
    ),
    "id of a float": (
        "queries",
        '{"id": 1.0, "text": "t"}',
        "queries.jsonl:3: the field 'id' should be text, but is 1.0.",
    ),
    "true as text": (
        "queries",
        '{"id": true, "text": "t"}',
        "queries.jsonl:3: the field 'id' should be text, but is true.",
    ),
    "history of strings": (
        "queries",
        '{"id": "b", "text": "t", "history": ["Hi"]}',
        "queries.jsonl:3: the field 'history' must be a list of {role, content} messages.",
    ),
    "history without content": (
        "queries",
        '{"id": "b", "text": "t", "history": [{"role": "user", "content": null}]}',
        "queries.jsonl:3: the field 'history' must be a list of {role, content} messages.",
    ),
    "items as one text": (
        "checklists",
        '{"query_id": "b", "items": "1. Is it?"}',
        "checklists.jsonl:3: the field 'items' should be a list, but is \"1. Is it?\".",
    ),
    "items of numbers": (
        "checklists",
        '{"query_id": "b", "items": [1]}',
        "checklists.jsonl:3: item 1 of 'items': it must be a text or an object, not a number.",
    ),
    "label in words": (
        "labels",
        '{"query_id": 2, "candidate": "c", "value": "good"}',
        "labels.jsonl:3: the field 'value' should be a number, but is \"good\".",
    ),
    "label is nan": (
        "labels",
        '{"query_id": 2, "candidate": "c", "value": "nan"}',
        "labels.jsonl:3: the field 'value' should be a number, but is \"nan\".",
    ),
    "unknown winner": (
        "votes",
        '{"query_id": 2, "candidate_a": "l", "candidate_b": "r", "winner": "model_a"}',
        "votes.jsonl:3: winner is 'model_a'.\nValid: a, b, tie.",
    ),
    "a key twice": (
        "labels",
        '{"query_id": 2, "candidate": "c", "value": 7, "value": 1}',
        "labels.jsonl:3: an object has the key 'value' twice.",
    ),
    "rating is infinite": (
        "ratings",
        '{"candidate": "x", "value": "inf"}',
        "ratings.jsonl:2: the field 'value' should be a number, but is \"inf\".",
    ),
    "empty candidate": (
        "ratings",
        '{"candidate": "", "value": 1}',
        "ratings.jsonl:2: the field 'candidate' is empty.",
    ),
}


@pytest.mark.parametrize(("kind", "line", "problem"), DEFECTS.values(), ids=DEFECTS.keys())
def test_invalid_row_is_named_by_file_and_line(
    folder: Path, kind: str, line: str, problem: str
) -> None:
    """For each kind of defect."""
    path = folder / f"{kind}.jsonl"
    path.write_bytes(path.read_bytes() + line.encode("utf-8", "surrogateescape"))
    assert problem in refusal(getattr(JsonlBenchmark(folder), kind))


def test_a_null_response_is_named(folder: Path) -> None:
    """A missing response must be an empty text."""
    write_jsonl(folder / "responses" / "right.jsonl", [{"query_id": "one", "text": None}])
    message = refusal(JsonlBenchmark(folder).responses)
    assert "right.jsonl:1: the field 'text' should be text, but is null." in message
    assert '""' in message


def test_long_invalid_value_is_shortened(folder: Path) -> None:
    """Error messages stay readable."""
    row = {"query_id": "one", "text": {"answer": "x" * 10_000}}
    write_jsonl(folder / "responses" / "left.jsonl", [row])
    assert len(refusal(JsonlBenchmark(folder).responses)) < 200


def test_a_missing_file_is_named(folder: Path) -> None:
    """The hint mentions the config's kind."""
    (folder / "queries.jsonl").unlink()
    message = refusal(JsonlBenchmark(folder).queries)
    assert message.startswith(f"There is no queries.jsonl in {folder}.")
    assert "benchmark.kind" in message


def test_file_in_place_of_the_folder_is_refused(folder: Path) -> None:
    """`path: data/queries.jsonl` is not a folder."""
    with pytest.raises(BenchmarkError, match=r"There is no benchmark folder .*queries\.jsonl"):
        JsonlBenchmark(folder / "queries.jsonl")
