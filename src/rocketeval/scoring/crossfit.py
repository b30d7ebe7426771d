"""Scores that never rest on their own gold.

A learning scorer is fitted once to all the gold it may learn from, for whatever it has not seen.
What it has seen is cut into folds, and each fold is scored by a fit to the other folds: folds of
candidates when it learns from labels, folds of queries when it learns from votes.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from rocketeval.config import ScorerConfig
from rocketeval.records import Basis, Gold
from rocketeval.scoring.answers import AnswerTable
from rocketeval.scoring.base import Learner, Scorer, create_scorer
from rocketeval.scoring.held_out import held_out_scores
from rocketeval.scoring.split import Split, split_gold

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Scored:
    """Scores of an answer table, and what each rests on."""

    scores: Floats
    """One per response; NaN where there is none."""
    basis: tuple[Basis, ...]
    """What each score rests on."""
    kind: str
    """What kind of scorer gave them."""
    scorer: Scorer | None
    """Fitted to all the gold it may learn from, for responses it has not seen; None where an
    evaluator decided."""
    split: Split | None
    """None when the scorer learns nothing."""
    fold_fallbacks: int = 0
    """Queries that a fit to some of the folds leaves to the mean, and the whole fit does not."""

    def counts(self) -> dict[str, int]:
        """How many scores rest on what."""
        counted = Counter(compress(self.basis, np.isfinite(self.scores).tolist()))
        return dict(sorted((basis.value, count) for basis, count in counted.items()))


def score_unlearned(answers: AnswerTable, scorer: Scorer, config: ScorerConfig) -> Scored:
    """Return the scores of a scorer that does not learn: a query's rest on its own answers alone.

    So the answers may be those to some of the queries, and the others come in another call, with a
    fit of their own; `check_scorer` tests that such fits agree.
    """
    scores = scorer.fit(answers, Gold()).predict(answers)
    return Scored(scores, (Basis.UNSUPERVISED,) * len(answers), config.kind, scorer, None)


def score_answers(answers: AnswerTable, gold: Gold, config: ScorerConfig) -> Scored:
    """Return a score for every response, none by a fit that saw that response's gold."""
    scorer = create_scorer(config)
    if not isinstance(scorer, Learner):
        return score_unlearned(answers, scorer, config)
    split = split_gold(gold, set(answers.candidates), config)
    held_out = held_out_scores(config, answers, split.learned)
    seen = held_out.rows
    scorer.fit(answers.take(np.flatnonzero(seen)), split.learned)
    unseen = np.flatnonzero(~seen)
    scores = held_out.scores.copy()
    scores[unseen] = scorer.predict(answers.take(unseen))
    basis = tuple(Basis.OUT_OF_FOLD if row else Basis.UNSEEN for row in seen.tolist())
    in_folds = {
        query_id
        for fitted in held_out.scorers
        if isinstance(fitted, Learner)
        for query_id in fitted.fallbacks()
    }
    fold_fallbacks = len(in_folds - set(scorer.fallbacks()))
    return Scored(scores, basis, config.kind, scorer, split, fold_fallbacks)
