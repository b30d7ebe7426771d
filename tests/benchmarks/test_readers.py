"""Data readers: files of other tools, read without options, with every row accounted for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from contracts.benchmark_contract import BenchmarkContract
from rocketeval.benchmarks.base import READERS, detect_format, open_benchmark
from rocketeval.benchmarks.data import DataBenchmark
from rocketeval.benchmarks.reading import as_question
from rocketeval.config import BenchmarkConfig
from rocketeval.errors import BenchmarkError
from rocketeval.records import Turn
from support.data_files import MADE, PEERS
from support.needs import need

REAL = {
    # file: kind, rows, used rows, responses, queries, candidates
    "promptfoo/results.json": ("promptfoo", 12, 10, 10, 3, 4),
    "promptfoo/results.jsonl": ("promptfoo", 12, 10, 10, 3, 4),
    "promptfoo/results.yaml": ("promptfoo", 12, 10, 10, 3, 4),
    "inspect": ("inspect", 8, 8, 8, 4, 2),
    "inspect_json/good.json": ("inspect", 4, 4, 4, 4, 1),
    "deepeval/cases.json": ("deepeval", 3, 3, 3, 3, 1),
    "deepeval/cases.csv": ("deepeval", 3, 3, 3, 3, 1),
    "deepeval/cases.jsonl": ("deepeval", 3, 3, 3, 3, 1),
    "ragas/single.jsonl": ("ragas", 3, 3, 3, 3, 1),
    "ragas/single.csv": ("ragas", 3, 3, 3, 3, 1),
    "ragas/multi.jsonl": ("ragas", 1, 1, 1, 1, 1),
    "lm_eval": ("lm_eval", 6, 3, 3, 3, 1),
    "otel_genai.jsonl": ("traces", 7, 6, 6, 3, 2),
    "openinference.jsonl": ("traces", 7, 6, 6, 3, 2),
    "long.csv": ("table", 6, 6, 6, 3, 2),
    "long.parquet": ("table", 6, 6, 6, 3, 2),
    "wide.xlsx": ("table", 3, 3, 6, 3, 2),
    "hf_dataset": ("table", 6, 6, 6, 3, 2),
}
"""Files made by the tools themselves, and what is in them."""
SHAPES = {
    "alpaca_eval": (8, 3, 4, 2, 2),
    "arena_hard": (6, 4, 4, 2, 2),
    "arena_hard_2025": (4, 4, 4, 2, 2),
    "wildbench": (7, 7, 4, 2, 2),
    "preference_pairs": (3, 2, 4, 2, 2),
    "arena_votes": (2, 2, 2, 1, 2),
    "chat_logs": (5, 4, 4, 2, 2),
    "fine_tuning": (3, 3, 3, 3, 1),
    "openai_batch": (4, 3, 3, 2, 2),
    "langfuse": (5, 4, 4, 2, 2),
    "lm_eval": (10, 4, 4, 2, 2),
    "deepeval_run": (3, 2, 2, 2, 1),
    "wide_csv": (2, 2, 3, 2, 2),
}
"""Files in a documented shape: rows, used rows, responses, queries, candidates."""


def opened(path: Path, **options: object) -> DataBenchmark:
    """Return the reader that detection chooses for a path."""
    config = BenchmarkConfig(kind=detect_format(path).kind, path=path, options=options)
    reader = open_benchmark(config)
    assert isinstance(reader, DataBenchmark)
    return reader


def made(name: str, folder: Path) -> Path:
    """Write one of the files in a documented shape."""
    return MADE[name][1](folder)


def counts(reader: DataBenchmark) -> tuple[int, int, int, int, int]:
    """Return rows, used rows, responses, queries and candidates; check that no row is lost."""
    found = reader.summary
    assert found.rows == found.used + found.unused
    assert len(list(reader.responses())) == found.responses == sum(found.candidates.values())
    assert sum(reader.left_out().values()) == found.unused
    return found.rows, found.used, found.responses, len(found.queries), len(found.candidates)


@pytest.mark.parametrize("name", REAL)
def test_files_made_by_the_tools(name: str) -> None:
    """Each real file is recognized and read with no options; every row is used or named."""
    if name.endswith(".xlsx"):
        need("openpyxl", "Excel files need openpyxl")
    kind, *expected = REAL[name]
    reader = opened(PEERS / name)
    assert reader.kind == kind
    assert counts(reader) == tuple(expected)
    assert {"query", "candidate"} <= set(reader.mapping())


@pytest.mark.parametrize("name", MADE)
def test_files_in_a_documented_shape(name: str, tmp_path: Path) -> None:
    """Files of tools that write none here are recognized, and every row is used or named."""
    reader = opened(made(name, tmp_path))
    assert reader.kind == MADE[name][0]
    assert counts(reader) == SHAPES[name]


def test_every_reader_has_a_file() -> None:
    """No data reader is without a test file."""
    covered = {kind for kind, *_ in REAL.values()} | {kind for kind, _ in MADE.values()}
    assert covered == {*READERS, "table"}


class TestContract(BenchmarkContract):
    """Every reader passes the checks for all benchmarks."""

    has_checklists = False

    @pytest.fixture(params=[*(f"peer {name}" for name in REAL), *MADE])
    def config(self, request: pytest.FixtureRequest, tmp_path: Path) -> BenchmarkConfig:
        """The config that detection suggests for a file."""
        name = request.param
        if name.endswith(".xlsx"):
            need("openpyxl", "Excel files need openpyxl")
        real = name.removeprefix("peer ")
        path = PEERS / real if name != real else made(name, tmp_path)
        return BenchmarkConfig(kind=detect_format(path).kind, path=path)


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("alpaca_eval.model_outputs.json", 3),
        ("alpaca_eval.annotations.json", 2),
        ("arena_hard.model_answer.new.jsonl", 2),
    ],
)
def test_native_samples(name: str, rows: int) -> None:
    """First rows of the leaderboards' own files are read without options."""
    folder = os.environ.get("ROCKETEVAL_SHARED_DATA")
    if not folder:
        pytest.skip("the native samples are not here")
    reader = opened(Path(folder) / "native_samples" / name)
    assert counts(reader)[:2] == (rows, rows)


