"""From a ledger in any order to one table of scores."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rocketeval.config import ScorerConfig
from rocketeval.engines.scripted import exact_answer
from rocketeval.records import Answer, Gold, Judgment, Status
from rocketeval.scoring.answers import AnswerTable
from rocketeval.scoring.crossfit import (
    Scored,
    align_answers,
    count_statuses,
    score_answers,
    score_table,
)
from rocketeval.scoring.mean import MeanScorer
from rocketeval.store.ledger import Ledger, read_tables


def scored(answers: AnswerTable) -> Scored:
    """Return the mean scores of a table."""
    return score_answers(answers, Gold(), ScorerConfig())


CELLS = [(f"q{query}", f"c{candidate}") for query in range(20) for candidate in range(5)]


def key_of(cell: tuple[str, str]) -> str:
    """Return the key of a cell's judgment."""
    return f"{cell[0]}/{cell[1]}"


def ledger_rows() -> list[tuple[str, list[float | None]]]:
    """Return answers of all cells: three to twelve items, some missing, some cells unjudged."""
    chance = random.Random(0)
    rows: list[tuple[str, list[float | None]]] = []
    for number, cell in enumerate(CELLS):
        if number % 11 == 0:
            continue
        items = 3 + int(cell[0][1:]) % 10
        answers = [None if chance.random() < 0.1 else chance.random() for _ in range(items)]
        rows.append((key_of(cell), answers))
    return rows


def tables(rows: list[tuple[str, list[float | None]]], size: int) -> list[pa.Table]:
    """Return the rows as ledger tables of `size` rows each."""
    return [
        pa.table(
            {
                "key": pa.array([key for key, _ in rows[start : start + size]], pa.string()),
                "p_yes": pa.array(
                    [answers for _, answers in rows[start : start + size]],
                    pa.list_(pa.float64()),
                ),
            }
        )
        for start in range(0, len(rows), size)
    ]


def align(judgments: list[pa.Table]) -> AnswerTable:
    """Return the answers of all cells."""
    queries, candidates = zip(*CELLS, strict=True)
    return align_answers(queries, candidates, [key_of(cell) for cell in CELLS], judgments)


def written(answers: AnswerTable, path: Path) -> bytes:
    """Return the score table as bytes of its file."""
    keys = [key_of(cell) for cell in CELLS]
    table = score_table(answers, scored(answers), keys)
    pq.write_table(table, path, compression="zstd", write_page_checksum=True)
    return path.read_bytes()


@pytest.mark.parametrize("seed", range(5))
def test_ledger_order_does_not_matter(tmp_path: Path, seed: int) -> None:
    """Shuffled rows in parts of any size give the same score file, byte by byte."""
    rows = ledger_rows()
    expected = written(align(tables(rows, len(rows))), tmp_path / "one.parquet")
    random.Random(seed).shuffle(rows)
    shuffled = align(tables(rows, 1 + 13 * seed))
    assert written(shuffled, tmp_path / "two.parquet") == expected


def test_answers_are_aligned_with_their_cells() -> None:
    """Each cell has its answers in item order; a missing answer is NaN."""
    aligned = align(tables(ledger_rows(), 7)[::-1])
    answers = dict(ledger_rows())
    assert len(aligned) == len(CELLS)
    for row, cell in enumerate(CELLS):
        found = aligned.p_yes[aligned.offsets[row] : aligned.offsets[row + 1]]
        expected = np.array(answers.get(key_of(cell), []), dtype=np.float64)
        np.testing.assert_array_equal(found, expected)
    assert aligned.items[0] == 0
    assert aligned.answered[1] == sum(answer is not None for answer in answers["q0/c1"])


def test_two_cells_can_share_one_judgment() -> None:
    """Candidates with the same text have the same key and the same answers."""
    shared = align_answers(
        ["q", "q", "q"], ["a", "b", "c"], ["k", "k", None], tables([("k", [0.5, 1.0])], 1)
    )
    np.testing.assert_array_equal(shared.p_yes, [0.5, 1.0, 0.5, 1.0])
    assert shared.items.tolist() == [2, 2, 0]


def test_judgments_of_other_runs_are_ignored() -> None:
    """Other keys in the ledger change nothing."""
    aligned = align_answers(["q"], ["a"], ["k"], tables([("x", [0.1]), ("k", [0.9])], 1))
    assert aligned.p_yes.tolist() == [0.9]


@pytest.mark.parametrize("judgments", [[], tables([("other", [0.5])], 1)])
def test_empty_ledger_gives_missing_scores(judgments: list[pa.Table]) -> None:
    """Cells have no answers, and scores are null."""
    aligned = align_answers(["q", "r"], ["a", "a"], ["k", None], judgments)
    table = score_table(aligned, scored(aligned), ["k", None])
    assert table["score"].to_pylist() == [None, None]
    assert table["items"].to_pylist() == [0, 0]


def test_no_cells_give_an_empty_table() -> None:
    """A run without responses has an empty table with all columns."""
    aligned = align_answers([], [], [], tables([("k", [0.5])], 1))
    table = score_table(aligned, scored(aligned), [])
    assert table.num_rows == 0
    assert table.column_names == [
        "query_id",
        "candidate",
        "score",
        "basis",
        "items",
        "answered",
        "judgment",
    ]


def test_unanswered_judgment_has_items_but_no_score() -> None:
    """The missing answers are visible."""
    aligned = align_answers(["q"], ["a"], ["k"], tables([("k", [None, None])], 1))
    table = score_table(aligned, scored(aligned), ["k"])
    assert table.to_pylist() == [
        {
            "query_id": "q",
            "candidate": "a",
            "score": None,
            "basis": "unsupervised",
            "items": 2,
            "answered": 0,
            "judgment": "k",
        }
    ]


def test_a_real_ledger_is_read(tmp_path: Path) -> None:
    """Parquet parts and a growing journal give every answer and count every status."""
    answers = (exact_answer(0.25), Answer(Status.HIDDEN), exact_answer(1.0))
    ledger = Ledger(tmp_path, b"judge", roll_rows=2)
    for number in range(3):
        ledger.append(Judgment(bytes([number]) * 16, "q", f"c{number}", answers))
    keys = [(bytes([number]) * 16).hex() for number in range(3)]
    aligned = align_answers(
        ["q"] * 3, ["c0", "c1", "c2"], keys, read_tables(tmp_path, ["key", "p_yes"])
    )
    assert np.isnan(aligned.p_yes).sum() == 3
    assert MeanScorer((0.0, 1.0)).predict(aligned).tolist() == [0.625] * 3
    counted = count_statuses(
        keys[:2], read_tables(tmp_path, ["key"]), read_tables(tmp_path, ["status"])
    )
    assert counted == {"hidden": 2, "ok": 4}
    ledger.close()
