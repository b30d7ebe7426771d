"""Rows of an Excel file: the visible sheet with rows, its first filled row as the header."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any, BinaryIO
from zipfile import BadZipFile, ZipFile

from rocketeval.benchmarks.cells import NO_VALUE, OPEN_AND_SAVE, snake
from rocketeval.benchmarks.columns import COLUMN_NAMES
from rocketeval.benchmarks.reading import Row
from rocketeval.benchmarks.row_files import BadRow, Rows, header_names
from rocketeval.errors import BenchmarkError

MOST_IN_A_CELL = 32_767
"""Characters that Excel keeps of a text."""
ERRORS = frozenset({"#DIV/0!", "#N/A", "#NAME?", "#NULL!", "#NUM!", "#REF!", "#VALUE!"})
NO_FILE = (
    "If it is text, rename it to .csv. Save an .xls file, or one with a password, as .xlsx without "
    "a password."
)
NOT_COMPUTED = "a formula without a stored value"
"""Stands for the value of such a cell."""
USED = frozenset(name for names in COLUMN_NAMES.values() for name in names)
"""Columns in which such a cell is a mistake. In others it is empty: readers that give a column
another meaning look at `Row.uncomputed`."""
Cells = Sequence[object]


def excel_rows(path: Path, name: str) -> Rows:
    """Yield the rows of an Excel file."""
    try:
        import openpyxl  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        raise BenchmarkError(
            f"{path.name} is an Excel file, and openpyxl is not installed.",
            hint="pip install openpyxl, or save the sheet as CSV in UTF-8.",
        ) from None
    # A file of our own, because openpyxl does not close one that it cannot read.
    with path.open("rb") as file:
        try:
            book = openpyxl.load_workbook(file, read_only=True, data_only=True)
        except (BadZipFile, KeyError, SyntaxError, ValueError) as error:
            reason = str(error).strip("\"'")
            raise BenchmarkError(
                f"{path.name} is not a readable Excel file: {reason}.", hint=NO_FILE
            ) from None
        try:
            sheet = _sheet(path, book)
            yield from _rows(path, name, _numbered(sheet, _formulas(path, file, sheet.title)))
        except (SyntaxError, BadZipFile, EOFError) as error:
            # ElementTree's ParseError is a SyntaxError.
            raise BenchmarkError(
                f"{path.name} is damaged: {error}.", hint="Open it in Excel and save it again."
            ) from None
        finally:
            book.close()


def _sheet(path: Path, book: Any) -> Any:
    """Return the one visible sheet with rows below its header."""
    visible = [sheet for sheet in book.worksheets if sheet.sheet_state == "visible"]
    sheets = [sheet for sheet in visible if sheet.max_row is None or sheet.max_row > 1]
    if not sheets:
        raise BenchmarkError(
            f"{path.name} has no rows below a header.",
            hint="The first filled row names the columns; each further row is a response.",
        )
    if len(sheets) > 1:
        found = ", ".join(repr(sheet.title) for sheet in sheets)
        raise BenchmarkError(
            f"{path.name} has {len(sheets)} sheets with rows ({found}); one is needed.",
            hint="Save the sheet to judge as its own file, or hide the others.",
        )
    return sheets[0]


def _formulas(path: Path, file: BinaryIO, title: str) -> Iterator[Cells] | None:
    """Return the rows of a sheet with formulas in place of values; None if it has no formula."""
    with ZipFile(file) as archive:
        sheets = [each for each in archive.namelist() if each.startswith("xl/worksheets/")]
        if any(_has_formula(archive, each) for each in sheets):
            return _written(path, title)
    return None


def _has_formula(archive: ZipFile, name: str) -> bool:
    with archive.open(name) as stream:
        before = b""
        while chunk := stream.read(1 << 20):
            if re.search(rb"<f[ >]", before + chunk):
                return True
            before = chunk[-2:]
    return False


def _written(path: Path, title: str) -> Iterator[Cells]:
    import openpyxl  # type: ignore[import-untyped,unused-ignore]

    book = openpyxl.load_workbook(path, read_only=True)
    try:
        yield from book[title].iter_rows(values_only=True)
    finally:
        book.close()


def _numbered(sheet: Any, formulas: Iterator[Cells] | None) -> Iterator[tuple[int, Cells]]:
    """Yield the filled rows with their numbers."""
    rows = sheet.iter_rows(values_only=True)
    if formulas is not None:
        rows = map(_computed, sheet.iter_rows(), formulas)
    for number, cells in enumerate(rows, 1):
        if any(cell is not None for cell in cells):
            yield number, cells


def _computed(cells: Sequence[Any], formulas: Cells) -> list[object]:
    """Return the values of a row; a stored value of "" is empty and of the type `str`."""
    return [
        NOT_COMPUTED
        if cell.value is None and cell.data_type != "str" and formula is not None
        else cell.value
        for cell, formula in zip(cells, formulas, strict=True)
    ]


def _rows(path: Path, name: str, lines: Iterator[tuple[int, Cells]]) -> Rows:
    names: list[str] | None = None
    for number, cells in lines:
        if names is None:
            head = ["" if cell is None else str(cell) for cell in cells]
            names = header_names(path, head)
            alone = len(list(filter(None, head))) == 1 and len(head) > 1
            continue
        if alone:
            raise BenchmarkError(
                f"{path.name}: the first filled row has one cell, {names[0]!r}, and the next has "
                "more: it looks like a title above the header.",
                hint="Remove the rows above the one that names the columns.",
            )
        where = f"{name}:{number}"
        mistake = next(filter(None, map(_mistake, names, cells)), None)
        if mistake is not None:
            yield BadRow(where, *mistake)
            continue
        pairs = list(zip(names, cells, strict=False))
        uncomputed = frozenset(name for name, cell in pairs if cell is NOT_COMPUTED)
        yield Row({name: _plain(cell) for name, cell in pairs}, where, uncomputed)


def _mistake(column: str, cell: object) -> tuple[str, str, str] | None:
    """Return why a cell cannot be used, where, and what to do; None if it can."""
    if not isinstance(cell, str):
        return None
    if cell is NOT_COMPUTED and snake(column) in USED:
        return NO_VALUE, f"column {column!r}", OPEN_AND_SAVE
    if cell in ERRORS:
        return "a cell has an Excel error", f"column {column!r}: {cell}", "Correct the formula."
    if len(cell) >= MOST_IN_A_CELL:
        hint = "Excel cuts texts of that length. Export the data as CSV or JSON lines instead."
        return "a text fills its cell and was probably cut", f"column {column!r}", hint
    return None


def _plain(cell: object) -> object:
    """Return a cell's value; dates and times as text, without a time of midnight."""
    if isinstance(cell, datetime) and cell.time() == time():
        return cell.date().isoformat()
    if isinstance(cell, date | time):
        return cell.isoformat()
    if cell is NOT_COMPUTED:
        return None
    return str(cell) if isinstance(cell, timedelta) else cell
