"""promptfoo results: `promptfoo eval -o results.json` (or .jsonl, .yaml), versions 2 and 3.

A candidate is a provider, a prompt, or both, whichever the file varies. If it varies the prompt,
the query is what the prompts have in common: the test's variables.

An assertion for a model becomes a yes/no item, one for code a check of the library. Assertions that
would run code (javascript, python), or that are not about the text (latency, cost), are no items.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from rocketeval.benchmarks.cells import as_text
from rocketeval.benchmarks.data import (
    DataBenchmark,
    Example,
    Kept,
    Skipped,
    content_id,
    read_scores,
)
from rocketeval.benchmarks.messages import (
    RowError,
    from_json,
    is_messages,
    mapped,
    read_turns,
    split_turns,
)
from rocketeval.benchmarks.reading import Row, as_question
from rocketeval.benchmarks.row_files import (
    BadRow,
    Rows,
    Sample,
    data_files,
    read_document,
    row_format,
    rows_of,
)
from rocketeval.errors import BenchmarkError
from rocketeval.items import (
    CheckCall,
    ItemDetail,
    ItemKind,
    ParsedItem,
    parse_item,
    valid_item,
)
from rocketeval.records import Query, Response, Turn
from rocketeval.text import count_of

PROVIDER_ERROR = 2
"""`failureReason` of a result without an answer; 1 is a failed assertion."""
FAILED = "the provider returned an error"
MOST_NAME = 60
"""Maximum characters of a prompt's name."""
VARIABLE = re.compile(r"\{\{\s*(\w+)\s*\}\}")


class PromptfooResults(DataBenchmark):
    """A results file of promptfoo."""

    kind = "promptfoo"

    @classmethod
    def recognize(cls, sample: Sample) -> str | None:
        """Look for a result list with prompts and providers."""
        inner = sample.document.get("results")
        if isinstance(inner, Mapping) and ("version" in inner or "table" in inner):
            return f"promptfoo results (version {inner.get('version', 2)})"
        if sample.has("testIdx", "promptIdx", "provider"):
            return "promptfoo results (JSON lines)"
        return None

    def mapping(self) -> Mapping[str, str]:
        """Return where the parts come from, with counts."""
        by_prompt = len(self._prompts) > 1
        rubrics = sum(bool(made.items) for made in self.summary.checklists.values())
        tests = len({_test(row) for row in self._results() if isinstance(row, Row)})
        providers = count_of(len(self._providers), "provider", "providers")
        prompts = count_of(len(self._prompts), "prompt", "prompts")
        said = {
            "query": "the test's variables (the prompts differ)" if by_prompt else "the prompt",
            "response": "response.output",
            "candidate": f"{providers}, {prompts}: " + ", ".join(self.summary.candidates),
            "id": f"testIdx ({count_of(tests, 'test', 'tests')})",
        }
        if rubrics:
            said["checklist"] = f"assertions of {rubrics} tests"
        if self.summary.labels:
            said["label"] = "score (of all assertions), as reference data"
        return said

    def examples(self) -> Iterator[Kept]:
        """Yield an example per result."""
        for row in self._results():
            yield row if isinstance(row, BadRow) else mapped(row, self._example)

    def _results(self) -> Rows:
        for path in data_files(self.path):
            if row_format(path) == "jsonl":
                yield from rows_of(path)
                continue
            for place, result in enumerate(_results_in(read_document(path), path.name), 1):
                where = f"{path.name} result {place}"
                yield (
                    Row(result, where)
                    if isinstance(result, dict)
                    else BadRow(where, "the result is not an object")
                )

    @cached_property
    def _prompts(self) -> list[str]:
        """The distinct prompts, by label or template."""
        return list(
            dict.fromkeys(_prompt_name(row) for row in self._results() if isinstance(row, Row))
        )

    @cached_property
    def _short_names(self) -> dict[str, str]:
        """A short name of each prompt: its own label, before the file and text that follow it."""
        first = {name: name.partition(": ")[0] for name in self._prompts}
        unique = len(set(first.values())) == len(first)
        return {
            name: first[name]
            if unique and len(first[name]) <= MOST_NAME
            else (name if len(name) <= MOST_NAME else f"prompt {place}")
            for place, name in enumerate(self._prompts, 1)
        }

    @cached_property
    def _providers(self) -> list[str]:
        return list(
            dict.fromkeys(_provider(row) for row in self._results() if isinstance(row, Row))
        )

    def _example(self, row: Row) -> Kept:
        response = row.values.get("response")
        output = response.get("output") if isinstance(response, Mapping) else None
        if output is None:
            failed = row.values.get("failureReason") == PROVIDER_ERROR
            why = FAILED if failed or not _graded(row) else "no output"
            return Skipped(row.where, why)
        variables = _object(row, "vars")
        turns, notes = self._asked(row, variables)
        split = split_turns(turns, notes)
        name = f"test-{_test(row)}"
        if row.values.get("testIdx") is None:
            name = content_id(split.query, split.history)
        candidate = self._candidate(row)
        items, dropped = _items(row, variables)
        scores = [("promptfoo", row.values.get("score"))] if _graded(row) else []
        labels, unread = read_scores(scores, name, candidate)
        test = _object(row, "testCase")
        about = test.get("metadata")
        category = about.get("category") if isinstance(about, Mapping) else None
        return Example(
            row.where,
            Query(name, split.query, split.history, category=category and str(category)),
            (Response(name, candidate, as_text(output)),),
            items,
            labels,
            notes=(*split.notes, *dropped, *unread),
        )

    def _candidate(self, row: Row) -> str:
        prompt = self._short_names[_prompt_name(row)]
        if len(self._prompts) == 1:
            return _provider(row)
        return prompt if len(self._providers) == 1 else f"{_provider(row)} / {prompt}"

    def _asked(
        self, row: Row, variables: Mapping[str, Any]
    ) -> tuple[tuple[Turn, ...], tuple[str, ...]]:
        if len(self._prompts) > 1 and variables:
            said = {name: as_text(value) for name, value in variables.items()}
            text = next(iter(said.values()))
            if len(said) > 1:
                text = "\n".join(f"{name}: {value}" for name, value in said.items())
            return (Turn("user", text),), ()
        raw = _object(row, "prompt").get("raw")
        if not isinstance(raw, str) or not raw.strip():
            raise RowError("the result has no prompt text", "field prompt.raw")
        messages = from_json(raw)
        if is_messages(messages):
            return read_turns(messages, "prompt.raw")
        return (Turn("user", raw),), ()


