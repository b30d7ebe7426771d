"""Cells: what a cell or a column of cells holds, and which responses and labels were read.

Responses take a few bytes each, by candidate and query.
"""

from __future__ import annotations

import ast
import io
import json
import math
import re
import tokenize
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, TypeVar

import orjson

from rocketeval.benchmarks.messages import from_json
from rocketeval.benchmarks.reading import Row, as_question
from rocketeval.errors import BenchmarkError
from rocketeval.records import Label

__all__ = [
    "ResponseCells",
    "as_text",
    "cell_texts",
    "cell_value",
    "distinct_texts",
    "filled_cells",
    "is_flag",
    "is_missing",
    "is_number",
    "is_numeric",
    "is_prose",
    "is_uncomputed",
    "listed_items",
    "looks_like_candidate",
    "maybe_responses",
    "plain_value",
    "repeated_labels",
    "snake",
    "text_codes",
    "whole_number",
    "wide_by_content",
    "without",
]

T = TypeVar("T")

LISTED = re.compile(r"\s*\[\s*[\[{'\"\]]")
"""How a list of texts, lists or objects begins."""
MISSING = ("", "n/a", "na", "nan", "none", "null", "-")
"""Words in a column of numbers that stand for no number."""
OWN_WORDING = {"levels", "check"}
"""Fields of items that are not questions with yes or no."""
NO_VALUE = "a formula has no stored value"
OPEN_AND_SAVE = "Open the file in a spreadsheet program and save it: this stores the values."
WIDE = re.compile(
    r"^(output|response|answer|completion)s?_(?P<a>.+)$|^(?P<b>.+)_(output|response|answer|completion)$"
)
"""Names of the columns of a wide table, such as output_gpt4 or gpt4_output."""
FIGURES = re.compile(
    r"(^|_)(tokens?|length|len|chars|characters|words|cost|price|time|latency|duration|seconds|ms|"
    r"count|num|number|score|rating|grade|label|rank|correct|accuracy|passed|valid|error|f1|em|bleu|"
    r"rouge|logprobs?|perplexity|ppl|id|index|seed|temperature|year|date|bytes|size|quality|"
    r"confidence|prob|probability|reward|votes|wins|elo|similarity|toxicity|relevance|percent|"
    r"ratio|bertscore|chrf|meteor|comet|bleurt|wer|cer|distance|cosine|metric|points|stars)(_|$)"
)
"""Words in the names of columns that hold figures about responses."""
CANDIDATE_WORDS = re.compile(
    "(model|prompt|version|variant|candidate|system|baseline|gpt|claude|gemini|gemma|llama|mistral|"
    "mixtral|qwen|deepseek|phi|grok)(_|$)"
)
"""Words that start the names of candidates."""
SPARE = 64
"""Unused places that a candidate's array may always have."""


class ResponseCells:
    """A code from 1 per response that was read; queries are numbered.

    A candidate with responses to many queries has an array. A place far beyond its other ones is
    kept by itself, so that many candidates with few responses each need little memory, too.

    >>> read = ResponseCells("B")
    >>> read.add("a", 3), read.add("a", 3), read.add("b", 10**9), read.get("b", 10**9)
    (0, 1, 0, 1)
    >>> list(read.counts())
    [('a', 1), ('b', 1)]
    """

    def __init__(self, typecode: str) -> None:
        self._typecode = typecode
        self._codes: dict[str, array[int]] = {}
        self._counts: dict[str, int] = {}
        self._far: dict[tuple[str, int], int] = {}

    def __bool__(self) -> bool:
        return bool(self._counts)

    def __contains__(self, candidate: str) -> bool:
        return candidate in self._counts

    def counts(self) -> Iterator[tuple[str, int]]:
        """Yield each candidate and the number of its responses, in order of appearance."""
        return iter(self._counts.items())

    def get(self, candidate: str, place: int) -> int:
        """Return the code of a response; 0 if there is none."""
        codes = self._codes.get(candidate, ())
        found = codes[place] if place < len(codes) else 0
        return found or (self._far.get((candidate, place), 0) if self._far else 0)

    def add(self, candidate: str, place: int, code: int = 1) -> int:
        """Record a response unless there is one; return the earlier code, or 0."""
        before = self.get(candidate, place)
        if before:
            return before
        count = self._counts.get(candidate, 0)
        codes = self._codes.get(candidate)
        if codes is None:
            codes = self._codes[candidate] = array(self._typecode)
        if place < len(codes):
            codes[place] = code
        elif place <= 2 * count + SPARE:
            codes.extend([0] * (place - len(codes)))
            codes.append(code)
        else:
            self._far[candidate, place] = code
        self._counts[candidate] = count + 1
        return 0


