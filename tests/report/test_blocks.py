"""Blocks hold the run's data in the encoding of the contract."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

from rocketeval.report import blocks as module
from rocketeval.report.blocks import ANSWERS, SCORES, TEXTS, encoded, served_detail

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
