"""Test cases in a file: a query with its checklist, one per row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import yaml

from rocketeval.api import checklist_items
from rocketeval.errors import BenchmarkError, ConfigError, RocketEvalError
from rocketeval.records import Checklist, Query, Turn
from rocketeval.resources import load_yaml

_FIELDS = ("id", "query", "checklist", "reference", "history", "system", "context", "min_score")
_SYNONYMS = ("input", "prompt", "question", "instruction")
"""Names of the query in files of other tools."""


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
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise BenchmarkError(
            f"Cannot read the cases {path}: {error.strerror}.",
            hint="The path is relative to the test file.",
        ) from None
    except UnicodeDecodeError:
        raise BenchmarkError(f"{path} is not text in UTF-8.", hint="Save it as UTF-8.") from None
    cases: list[ChecklistCase] = []
    seen: set[str] = set()
    for number, row in enumerate(_rows(path, text), 1):
        try:
            case = _case(row, number)
            if case.id in seen:
                raise ValueError(f"the id {case.id!r} is repeated.")
        except (ValueError, OverflowError, RocketEvalError) as error:
            raise BenchmarkError(
                f"{path}, case {number}: {error}",
                hint='A case is such as {"id": "refund", "query": "...", "checklist": ["..."]}.',
            ) from None
        seen.add(case.id)
        cases.append(case)
    if not cases:
        raise BenchmarkError(f"{path} has no cases.")
    return cases


def _rows(path: Path, text: str) -> Iterator[object]:
    try:
        if path.suffix == ".jsonl":
            yield from (orjson.loads(line) for line in text.splitlines() if line.strip())
            return
        rows = orjson.loads(text) if path.suffix == ".json" else load_yaml(text)
    except RecursionError:
        raise BenchmarkError(f"{path} is nested too deeply.") from None
    except (ValueError, OverflowError, yaml.YAMLError) as error:
        raise BenchmarkError(f"{path} cannot be parsed: {error}") from None
    if not isinstance(rows, list):
        raise BenchmarkError(f"{path} must be a list of cases.")
    yield from rows


def _case(row: object, number: int) -> ChecklistCase:
    if not isinstance(row, Mapping):
        raise ValueError("it is not an object.")
    text = next((row[name] for name in ("query", *_SYNONYMS) if name in row), None)
    if not isinstance(text, str) or not text.strip():
        raise ValueError("it has no `query`.")
    if "checklist" not in row:
        raise ValueError("it has no `checklist`.")
    name = str(row.get("id", f"case-{number}"))
    try:
        history = tuple(Turn(turn["role"], turn["content"]) for turn in row.get("history") or ())
    except (TypeError, KeyError):
        raise ConfigError("`history` is a list of objects with `role` and `content`.") from None
    context, least = row.get("context"), row.get("min_score")
    if not isinstance(context, list | None):
        raise ValueError("`context` is not a list of texts.")
    if not isinstance(least, int | float | None):
        raise ValueError("`min_score` is not a number.")
    query = Query(
        name,
        text,
        history,
        row.get("reference"),
        system=row.get("system"),
        context=None if context is None else tuple(context),
    )
    checklist = Checklist.from_items(name, checklist_items(row["checklist"], "checklist"))
    rest = {key: value for key, value in row.items() if key not in (*_FIELDS, *_SYNONYMS)}
    return ChecklistCase(query, checklist, None if least is None else float(least), rest)