def repeated_labels(labels: Iterable[Label], labeler: str) -> tuple[list[int], bool]:
    """Return the places of a labeler's repeated labels, and whether several people gave labels.

    Different labels of one response come from several people, so that equal ones may, too. Without
    any such response, a repeated label is the copy of a row.
    """
    values: dict[int, float] = {}
    seen: set[int] = set()
    repeats: list[int] = []
    several = False
    for place, label in enumerate(labels):
        if label.labeler != labeler:
            continue
        response = hash((label.query_id, label.candidate))
        several = several or values.setdefault(response, label.value) != label.value
        given = hash((response, label.value))
        if given in seen:
            repeats.append(place)
        seen.add(given)
    return repeats, several


def without(records: Sequence[T], places: Iterable[int]) -> list[T]:
    """Return the records except those at `places`."""
    left_out = set(places)
    return [each for place, each in enumerate(records) if place not in left_out]


def as_text(value: Any) -> str:
    """Return a response as text: strings unchanged, a date as text, anything else as JSON.

    >>> as_text(b"Hi"), as_text([b"Hi", 1]), as_text(float("inf"))
    ('Hi', '["Hi",1]', 'inf')
    """
    found = plain_value(value) if isinstance(value, bytes) else value
    if isinstance(found, str):
        return found
    if isinstance(found, float) and not math.isfinite(found):
        return str(found)
    if isinstance(found, bytes):
        raise BenchmarkError("the cell should be text, but is bytes that are not UTF-8.")
    try:
        written = orjson.dumps(found, default=_as_json, option=orjson.OPT_NON_STR_KEYS).decode()
    except TypeError:
        # An integer of more than 64 bits, or half of a surrogate pair.
        return _long_text(found)
    return str(orjson.loads(written)) if written.startswith('"') else written


def _long_text(value: object) -> str:
    try:
        written = json.dumps(
            value, ensure_ascii=False, separators=(",", ":"), default=_as_json, allow_nan=False
        )
        written.encode()
    except (TypeError, ValueError) as error:
        raise BenchmarkError(f"the cell should be text, but is not JSON: {error}.") from None
    return written


def _as_json(value: object) -> str:
    """Return a value that JSON does not have as text, such as a date in a list."""
    return str(plain_value(value) if isinstance(value, bytes) else value)


def plain_value(value: object) -> object:
    """Return a typed value with texts for bytes in UTF-8 and numbers for decimals, at any depth.

    >>> plain_value({"a": [b"Hi", Decimal("1.5")]})
    {'a': ['Hi', 1.5]}
    """
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value
    if isinstance(value, Decimal):
        return _plain_number(value)
    if isinstance(value, list | tuple):
        return [plain_value(each) for each in value]
    if isinstance(value, Mapping):
        return {name: plain_value(each) for name, each in value.items()}
    return value


def whole_number(value: object) -> object:
    """Return a whole float as an integer: a column of ids with an empty cell holds floats.

    >>> whole_number(7.0), whole_number(7.5), whole_number("7.0")
    (7, 7.5, '7.0')
    """
    known = isinstance(value, float) and value.is_integer() and abs(value) < 1 << 53
    return int(value) if known else value  # type: ignore[call-overload]


def _plain_number(value: Decimal) -> object:
    """Return a decimal as a number, or as text if no number is exactly that."""
    if not value.is_finite():
        return float(value)
    if value == value.to_integral_value():
        return int(value)
    return float(value) if Decimal(repr(float(value))) == value else str(value)


