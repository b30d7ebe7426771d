"""Excel files written by openpyxl: what is read, and what typical mistakes say."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from datetime import datetime, time
from pathlib import Path
from typing import Any

import pytest

from rocketeval.benchmarks.data import DataBenchmark
from rocketeval.benchmarks.opened import open_data
from rocketeval.errors import RocketEvalError
from support.needs import need

ROWS: list[list[Any]] = [
    ["question", "model", "output"],
    ["What is 1?", "a", "one"],
    ["What is 1?", "b", "two"],
    ["What is 2?", "a", "two"],
    ["What is 2?", "b", "three"],
]
HEADER = ROWS[0]
Change = Callable[[Any, Any], None]


@pytest.fixture(autouse=True)
def package() -> None:
    """The real openpyxl."""
    need("openpyxl", "Excel files need openpyxl")


def book(path: Path, rows: list[list[Any]], change: Change | None = None) -> Path:
    """Write an Excel file; `change` gets the workbook and its sheet."""
    import openpyxl

    made = openpyxl.Workbook()
    made.active.title = "Answers"
    for row in rows:
        made.active.append(row)
    if change is not None:
        change(made, made.active)
    made.save(path)
    return path


def more(title: str, rows: list[list[Any]], state: str = "visible") -> Change:
    """Add another sheet."""

    def change(made: Any, _: Any) -> None:
        sheet = made.create_sheet(title)
        sheet.sheet_state = state
        for row in rows:
            sheet.append(row)

    return change


def merged(_: Any, sheet: Any) -> None:
    """Merge two questions, as people do to group rows."""
    sheet.merge_cells("A2:A3")


def formula(place: str) -> Change:
    """Put a formula that no program has computed yet, with a header for a new column."""

    def change(_: Any, sheet: Any) -> None:
        if place == "D2":
            sheet["D1"] = "length"
        if place == "D3":
            sheet["D1"] = "Human Score"
        sheet[place] = "=3+4"

    return change


def texts(path: Path, **options: object) -> list[str]:
    """Return the responses in a file."""
    reader = open_data(str(path), None, options).benchmark
    assert isinstance(reader, DataBenchmark)
    found = reader.summary
    assert found.rows == found.used + found.unused
    return [response.text for response in reader.responses()]


@pytest.mark.parametrize(
    ("rows", "change", "expected"),
    [
        (ROWS, None, ["one", "two", "two", "three"]),
        ([[None, None, None], *ROWS], None, ["one", "two", "two", "three"]),
        (ROWS, more("Notes", []), ["one", "two", "two", "three"]),
        (ROWS, more("Old", ROWS, "hidden"), ["one", "two", "two", "three"]),
        ([HEADER, ["q?", "a", 4], ["q?", "b", 4.5]], None, ["4", "4.5"]),
        (
            [HEADER, ["q?", "a", datetime(2024, 1, 2)], ["q?", "b", time(1, 2)]],
            None,
            ["2024-01-02", "01:02:00"],
        ),
        ([*ROWS, ["What is 3?", "a", None]], None, ["one", "two", "two", "three"]),
        ([*ROWS[:2], [None] * 3, *ROWS[2:]], None, ["one", "two", "two", "three"]),
        (ROWS, formula("D2"), ["one", "two", "two", "three"]),
    ],
    ids=[
        "long", "blank_first_row", "empty_sheet", "hidden_sheet", "numbers", "dates",
        "no_response", "blank_row", "formula_in_an_unused_column",
    ],
)  # fmt: skip
def test_what_is_read(
    rows: list[list[Any]], change: Change | None, expected: list[str], tmp_path: Path
) -> None:
    """Blank rows and hidden sheets are no data; every other row is used or counted."""
    assert texts(book(tmp_path / "answers.xlsx", rows, change)) == expected


def not_a_zip(path: Path) -> None:
    """Give text the suffix of Excel."""
    path.write_text("question,output\n1,2\n")


def cut_off(path: Path) -> None:
    """Keep the first half of the file, as after a broken download."""
    path.write_bytes(path.read_bytes()[:3000])


def old_format(path: Path) -> None:
    """Start like an .xls file, or one with a password."""
    path.write_bytes(bytes.fromhex("d0cf11e0a1b11ae1") + b"\0" * 600)


def other_zip(path: Path) -> None:
    """Put another archive under that name."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.txt", "x")


