"""Out-of-fold scoring: no score comes from a fit on its own reference data.

A learning scorer is fitted once on all its training data, to score everything else. The training
data is cut into folds, and each fold is scored by a fit on the other folds: folds of candidates for
labels, folds of queries for votes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rocketeval.arrays import Floats
from rocketeval.config import ScorerConfig
from rocketeval.records import Basis, Gold
from rocketeval.scoring.answers import AnswerTable
from rocketeval.scoring.base import Learner, Scorer, create_scorer
from rocketeval.scoring.split import GoldSplit, candidate_folds, query_folds, split_gold
from rocketeval.store.schema import no_judgments


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Result of a cross-validation."""

    scores: Floats
    """One per response; NaN outside the folds or without answers."""
    rows: NDArray[np.bool_]
    """Which responses are in the folds: those whose candidate (or query) is trained on."""
    scorers: tuple[Scorer, ...]
    """The fit of each fold."""


def held_out_scores(config: ScorerConfig, answers: AnswerTable, gold: Gold) -> HeldOut:
    """Return scores from fits that left out the response's candidate (labels) or query (votes)."""
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
    """Return the fold of each response, -1 for none; raise BenchmarkError below two folds."""
    if config.learn_from == "votes":
        names = answers.query_ids
        places = query_folds((vote.query_id for vote in gold.votes), config.folds, config.seed)
    else:
        names = answers.candidates
        places = candidate_folds(gold.labels, config.folds, config.seed)
    return np.array([places.get(name, -1) for name in names], dtype=np.int64)


def gold_about(answers: AnswerTable, gold: Gold, learn_from: str) -> Gold:
    """Return only the labels or votes on responses in the table."""
    here = set(zip(answers.query_ids, answers.candidates, strict=True))
    if learn_from == "labels":
        return Gold(labels=[x for x in gold.labels if (x.query_id, x.candidate) in here])
    votes = [
        vote
        for vote in gold.votes
        if (vote.query_id, vote.candidate_a) in here and (vote.query_id, vote.candidate_b) in here
    ]
    return Gold(votes=votes)


@dataclass(frozen=True, eq=False)
class Scored:
    """Scores of an answer table, and the basis of each."""

    scores: Floats
    """One per response; NaN if missing."""
    basis: tuple[Basis, ...]
    """Basis of each score."""
    kind: str
    """Kind of the scorer."""
    scorer: Scorer | None
    """The scorer fitted on all training data, for unseen responses; None for an evaluator."""
    split: GoldSplit | None
    """None if the scorer does not learn."""
    fold_fallbacks: int = 0
    """Queries that some fold's fit scores by the mean, but the full fit does not."""

    def counts(self) -> dict[str, int]:
        """Count the scores by basis."""
        counted = Counter(compress(self.basis, np.isfinite(self.scores).tolist()))
        return dict(sorted((basis.value, count) for basis, count in counted.items()))


def score_unlearned(answers: AnswerTable, scorer: Scorer, config: ScorerConfig) -> Scored:
    """Score with a scorer that does not learn; a query's scores depend only on its answers.

    So queries can be scored in parts, each with its own fit; `check_scorer` tests that such fits
    agree.
    """
    scores = scorer.fit(answers, Gold()).predict(answers)
    return Scored(scores, (Basis.UNSUPERVISED,) * len(answers), config.kind, scorer, None)


def score_answers(answers: AnswerTable, gold: Gold, config: ScorerConfig) -> Scored:
    """Score every response, never by a fit on that response's own reference data."""
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


_READ = ("key", "p_yes")


def align_answers(
    query_ids: Sequence[str],
    candidates: Sequence[str],
    keys: Sequence[str | None],
    judgments: Iterable[pa.Table],
) -> AnswerTable:
    """Return the answers of the given cells, in that order, from tables with `key`, `p_yes`.

    The result does not depend on the order of the ledger.
    """
    tables = (table.select(_READ) for table in judgments)
    ledger = pa.concat_tables([no_judgments(_READ), *tables])
    ledger = ledger.combine_chunks()
    rows = pc.index_in(pa.array(keys, pa.string()), value_set=ledger["key"])
    lists = ledger["p_yes"].combine_chunks().take(rows)
    if isinstance(lists, pa.ChunkedArray):
        lists = lists.combine_chunks()
    return table_of_lists(query_ids, candidates, lists)


def table_of_lists(
    query_ids: Sequence[str], candidates: Sequence[str], lists: pa.ListArray
) -> AnswerTable:
    """Return an answer table from one list per cell; null is a missing judgment or answer."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    p_yes = pc.list_flatten(lists).to_numpy(zero_copy_only=False).astype(np.float64)
    return AnswerTable(query_ids, candidates, p_yes, offsets)


def count_statuses(
    keys: Sequence[str | None], ledger_keys: Iterable[pa.Table], ledger_statuses: Iterable[pa.Table]
) -> dict[str, int]:
    """Count the answers of the given judgments by status.

    The ledger is read twice, so that the keys are hashed only once.
    """
    parts = [no_judgments(_READ)["key"], *(table["key"] for table in ledger_keys)]
    stored = pa.chunked_array([chunk for part in parts for chunk in part.chunks], pa.string())
    wanted = pc.is_in(stored, value_set=pa.array(keys, pa.string()))
    counts: Counter[str] = Counter()
    start = 0
    for table in ledger_statuses:
        chosen = table["status"].filter(wanted.slice(start, table.num_rows))
        start += table.num_rows
        for entry in pc.value_counts(pc.list_flatten(chosen)).to_pylist():
            counts[entry["values"]] += entry["counts"]
    return dict(sorted(counts.items()))


def score_table(
    answers: AnswerTable, scored: Scored, keys: Sequence[str | None] | pa.StringArray
) -> pa.Table:
    """Return the scores as the table to write to disk."""
    return pa.table(
        {
            "query_id": pa.array(answers.query_ids, pa.string()),
            "candidate": pa.array(answers.candidates, pa.string()),
            "score": pa.array(scored.scores, from_pandas=True),
            "basis": pa.array(scored.basis, pa.string()),
            "items": pa.array(answers.items, pa.int32()),
            "answered": pa.array(answers.answered, pa.int32()),
            "judgment": pa.array(keys, pa.string()),
        }
    )
