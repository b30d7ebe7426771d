"""CSV is read back as it was, and no cell of text is a formula."""

from __future__ import annotations

import csv
import io

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketeval.csv_text import csv_cell, csv_text, disarm

FORMULAS = [
    "=1+1", "+1", "-1", "@SUM(1)", "\t=1", "\r=1", "\n=1", "  =1", "'=1", '"=1', " '\"+1",
    "\uff1d1", "\u00a0=1", "\x00=1", "\ufeff=1", "\u200b=1", "\x1b\u202e '=1", "\u00ad@x",
]  # fmt: skip


@pytest.mark.parametrize("text", FORMULAS)
def test_a_text_that_would_compute_gets_an_apostrophe(text: str) -> None:
    """Also behind spaces, quotes and unseen characters, and in full-width signs."""
    assert disarm(text) == f"'{text}"
    for raw, expected in ((False, f"'{text}"), (True, text)):
        cells = csv.reader(io.StringIO(csv_cell(text, raw=raw), newline=""), strict=True)
        assert next(cells) == [expected]


@pytest.mark.parametrize(
    "text", ["gpt-4", "a=b", "x@y", "", "1-2", "'quoted'", "5", "\ufeffa=b", "\x00"]
)
def test_harmless_text_is_left_alone(text: str) -> None:
    """Nobody's name is changed for nothing."""
    assert disarm(text) == text


def test_numbers_stay_numbers() -> None:
    """A negative figure is no formula; what is missing is empty."""
    cells = [csv_cell(x) for x in (-1.5, -3, 72.0, 1e-9, None, float("nan"))]
    assert cells == ["-1.5", "-3", "72", "1e-09", "", ""]


@given(st.lists(st.tuples(st.text(), st.text()), min_size=1, max_size=5))
def test_any_text_is_read_back(rows: list[tuple[str, str]]) -> None:
    """Whatever stands in a cell, a reader of RFC 4180 gets the same cells."""
    columns = [pa.array(list(column), pa.string()) for column in zip(*rows, strict=True)]
    table = pa.table(columns, names=["a", "b"])
    text = "".join(csv_text(["a", "b"], [table]))
    found = list(csv.reader(io.StringIO(text, newline="")))
    assert found == [["a", "b"], *([disarm(a), disarm(b)] for a, b in rows)]


def test_a_semicolon_does_not_open_a_cell_elsewhere() -> None:
    """Spreadsheets of many countries split at semicolons."""
    assert csv_cell("x;=1+1") == '"x;=1+1"'
