"""CSV output that is safe for spreadsheets.

A text cell is quoted if it contains a comma, semicolon, tab, quote or line break; some spreadsheets
split at semicolons. A text that a spreadsheet would evaluate as a formula gets a leading
apostrophe, even after blanks, quotes or invisible characters. Numbers stay numbers, and missing
values are empty cells.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

BOM = "\ufeff"
_SIGNS = frozenset("=+-@\uff1d\uff0b\uff0d\uff20\t\r\n")
# Includes full-width forms, which some locales evaluate too.
_UNSEEN = frozenset({"Cc", "Cf"})
# Control and format characters, which some readers ignore.
_QUOTED = re.compile('[,;\t\r\n"]|^\\s|\\s$')


def disarm(text: str) -> str:
    """Return the text, with a leading apostrophe if a spreadsheet would evaluate it.

    >>> disarm("=1+1"), disarm(' "@now'), disarm("a-b")
    ("'=1+1", '\\' "@now', 'a-b')
    """
    return f"'{text}" if _computes(text) else text


def _computes(text: str) -> bool:
    for mark in text:
        if mark in _SIGNS:
            return True
        if not (mark.isspace() or mark in "'\"" or unicodedata.category(mark) in _UNSEEN):
            return False
    return False


def csv_line(cells: Iterable[str]) -> str:
    """Return a line of formatted cells."""
    return ",".join(cells) + "\n"


def csv_cell(value: Any, *, raw: bool = False) -> str:
    """Format a cell.

    >>> csv_cell("a,b"), csv_cell(-1.5), csv_cell("-1.5"), csv_cell(None)
    ('"a,b"', '-1.5', "'-1.5", '')
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if not isinstance(value, str):
        return str(value).removesuffix(".0")
    text = value if raw else disarm(value)
    return '"' + text.replace('"', '""') + '"' if _QUOTED.search(text) else text


def csv_text(
    names: Iterable[str], tables: Iterable[pa.Table], *, raw: bool = False
) -> Iterator[str]:
    """Yield the file in pieces: the header, then the rows of each table."""
    yield csv_line(csv_cell(name, raw=raw) for name in names)
    for table in tables:
        columns = [_cells(column, raw) for column in table.columns]
        yield "".join(map(csv_line, zip(*columns, strict=True)))


def _cells(column: pa.ChunkedArray, raw: bool) -> list[str]:
    if not pa.types.is_string(column.type):
        return [csv_cell(value) for value in column.to_pylist()]
    # Names and items repeat, so format each distinct value once.
    encoded = column.combine_chunks().dictionary_encode()
    known = [csv_cell(value, raw=raw) for value in encoded.dictionary.to_pylist()]
    return ["" if place is None else known[place] for place in encoded.indices.to_pylist()]
