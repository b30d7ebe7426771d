"""Small graded runs with known answers, for explanations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rocketeval.explain.candidate import GradedRun
from rocketeval.records import Checklist, Query
from rocketeval.scoring.answers import AnswerTable
from rocketeval.scoring.mean import MeanScorer


def make_graded(
    p_yes: Mapping[str, Mapping[str, Sequence[float]]],
    ranked: Sequence[str],
    *,
    weights: Mapping[str, Sequence[float]] | None = None,
    categories: Mapping[str, str] | None = None,
) -> GradedRun:
    """Return a graded run from answers by query and candidate; scores are plain means."""
    rows = [
        (query, name, list(own))
        for query, responses in p_yes.items()
        for name, own in sorted(responses.items())
    ]
    lengths = [len(own) for _, _, own in rows]
    answers = AnswerTable(
        [query for query, _, _ in rows],
        [name for _, name, _ in rows],
        np.array([p for _, _, own in rows for p in own], dtype=np.float64),
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
    )
    items = {query: max(map(len, responses.values())) for query, responses in p_yes.items()}
    return GradedRun(
        answers=answers,
        scores=MeanScorer().predict(answers),
        judgments=[f"key of {name} on {query}" for query, name, _ in rows],
        ranked=list(ranked),
        queries={q: Query(q, f"text of {q}", category=(categories or {}).get(q)) for q in p_yes},
        checklists={
            q: Checklist(q, tuple(f"{q} item {n + 1}?" for n in range(items[q]))) for q in p_yes
        },
        weights=weights or {},
    )
