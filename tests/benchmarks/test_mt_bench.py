"""MT-Bench in FastChat's files and in the compact format: each turn is a separate query."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from contracts.benchmark_contract import BenchmarkContract
from contracts.benchmark_folders import (
    MT_BENCH_OPTIONS,
    TWELVE_ITEMS,
    mt_bench_folder,
    native_answer,
    write_jsonl,
)
from rocketeval.benchmarks.mt_bench import MTBench
from rocketeval.config import BenchmarkConfig
from rocketeval.errors import BenchmarkError, ConfigError
from rocketeval.records import Label, Query, Rating, Response, Turn, Vote


def config_of(folder: Path, **options: Any) -> BenchmarkConfig:
    """The config of a folder with every optional file, and changed options."""
    return BenchmarkConfig(kind="mt_bench", path=folder, options={**MT_BENCH_OPTIONS, **options})


def opened(folder: Path, **options: Any) -> MTBench:
    """A reader of such a folder."""
    return MTBench.create(config_of(folder, **options))


class TestNative(BenchmarkContract):
    """FastChat's own files pass the checks for all benchmarks."""

    @pytest.fixture
    def config(self, tmp_path: Path) -> BenchmarkConfig:
        """Questions, answers and gold as FastChat writes them."""
        return config_of(mt_bench_folder(tmp_path / "data"))


class TestCompact(BenchmarkContract):
    """One gzipped file of all answers passes them too."""

    @pytest.fixture
    def config(self, tmp_path: Path) -> BenchmarkConfig:
        """The same benchmark with answers as {model, question_id, turns}."""
        return config_of(compact(mt_bench_folder(tmp_path / "data")), answers="answers.jsonl.gz")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small MT-Bench."""
    return mt_bench_folder(tmp_path / "data")


def compact(folder: Path) -> Path:
    """Replace the native answers by one gzipped file in the compact format."""
    rows = []
    for path in sorted((folder / "model_answer").iterdir()):
        for question in (81, 101):
            native = native_answer(question, path.stem)
            turns = native["choices"][0]["turns"]
            rows.append({"model": path.stem, "question_id": question, "turns": turns})
        path.unlink()
    write_jsonl(folder / "answers.jsonl.gz", rows)
    return folder


def test_each_turn_is_a_query(folder: Path) -> None:
    """Ids carry the turn; references come from the question, or from the reference file."""
    assert list(opened(folder).queries()) == [
        Query("81-1", "Write.", (), "gpt-4 on 81, first", "writing", "81"),
        Query(
            "81-2",
            "Write again.",
            (Turn("user", "Write."),),
            "gpt-4 on 81, second",
            "writing",
            "81",
        ),
        Query("101-1", "Which place?", (), "Second.", "reasoning", "101"),
        Query("101-2", "And now?", (Turn("user", "Which place?"),), "Last.", "reasoning", "101"),
    ]
    assert {query.cluster for query in opened(folder, turns=[1]).queries()} == {None}


def test_second_turn_follows_the_candidates_own_answer(folder: Path) -> None:
    """Not another candidate's first answer."""
    responses = {(r.query_id, r.candidate): r for r in opened(folder).responses()}
    assert responses["81-1", "gpt-4"] == Response("81-1", "gpt-4", "gpt-4 on 81, first")
    for candidate in ("gpt-4", "llama-13b"):
        assert responses["81-2", candidate].history == (
            Turn("user", "Write."),
            Turn("assistant", f"{candidate} on 81, first"),
        )
        assert responses["81-2", candidate].text == f"{candidate} on 81, second"


def test_compact_format_has_the_same_responses(tmp_path: Path) -> None:
    """Both formats give equal records."""
    native = opened(mt_bench_folder(tmp_path / "native"))
    packed = opened(compact(mt_bench_folder(tmp_path / "compact")), answers="answers*.gz")
    assert list(native.responses()) == list(packed.responses())


def test_turns_can_be_selected(folder: Path) -> None:
    """With turns: [1], no file contributes a second turn."""
    first = opened(folder, turns=[1])
    assert [query.id for query in first.queries()] == ["81-1", "101-1"]
    assert {response.query_id for response in first.responses()} == {"81-1", "101-1"}
    assert [checklist.query_id for checklist in first.checklists()] == ["81-1"]
    assert [vote.query_id for vote in first.votes()] == ["81-1", "81-1", "101-1"]
    assert [label.query_id for label in first.labels()] == ["81-1"]


