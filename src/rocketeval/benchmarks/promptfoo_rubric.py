"""Results of promptfoo: outputs of several providers or prompts, with their assertions as items.

`promptfoo eval -o results.json` (or .jsonl) writes them. An assertion for a model becomes a yes/no
item, one for code a check of the library. Assertions that would run code (javascript, python), or
that are not about the text (latency, cost), are left out and counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import orjson

from rocketeval.benchmarks.reading import Row, open_bytes, read_rows
from rocketeval.benchmarks.rubric_files import as_question
from rocketeval.config import BenchmarkConfig, NoOptions, parse_options
from rocketeval.errors import BenchmarkError
from rocketeval.items import CheckCall, Checklist, ItemDetail, ItemKind, ParsedItem
from rocketeval.records import Label, Query, Rating, Response, Vote

MODEL_GRADED = ("llm-rubric", "g-eval", "model-graded-closedqa")
"""Assertions whose value is a criterion."""
_TEXT_CHECKS = {"contains": "contains", "starts-with": "starts_with", "equals": "equals"}
_LIST_CHECKS = {"contains-all": "contains_all", "contains-any": "contains_any"}


class PromptfooBenchmark:
    """A results file of promptfoo."""

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise BenchmarkError(
                f"There is no promptfoo results file {path}.",
                hint="Write one with `promptfoo eval -o results.json`.",
            )
        self.path = path
        self.where = ""

    @classmethod
    def create(cls, config: BenchmarkConfig) -> PromptfooBenchmark:
        """Return a reader of the file `config.path`."""
        parse_options(config.options, NoOptions, "benchmark.options")
        return cls(config.path)

    def queries(self) -> Iterator[Query]:
        """Yield one query per test: its prompt, or its variables if there are several prompts."""
        seen: set[str] = set()
        for row in self._results:
            name = self._query_id(row)
            if name in seen:
                continue
            seen.add(name)
            test = _object(row, "testCase")
            text = _variables(row) if self._prompts > 1 else _object(row, "prompt").text("raw")
            described = test.text("description", None)
            yield Query(
                id=name, text=text or _object(row, "prompt").text("raw"), category=described
            )

    def responses(self) -> Iterator[Response]:
        """Yield every output; a result with an error has none."""
        for row in self._results:
            self.where = row.where
            response = row.values.get("response")
            output = response.get("output") if isinstance(response, Mapping) else None
            if output is None:
                continue
            text = output if isinstance(output, str) else orjson.dumps(output).decode()
            yield Response(self._query_id(row), self._candidate(row), text)

    def checklists(self) -> Iterator[Checklist]:
        """Yield the assertions of each test that can be items."""
        seen: set[str] = set()
        for row in self._results:
            name = self._query_id(row)
            if name in seen:
                continue
            seen.add(name)
            items = [item for item, _ in _assertions(_object(row, "testCase")) if item is not None]
            if items:
                yield Checklist.from_items(name, items, "promptfoo")

    def labels(self) -> Iterator[Label]:
        """Yield nothing: promptfoo's scores come from its assertions, not from people."""
        return iter(())

    def votes(self) -> Iterator[Vote]:
        """Yield nothing."""
        return iter(())

    def ratings(self) -> Iterator[Rating]:
        """Yield nothing."""
        return iter(())

    def left_out(self) -> Mapping[str, int]:
        """Return the number of results without output, and of assertions that are not items."""
        counts: Counter[str] = Counter()
        seen: set[str] = set()
        for row in self._results:
            response = row.values.get("response")
            if not isinstance(response, Mapping) or response.get("output") is None:
                counts["results without an output"] += 1
            name = self._query_id(row)
            if name not in seen:
                seen.add(name)
                kinds = (
                    kind for item, kind in _assertions(_object(row, "testCase")) if item is None
                )
                counts.update(f"assertions of type {kind}" for kind in kinds)
        return counts

    @cached_property
    def _results(self) -> list[Row]:
        if self.path.name.removesuffix(".gz").endswith(".jsonl"):
            return list(read_rows(self.path))
        with open_bytes(self.path) as stream:
            try:
                content: Any = orjson.loads(stream.read())
            except orjson.JSONDecodeError as error:
                raise BenchmarkError(f"{self.path.name}: not valid JSON: {error}.") from None
        outer = content.get("results") if isinstance(content, Mapping) else None
        rows = outer.get("results") if isinstance(outer, Mapping) else None
        if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
            raise BenchmarkError(
                f"{self.path.name} has no list `results.results`.",
                hint="Write the file with `promptfoo eval -o results.json`.",
            )
        return [Row(row, f"{self.path.name}[{number}]") for number, row in enumerate(rows, 1)]

    @cached_property
    def _prompts(self) -> int:
        return len({row.values.get("promptIdx", 0) for row in self._results})

    def _query_id(self, row: Row) -> str:
        return f"test-{row.get('testIdx', int)}"

    def _candidate(self, row: Row) -> str:
        provider = row.values.get("provider")
        named = provider if isinstance(provider, Mapping) else {"id": provider}
        name = str(named.get("label") or named.get("id") or "provider")
        if self._prompts == 1:
            return name
        prompt = _object(row, "prompt")
        label = prompt.values.get("label") or f"prompt {row.values.get('promptIdx', 0)}"
        return f"{name} / {label}"


