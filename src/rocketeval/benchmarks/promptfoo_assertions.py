"""Assertions of promptfoo as checklist items.

An assertion for a model becomes a yes/no item, one for code a check of the library. Assertions that
would run code (javascript, python), or that are not about the text (latency, cost), are no items.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from rocketeval.benchmarks.messages import RowError
from rocketeval.benchmarks.reading import as_question
from rocketeval.items import (
    CheckCall,
    ItemDetail,
    ItemKind,
    ParsedItem,
    parse_item,
    valid_item,
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
