"""score: every response gets a score, or a visible gap."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from rocketeval.config import RunConfig, ScorerConfig
from rocketeval.grid import GridBuilder, ScoreGrid
from rocketeval.records import Gold
from rocketeval.scoring.base import Learner, create_scorer
from rocketeval.scoring.crossfit import Scored, score_answers, score_unlearned
from rocketeval.scoring.score import score_table
from rocketeval.stages.answers import AnsweredPart, AnswerReader
from rocketeval.stages.evaluate.score import evaluate_responses
from rocketeval.stages.learned import SavedScorer, keep_scorer, keep_weights, learned_facts
from rocketeval.store.run import RunStore


def score_responses(store: RunStore, config: RunConfig) -> dict[str, Any]:
    """Write the scores; return how many there are, what they rest on, and how many are missing."""
    store.drop_from("score")
    reader = AnswerReader(store)
    tally = _Tally()
    if config.evaluator is not None:
        part = reader.whole()
        evaluated = evaluate_responses(store, config, part.answers)
        store.save_scores([tally.count((part, evaluated.scored))])
        return {**tally.facts(reader), **evaluated.facts}
    store.save_scores(map(tally.count, _scored_parts(store, config.scorer, reader)))
    assert tally.last is not None
    return {**tally.facts(reader), "learned": learned_facts(tally.last)}


def read_grid(store: RunStore) -> ScoreGrid:
    """Return the run's scores as a grid of queries and candidates."""
    builder = GridBuilder()
    for batch in store.score_batches(["query_id", "candidate", "score"]):
        scores = batch["score"].to_numpy(zero_copy_only=False)
        builder.add(batch["query_id"], batch["candidate"], scores.astype(np.float64))
    return builder.grid()


_Part = tuple[AnsweredPart, Scored]


def _scored_parts(store: RunStore, config: ScorerConfig, reader: AnswerReader) -> Iterator[_Part]:
    """Yield all responses with their scores, at least one part of them.

    A scorer that learns here sees all responses at once; any other gives a query its scores from
    that query's answers alone.
    """
    scorer = None if config.fitted else create_scorer(config)
    if scorer is None:
        saved = SavedScorer(store, config)
        keep_weights(store, saved.scorer)
        for part in reader.parts():
            yield part, saved.apply(part.answers, part.keys)
    elif isinstance(scorer, Learner):
        part = reader.whole()
        gold = Gold(store.inputs.labels(), store.inputs.votes())
        scored = score_answers(part.answers, gold, config)
        keep_scorer(store, config, scored, part.answers, part.keys)
        keep_weights(store, scored.scorer)
        yield part, scored
    else:
        for part in reader.parts():
            yield part, score_unlearned(part.answers, scorer, config)


@dataclass
class _Tally:
    """What the manifest says of all parts together."""

    counts: Counter[str] = field(default_factory=Counter)
    basis: Counter[str] = field(default_factory=Counter)
    last: Scored | None = None
    """Any part tells what the scorer has learned."""

    def count(self, scored_part: _Part) -> pa.Table:
        """Count a part; return it as the table that is written to disk."""
        part, self.last = scored_part
        answers, scores = part.answers, self.last.scores
        self.counts["scores"] += int(np.isfinite(scores).sum())
        self.counts["without_score"] += int(np.isnan(scores).sum())
        self.counts["answers"] += int(answers.items.sum())
        self.counts["missing_answers"] += int((answers.items - answers.answered).sum())
        self.basis.update(self.last.counts())
        return score_table(answers, self.last, part.keys)

    def facts(self, reader: AnswerReader) -> dict[str, Any]:
        """Return what was counted, when all parts are."""
        assert self.last is not None
        return {
            **self.counts,
            "statuses": reader.statuses(),
            "scorer": self.last.kind,
            "basis": dict(sorted(self.basis.items())),
        }
