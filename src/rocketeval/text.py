"""Formatting of names, counts and figures in messages, and of CSV that is safe for spreadsheets.

A CSV text cell is quoted if it contains a comma, semicolon, tab, quote or line break; some
spreadsheets split at semicolons. A text that a spreadsheet would evaluate as a formula gets a
leading apostrophe, even after blanks, quotes or invisible characters. Numbers stay numbers, and
missing values are empty cells.
"""

from __future__ import annotations

import difflib
import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

    from rocketeval.records import Interval, Query

NO_INTERVAL = "no interval"
"""Shown in place of unknown bounds."""
TOO_FEW = "too few queries"
"""The verdict on a difference without an interval: it was not tested."""
LABELS_NEXT = "`rocketeval labels next`"
"""How sentences of the library name this command; the command line and the report add the run."""
_HASH = re.compile(r"[0-9a-f]{12,}")


def printable(name: str) -> str:
    """Replace control characters, which could rewrite the terminal.

    Spaces of any width stay, and so do the joiners of emoji and of Persian.

    >>> printable("Mod\xe8le\xa0A\x1b[2J")
    'Mod\xe8le\xa0A\ufffd[2J'
    """
    return "".join(
        mark
        if mark.isprintable() or mark in "\u200c\u200d" or unicodedata.category(mark) == "Zs"
        else "\ufffd"
        for mark in name
    )


def printable_lines(text: str) -> str:
    """Replace control characters in each line of a text.

    >>> printable_lines("one\\ntwo\\x1b[2J")
    'one\\ntwo\ufffd[2J'
    """
    return "\n".join(map(printable, text.split("\n")))


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """Return a hint with the known names closest to `name`, or with a few names if none is close.

    >>> did_you_mean("solit", ["solid", "brief"])
    "Did you mean 'solid'?"
    >>> did_you_mean("xyz", ["solid", "brief"])
    "There are: 'solid', 'brief'."
    """
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    if close:
        return f"Did you mean {' or '.join(map(repr, close))}?"
    return f"There are: {join_words(map(repr, known), most=10)}."


def near_name(name: str, known: Sequence[str], like: float = 0.5) -> str | None:
    """Return the known name closest to `name`; None if no similarity reaches `like`.

    >>> near_name("lefft", ["left", "right"]), near_name("xyz", ["left", "right"])
    ('left', None)
    """
    return next(iter(difflib.get_close_matches(name, known, n=1, cutoff=like)), None)


HIDDEN = "***"
"""Shown in place of a secret."""


def is_secret(name: str) -> bool:
    """Return whether a setting of this name holds a secret.

    >>> is_secret("api_key"), is_secret("accessToken"), is_secret("max_tokens")
    (True, True, False)
    """
    words = [word.lower() for word in _WORDS.findall(name)]
    if not words or words[-1] in _REFERENCES:
        return False
    if _SECRET.search("".join(words)) or not _SECRET_WORDS.isdisjoint(words):
        return True
    if words[-1] in {"token", "key"}:
        return _HARMLESS.isdisjoint(words)
    return words[-1] in {"tokens", "keys"} and not _HOLDERS.isdisjoint(words)


_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_SECRET = re.compile(r"secret|passw|passphrase|apikey|authorization|credential|bearer")
_SECRET_WORDS = frozenset({"auth", "jwt", "cookie", "cookies", "pwd"})
_REFERENCES = frozenset({"env", "variable"})
"""Names of environment variables are no secrets."""
_HARMLESS = frozenset(
    {"stop", "pad", "bos", "eos", "unk", "mask", "start", "end", "max", "min", "cache", "sort"}
)
"""With one of these words, a token or key is none to hide: `stop_token`, `prompt_cache_key`."""
_HOLDERS = frozenset({"access", "auth", "refresh", "session", "private", "signing", "id"})


def with_secrets(value: object, shown: Callable[[str], str], *, named: bool = False) -> Any:
    """Return settings in which `shown` replaces every text under a secret name, at any depth.

    >>> with_secrets({"api_keys": ["a", "b"], "stop": ["c"]}, lambda _: HIDDEN)
    {'api_keys': ['***', '***'], 'stop': ['c']}
    """
    if isinstance(value, Mapping):
        return {
            name: with_secrets(own, shown, named=named or is_secret(str(name)))
            for name, own in value.items()
        }
    if isinstance(value, list | tuple):
        return [with_secrets(own, shown, named=named) for own in value]
    return shown(value) if named and isinstance(value, str) and value else value