def cell_value(value: object) -> object:
    """Return a cell that holds a list or an object as that; anything else unchanged.

    In text, they are written as JSON, or a list as Python or numpy writes it: pandas does so in CSV
    files.

    >>> cell_value("['a', 'b']"), cell_value("['a' 'b']"), cell_value("[a]")
    (['a', 'b'], ['a', 'b'], '[a]')
    """
    found = from_json(value)
    if not isinstance(found, str) or not LISTED.match(found) or not found.rstrip().endswith("]"):
        return found
    try:
        listed = ast.literal_eval(_with_commas(found.strip()))
        # Half of a surrogate pair is no text.
        json.dumps(listed, ensure_ascii=False, default=str).encode()
    except (tokenize.TokenError, ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return found
    return listed if isinstance(listed, list) else found


def _with_commas(text: str) -> str:
    """Return a list with commas between its elements, which numpy leaves out."""
    found: list[str] = []
    last = tokenize.TokenInfo(tokenize.NL, "", (0, 0), (0, 0), "")
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        texts = token.type == last.type == tokenize.STRING
        found.append("," * (texts or (last.string, token.string) == ("}", "{")) + token.string)
        last = last if token.type == tokenize.NL else token
    return " ".join(found)


def listed_items(cell: object) -> list[object] | None:
    """Return the checklist items in a cell, criteria as questions; None if it holds something else.

    >>> listed_items(["Is it a?", " ", None]), listed_items([{"sku": 1}])
    (['Is it a?'], None)
    >>> listed_items([{"text": "Names Paris", "weight": 2}])
    [{'text': 'Does the response meet this criterion? Names Paris', 'weight': 2}]
    """
    if not isinstance(cell, list):
        return None
    found: list[object] = []
    for each in cell:
        if isinstance(each, str):
            found += [as_question(each)] if each.strip() else []
        elif isinstance(each, Mapping) and "text" in each:
            item = {name: value for name, value in each.items() if value is not None}
            text = item.get("text")
            if isinstance(text, str) and text.strip() and not (item.keys() & OWN_WORDING):
                item["text"] = as_question(text)
            found.append(item)
        elif each is not None:
            return None
    return found


def is_number(value: object) -> bool:
    """Return whether a cell holds a number, also as text."""
    if isinstance(value, bool):
        return False
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return True


def is_missing(value: object) -> bool:
    """Return whether a cell of a column of numbers says that there is none."""
    return value is None or (isinstance(value, str) and value.strip().lower() in MISSING)


def filled_cells(rows: Iterable[Row], column: str) -> list[object]:
    """Return the cells of a column that hold something."""
    return [row.values[column] for row in rows if not is_missing(row.values.get(column))]


def is_numeric(rows: Iterable[Row], column: str) -> bool:
    """Return whether a column holds only numbers, and at least one."""
    filled = filled_cells(rows, column)
    return bool(filled) and all(map(is_number, filled))


def is_uncomputed(rows: Iterable[Row], column: str) -> bool:
    """Return whether a column of an Excel file has a formula without a stored value."""
    return any(column in row.uncomputed for row in rows)


def is_prose(rows: Sequence[Row], column: str) -> bool:
    """Return whether a column looks like responses: text that seldom repeats."""
    texts = [row.values.get(column) for row in rows]
    filled = [text for text in texts if isinstance(text, str) and text.strip()]
    numeric = all(is_number(text) for text in filled)
    if not filled or len(filled) * 2 < len(rows) or numeric:
        return False
    return len(rows) < 4 or len(set(filled)) * 2 > len(filled)


def cell_texts(rows: Iterable[Row], column: str) -> list[str]:
    """Return the cells of a column as texts."""
    return [str(row.values.get(column)) for row in rows]


def distinct_texts(rows: Iterable[Row], column: str) -> set[str]:
    """Return the different texts in a column."""
    return set(cell_texts(rows, column))


def text_codes(rows: Iterable[Row], column: str) -> Iterator[int]:
    """Yield a number per row of a column, equal for equal texts."""
    known: dict[str, int] = {}
    return (known.setdefault(text, len(known)) for text in cell_texts(rows, column))


def snake(name: str) -> str:
    """Return a column name in lower case with underscores.

    >>> snake("Expected Output"), snake("actualOutput"), snake("inputs/question")
    ('expected_output', 'actual_output', 'question')
    """
    last = name.rpartition("/")[2] or name
    split = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", last.strip())
    return re.sub(r"[^a-z0-9]+", "_", split.lower()).strip("_")


def wide_by_content(rows: Sequence[Row], columns: Sequence[str]) -> dict[str, str]:
    """Return the columns that look like responses: text that seldom repeats, or is not computed."""
    return {
        each: each
        for each in columns
        if is_prose(rows, each)
        or (is_uncomputed(rows, each) and looks_like_candidate(each) and not is_numeric(rows, each))
    }


def is_flag(rows: Iterable[Row], column: str) -> bool:
    """Return whether a column holds only true and false, or yes and no under a figure's name."""
    found = {str(value).lower() for value in filled_cells(rows, column)}
    known = {"true", "false", *(("yes", "no") if FIGURES.search(snake(column)) else ())}
    return bool(found) and found <= known


def maybe_responses(
    rows: Sequence[Row], columns: Iterable[str], chosen: Collection[str]
) -> list[str]:
    """Return the other columns named like the chosen ones that hold numbers, or true and false.

    Those that are named like a figure are left out.
    """
    families = {_family(each) for each in chosen} - {None}
    return [
        each
        for each in columns
        if _family(each) in families
        and each not in chosen
        and not FIGURES.search(snake(each))
        and (is_numeric(rows, each) or is_flag(rows, each))
    ]


def _family(column: str) -> str | None:
    """Return what the names of a wide table's columns share; None for a name of no such kind.

    >>> [_family(name) for name in ("output_gpt4", "gpt4_output", "v12", "prompt_b", "notes")]
    ['output_', '_output', 'v0', 'prompt_0', None]
    >>> _family("B"), _family("n")
    ('A', 'a')
    """
    if len(column) == 1 and column.isalpha():
        return "A" if column.isupper() else "a"
    found = WIDE.match(snake(column))
    if found:
        return f"{found[1]}_" if found["a"] else f"_{found[4]}"
    counted = re.sub(r"\d+|(?<=_)[a-z]$", "0", snake(column))
    return counted if "0" in counted else None


def looks_like_candidate(column: str) -> bool:
    """Return whether a column may be named after a candidate.

    >>> [looks_like_candidate(name) for name in ("v1", "prompt_a", "Claude Opus", "comment")]
    [True, True, True, False]
    """
    words = snake(column).split("_")
    numbered = any(letter.isdigit() for letter in column)
    return numbered or len(words[-1]) == 1 or bool(CANDIDATE_WORDS.match(snake(column)))
