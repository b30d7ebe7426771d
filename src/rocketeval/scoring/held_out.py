"""Scores of learned-from responses, each by a fit that saw nothing of its fold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rocketeval.config import ScorerConfig
from rocketeval.records import Gold
from rocketeval.scoring.answers import AnswerTable
from rocketeval.scoring.base import Scorer, create_scorer
from rocketeval.scoring.features import Floats
from rocketeval.scoring.folds import candidate_folds, query_folds


@dataclass(frozen=True, eq=False)
class HeldOut:
    """What cross-validation gives."""

    scores: Floats
    """One per response; NaN where there is no gold to cut into folds, or no answer."""
    rows: NDArray[np.bool_]
    """Which responses were cut into folds: those whose candidate (or query) is learned from."""
    scorers: tuple[Scorer, ...]
    """The fit of each fold."""


def held_out_scores(config: ScorerConfig, answers: AnswerTable, gold: Gold) -> HeldOut:
    """Return scores by fits that left out the response's candidate (labels) or query (votes)."""
    folds = row_folds(answers, gold_about(answers, gold, config.learn_from), config)
    scores = np.full(len(answers), np.nan)
    scorers = []
    for fold in range(int(folds.max()) + 1):
        inside, outside = (
            np.flatnonzero(rows) for rows in (folds == fold, (folds >= 0) & (folds != fold))
        )
        seen = answers.take(outside)
        scorer = create_scorer(config).fit(seen, gold_about(seen, gold, config.learn_from))
        scores[inside] = scorer.predict(answers.take(inside))
        scorers.append(scorer)
    return HeldOut(scores, folds >= 0, tuple(scorers))


def row_folds(answers: AnswerTable, gold: Gold, config: ScorerConfig) -> NDArray[np.int64]:
    """Return the fold of each response, -1 without gold; BenchmarkError when there are not two."""
    if config.learn_from == "votes":
        names = answers.query_ids
        places = query_folds((vote.query_id for vote in gold.votes), config.folds, config.seed)
    else:
        names = answers.candidates
        places = candidate_folds(gold.labels, config.folds, config.seed)
    return np.array([places.get(name, -1) for name in names], dtype=np.int64)


def gold_about(answers: AnswerTable, gold: Gold, learn_from: str) -> Gold:
    """Return the labels, or the votes, that speak of responses in the table alone."""
    here = set(zip(answers.query_ids, answers.candidates, strict=True))
    if learn_from == "labels":
        return Gold(labels=[x for x in gold.labels if (x.query_id, x.candidate) in here])
    votes = [
        vote
        for vote in gold.votes
        if (vote.query_id, vote.candidate_a) in here and (vote.query_id, vote.candidate_b) in here
    ]
    return Gold(votes=votes)
