"""The layout of the paper's scripts, in both variants."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from contracts.benchmark_contract import BenchmarkContract
from contracts.benchmark_folders import TWELVE_ITEMS, rocketeval_folder, write_jsonl
from rocketeval.benchmarks.base import open_benchmark
from rocketeval.benchmarks.load import load
from rocketeval.benchmarks.rocketeval import JUDGED, RocketEvalBenchmark
from rocketeval.config import BenchmarkConfig
from rocketeval.errors import BenchmarkError, ConfigError
from rocketeval.records import Checklist, Label, Query, Rating, Response, Turn


def config_of(folder: Path, **options: Any) -> BenchmarkConfig:
    """The config of a folder in this layout."""
    return BenchmarkConfig(kind="rocketeval", path=folder, options=options)


def opened(folder: Path, **options: Any) -> RocketEvalBenchmark:
    """A reader of a folder in this layout."""
    return RocketEvalBenchmark.create(config_of(folder, **options))


class TestContract(BenchmarkContract):
    """The paper's layout passes the checks for all benchmarks."""

    @pytest.fixture
    def config(self, tmp_path: Path) -> BenchmarkConfig:
        """A small folder with labels and ratings."""
        return config_of(rocketeval_folder(tmp_path / "data"), ratings="rankings.json")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small folder in this layout."""
    return rocketeval_folder(tmp_path / "data")


@pytest.mark.parametrize("name", ["query.jsonl", "queries.jsonl", "queries.jsonl.gz"])
def test_both_names_of_the_query_file(tmp_path: Path, name: str) -> None:
    """The scripts read query.jsonl, their manual says queries.jsonl."""
    folder = rocketeval_folder(tmp_path / "data", queries=name)
    assert list(opened(folder).queries()) == [
        Query("s1", "What is 1?", reference="A number.", category="maths"),
        Query("s2", "And 2?", (Turn("user", "What is 1?"), Turn("assistant", "A number."))),
    ]


def test_the_first_output_is_the_response(folder: Path) -> None:
    """The file name is the candidate, also with dots."""
    assert list(opened(folder).responses())[1:3] == [
        Response("s2", "gemma-2b-it", "gemma-2b-it on s2"),
        Response("s1", "gpt-4.1", "gpt-4.1 on s1"),
    ]


def test_labels_from_arrays_and_lines(folder: Path) -> None:
    """Both file types are read, scores may be text, and organization prefixes are removed."""
    assert list(opened(folder).labels()) == [
        Label("s1", "gemma-2b-it", 7.0, "gpt-4o"),
        Label("s2", "gemma-2b-it", 4.0, "gpt-4o"),
        Label("s1", "gpt-4.1", 9.5, "gpt-4o"),
    ]


def test_several_labelers_require_a_choice(folder: Path) -> None:
    """Predicted and reference scores share a folder in this layout; nothing is guessed."""
    write_jsonl(folder / "score" / "small-judge" / "gpt-4.1.jsonl", [])
    with pytest.raises(BenchmarkError, match="several labelers") as refused:
        list(opened(folder).labels())
    assert refused.value.hint == "Set benchmark.options.labeler to one of: gpt-4o, small-judge"
    assert len(list(opened(folder, labeler="gpt-4o").labels())) == 3


def judged(folder: Path, name: str, *candidates: str) -> None:
    """Write scores as the paper's scripts and our export write those of a judge."""
    for candidate in candidates:
        row = {"session_id": "s1", "model_test": candidate, "score": 5, "judge": name}
        write_jsonl(folder / "score" / name / f"{candidate}.jsonl", [row])


def test_judge_scores_are_not_labels(folder: Path) -> None:
    """They are ignored and counted; a single labeler next to them need not be named."""
    assert opened(folder).left_out() == {}
    judged(folder, "small-judge", "gemma-2b-it", "gpt-4.1")
    found = opened(folder)
    assert {label.labeler for label in found.labels()} == {"gpt-4o"}
    assert found.left_out() == {JUDGED: 2}
    loaded = load(found, config_of(folder))
    assert len(list(loaded.labels())) == 3
    assert loaded.skipped == {JUDGED: 2}


def test_judge_scores_and_labels_in_one_folder(folder: Path) -> None:
    """If a judge overwrote some of a labeler's files, the other files are still labels."""
    judged(folder, "gpt-4o", "gpt-4.1")
    found = opened(folder)
    assert [label.candidate for label in found.labels()] == ["gemma-2b-it"] * 2
    assert found.left_out() == {JUDGED: 1}


def test_named_judge_is_a_labeler(folder: Path) -> None:
    """Only if the user asks for it."""
    judged(folder, "small-judge", "gpt-4.1")
    found = opened(folder, labeler="small-judge")
    assert list(found.labels()) == [Label("s1", "gpt-4.1", 5.0, "small-judge")]
    assert found.left_out() == {}


def test_hidden_folders_are_not_labelers(folder: Path) -> None:
    """A notebook's checkpoints do not make a second labeler."""
    (folder / "score" / ".ipynb_checkpoints").mkdir()
    assert len(list(opened(folder).labels())) == 3


def test_unknown_labeler_is_named(folder: Path) -> None:
    """An error, not an empty list of labels."""
    with pytest.raises(BenchmarkError, match="There is no gpt-5 in"):
        list(opened(folder, labeler="gpt-5").labels())