def join_words(names: Iterable[str], *, most: int) -> str:
    """Return the first `most` names, and the number of further ones.

    >>> join_words("abcde", most=3)
    'a, b, c and 2 more'
    """
    every = list(names)
    shown = ", ".join(every[:most])
    return shown if len(every) <= most else f"{shown} and {len(every) - most:,} more"


def count_of(number: int, one: str, many: str) -> str:
    """Return a number with its singular or plural noun.

    >>> count_of(1, "query", "queries"), count_of(2000, "query", "queries")
    ('1 query', '2,000 queries')
    """
    return f"{number:,} {one if number == 1 else many}"


def start_of(text: str, most: int = 60) -> str:
    """Return the start of a text on one line.

    >>> start_of("one\\n two"), start_of("one two three", 7)
    ('one two', 'one two...')
    """
    line = " ".join(text[: 2 * most + 1].split())
    return line if len(line) <= most and len(text) <= 2 * most else f"{line[:most].rstrip()}..."


def is_hash(name: str) -> bool:
    """Return whether an id is a hash, such as that of a query without an id of its own.

    >>> is_hash("281feac585d9"), is_hash("q7")
    (True, False)
    """
    return _HASH.fullmatch(name) is not None


def starts_of_queries(queries: Mapping[str, Query]) -> dict[str, str]:
    """Return the start of the text of each query whose id is a hash, by id."""
    return {name: start_of(query.text) for name, query in queries.items() if is_hash(name)}


def query_name(query_id: str, starts: Mapping[str, str] | None) -> str:
    """Return a query's id, with the start of its text if `starts` has one.

    >>> query_name("281feac585d9", {"281feac585d9": "What is 1?"}), query_name("q7", {})
    ('281feac585d9 "What is 1?"', 'q7')
    """
    start = (starts or {}).get(query_id)
    return f'{query_id} "{start}"' if start else query_id


def chance(p_value: float) -> str:
    """Format a p-value.

    >>> chance(0.0004), chance(0.0312)
    ('p < 0.001', 'p = 0.031')
    """
    return "p < 0.001" if p_value < 0.001 else f"p = {p_value:.3f}"


def between(low: str, high: str, dash: str = "-") -> str:
    """Join the bounds of an interval with a dash, or with "to" if a bound has a sign.

    >>> between("0.25", "0.75"), between("-0.25", "0.75")
    ('0.25-0.75', '-0.25 to 0.75')
    """
    signed = low.startswith(("-", "+")) or high.startswith(("-", "+"))
    return f"{low} to {high}" if signed else f"{low}{dash}{high}"


def percentage(share: float) -> str:
    """Return a share such as a confidence level in percent, with as many digits as it has.

    >>> percentage(0.95), percentage(0.999), percentage(1.0 - 0.999)
    ('95%', '99.9%', '0.1%')
    """
    return f"{round(100.0 * share, 6):g}%"


def figure(interval: Interval | None, digits: str, dash: str = "-") -> str:
    """Return `value (low-high)`, or a hyphen without a value; rounded zeros have no sign.

    >>> from rocketeval.records import Interval
    >>> figure(Interval(0.5, 0.25, 0.75), ".2f"), figure(Interval(0.5, -0.25, math.nan), ".1f")
    ('0.50 (0.25-0.75)', '0.5 (no interval)')
    """
    if interval is None:
        return "-"
    ends = (interval.value, interval.low, interval.high)
    value, low, high = (_unsigned_zero(format(end, digits)) for end in ends)
    if not (math.isfinite(interval.low) and math.isfinite(interval.high)):
        return f"{value} ({NO_INTERVAL})"
    if low == high:
        return value
    return f"{value} ({between(low, high, dash)})"


def share(interval: Interval | None, digits: str = ".1f") -> str:
    """Return a share in percent, with its interval."""

    from rocketeval.records import Interval

    if interval is None:
        return "-"
    ends = (interval.value, interval.low, interval.high)
    return figure(Interval(*(100 * end for end in ends)), digits)


def _unsigned_zero(shown: str) -> str:
    return shown.removeprefix("-") if not shown.strip("-0.") else shown


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
    import pyarrow as pa

    if not pa.types.is_string(column.type):
        return [csv_cell(value) for value in column.to_pylist()]
    # Names and items repeat, so format each distinct value once.
    encoded = column.combine_chunks().dictionary_encode()
    known = [csv_cell(value, raw=raw) for value in encoded.dictionary.to_pylist()]
    return ["" if place is None else known[place] for place in encoded.indices.to_pylist()]
