"""Test cases in a file: a query with its checklist, one per row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rocketeval.api import checklist_items
from rocketeval.benchmarks.reading import Row, read_rows, shown_value
from rocketeval.errors import BenchmarkError, ConfigError, RocketEvalError
from rocketeval.records import Checklist, Query
from rocketeval.resources import read_yaml
from rocketeval.text import near_name

_FIELDS = ("id", "query", "checklist", "reference", "history", "system", "context", "min_score")
_SYNONYMS = ("input", "prompt", "question", "instruction")
"""Names of the query in files of other tools."""
LIKE = 0.8
"""Similarity above which an unknown field counts as a misspelled known one."""
_EXAMPLE = 'A case is such as {"id": "refund", "query": "...", "checklist": ["..."]}.'


@dataclass(frozen=True, slots=True)
class ChecklistCase:
    """A query, the checklist that its response must pass, and further fields of its row."""

    record: Query
    checklist: Checklist
    min_score: float | None = None
    """The score that the response must reach; default: that of the test."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the row that RocketEval does not use."""

    @property
    def id(self) -> str:
        """Name of the case, unique in its file."""
        return self.record.id

    @property
    def query(self) -> str:
        """Text of the query."""
        return self.record.text


def read_cases(path: Path) -> list[ChecklistCase]:
    """Return the cases in a .jsonl, .json or .yaml file; BenchmarkError names a wrong row."""
    cases: list[ChecklistCase] = []
    seen: set[str] = set()
    for number, values in enumerate(_rows(path), 1):
        where = f"{path}, case {number}"
        try:
            case = _case(values, where, number)
            if case.id in seen:
                raise ValueError(f"the id {case.id!r} is repeated.")
        except (ValueError, OverflowError, RocketEvalError) as error:
            what, hint = str(error), ""
            if isinstance(error, RocketEvalError):
                what, hint = error.message.removeprefix(f"{where}: "), error.hint
            raise BenchmarkError(
                f"{where}: {what}", hint="\n".join(filter(None, (hint, _EXAMPLE)))
            ) from None
        seen.add(case.id)
        cases.append(case)
    if not cases:
        raise BenchmarkError(f"{path} has no cases.", hint=_EXAMPLE)
    return cases


def _rows(path: Path) -> Iterable[object]:
    if not path.is_file():
        raise BenchmarkError(
            f"There is no file of cases {path}.", hint="The path is relative to the test file."
        )
    if path.suffix in (".jsonl", ".json"):
        return (row.values for row in read_rows(path))
    try:
        rows = read_yaml(path, "cases", hint="Check that it is complete.")
    except ConfigError as error:
        raise BenchmarkError(error.message, hint=error.hint) from None
    if not isinstance(rows, list):
        raise BenchmarkError(f"{path} must be a list of cases.", hint=_EXAMPLE)
    return rows


def _case(values: object, where: str, number: int) -> ChecklistCase:
    if not isinstance(values, Mapping):
        raise ValueError("it is not an object.")
    row = Row(values, where)
    asked = next((each for each in ("query", *_SYNONYMS) if each in values), "query")
    text = _text(row, asked)
    if text is None or not text.strip():
        raise ValueError("it has no `query`.")
    if "checklist" not in values:
        raise ValueError("it has no `checklist`.")
    given = values.get("id")
    name = f"case-{number}" if given is None else str(given)
    if not name.strip():
        raise ValueError("its `id` is empty. Write a name, or remove the field.")
    query = Query(
        name,
        text,
        () if values.get("history") is None else row.turns("history"),
        _text(row, "reference"),
        system=_text(row, "system"),
        context=None if values.get("context") is None else row.texts("context"),
    )
    checklist = Checklist.from_items(name, checklist_items(values["checklist"], "checklist"))
    return ChecklistCase(query, checklist, _least(row), row.further((*_FIELDS, asked)))


def odd_fields(cases: Iterable[ChecklistCase]) -> Iterator[str]:
    """Yield a sentence about each field that looks misspelled."""
    rows = Counter(str(name) for case in cases for name in case.fields)
    for name, count in rows.items():
        meant = near_name(name.casefold(), _FIELDS, LIKE)
        if meant is not None:
            yield (
                f"cases with a field {name!r}, which RocketEval does not use: {count:,}. "
                f"Did you mean {meant!r}?"
            )


def _text(row: Row, name: str) -> str | None:
    """Return a text field; None if it is missing."""
    value = row.values.get(name)
    if isinstance(value, str | None):
        return value
    raise BenchmarkError(
        f"{row.where}: the field {name!r} should be text, but is {shown_value(value)}.",
        hint="Write the text in quotes, or remove the field.",
    )


def _least(row: Row) -> float | None:
    """Return the field `min_score`; None if it is missing."""
    value = row.values.get("min_score")
    if value is None:
        return None
    # In Python bool is an int, and YAML reads `yes` as a bool.
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1:
        return float(value)
    raise BenchmarkError(
        f"{row.where}: the field 'min_score' should be a number from 0 to 1, but is "
        f"{shown_value(value)}.",
        hint="Write a number from 0 to 1 without quotes, or remove the field.",
    )
