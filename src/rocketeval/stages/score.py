"""score: every response gets a score, or a visible gap."""

from __future__ import annotations

from typing import Any

import numpy as np

from rocketeval.config import RunConfig
from rocketeval.grading.schedule import cells
from rocketeval.grid import ScoreGrid
from rocketeval.records import Gold
from rocketeval.scoring.answers import AnswerTable
from rocketeval.scoring.crossfit import score_answers
from rocketeval.scoring.score import align_answers, count_statuses, score_table
from rocketeval.stages.learned import apply_saved, keep_scorer, keep_weights, learned_facts
from rocketeval.store.run import RunStore


def score_responses(store: RunStore, config: RunConfig) -> dict[str, Any]:
    """Write the scores; return how many there are, what they rest on, and how many are missing."""
    store.drop_from("score")
    answers, keys = read_answers(store)
    if config.scorer.fitted is None:
        gold = Gold(store.inputs.labels(), store.inputs.votes())
        scored = score_answers(answers, gold, config.scorer)
        keep_scorer(store, config.scorer, scored, answers, keys)
    else:
        scored = apply_saved(store, config.scorer, answers, keys)
    keep_weights(store, scored)
    store.save_scores(score_table(answers, scored, keys))
    return {
        "scores": int(np.isfinite(scored.scores).sum()),
        "without_score": int(np.isnan(scored.scores).sum()),
        "answers": int(answers.items.sum()),
        "missing_answers": int((answers.items - answers.answered).sum()),
        "statuses": count_statuses(keys, store.judgments(["key"]), store.judgments(["status"])),
        "scorer": scored.kind,
        "basis": scored.counts(),
        "learned": learned_facts(scored),
    }


def read_answers(store: RunStore) -> tuple[AnswerTable, list[str | None]]:
    """Return the answers of every response in the run's order, with its judgment's key."""
    query_ids, candidates, keys = [], [], []
    known: dict[str, str] = {}
    for cell in cells(store.inputs, store.judge().digest):
        # A name stands in a million rows, and once in memory.
        query_ids.append(known.setdefault(cell.query_id, cell.query_id))
        candidates.append(known.setdefault(cell.candidate, cell.candidate))
        keys.append(None if cell.key is None else cell.key.hex())
    judgments = store.judgments(["key", "p_yes"])
    return align_answers(query_ids, candidates, keys, judgments), keys


def scored_answers(store: RunStore) -> tuple[AnswerTable, list[str | None]]:
    """Return the answers that the run's scores rest on, in their order, with judgments' keys."""
    keys = store.scores(["judgment"])["judgment"].to_pylist()
    query_ids, candidates = store.score_names("query_id"), store.score_names("candidate")
    return align_answers(query_ids, candidates, keys, store.judgments(["key", "p_yes"])), keys


def read_grid(store: RunStore) -> ScoreGrid:
    """Return the run's scores as a grid of queries and candidates."""
    return ScoreGrid.from_columns(
        store.score_names("query_id"),
        store.score_names("candidate"),
        store.scores(["score"])["score"].to_pylist(),
    )
