"""An assertion for promptfoo: `type: python`, `value: file://rocketeval_assert.py`.

The file needs one line: `from rocketeval.integrations.promptfoo import get_assert`. Settings are
in the assertion's `config`: judge, base_url, answers, checklist (items, or the path of a checklist
file), threshold. A test's own items are its variable or metadata `checklist`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rocketeval.benchmarks.cells import as_text
from rocketeval.benchmarks.messages import from_json
from rocketeval.errors import ConfigError, RocketEvalError
from rocketeval.grader import GradedItem, ResponseToGrade
from rocketeval.integrations.shared import asked_or_text, checklist_for, explain_grade, open_grader
from rocketeval.records import Turn

__all__ = ["get_assert"]


def get_assert(output: Any, context: Mapping[str, Any]) -> dict[str, Any]:
    """Return promptfoo's grading result of an output; a failing one if the judge cannot answer.

    An output that is no text is judged as JSON, as in results that are imported.
    """
    config = context.get("config") or {}
    test, variables = context.get("test") or {}, context.get("vars") or {}
    own = variables.get("checklist")
    if own is None or own == "":
        own = (test.get("metadata") or {}).get("checklist")
    try:
        threshold = _threshold(config.get("threshold", 0.8))
        grader = open_grader(config.get("judge"), config.get("base_url"), config.get("answers"))
        query, history = _asked(context)
        items = checklist_for(own, config.get("checklist"))
        if output is not None:
            output = as_text(output)
        given = ResponseToGrade(query, output, items, history)
        graded = grader.submit(given).result()
    except RocketEvalError as error:
        return {"pass": False, "score": 0.0, "reason": f"RocketEval: {error}"}
    score = 0.0 if graded.score is None else graded.score
    return {
        "pass": graded.score is not None and score >= threshold,
        "score": score,
        "reason": explain_grade(graded),
        "componentResults": [_component(item) for item in graded.items],
        "namedScores": {"checklist": score},
    }


def _component(item: GradedItem) -> dict[str, Any]:
    value = 0.0 if item.value is None else item.value
    answer = f"unanswered ({item.shown_answer})" if item.value is None else item.shown_answer
    return {"pass": item.passed is True, "score": value, "reason": f"{answer}: {item.title}"}


def _threshold(given: object) -> float:
    try:
        threshold = float(given)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        threshold = math.nan
    if not 0 <= threshold <= 1:
        raise ConfigError(
            f"`threshold` must be a number from 0 to 1, but is {given!r}.", hint="Such as 0.8."
        )
    return threshold


def _asked(context: Mapping[str, Any]) -> tuple[str, tuple[Turn, ...]]:
    """Return the query of the rendered prompt, which may be JSON messages, and the turns before."""
    prompt = context.get("prompt")
    if isinstance(prompt, Mapping):
        prompt = prompt.get("raw")
    query = str(prompt or (context.get("vars") or {}).get("query") or "")
    if not query.strip():
        raise ConfigError(
            "The context of the assertion has no prompt, so there is no query to judge.",
            hint="Give the context that promptfoo passes, with `prompt`, or a variable `query`.",
        )
    return asked_or_text(from_json(query), query)