def broken_sheet(path: Path) -> None:
    """Cut the XML of the sheet."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content[:200] if name.endswith("sheet1.xml") else content)


MISTAKES: dict[str, tuple[list[list[Any]], Change | None, Callable[[Path], None] | None, str]] = {
    "csv_renamed": (ROWS, None, not_a_zip, "rename it to .csv"),
    "cut_off": (ROWS, None, cut_off, "not a readable Excel file"),
    "empty_file": (ROWS, None, lambda path: path.write_bytes(b"") and None, "not a readable"),
    "old_format": (ROWS, None, old_format, "without a password"),
    "other_zip": (ROWS, None, other_zip, "Content_Types"),
    "broken_sheet": (ROWS, None, broken_sheet, "is damaged"),
    "two_sheets": (ROWS, more("More", ROWS), None, "2 sheets with rows ('Answers', 'More')"),
    "no_rows": (ROWS[:1], None, None, "has no rows below a header"),
    "title": ([["My answers", None, None], *ROWS], None, None, "a title above the header"),
    "same_column": ([["question", "output", "output"], ["a", "b", "c"]], None, None, "'output'"),
    "merged_cells": (ROWS, merged, None, "answers.xlsx:3: column 'question'"),
    "excel_error": ([*ROWS[:4], ["What is 2?", "b", "#REF!"]], None, None, "'output': #REF!"),
    "cut_text": ([*ROWS[:4], ["What is 2?", "b", "x" * 32767]], None, None, "probably cut"),
    "no_query": ([["x1", "model", "output"], *ROWS[1:]], None, None, "--column query=COLUMN"),
    "no_candidate": (
        [["question", None, "output"], *ROWS[1:]], None, None, "--column candidate=COLUMN",
    ),
    "formula_response": (ROWS, formula("C2"), None, "a formula has no stored value"),
    "formula_label": (ROWS, formula("D3"), None, "answers.xlsx:3: column 'Human Score'"),
    "empty_query": ([*ROWS, [None, "a", "x"]], None, None, "answers.xlsx:6: column 'question'"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_explained(name: str, tmp_path: Path) -> None:
    """The message names the file or the row, and what to do; never a traceback."""
    rows, change, damage, words = MISTAKES[name]
    path = book(tmp_path / "answers.xlsx", rows, change)
    if damage is not None:
        damage(path)
    with pytest.raises(RocketEvalError) as refused:
        texts(path)
    assert words in str(refused.value)
    assert refused.value.hint


WIDE: list[list[Any]] = [
    ["ask", "v1", "v2", "v3", "length", "points"],
    ["What is 1?", "one", "un", "eins", 3, 1],
    ["What is 2?", "two", "deux", "zwei", 3, 2],
    ["What is 3?", "three", "trois", "drei", 5, 3],
    ["What is 4?", "four", "quatre", "vier", 4, 4],
]


def formulas(*columns: str) -> Change:
    """Put formulas that no program has computed yet into all rows of columns."""

    def change(_: Any, sheet: Any) -> None:
        for column in columns:
            for row in range(2, len(WIDE) + 1):
                sheet[f"{column}{row}"] = "=3+4"

    return change


@pytest.mark.parametrize(
    ("column", "options"),
    [
        ("A", {"columns": {"query": "ask", "response": "v1"}}),
        ("B", {"columns": {"query": "ask", "response": "v1"}}),
        ("C", {"columns": {"query": "ask", "response": "v1", "candidate": "v2"}}),
        ("D", {"columns": {"query": "ask", "response": "v1", "context": "v3"}}),
        ("F", {"columns": {"query": "ask", "response": "v1", "label": "points"}}),
        ("C", {"columns": {"query": "ask"}, "candidates": ["v1", "v2"]}),
        ("D", {"columns": {"query": "ask"}}),
    ],
    ids=["query", "response", "candidate", "context", "label", "wide", "wide_by_content"],
)
def test_formulas_in_the_columns_that_are_read(
    column: str, options: dict[str, Any], tmp_path: Path
) -> None:
    """A formula without a stored value is named in every column that is read, whatever its name."""
    name = WIDE[0]["ABCDEF".index(column)]
    path = book(tmp_path / "answers.xlsx", WIDE, formulas(column))
    with pytest.raises(RocketEvalError) as refused:
        texts(path, **options)
    assert "a formula has no stored value (4 rows)" in str(refused.value)
    assert f"answers.xlsx:2: column {name!r}" in str(refused.value)
    assert "save it" in str(refused.value.hint)

    def one(_: Any, sheet: Any) -> None:
        sheet[f"{column}3"] = "=3+4"

    path = book(tmp_path / "answers.xlsx", WIDE, one)
    assert texts(path, **options, bad_rows="skip")[0] == "one"
    with pytest.raises(RocketEvalError, match=r"answers\.xlsx:3: column"):
        texts(path, **options)


@pytest.mark.parametrize("column", ["A", "B", "D"])
def test_formulas_in_preference_pairs(column: str, tmp_path: Path) -> None:
    """A formula without a stored value is not called empty; one that is not read is ignored."""
    rows = [["prompt", "response_a", "response_b", "winner", "length"]]
    rows += [[each[0], each[1], each[2], "a", 1] for each in WIDE[1:]]
    path = book(tmp_path / "pairs.xlsx", rows, formulas(column))
    with pytest.raises(RocketEvalError, match=r"pairs\.xlsx:2.*column") as refused:
        texts(path)
    assert "a formula has no stored value" in str(refused.value)
    path = book(tmp_path / "pairs.xlsx", rows, formulas("E"))
    assert len(texts(path)) == 8


def test_formulas_where_no_column_looks_like_a_response(tmp_path: Path) -> None:
    """The hint names the columns without values; other formulas are not read."""
    rows = [[ask, one, length] for ask, one, _, _, length, _ in WIDE]
    path = book(tmp_path / "answers.xlsx", [["ask", "x", "length"], *rows[1:]], formulas("B"))
    with pytest.raises(RocketEvalError) as refused:
        texts(path, columns={"query": "ask"})
    assert "Formulas in 'x' have no stored value" in str(refused.value.hint)
    path = book(tmp_path / "answers.xlsx", WIDE, formulas("E"))
    assert len(texts(path, columns={"query": "ask"})) == 12