def _results_in(document: object, name: str) -> Sequence[object]:
    inner = document.get("results") if isinstance(document, Mapping) else None
    found = inner.get("results") if isinstance(inner, Mapping) else inner
    if not isinstance(found, list):
        raise BenchmarkError(
            f"{name} has no list `results.results`, as promptfoo writes it.",
            hint="Write it again: promptfoo eval -o results.json",
        )
    return found


def _object(row: Row, name: str) -> Mapping[str, Any]:
    value = row.values.get(name)
    return value if isinstance(value, Mapping) else {}


def _test(row: Row) -> str:
    """Return the number of the test as text."""
    return as_text(row.values.get("testIdx"))


def _provider(row: Row) -> str:
    given = row.values.get("provider")
    if isinstance(given, Mapping):
        given = given.get("label") or given.get("id")
    if not isinstance(given, str) or not given:
        return "unnamed provider"
    return given


def _prompt_name(row: Row) -> str:
    prompt = _object(row, "prompt")
    if prompt.get("label"):
        return str(prompt["label"])
    index = row.values.get("promptIdx")
    return f"prompt {index + 1}" if isinstance(index, int) else "prompt"


def _graded(row: Row) -> Sequence[object]:
    grading = _object(row, "gradingResult")
    parts = grading.get("componentResults")
    return parts if isinstance(parts, list) else ()


def _items(
    row: Row, variables: Mapping[str, Any]
) -> tuple[tuple[ParsedItem, ...], tuple[str, ...]]:
    """Return the assertions as items, and notes about those that cannot be one."""
    given = _object(row, "testCase").get("assert")
    items: list[ParsedItem] = []
    notes: list[str] = []
    for number, each in enumerate(given if isinstance(given, list) else (), 1):
        if not isinstance(each, Mapping):
            continue
        filled = _filled(each, variables)
        for item, kind in read_assertion(filled, f"{row.where}, assertion {number}"):
            if item is None:
                notes.append(f"an assertion of type {kind} is not used")
            elif item not in items:
                items.append(item)
    return tuple(items), tuple(notes)


def _filled(value: Any, variables: Mapping[str, Any]) -> Any:
    """Return an assertion with the test's variables in place of their names."""
    if isinstance(value, Mapping):
        return {name: _filled(each, variables) for name, each in value.items()}
    if isinstance(value, list):
        return [_filled(each, variables) for each in value]
    if not isinstance(value, str):
        return value
    return VARIABLE.sub(
        lambda found: as_text(variables[found[1]]) if found[1] in variables else found[0], value
    )


MODEL_GRADED = ("llm-rubric", "g-eval", "model-graded-closedqa")
"""Assertions whose value is a criterion."""
_TEXT_CHECKS = {"contains": "contains", "starts-with": "starts_with", "equals": "equals"}
_LIST_CHECKS = {"contains-all": "contains_all", "contains-any": "contains_any"}


def read_assertion(
    given: Mapping[str, Any], where: str, share: float = 1.0
) -> Iterator[tuple[ParsedItem | None, str]]:
    """Yield the items of one assertion; None if it cannot be an item. `share` scales its weight."""
    kind, value = str(given.get("type", "")), given.get("value")
    weight = _weight(given, where) * share
    inner = given.get("assert")
    if kind == "assert-set" and isinstance(inner, list):
        members = [each for each in inner if isinstance(each, Mapping)]
        total = sum(_weight(each, where) for each in members)
        for each in members:
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
            yield _valid(ParsedItem(as_question(text), ItemDetail(weight=own), named)), kind
        if not texts:
            yield None, kind
        return
    call = _call(plain, value)
    if call is None:
        yield None, kind or "(none)"
        return
    args = {**call.args, **({"negate": True} if negate else {})}
    detail = ItemDetail(weight=weight, kind=ItemKind.CHECK, check=CheckCall(call.fn, args))
    item = _valid(ParsedItem(kind, detail, named))
    yield (None if item is None else replace(item, text=_title(kind, value))), kind


def _weight(given: Mapping[str, Any], where: str) -> float:
    """Return the weight of an assertion; raise RowError if it is none that an item may have."""
    try:
        return parse_item({"text": "weight", "weight": given.get("weight", 1.0)}).detail.weight
    except ValueError as error:
        # The kind of the mistake is the same for all rows, so that they are counted together.
        raise RowError("the weight of an assertion is wrong", f"{where}: {error}") from None


def _valid(item: ParsedItem) -> ParsedItem | None:
    """Return the item; None if no checklist can hold it, such as a schema that is not JSON."""
    try:
        return valid_item(item)
    except ValueError:
        return None


def _title(kind: str, value: object) -> str:
    shown = (
        value
        if isinstance(value, str)
        else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    )
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
            if not all(texts):
                return None
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
