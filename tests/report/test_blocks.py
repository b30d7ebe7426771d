"""Blocks hold the run's data in the encoding of the contract."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

import rocketeval
from rocketeval.report import blocks as module
from rocketeval.report.blocks import ANSWERS, SCORES, TEXTS, encoded, served_detail
from rocketeval.store.run import RunStore
from rocketeval.view.provisional import final_figures
from support.make import make_config, write_jsonl

from .conftest import MakeSource


def opened(block: bytes | None) -> bytes:
    assert block is not None
    return gzip.decompress(block)


def test_scores_and_answers_are_binary_tables(make_source: MakeSource) -> None:
    """Float32 scores and Uint16 answers, little-endian, query by query."""
    source = make_source()
    scores = np.frombuffer(opened(source.block("scores")), "<f4").reshape(3, 2)
    assert scores.tolist() == [[5.0, 5.0], [5.0, 6.0], [5.0, 7.0]]
    answers = np.frombuffer(opened(source.block("answers")), "<u2").reshape(3, 2, 2)
    assert answers[0].tolist() == [[15000, 65535], [60000, 0]]


def test_probabilities_differ_from_the_code_for_unanswered() -> None:
    """The largest probability is below the code."""
    assert encoded(np.array([0.0, 1.0])).tolist() == [0, 60000]


@pytest.mark.parametrize(
    "name", ["query-3", "query--1", "query-1e0", "query-", "query-²", "query-" + "9" * 5000, "x"]
)
def test_unknown_block_names_give_none(make_source: MakeSource, name: str) -> None:
    """A visitor of the server can send any name."""
    assert make_source().block(name) is None


def test_blocks_are_reproducible(make_source: MakeSource) -> None:
    """The gzip header has no timestamp."""
    assert make_source().block("query-1") == make_source().block("query-1")


def test_limits_favor_queries_with_the_largest_spread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of three queries get scores; the one with the largest spread gets answers."""
    monkeypatch.setattr(module, "MOST_SCORES", 4)
    monkeypatch.setattr(module, "MOST_ANSWERS", 7)
    scores = np.array([[5.0, 5.5], [5.0, 9.0], [5.0, 5.0]])
    assert served_detail(scores, np.full(3, 2)).tolist() == [SCORES, TEXTS, 0]


def test_a_query_beyond_the_limits_has_its_own_cells(
    make_source: MakeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A served page can open any query."""
    monkeypatch.setattr(module, "MOST_ANSWERS", 4)
    source = make_source()
    assert source.places(ANSWERS) == [2]
    thin, full = (json.loads(opened(source.block(f"query-{place}"))) for place in (0, 2))
    assert thin["cells"] == {"scores": [5.0, 5.0], "answers": [[0.25, None], [1.0, 0.0]]}
    assert full["cells"] is None
    assert thin["texts"][1] is None


def test_contexts_are_shown_with_the_texts(tmp_path: Path) -> None:
    """The query's passages, and those of a candidate with its own; no keys without any."""
    config = make_config(tmp_path)
    queries = [{"id": q, "text": f"Why the {q}?"} for q in ("sky", "sea", "sun")]
    queries[0]["context"] = ["First.", "<b>Second.</b>"]  # type: ignore[assignment]
    write_jsonl(tmp_path / "benchmark" / "queries.jsonl", queries)
    rows = [{"query_id": q, "text": f"right explains the {q}"} for q in ("sky", "sea", "sun")]
    rows[1]["context"] = ["Its own."]  # type: ignore[assignment]
    write_jsonl(tmp_path / "benchmark" / "responses" / "right.jsonl", rows)
    source = final_figures(RunStore(rocketeval.run(config).path)).source
    column = [one.name for one in source.head.candidates].index("right")
    sky, sea, sun = (json.loads(opened(source.block(f"query-{place}"))) for place in range(3))
    assert (sky["context"], sea["contexts"]) == (queries[0]["context"], [[column, ["Its own."]]])
    assert not {"context", "contexts"} & sun.keys()
    assert "context" not in json.loads(opened(source.query_block(0, texts=False)))