def test_votes_belong_to_their_turn(folder: Path) -> None:
    """`tie (inconsistent)` is a tie, and the voter is kept."""
    assert list(opened(folder).votes()) == [
        Vote("81-1", "gpt-4", "llama-13b", "a", "expert_1"),
        Vote("81-1", "gpt-4", "llama-13b", "tie", "expert_2"),
        Vote("81-2", "gpt-4", "llama-13b", "b", "author_0"),
        Vote("101-1", "gpt-4", "llama-13b", "tie", "expert_1"),
    ]


def test_an_unknown_winner_is_named(folder: Path) -> None:
    """A word that FastChat does not write is refused."""
    vote = {"question_id": 81, "model_a": "x", "model_b": "y", "turn": 1, "winner": "error"}
    write_jsonl(folder / "votes.jsonl", [vote])
    with pytest.raises(BenchmarkError, match=r"votes\.jsonl:1: winner is 'error'") as refused:
        list(opened(folder).votes())
    assert "tie (inconsistent)" in refused.value.hint


def test_scores_that_were_not_parsed_are_left_out(folder: Path) -> None:
    """-1 and null are not labels; the labeler is the judge's name without its prompt's."""
    assert list(opened(folder).labels()) == [
        Label("81-1", "gpt-4", 9.0, "gpt-4"),
        Label("81-2", "llama-13b", 8.5, "gpt-4o"),
    ]


@pytest.mark.parametrize("judge", [{}, {"judge": None}])
def test_a_score_without_a_judge_has_an_unknown_labeler(
    folder: Path, judge: dict[str, Any]
) -> None:
    """Compact files may omit the judge; it never becomes 'None'."""
    row = {"question_id": 81, "model": "gpt-4", "turn": 1, "score": 5, **judge}
    write_jsonl(folder / "scores.jsonl", [row])
    assert [label.labeler for label in opened(folder).labels()] == ["unknown"]


def test_an_empty_judge_list_is_refused(folder: Path) -> None:
    """With its place, not with an IndexError."""
    row = {"question_id": 81, "model": "gpt-4", "turn": 1, "score": 5, "judge": []}
    write_jsonl(folder / "scores.jsonl", [row])
    with pytest.raises(BenchmarkError, match=r"scores\.jsonl:1: the field 'judge'"):
        list(opened(folder).labels())


def test_checklists_keep_their_order(folder: Path) -> None:
    """Twelve items come in the order they were written."""
    assert next(iter(opened(folder).checklists())).items == tuple(TWELVE_ITEMS)


@pytest.mark.parametrize("query_id", [81, "81", "81-first", "-1"])
def test_checklist_id_without_a_turn_is_refused(folder: Path, query_id: Any) -> None:
    """The hint shows how to write it."""
    write_jsonl(folder / "checklists.jsonl", [{"query_id": query_id, "checklist": ["Is it?"]}])
    with pytest.raises(BenchmarkError, match=f"'{query_id}' names no turn") as refused:
        list(opened(folder).checklists())
    assert "81-1" in refused.value.hint


def test_ratings_come_from_a_column(folder: Path) -> None:
    """Empty cells are left out."""
    assert list(opened(folder).ratings()) == [Rating("gpt-4", 1251.0)]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("model,arena\ngpt-4,1\n", "elo.csv has no column 'elo'.\nIt has: model, arena."),
        ("name,elo\n", "elo.csv has no column 'model'"),
        ("", "elo.csv has no column 'model'"),
        ("model,elo\ngpt-4,n/a\n", "elo.csv:2: the field 'elo' should be a number"),
        ("model,elo\ngpt-4,nan\n", "elo.csv:2: the field 'elo' should be a number"),
        ("model,elo\n,1000\n", "elo.csv:2: the field 'model' is empty"),
    ],
)
def test_invalid_ratings_file_is_named(folder: Path, content: str, problem: str) -> None:
    """A missing column lists the existing ones; an invalid cell names its line."""
    (folder / "elo.csv").write_text(content)
    with pytest.raises(BenchmarkError) as refused:
        list(opened(folder).ratings())
    assert problem in str(refused.value)


def test_ratings_saved_by_a_spreadsheet(folder: Path) -> None:
    """A byte-order mark, CRLF, short rows and extra cells are accepted."""
    (folder / "elo.csv").write_bytes(
        b'\xef\xbb\xbfmodel,elo\r\ngpt-4,1251,extra\r\nllama-13b\r\n\r\n"claude, v1",1200\r\n'
    )
    assert list(opened(folder).ratings()) == [Rating("gpt-4", 1251.0), Rating("claude, v1", 1200.0)]


