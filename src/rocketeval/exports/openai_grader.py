"""Checklists as graders of the OpenAI API: a `multi` grader with one grader per item.

A yes/no item is a label grader, an item with levels a score grader, and a check for text a string
check. Their weighted mean is the output, as in the run; a penalty counts as one minus its grade.
The conversation before a query is the text `item.history`. What no grader can express is left out
and named.
"""

from __future__ import annotations

from dataclasses import dataclass

from rocketeval.items import CheckCall, ItemDetail, ItemKind, level_labels
from rocketeval.records import Checklist, Query

NAME = "rocketeval"
"""Name of the score in other tools."""
OUTPUT = "{{ sample.output_text }}"
SHOWN = f"Query:\n{{{{ item.query }}}}\n\nResponse:\n{OUTPUT}\n\nQuestion: "
BEFORE = "Conversation before the query:\n{{ item.history }}\n\n"
OPERATIONS = {"equals": ("eq", "eq"), "contains": ("like", "ilike")}
"""Operation of a string check, with and without regard to case; `equals` regards it."""
NO_CHECK = "items with a check that no OpenAI grader can do"
NO_MATERIAL = "items about a reference or context, which the graders are not given"
NOT_APPLICABLE = "items asked without the answer that they do not apply"


@dataclass(frozen=True, slots=True)
class ChecklistGrader:
    """The grader of one checklist, and what it lacks."""

    content: dict[str, object]
    """The JSON document; empty if no item can be expressed."""
    lacking: tuple[str, ...]
    """Why an item is left out or changed, once per item."""


def grader_item(query: Query) -> dict[str, str]:
    """Return what the graders show of a query; the conversation before it is one text."""
    before = "\n\n".join(f"{turn.role}: {turn.content}" for turn in query.history)
    item = {"query": query.text, "query_id": query.id}
    return {**item, "history": before} if before else item


def checklist_grader(checklist: Checklist, model: str, *, history: bool = False) -> ChecklistGrader:
    """Return the graders of a checklist and their weighted mean; `history` shows earlier turns."""
    shown = f"{BEFORE}{SHOWN}" if history else SHOWN
    graders: dict[str, object] = {}
    terms: list[str] = []
    total = 0.0
    lacking: list[str] = []
    for place, (text, detail) in enumerate(
        zip(checklist.items, checklist.every_detail, strict=True), 1
    ):
        name = f"item_{place}"
        if detail.uses:
            lacking.append(NO_MATERIAL)
            continue
        grader, value = _item_grader(name, f"{shown}{text.replace('{{', '{ {')}", detail, model)
        if grader is None:
            lacking.append(NO_CHECK)
            continue
        if detail.na:
            lacking.append(NOT_APPLICABLE)
        weight = abs(detail.weight)
        if not weight:
            continue
        graders[name] = grader
        value = f"(1 - {value})" if detail.weight < 0 else value
        terms.append(value if weight == 1 else f"{weight:g} * {value}")
        total += weight
    if not graders:
        return ChecklistGrader({}, tuple(lacking))
    mean = f"({' + '.join(terms)}) / {total:g}"
    content: dict[str, object] = {
        "type": "multi",
        "name": NAME,
        "graders": graders,
        "calculate_output": mean,
    }
    return ChecklistGrader(content, tuple(lacking))


def _item_grader(
    name: str, asked: str, detail: ItemDetail, model: str
) -> tuple[dict[str, object] | None, str]:
    """Return the grader of an item, and its grade as a share in terms of the grader's name."""
    if detail.check is not None:
        return _string_check(name, detail.check)
    common: dict[str, object] = {"name": name, "model": model}
    if detail.kind is ItemKind.SCALE:
        labels = level_labels(len(detail.levels))
        first, last = int(labels[0]), int(labels[-1])
        listed = "\n".join(
            f"{label}: {level.replace('{{', '{ {')}"
            for label, level in zip(labels, detail.levels, strict=True)
        )
        rule = "Answer the question about the response with the number of the level that fits."
        grader = {"type": "score_model", **common, "range": [first, last]}
        grader["input"] = _messages(rule, f"{asked}\n{listed}")
        return grader, f"({name} - {first}) / {last - first}"
    return {
        "type": "label_model",
        **common,
        "input": _messages("Answer the question about the response.", asked),
        "labels": ["yes", "no"],
        "passing_labels": ["yes"],
    }, name


def _messages(rule: str, question: str) -> list[dict[str, str]]:
    return [{"role": "developer", "content": rule}, {"role": "user", "content": question}]


def _string_check(name: str, check: CheckCall) -> tuple[dict[str, object] | None, str]:
    text = check.args.get("text")
    known = {"text", "ignore_case", "negate"}
    operations = OPERATIONS.get(check.fn)
    fold = bool(check.args.get("ignore_case"))
    if operations is None or not isinstance(text, str) or set(check.args) - known:
        return None, ""
    # Double braces would be filled in; comparing a whole text has no form without case.
    if "{{" in text or (fold and check.fn == "equals"):
        return None, ""
    grader: dict[str, object] = {
        "type": "string_check",
        "name": name,
        "input": OUTPUT,
        "reference": text,
        "operation": operations[fold],
    }
    return grader, f"(1 - {name})" if check.args.get("negate") else name
