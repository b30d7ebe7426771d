"""The real MT-Bench files and verbatim samples of native ones, if available."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from rocketeval.benchmarks.base import Benchmark, check_benchmark, open_benchmark
from rocketeval.benchmarks.load import load
from rocketeval.config import BenchmarkConfig


@pytest.fixture
def shared() -> Path:
    """The folder of recorded files; the test is skipped without it."""
    named = os.environ.get("ROCKETEVAL_SHARED_DATA")
    folder = Path(named) if named else Path(__file__).parents[3] / "shared" / "data"
    if not (folder / "mt_bench").is_dir():
        pytest.skip("recorded files are absent; set ROCKETEVAL_SHARED_DATA")
    return folder


def mt_bench(folder: Path, **options: Any) -> Benchmark:
    """A reader of MT-Bench's files in `folder`."""
    return open_benchmark(BenchmarkConfig(kind="mt_bench", path=folder, options=options))


def recorded(shared: Path) -> Benchmark:
    """The official answers, human votes and shared checklists."""
    return mt_bench(
        shared / "mt_bench",
        questions="questions.jsonl.gz",
        answers="answers_official32.jsonl.gz",
        references=None,
        votes="human_votes.jsonl.gz",
        checklists="checklists.jsonl.gz",
        ratings="elo.csv",
        ratings_column="arena_elo_2024_08_30",
    )


def test_the_counts_of_mt_bench(shared: Path) -> None:
    """80 questions of two turns, 32 models, 3355 votes, 1216 items, 21 ratings: as published."""
    found = recorded(shared)
    queries = list(found.queries())
    assert len(queries) == 160
    assert sum(query.reference is not None for query in queries) == 60
    by_candidate = Counter(response.candidate for response in found.responses())
    assert (len(by_candidate), set(by_candidate.values())) == (32, {160})
    votes = list(found.votes())
    assert (len(votes), len({vote.voter for vote in votes})) == (3355, 65)
    checklists = list(found.checklists())
    assert (len(checklists), sum(len(made.items) for made in checklists)) == (160, 1216)
    assert len(list(found.ratings())) == 21


def test_mt_bench_passes_the_public_check(shared: Path) -> None:
    """And the load stage."""
    found = recorded(shared)
    check_benchmark(found)
    loaded = load(found, BenchmarkConfig(path=shared))
    assert sum(1 for _ in loaded.responses()) == 5120
    assert sum(1 for _ in loaded.votes()) == 3355


def test_gpt4_labels(shared: Path) -> None:
    """41 models with 160 scores each, of which 26 could not be parsed."""
    labelled = mt_bench(
        shared / "mt_bench",
        questions="questions.jsonl.gz",
        answers="answers_gpt4labelled.jsonl.gz",
        scores="gpt4_single_scores.jsonl.gz",
    )
    labels = list(labelled.labels())
    assert len(labels) == 6560 - 26
    assert len({label.candidate for label in labels}) == 41
    assert {label.labeler for label in labels} == {"gpt-4", "gpt-4-turbo", "gpt-4o"}
    assert all(1 <= label.value <= 10 for label in labels)


def test_verbatim_fastchat_files(shared: Path, tmp_path: Path) -> None:
    """The first rows of FastChat's own files are read with the default options."""
    samples = shared / "native_samples"
    for source, target in {
        "question": "question",
        "model_answer.gpt-4": "model_answer/gpt-4",
        "reference_answer.gpt-4": "reference_answer/gpt-4",
        "model_judgment.gpt-4_single": "scores",
    }.items():
        path = tmp_path / f"{target}.jsonl"
        path.parent.mkdir(exist_ok=True)
        shutil.copy(samples / f"mtbench.{source}.jsonl", path)
    found = mt_bench(tmp_path, scores="scores.jsonl")
    check_benchmark(found)
    responses = list(found.responses())
    assert {response.candidate for response in responses} == {"gpt-4"}
    assert all(len(r.history or ()) == (2 if r.query_id.endswith("-2") else 0) for r in responses)
    assert {label.labeler for label in found.labels()} == {"gpt-4"}


def test_verbatim_scores_and_rankings(shared: Path, tmp_path: Path) -> None:
    """WildBench's score file and a ranking of the paper's repository are read unchanged."""
    samples = shared / "native_samples"
    scores = tmp_path / "score" / "gpt-4o"
    scores.mkdir(parents=True)
    shutil.copy(samples / "wildbench.eval_results.score.v2.json", scores / "some-model.json")
    shutil.copy(samples / "rocketeval.rankings.mt-bench_test.json", tmp_path / "rankings.json")
    found = open_benchmark(
        BenchmarkConfig(kind="rocketeval", path=tmp_path, options={"ratings": "rankings.json"})
    )
    labels = list(found.labels())
    assert labels
    assert all(1 <= label.value <= 10 for label in labels)
    assert "/" not in "".join(label.candidate for label in labels)
    ratings = {rating.candidate: rating.value for rating in found.ratings()}
    assert ratings["gpt-4o-mini"] == pytest.approx(1259.39, abs=0.01)
