"""A page stays within its size limit, favors divisive queries, and counts what is left out."""

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


def test_a_small_run_is_embedded_completely(make_source: MakeSource) -> None:
    """No note says that something is left out."""
    source = make_source(length=TEXT)
    fitted = fit(source, 1_000_000)
    assert set(fitted.detail) == {TEXTS}
    assert fitted.head.losses == source.head.losses
    assert json.loads(gzip.decompress(fitted.made["queries"]))["detail"] == [TEXTS] * 3


@pytest.mark.parametrize("room", [11_000, 14_000, 20_000, 60_000])
def test_blocks_stay_within_the_limit(make_source: MakeSource, room: int) -> None:
    """The last queries have the largest spread and get texts first."""
    fitted = fit(make_source(queries=10, length=TEXT), room)
    assert sum(map(embedded_size, fitted.made.values())) <= room
    detail = fitted.detail.tolist()
    assert detail == sorted(detail)
    assert set(detail) == ({TEXTS} if room == 60_000 else {TEXTS, ANSWERS})


def test_what_is_left_out_is_counted(make_source: MakeSource) -> None:
    """It does not count as lost, because the run has it."""
    fitted = fit(make_source(queries=10, length=TEXT), 14_000)
    without = int((fitted.detail < TEXTS).sum())
    loss = fitted.head.losses[-1]
    assert (loss.count, loss.of, loss.lost) == (without, 10, False)
    assert loss.what.startswith("queries without response texts in this file")
    assert 0 < without < 10


def test_limits_of_scores_and_answers_are_counted(
    make_source: MakeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A query may have only its line or only its scores in the file."""
    monkeypatch.setattr(source_module, "MOST_SCORES", 4)
    monkeypatch.setattr(source_module, "MOST_ANSWERS", 4)
    fitted = fit(make_source(), 1_000_000)
    assert fitted.detail.tolist() == [0, SCORES, TEXTS]
    assert [loss.count for loss in fitted.head.losses[1:]] == [2, 2, 1]
    assert list(fitted.made)[-1] == "query-2"


def test_a_query_with_huge_responses_does_not_block_others(make_source: MakeSource) -> None:
    """The other queries still get their texts."""
    source = make_source(queries=4, length=TEXT)
    assert isinstance(source.content, MadeUp)
    source.content.lengths[3] = 10 * TEXT
    assert fit(source, 25_000).detail.tolist() == [TEXTS, TEXTS, TEXTS, ANSWERS]


def test_a_huge_query_does_not_block_others(make_source: MakeSource) -> None:
    """Only the huge query is reduced to its scores."""
    source = make_source(queries=20, length=0)
    assert isinstance(source.content, MadeUp)
    source.content.query_lengths[19] = 60_000
    assert fit(source, 60_000).detail.tolist() == [TEXTS] * 19 + [SCORES]


def test_a_long_query_counts_once(make_source: MakeSource) -> None:
    """The file repeats only its items, not its text."""
    source = make_source(queries=1, length=0)
    assert isinstance(source.content, MadeUp)
    source.content.query_lengths[0] = 20_000
    assert fit(source, 50_000).detail.tolist() == [TEXTS]


def test_responses_are_read_in_few_passes(make_source: MakeSource) -> None:
    """Every pass reads all responses of the run."""
    source = make_source(queries=200, length=100)
    fit(source, 10_000_000)
    assert isinstance(source.content, MadeUp)
    assert source.content.readings <= 3


def test_the_whole_page_stays_within_the_limit(make_source: MakeSource) -> None:
    """Script, style and head count, too."""
    small = len(embedded_page(make_source(queries=1, length=0)).encode())
    page = embedded_page(make_source(queries=50, length=TEXT), small + 30_000)
    assert len(page.encode()) <= small + 30_000
    assert "queries without response texts in this file" in page


def test_missing_data_counts_as_lost_by_default() -> None:
    """A new kind of loss is not hidden by accident."""
    assert MissingNote("x", 1).lost