def test_a_ratings_file_in_another_encoding_is_refused(folder: Path) -> None:
    """Latin-1 is an error with the path, not a UnicodeDecodeError."""
    (folder / "elo.csv").write_bytes("model,elo\ncaf\xe9,1\n".encode("latin-1"))
    with pytest.raises(BenchmarkError, match=r"elo\.csv:2: not UTF-8"):
        list(opened(folder).ratings())


def test_answer_without_a_question_is_refused(folder: Path) -> None:
    """It may belong to another version of the questions."""
    write_jsonl(folder / "model_answer" / "gpt-4.jsonl", [native_answer(999, "gpt-4")])
    with pytest.raises(BenchmarkError, match=r"gpt-4\.jsonl:1: there is no question 999"):
        list(opened(folder).responses())


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"choices": []}, "`choices` has no answer"),
        ({"choices": ["text"]}, "`choices` has no answer"),
        ({"choices": None}, "the field 'choices' should be a list"),
        ({"choices": [{"turns": [None, "b"]}]}, "the field 'turns' must be a list of texts"),
        ({"model_id": ""}, "the field 'model_id' is empty"),
    ],
)
def test_a_broken_answer_is_named(folder: Path, change: dict[str, Any], problem: str) -> None:
    """Each defect of an answer's row is reported with file and line."""
    row = {**native_answer(81, "gpt-4"), **change}
    write_jsonl(folder / "model_answer" / "gpt-4.jsonl", [row])
    with pytest.raises(BenchmarkError, match=problem) as refused:
        list(opened(folder).responses())
    assert refused.value.message.startswith("gpt-4.jsonl:1: ")


def test_an_answer_to_one_turn_gives_one_response(folder: Path) -> None:
    """A candidate that stopped after the first turn has no second response."""
    row = native_answer(81, "gpt-4")
    row["choices"][0]["turns"].pop()
    write_jsonl(folder / "model_answer" / "gpt-4.jsonl", [row])
    ids = [r.query_id for r in opened(folder).responses() if r.candidate == "gpt-4"]
    assert ids == ["81-1"]


def test_duplicate_question_is_refused(folder: Path) -> None:
    """Otherwise the second would silently replace the first."""
    question = {"question_id": 81, "turns": ["a"]}
    write_jsonl(folder / "question.jsonl", [question, question])
    with pytest.raises(BenchmarkError, match=r"question\.jsonl:2: question 81"):
        list(opened(folder).queries())


@pytest.mark.parametrize("pattern", ["nothing/*.jsonl", "", "/absolute/*.jsonl", "**x"])
def test_pattern_without_matches_is_named(folder: Path, pattern: str) -> None:
    """Invalid patterns give a clear error too."""
    with pytest.raises(BenchmarkError, match="No file matches") as refused:
        list(opened(folder, answers=pattern).responses())
    assert "relative to benchmark.path" in refused.value.hint


@pytest.mark.parametrize("turns", [[0], [-1], [], ["first"]])
def test_turns_are_counted_from_one(folder: Path, turns: list[Any]) -> None:
    """Turn 0 would silently be the last one."""
    with pytest.raises(ConfigError, match=r"benchmark\.options has a mistake:\n  turns"):
        opened(folder, turns=turns)


def test_typo_in_the_options_suggests_the_nearest(folder: Path) -> None:
    """Options are checked when the benchmark is opened."""
    with pytest.raises(ConfigError, match="Did you mean 'votes'"):
        opened(folder, vote="votes.jsonl")


def test_unused_scores_votes_and_answers_are_counted(folder: Path) -> None:
    """Scores that FastChat could not parse, other turns, and answers after the first."""
    row = {"question_id": 81, "model": "gpt-4", "judge": "x"}
    scores = [{**row, "turn": 1, "score": each} for each in (-1, None, 5)]
    write_jsonl(folder / "s.jsonl", [*scores, {**row, "turn": 2, "score": 5}])
    vote = {**row, "model_a": "gpt-4", "model_b": "x", "winner": "tie", "turn": 2}
    write_jsonl(folder / "v.jsonl", [vote])
    answer = native_answer(81, "gpt-4")
    answer["choices"] *= 2
    write_jsonl(folder / "model_answer" / "gpt-4.jsonl", [answer])
    found = opened(folder, scores="s.jsonl", votes="v.jsonl", turns=[1])
    assert len(list(found.labels())) == 1
    assert found.left_out() == {
        "scores that are null or -1 (not parsed)": 2,
        "scores of turns that options.turns does not name": 1,
        "votes of turns that options.turns does not name": 1,
    }
    list(found.responses())
    assert "rows with several answers in `choices`: 1." in "".join(found.odd_fields())
