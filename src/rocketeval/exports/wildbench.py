"""Entries of WildBench's score files, `score.v2/eval=<judge>/<candidate>.json`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rocketeval.records import Response


def score_entry(
    response: Response, score: float, items: Sequence[str], p_yes: Sequence[float | None]
) -> dict[str, Any]:
    """Return an entry: the score as text, and what the items say as strengths and weaknesses.

    >>> entry = score_entry(Response("q", "c", "Hi."), 5.5, ["Is it short?"], [0.9])
    >>> entry["score"], entry["parsed_result"]["strengths"]
    ('5.5', 'Is it short? (yes 0.90)')
    """
    told = list(zip(items, p_yes, strict=False))
    strengths = [f"{item} (yes {p:.2f})" for item, p in told if p is not None and p >= 0.5]
    weaknesses = [f"{item} (yes {p:.2f})" for item, p in told if p is not None and p < 0.5]
    return {
        "session_id": response.query_id,
        "parsed_result": {
            "strengths": "\n".join(strengths),
            "weaknesses": "\n".join(weaknesses),
            "score": str(score),
        },
        "meta_data": {"error": None},
        "model_test": response.candidate,
        "score": str(score),
        "model_output": response.text,
    }