def test_without_labels(folder: Path) -> None:
    """A folder without score/ has no labels and gives no error."""
    for path in sorted((folder / "score").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    (folder / "score").rmdir()
    assert list(opened(folder).labels()) == []


def test_checklists_inside_the_query_rows_keep_their_order(folder: Path) -> None:
    """Item 10 comes after item 9, not after item 1."""
    assert list(opened(folder).checklists()) == [
        Checklist("s1", ("Is it a number?",)),
        Checklist("s2", tuple(TWELVE_ITEMS)),
    ]


def test_checklist_file_overrides_the_query_rows(folder: Path) -> None:
    """A session with an empty list has no checklist."""
    rows = [{"session_id": "s2", "checklist": TWELVE_ITEMS}, {"session_id": "s1", "checklist": []}]
    write_jsonl(folder / "checklist" / "checklist.jsonl", rows)
    assert list(opened(folder).checklists()) == [Checklist("s2", tuple(TWELVE_ITEMS))]


def test_ratings_come_from_the_named_file(folder: Path) -> None:
    """Models without a rating are left out; without the option there are none."""
    assert list(opened(folder, ratings="rankings.json").ratings()) == [Rating("gpt-4.1", 1300.5)]
    assert list(opened(folder).ratings()) == []


@pytest.mark.parametrize(
    ("conversation", "problem"),
    [
        ([], "must end with a message to answer"),
        (
            [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}],
            "must end with a message to answer",
        ),
        ("What?", "the field 'conversation_input' should be a list"),
    ],
)
def test_a_conversation_without_a_query_is_refused(
    folder: Path, conversation: Any, problem: str
) -> None:
    """The last message must be the user's query."""
    write_jsonl(folder / "query.jsonl", [{"session_id": "s1", "conversation_input": conversation}])
    with pytest.raises(BenchmarkError, match=problem) as refused:
        list(opened(folder).queries())
    assert refused.value.message.startswith("query.jsonl:1: ")


@pytest.mark.parametrize(
    ("output", "problem"),
    [
        ([], "output is empty"),
        ("plain text", "the field 'output' should be a list, but is \"plain text\""),
        ([None], "the field 'output' must be a list of texts"),
    ],
)
def test_output_must_be_a_list_of_texts(folder: Path, output: Any, problem: str) -> None:
    """The error names file and line."""
    write_jsonl(folder / "response" / "gpt-4.1.jsonl", [{"session_id": "s1", "output": output}])
    with pytest.raises(BenchmarkError, match=problem) as refused:
        list(opened(folder).responses())
    assert refused.value.message.startswith("gpt-4.1.jsonl:1: ")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ('{"session_id": "s1", "score": 1}', "expected a JSON array of objects"),
        ("[1, 2]", "expected a JSON array of objects"),
        ("[{", "not valid JSON"),
        ('[{"session_id": "s1", "score": "N/A"}]', "should be a number"),
    ],
)
def test_a_broken_label_file_is_named(folder: Path, content: str, problem: str) -> None:
    """Arrays have no lines; the error names the file and, if possible, the row."""
    (folder / "score" / "gpt-4o" / "gemma-2b-it.json").write_text(content)
    with pytest.raises(BenchmarkError, match=problem) as refused:
        list(opened(folder).labels())
    assert refused.value.message.startswith("gemma-2b-it.json")


def test_an_array_saved_by_windows_is_read(folder: Path) -> None:
    """A byte-order mark before the array changes nothing."""
    path = folder / "score" / "gpt-4o" / "gemma-2b-it.json"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert len(list(opened(folder).labels())) == 3


def test_a_folder_without_responses_is_named(folder: Path) -> None:
    """No file to read is an error with the folder's name."""
    for path in (folder / "response").iterdir():
        path.unlink()
    with pytest.raises(BenchmarkError, match=r"There is no \.jsonl file in .*response"):
        list(opened(folder).responses())


def test_options_of_the_wrong_type_are_refused(folder: Path) -> None:
    """`labeler: 5` is not a folder name; checked when the benchmark is opened."""
    with pytest.raises(ConfigError, match="labeler: this must be text"):
        open_benchmark(config_of(folder, labeler=5))


def test_native_wildbench_scores_are_read(folder: Path) -> None:
    """A row of WildBench's own scripts gives a label; other fields are ignored."""
    row = {
        "session_id": "s1",
        "parsed_result": {"strengths": "None.", "weaknesses": "All.", "score": "1"},
        "meta_data": {"usage": {"total_tokens": 9}},
        "model_test": "org/gpt-4.1",
        "score": "1",
        "model_output": "",
    }
    (folder / "score" / "gpt-4o" / "gpt-4.1.jsonl").unlink()
    (folder / "score" / "gpt-4o" / "gpt-4.1.json").write_text(json.dumps([row]))
    assert list(opened(folder).labels())[-1] == Label("s1", "gpt-4.1", 1.0, "gpt-4o")


def test_further_outputs_are_counted(folder: Path) -> None:
    """Only the first output of a row is judged."""
    rows = [{"session_id": "s1", "output": ["a", "b"]}, {"session_id": "s2", "output": ["a"]}]
    for path in (folder / "response").iterdir():
        write_jsonl(path, rows)
    found = opened(folder)
    list(found.responses())
    assert "rows with several answers in `output`: 2." in "".join(found.odd_fields())
