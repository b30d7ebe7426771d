"""Answers, labels and votes drawn from known qualities."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rocketeval.records import Gold, Label, Vote, Winner
from rocketeval.scoring.answers import AnswerTable


def answer_table(rows: Sequence[tuple[str, str, Sequence[float]]]) -> AnswerTable:
    """Return the table of (query id, candidate, answers)."""
    offsets = np.cumsum([0, *(len(answers) for _, _, answers in rows)]).astype(np.int64)
    flat = np.array([answer for _, _, answers in rows for answer in answers], dtype=np.float64)
    return AnswerTable([row[0] for row in rows], [row[1] for row in rows], flat, offsets)


def made_run(
    queries: int = 12,
    candidates: int = 10,
    items: int = 5,
    seed: int = 0,
    tie_gap: float = 0.4,
) -> tuple[AnswerTable, Gold]:
    """Return answers that follow a latent quality, with labels and votes that follow it too.

    Voters call a tie where qualities differ by less than `tie_gap`.
    """
    random = np.random.default_rng(seed)
    rows, labels, votes = [], [], []
    for number in range(queries):
        quality = random.normal(size=candidates)
        hard = random.normal(scale=0.5)
        noise = random.normal(scale=0.7, size=(candidates, items))
        answers = 1.0 / (1.0 + np.exp(-(quality[:, None] + noise + 1.0)))
        query_id = f"q{number:03d}"
        for place in range(candidates):
            rows.append((query_id, f"c{place}", answers[place].tolist()))
            value = np.clip(5.5 + 1.5 * quality[place] + hard + random.normal(scale=0.5), 1, 10)
            labels.append(Label(query_id, f"c{place}", float(value)))
        for place in range(candidates - 1):
            gap = quality[place] - quality[place + 1] + random.logistic(scale=0.3)
            winner: Winner = "tie" if abs(gap) < tie_gap else ("a" if gap > 0 else "b")
            votes.append(Vote(query_id, f"c{place}", f"c{place + 1}", winner))
    return answer_table(rows), Gold(labels, votes)
