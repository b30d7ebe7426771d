"""The gallery: every run is computed from stored judgments, and its page says what comes out."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from build_gallery import GALLERY, RUNS, comment_of_gate, finish, ranking_in_words

from rocketeval.grading.schedule import cells
from rocketeval.store.run import RunStore

PAGE = (GALLERY.parent / "docs" / "gallery.md").read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is asked of a judge: a connection fails the test."""

    def refuse(_: socket.socket, address: object) -> None:
        pytest.fail(f"a connection to {address}")

    monkeypatch.setattr(socket.socket, "connect", refuse)


def section(name: str) -> str:
    """Return the part of the page that links to a report."""
    parts = re.split(r"^## ", PAGE, flags=re.MULTILINE)
    return next(part for part in parts if f"](gallery/{name}.html)" in part)


@pytest.mark.parametrize("name", RUNS)
async def test_run_follows_from_stored_judgments(name: str, tmp_path: Path) -> None:
    """Every response has a judgment, and the page states the ranking that follows."""
    outcome = await finish(RUNS[name], tmp_path)
    store = RunStore(outcome.path)
    every = list(cells(store.inputs, store.judge().digest))
    assert {cell.key for cell in every} <= store.finished()
    assert f"Ranking: {ranking_in_words(outcome)}." in " ".join(section(name).split())
    report = outcome.report.read_text(encoding="utf-8")
    assert all(row.candidate in report for row in outcome.ranking.rows)


async def test_gate_comment_is_on_the_page(tmp_path: Path) -> None:
    """The gate fails, and the page shows its comment word for word."""
    comment = await comment_of_gate(tmp_path)
    assert comment.startswith("### RocketEval gate failed\n")
    assert comment in section("regression")


def test_page_quotes_the_penalty_as_judged() -> None:
    """The mean probability of yes on the penalty of RAG answers is what the page says."""
    rows = pq.read_table(GALLERY / "rag" / "judgments.parquet").to_pylist()
    for name in ("chatty", "grounded"):
        found = [row["p_yes"][-1] for row in rows if row["candidate"] == name]
        assert f"{sum(found) / len(found):.2f} for `{name}`" in section("rag")


@pytest.mark.parametrize("file", sorted({*sum((r.judgments for r in RUNS.values()), ())}))
def test_stored_judgments_hold_no_texts(file: str) -> None:
    """A file of judgments has keys, names and numbers only."""
    table = pq.read_table(GALLERY / file)
    assert set(table.column_names) == {
        *("key", "query_id", "candidate", "method", "p_yes", "p_low", "p_high", "status")
    }
