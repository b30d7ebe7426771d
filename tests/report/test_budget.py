"""A page stays within its bytes, gives them to the queries that matter, and says what is left."""

from __future__ import annotations

import gzip
import json

import pytest

from rocketeval.report import blocks as source_module
from rocketeval.report.blocks import ANSWERS, SCORES, TEXTS, embedded_size, fit
from rocketeval.report.model import MissingNote
from rocketeval.report.page import embedded_page

from .conftest import MadeUp, MakeSource

TEXT = 3_000


def test_with_room_everything_is_there(make_source: MakeSource) -> None:
    """A small run is whole in its file, and nothing is said to be left out."""
    source = make_source(length=TEXT)
    fitted = fit(source, 1_000_000)
    assert set(fitted.detail) == {TEXTS}
    assert fitted.head.losses == source.head.losses
    assert json.loads(gzip.decompress(fitted.made["queries"]))["detail"] == [TEXTS] * 3


@pytest.mark.parametrize("room", [11_000, 14_000, 20_000, 60_000])
def test_blocks_keep_within_their_room(make_source: MakeSource, room: int) -> None:
    """Texts go first to the last queries, which divide the candidates most."""
    fitted = fit(make_source(queries=10, length=TEXT), room)
    assert sum(map(embedded_size, fitted.made.values())) <= room
    detail = fitted.detail.tolist()
    assert detail == sorted(detail)
    assert set(detail) == ({TEXTS} if room == 60_000 else {TEXTS, ANSWERS})


def test_what_is_left_out_is_counted(make_source: MakeSource) -> None:
    """Not as lost: the run has it."""
    fitted = fit(make_source(queries=10, length=TEXT), 14_000)
    without = int((fitted.detail < TEXTS).sum())
    loss = fitted.head.losses[-1]
    assert (loss.count, loss.of, loss.lost) == (without, 10, False)
    assert loss.what.startswith("queries without response texts in this file")
    assert 0 < without < 10


def test_limits_of_scores_and_answers_are_said(
    make_source: MakeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A query may have only its line, or only its scores, in the file."""
    monkeypatch.setattr(source_module, "MOST_SCORES", 4)
    monkeypatch.setattr(source_module, "MOST_ANSWERS", 4)
    fitted = fit(make_source(), 1_000_000)
    assert fitted.detail.tolist() == [0, SCORES, TEXTS]
    assert [loss.count for loss in fitted.head.losses[1:]] == [2, 2, 1]
    assert list(fitted.made)[-1] == "query-2"


def test_a_query_too_long_for_the_page_does_not_keep_others_out(make_source: MakeSource) -> None:
    """The most divisive query is huge: the next ones still get their texts."""
    source = make_source(queries=4, length=TEXT)
    assert isinstance(source.content, MadeUp)
    source.content.lengths[3] = 10 * TEXT
    assert fit(source, 25_000).detail.tolist() == [TEXTS, TEXTS, TEXTS, ANSWERS]


def test_a_huge_query_does_not_take_the_detail_of_later_ones(make_source: MakeSource) -> None:
    """The most divisive query is a book: it alone is left with its scores."""
    source = make_source(queries=20, length=0)
    assert isinstance(source.content, MadeUp)
    source.content.query_lengths[19] = 60_000
    assert fit(source, 60_000).detail.tolist() == [TEXTS] * 19 + [SCORES]


def test_a_long_query_counts_once(make_source: MakeSource) -> None:
    """Only its items stand in the file a second time, not its text."""
    source = make_source(queries=1, length=0)
    assert isinstance(source.content, MadeUp)
    source.content.query_lengths[0] = 20_000
    assert fit(source, 50_000).detail.tolist() == [TEXTS]


def test_responses_are_read_a_few_times_and_not_for_every_query(make_source: MakeSource) -> None:
    """Every reading passes over all responses of the run."""
    source = make_source(queries=200, length=100)
    fit(source, 10_000_000)
    assert isinstance(source.content, MadeUp)
    assert source.content.readings <= 3


def test_the_whole_page_keeps_within_its_bytes(make_source: MakeSource) -> None:
    """Program, style and head count too."""
    small = len(embedded_page(make_source(queries=1, length=0)).encode())
    page = embedded_page(make_source(queries=50, length=TEXT), small + 30_000)
    assert len(page.encode()) <= small + 30_000
    assert "queries without response texts in this file" in page


def test_a_loss_is_loud_unless_told_otherwise() -> None:
    """A new loss cannot be forgotten to be one."""
    assert MissingNote("x", 1).lost