def _object(row: Row, name: str) -> Row:
    values: Any = row.get(name, dict)
    return Row(values, f"{row.where}, {name!r}")


def _variables(row: Row) -> str:
    """Return the variables of a test as text, one per line."""
    given = row.values.get("vars")
    named = given if isinstance(given, Mapping) else {}
    return "\n".join(
        f"{name}: {value if isinstance(value, str) else orjson.dumps(value).decode()}"
        for name, value in named.items()
    )


def _assertions(test: Row) -> Iterator[tuple[ParsedItem | None, str]]:
    """Yield the items of a test's assertions; None with the type of one that cannot be an item."""
    listed: Any = test.values.get("assert") or []
    for number, given in enumerate(listed if isinstance(listed, list) else [], 1):
        if isinstance(given, Mapping):
            yield from read_assertion(given, f"{test.where}, assertion {number}")


def read_assertion(
    given: Mapping[str, Any], where: str, share: float = 1.0
) -> Iterator[tuple[ParsedItem | None, str]]:
    """Yield the items of one assertion; None if it cannot be an item. `share` scales its weight."""
    kind, value = str(given.get("type", "")), given.get("value")
    weight = given.get("weight", 1.0)
    if isinstance(weight, bool) or not isinstance(weight, int | float):
        raise BenchmarkError(f"{where}: weight should be a number.")
    weight = float(weight) * share
    inner = given.get("assert")
    if kind == "assert-set" and isinstance(inner, list):
        total = sum(float(each.get("weight", 1.0)) for each in inner if isinstance(each, Mapping))
        for each in inner:
            if isinstance(each, Mapping):
                yield from read_assertion(each, where, weight / total if total else 0.0)
        return
    group = given.get("metric")
    named = group if isinstance(group, str) and group.strip() else None
    plain, negate = kind.removeprefix("not-"), kind.startswith("not-")
    if plain in MODEL_GRADED:
        # `not-` turns the criterion around: meeting it is worse.
        criteria = value if isinstance(value, list) else [value]
        texts = [text for text in criteria if isinstance(text, str) and text.strip()]
        for text in texts:
            own = (-weight if negate else weight) / len(texts)
            yield ParsedItem(as_question(text), ItemDetail(weight=own), named), kind
        if not texts:
            yield None, kind
        return
    call = _call(plain, value)
    if call is None:
        yield None, kind or "(none)"
        return
    args = {**call.args, **({"negate": True} if negate else {})}
    detail = ItemDetail(weight=weight, kind=ItemKind.CHECK, check=CheckCall(call.fn, args))
    yield ParsedItem(_title(kind, value), detail, named), kind


def _title(kind: str, value: object) -> str:
    shown = value if isinstance(value, str) else orjson.dumps(value).decode()
    return f"{kind}: {shown}"[:200] if value is not None else kind


def _call(kind: str, value: object) -> CheckCall | None:
    """Return an assertion as a check of the library; None if there is none like it."""
    fold = {"ignore_case": True} if kind.startswith("icontains") else {}
    kind = kind.removeprefix("i") if fold else kind
    if kind in _TEXT_CHECKS and isinstance(value, str | int | float) and str(value):
        return CheckCall(_TEXT_CHECKS[kind], {"text": str(value), **fold})
    if kind in _LIST_CHECKS:
        listed = value.split(",") if isinstance(value, str) else value
        if isinstance(listed, list) and listed:
            texts = [str(each).strip() for each in listed]
            return CheckCall(_LIST_CHECKS[kind], {"texts": texts, **fold})
    if kind == "regex" and isinstance(value, str) and value:
        return CheckCall("regex", {"pattern": value})
    if kind == "is-json":
        if isinstance(value, Mapping):
            return CheckCall("json_schema", {"schema": dict(value)})
        return CheckCall("json") if value is None else None
    if kind == "word-count":
        if isinstance(value, Mapping):
            limits = {
                name: value[name] for name in ("min", "max") if isinstance(value.get(name), int)
            }
            return CheckCall("words", limits) if limits else None
        if isinstance(value, int) and not isinstance(value, bool):
            return CheckCall("words", {"min": value, "max": value})
    return None
