"""Fixtures with the recorded MT-Bench judgments and votes, if available."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rocketeval.records import Vote

JUDGMENTS = "judgments_qwen2.5-coder-1.5b_turn1.jsonl.gz"


@pytest.fixture(scope="session", autouse=True)
def unsynced() -> Iterator[None]:
    """Skip fsync in this process: no test simulates a power cut. Subprocesses still sync."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


def shared_data() -> Path:
    """Return the folder of recorded data: `ROCKETEVAL_SHARED_DATA`, or next to the repository."""
    named = os.environ.get("ROCKETEVAL_SHARED_DATA")
    return Path(named) if named else Path(__file__).parents[2] / "shared" / "data"


def read_rows(name: str, folder: str = "mt_bench") -> list[dict[str, Any]]:
    """Return the rows of one file, by default of MT-Bench; skip the test if it is absent."""
    path = shared_data() / folder / name
    if not path.exists():
        pytest.skip(f"recorded data is absent ({folder}/{name}); set ROCKETEVAL_SHARED_DATA")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def read_votes(name: str) -> list[Vote]:
    """Return the first-turn votes of an MT-Bench file; order-dependent verdicts are ties."""
    winners: dict[str, Any] = {"model_a": "a", "model_b": "b"}
    winners |= {"tie": "tie", "tie (inconsistent)": "tie"}
    return [
        Vote(
            query_id=f"{row['question_id']}-1",
            candidate_a=row["model_a"],
            candidate_b=row["model_b"],
            winner=winners[row["winner"]],
            voter=row["judge"],
        )
        for row in read_rows(name)
        if row["turn"] == 1
    ]


@pytest.fixture(scope="session")
def mt_bench_votes() -> list[Vote]:
    """Return human votes on first turns."""
    return read_votes("human_votes.jsonl.gz")


@pytest.fixture(scope="session")
def mt_bench_verdicts() -> list[Vote]:
    """Return GPT-4's verdicts on the same pairs, first turns."""
    return read_votes("gpt4_pair_votes.jsonl.gz")


@pytest.fixture(scope="session")
def pandalm_pairs() -> list[dict[str, Any]]:
    """Return PandaLM's test set: pairs with the verdicts of three annotators."""
    return read_rows("testset_v1.jsonl.gz", "pandalm")


@pytest.fixture(scope="session")
def mt_bench_judgments() -> list[dict[str, Any]]:
    """Return a 1.5B judge's recorded first-turn probabilities for the six candidates with votes."""
    return read_rows(JUDGMENTS)


@pytest.fixture(scope="session")
def mt_bench_lengths() -> dict[tuple[str, str], float]:
    """Return the characters of every official first-turn response, by (query id, candidate)."""
    return {
        (f"{row['question_id']}-1", row["model"]): float(len(row["turns"][0]))
        for row in read_rows("answers_official32.jsonl.gz")
    }
