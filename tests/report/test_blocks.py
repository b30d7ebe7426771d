"""Blocks hold exactly what the run has, in the contract's encoding."""

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


def test_scores_and_answers_are_tables_of_numbers(make_source: MakeSource) -> None:
    """Float32 a score and Uint16 an answer, little-endian, query after query."""
    source = make_source()
    scores = np.frombuffer(opened(source.block("scores")), "<f4").reshape(3, 2)
    assert scores.tolist() == [[5.0, 5.0], [5.0, 6.0], [5.0, 7.0]]
    answers = np.frombuffer(opened(source.block("answers")), "<u2").reshape(3, 2, 2)
    assert answers[0].tolist() == [[15000, 65535], [60000, 0]]


def test_every_probability_has_its_own_number_of_a_missing_one() -> None:
    """The largest probability stays clear of the mark for no answer."""
    assert encoded(np.array([0.0, 1.0])).tolist() == [0, 60000]


@pytest.mark.parametrize(
    "name", ["query-3", "query--1", "query-1e0", "query-", "query-²", "query-" + "9" * 5000, "x"]
)
def test_there_is_no_block_of_another_name(make_source: MakeSource, name: str) -> None:
    """A server can ask for whatever a visitor sent."""
    assert make_source().block(name) is None


def test_the_same_block_has_the_same_bytes(make_source: MakeSource) -> None:
    """No time is written into it."""
    assert make_source().block("query-1") == make_source().block("query-1")


def test_limits_give_detail_to_the_most_divisive_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores for two of three queries, answers for one: the one that divides most."""
    monkeypatch.setattr(module, "MOST_SCORES", 4)
    monkeypatch.setattr(module, "MOST_ANSWERS", 7)
    scores = np.array([[5.0, 5.5], [5.0, 9.0], [5.0, 5.0]])
    assert served_detail(scores, np.full(3, 2)).tolist() == [SCORES, TEXTS, 0]


def test_a_query_beyond_the_limits_brings_its_own_cells(
    make_source: MakeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any query can be opened where a server stands behind the page."""
    monkeypatch.setattr(module, "MOST_ANSWERS", 4)
    source = make_source()
    assert source.places(ANSWERS) == [2]
    thin, full = (json.loads(opened(source.block(f"query-{place}"))) for place in (0, 2))
    assert thin["cells"] == {"scores": [5.0, 5.0], "answers": [[0.25, None], [1.0, 0.0]]}
    assert full["cells"] is None
    assert thin["texts"][1] is None
