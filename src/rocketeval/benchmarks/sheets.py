"""Rows of CSV and Excel files. Of an Excel file, the visible sheet with rows is read."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from datetime import date, datetime, time, timedelta
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any, BinaryIO
from zipfile import BadZipFile, ZipFile

from rocketeval.benchmarks.cells import NO_VALUE, OPEN_AND_SAVE, snake
from rocketeval.benchmarks.columns import COLUMN_NAMES
from rocketeval.benchmarks.reading import Row, open_bytes
from rocketeval.benchmarks.row_files import BadRow, Rows, header_names
from rocketeval.errors import BenchmarkError
from rocketeval.text import count_of

MOST_CELL = 64 << 20
"""Maximum characters of a CSV cell."""
SEPARATOR = re.compile(r'"?sep=([^"\s]|\t)"?\r?\n?$', re.IGNORECASE)
OPEN_QUOTE = "a quote opens here and is never closed: it takes in the rest of the file"
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
WIDER = "the row has a cell beyond the header"
NAME_COLUMNS = "Name its column in the header, or remove the cell."
Cells = Sequence[object]


def csv_rows(path: Path, name: str, delimiter: str | None) -> Rows:
    """Yield the rows of a CSV file; without `delimiter`, the header says which it is."""
    csv.field_size_limit(MOST_CELL)
    with open_bytes(path) as stream:
        lines = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
        first, above = lines.readline(), 0
        # Blank lines and Excel's `sep=;` may be above the header.
        while first and ((named := SEPARATOR.match(first)) or not first.strip()):
            delimiter = named[1] if named else delimiter
            first, above = lines.readline(), above + 1
        if "\x00" in first:
            raise BenchmarkError(
                f"{path.name} is not text: it may be UTF-16 or an Excel file.",
                hint="Save it as CSV in UTF-8, or name it .xlsx.",
            )
        if delimiter is None:
            delimiter = max(",;\t|", key=first.count)
        lines.seek(0)
        for _ in range(above):
            lines.readline()
        recent = _RecentLines(lines)
        # A lenient reader would take quotes that are not closed for the rest of the file.
        reader = csv.reader(recent, delimiter=delimiter, strict=True)
        try:
            names = header_names(path, next(reader, []))
        except csv.Error as error:
            bad = _bad_quotes(error, name, above + 1, recent.lines)
            raise BenchmarkError(f"{bad.where}: {bad.kind}.", hint=bad.hint) from None
        while True:
            first_line = above + reader.line_num + 1
            where = f"{name}:{first_line}"
            recent.lines.clear()
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                yield _bad_quotes(error, name, first_line, recent.lines)
                continue
            if not any(cell.strip() for cell in cells):
                continue
            if len(cells) != len(names):
                last = first_line + len(recent.lines) - 1
                several = f", from line {first_line} to {last}" if last > first_line else ""
                yield BadRow(
                    where,
                    "the row has another number of cells than the header",
                    f"{count_of(len(cells), 'cell', 'cells')}, "
                    f"{count_of(len(names), 'column', 'columns')}{several}",
                    "Quote cells that contain the separator or line breaks, and close each quote.",
                )
                continue
            yield Row(dict(zip(names, cells, strict=True)), where)


class _RecentLines:
    """Lines of a file; those of the current row are kept for messages."""

    def __init__(self, source: Iterator[str]) -> None:
        self.lines: list[str] = []
        self._source = source

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self._source)
        self.lines.append(line)
        return line


def _bad_quotes(error: csv.Error, name: str, first_line: int, lines: list[str]) -> BadRow:
    """Return the mistake of a row that csv refuses, at the line where its last quote opens."""
    text = "".join(lines)
    if "unexpected end" in str(error):
        # Two quotes in a row are one quote inside a cell.
        place = text.replace('""', "  ").rfind('"')
        where = f"{name}:{first_line + text.count(chr(10), 0, max(0, place))}"
        near = f"near {text[max(0, place) : place + 30].splitlines()[0]!r}"
        return BadRow(where, OPEN_QUOTE, near, "Close the quote, or remove it.")
    if "field larger" in str(error):
        kind = f"a cell is larger than {MOST_CELL >> 20} MB: a quote may not be closed"
        return BadRow(f"{name}:{first_line}", kind, "", "Close each quote.")
    last = first_line + len(lines) - 1
    several = f", up to line {last}" if last > first_line else ""
    return BadRow(
        f"{name}:{first_line}",
        "the row has text after a closing quote",
        f"near {text[:30].splitlines()[0]!r}{several}",
        'Write a quote inside a quoted cell twice (""), and close each quote.',
    )


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
    visible = [_whole(sheet) for sheet in book.worksheets if sheet.sheet_state == "visible"]
    sheets = [sheet for sheet in visible if len(list(islice(_numbered(sheet, None), 2))) > 1]
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


def _whole(sheet: Any) -> Any:
    """Return the sheet, read to its end: the size that a file states may be an old one."""
    sheet.reset_dimensions()
    return sheet


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
        yield from _whole(book[title]).iter_rows(values_only=True)
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
            alone = len(list(filter(None, head))) == 1
            continue
        if alone and sum(cell is not None for cell in cells) > 1:
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
        if any(cell is not None for cell in cells[len(names) :]):
            yield BadRow(where, WIDER, f"{len(cells)} cells, {len(names)} columns", NAME_COLUMNS)
            continue
        # A row ends with its last cell.
        pairs = list(zip_longest(names, cells[: len(names)]))
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
