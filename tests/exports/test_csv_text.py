"""CSV round-trips, and no text cell is a formula."""

from __future__ import annotations

import csv
import io

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketeval.text import csv_cell, csv_text, disarm

FORMULAS = [
    "=1+1", "+1", "-1", "@SUM(1)", "\t=1", "\r=1", "\n=1", "  =1", "'=1", '"=1', " '\"+1",
    "\uff1d1", "\u00a0=1", "\x00=1", "\ufeff=1", "\u200b=1", "\x1b\u202e '=1", "\u00ad@x",
]  # fmt: skip


@pytest.mark.parametrize("text", FORMULAS)
def test_formulas_get_an_apostrophe(text: str) -> None:
    """Also after spaces, quotes and invisible characters, and with full-width signs."""
    assert disarm(text) == f"'{text}"
    for raw, expected in ((False, f"'{text}"), (True, text)):
        cells = csv.reader(io.StringIO(csv_cell(text, raw=raw), newline=""), strict=True)
        assert next(cells) == [expected]


@pytest.mark.parametrize(
    "text", ["gpt-4", "a=b", "x@y", "", "1-2", "'quoted'", "5", "\ufeffa=b", "\x00"]
)
def test_harmless_text_is_unchanged(text: str) -> None:
    """Only formulas are escaped."""
    assert disarm(text) == text


def test_numbers_stay_numbers() -> None:
    """A negative number is not a formula; missing values are empty."""
    cells = [csv_cell(x) for x in (-1.5, -3, 72.0, 1e-9, None, float("nan"))]
    assert cells == ["-1.5", "-3", "72", "1e-09", "", ""]


@given(st.lists(st.tuples(st.text(), st.text()), min_size=1, max_size=5))
def test_any_text_round_trips(rows: list[tuple[str, str]]) -> None:
    """An RFC 4180 reader gets the same cells."""
    columns = [pa.array(list(column), pa.string()) for column in zip(*rows, strict=True)]
    table = pa.table(columns, names=["a", "b"])
    text = "".join(csv_text(["a", "b"], [table]))
    found = list(csv.reader(io.StringIO(text, newline="")))
    assert found == [["a", "b"], *([disarm(a), disarm(b)] for a, b in rows)]


def test_cells_with_semicolons_are_quoted() -> None:
    """Spreadsheets in many locales split at semicolons."""
    assert csv_cell("x;=1+1") == '"x;=1+1"'
