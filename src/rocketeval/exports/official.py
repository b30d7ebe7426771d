"""Rows of the files that the RocketEval paper's own scripts read and write.

query.jsonl                          session_id, conversation_input, checklist, references
response/<candidate>.jsonl           session_id, chat_history, output, generator
checklist/checklist.jsonl            session_id, checklist
judgment/<judge>/<candidate>.jsonl   session_id, model_test, judge, norm_probability, judgment
score/<judge>/<candidate>.json       an array of session_id, model_test, score, ...
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rocketeval.records import Checklist, Query, Response, Turn

REFERENCE = "gpt-4"
"""The name under which the scripts look for a reference."""


def query_row(query: Query) -> dict[str, Any]:
    """Return a row of query.jsonl."""
    turns = [*query.history, Turn("user", query.text)]
    return {
        "session_id": query.id,
        "conversation_input": [asdict(turn) for turn in turns],
        "checklist": [],
        "references": {REFERENCE: query.reference or ""},
        **({} if query.category is None else {"primary_tag": query.category}),
    }


def checklist_row(checklist: Checklist) -> dict[str, Any]:
    """Return a row of checklist.jsonl."""
    return {"session_id": checklist.query_id, "checklist": list(checklist.items)}


def response_row(response: Response, query: Query, name: str) -> dict[str, Any]:
    """Return a row of a response file; `name` is the candidate's in this folder."""
    history = query.history if response.history is None else response.history
    return {
        "session_id": response.query_id,
        "chat_history": [*(turn.content for turn in history), query.text],
        "output": [response.text],
        "generator": name,
    }


def judgment_row(
    query_id: str, name: str, judge: str, p_yes: Sequence[float | None]
) -> dict[str, Any]:
    """Return a row of a judgment file; answers are in the order of the checklist."""
    return {
        "session_id": query_id,
        "model_test": name,
        "judge": judge,
        "norm_probability": list(p_yes),
        "judgment": [_said(p) for p in p_yes],
    }


def score_row(response: Response, name: str, judge: str, score: float) -> dict[str, Any]:
    """Return an entry of a score file."""
    return {
        "session_id": response.query_id,
        "model_test": name,
        "score": score,
        "model_output": response.text,
        "judge": judge,
    }


def _said(p_yes: float | None) -> str:
    """Return an answer in the scripts' words.

    >>> _said(0.7), _said(0.1), _said(None)
    ('Yes (70.0)%', 'No (10.0)%', 'Unsure')
    """
    if p_yes is None or p_yes == 0.5:
        return "Unsure"
    return f"{'Yes' if p_yes > 0.5 else 'No'} ({100 * p_yes:.1f})%"