def test_inspect_attachments_and_messages() -> None:
    """A long input is resolved from the log's attachments; its system message is history."""
    reader = opened(PEERS / "inspect")
    query = next(each for each in reader.queries() if each.id == "long")
    assert query.text.startswith("Summarize this. The quick brown fox")
    assert query.history == (Turn("system", "Be brief."),)
    assert {label.value for label in reader.labels()} == {0.0, 1.0}
    assert next(iter(reader.queries())).reference == "Paris"


def test_promptfoo_rubrics_become_items() -> None:
    """Rubric assertions are items with the test's variables in place; prompts are candidates."""
    reader = opened(PEERS / "promptfoo" / "results.json")
    lists = {made.query_id: made.items for made in reader.checklists()}
    polite, filled, line = map(as_question, ("Is polite", "Answers What is 2 + 2?", "Is one line"))
    assert lists["test-0"] == (polite, "contains: Paris")
    assert set(lists["test-1"]) == {polite, "Answers What is 2 + 2?", line}
    assert filled == "Answers What is 2 + 2?"
    assert set(reader.summary.candidates) == {
        "clever / short",
        "clever / polite",
        "parrot / short",
        "parrot / polite",
    }
    assert next(iter(reader.queries())).text == "What is the capital of France?"


def test_retrieved_context_is_the_responses_own() -> None:
    """Contexts of DeepEval and ragas are shown with the response, not with the query."""
    for name in ("deepeval/cases.json", "deepeval/cases.csv", "ragas/single.jsonl"):
        response = next(iter(opened(PEERS / name).responses()))
        assert response.context is not None
        assert any("Its capital is Paris" in passage for passage in response.context)
        assert not next(iter(opened(PEERS / name).queries())).history


def test_arena_hard_games_need_a_baseline(tmp_path: Path) -> None:
    """With a baseline, both games are votes, with sides swapped in the second."""
    folder = made("arena_hard", tmp_path)
    reader = opened(folder, baseline="small")
    votes = list(reader.votes())
    assert [(vote.candidate_a, vote.candidate_b, vote.winner) for vote in votes] == [
        ("small", "large", "a"),
        ("large", "small", "b"),
    ]
    assert reader.summary.unused == 1


def test_wildbench_scores_are_labels(tmp_path: Path) -> None:
    """A score of a response that a result file has is a label, not a second response."""
    reader = opened(made("wildbench", tmp_path))
    assert [label.value for label in reader.labels()] == [7.0]
    assert [len(each.items) for each in reader.checklists()] == [2, 2]


def test_pairs_are_votes(tmp_path: Path) -> None:
    """The chosen response wins; a winner is found by its word; same texts are skipped."""
    reader = opened(made("preference_pairs", tmp_path))
    assert {vote.winner for vote in reader.votes()} == {"a"}
    assert "both responses are the same text" in reader.summary.skipped
    other = opened(made("arena_votes", tmp_path))
    assert [vote.winner for vote in other.votes()] == ["b", "tie"]


def test_batch_without_its_input_is_explained(tmp_path: Path) -> None:
    """An output file alone names what is missing."""
    folder = made("openai_batch", tmp_path)
    with pytest.raises(BenchmarkError, match="no request has this custom_id") as refused:
        list(opened(folder / "batch_output.jsonl").queries())
    assert "input file" in refused.value.hint


def test_traces_keep_their_ids(tmp_path: Path) -> None:
    """Examples of traces carry the ids under which scores are written back."""
    reader = opened(made("langfuse", tmp_path))
    first = next(iter(reader.examples()))
    assert first.source is not None  # type: ignore[union-attr]
    assert first.source.trace == "t-small-0"  # type: ignore[union-attr]
    spans = opened(PEERS / "otel_genai.jsonl")
    ids = [each.source.response for each in spans.examples() if hasattr(each, "source")]
    assert ids[0] == "small-0"
