"""The explain stage: losses of each candidate against its neighbors, and figures of each item."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from rocketeval.config import RunConfig
from rocketeval.errors import ConfigError
from rocketeval.explain.candidate import (
    NEIGHBOURS,
    CandidateExplanation,
    GradedRun,
    explain_candidates,
    weight_shares,
)
from rocketeval.explain.groups import GroupScore, score_groups
from rocketeval.explain.items import ItemStatistics, item_figures, why_dead
from rocketeval.ranking.stage import read_ranking
from rocketeval.scoring.read_answers import scored_answers
from rocketeval.scoring.rubric import POINTS
from rocketeval.scoring.stage import item_weights
from rocketeval.store.run import RunStore
from rocketeval.text import did_you_mean

MOST = 5
"""Number of losses, and of strengths, kept per candidate."""
MOST_KEPT = 10_000
"""Maximum number of losses over all candidates; with many candidates, fewer are kept of each."""
MOST_DEAD = 200
"""Maximum number of dead items listed; all are counted."""


@dataclass(frozen=True, slots=True)
class DeadItem:
    """An item that does not discriminate between responses."""

    query_id: str
    item: int
    """Item number in the checklist, from 1."""
    text: str
    why: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """Explanation of the whole ranking."""

    FILE: ClassVar[str] = "explain"
    COMMAND: ClassVar[str] = "explain"
    SCHEMA: ClassVar[int] = 1

    candidates: tuple[CandidateExplanation, ...]
    """In ranking order."""
    neighbours: int
    """Maximum number of neighbors per candidate."""
    most: int
    """Number of losses and strengths kept per candidate."""
    queries: int
    queries_with_learned_weights: int
    items: int
    dead: dict[str, int]
    """Number of items that do not discriminate, by reason."""
    dead_items: tuple[DeadItem, ...]
    """The first of these items."""
    groups: tuple[GroupScore, ...] = ()
    """Means of candidates per item group, if checklists have groups."""
    groups_left_out: int = 0
    """Groups left out because there are too many."""


@dataclass(frozen=True, slots=True)
class QueryExplanation:
    """Figures of each item of one query's checklist."""

    query_id: str
    text: str
    category: str | None
    responses: int
    """Responses with a score."""
    items: tuple[ItemStatistics, ...]


def explain_run(store: RunStore, config: RunConfig) -> Explanation:
    """Explain all candidates and save explain.json; an outdated report is removed."""
    graded = read_graded(store, config)
    most = max(1, min(MOST, MOST_KEPT // max(1, len(graded.ranked))))
    dead = _dead_items(graded)
    groups, left_out = score_groups(
        graded.answers,
        graded.checklists,
        graded.ranked,
        clusters=store.inputs.clusters(),
        bootstrap=config.ranking.bootstrap,
        seed=config.ranking.seed,
        points=graded.points,
    )
    found = Explanation(
        candidates=tuple(_explain(graded, graded.ranked, most, config)),
        neighbours=NEIGHBOURS,
        most=most,
        queries=len(graded.queries),
        queries_with_learned_weights=len(graded.weights),
        items=sum(len(checklist.items) for checklist in graded.checklists.values()),
        dead=dict(Counter(item.why for item in dead)),
        dead_items=tuple(dead[:MOST_DEAD]),
        groups=groups,
        groups_left_out=left_out,
    )
    if store.save(found):
        store.drop_from("report")
    return found


def explain_candidate(
    store: RunStore, config: RunConfig, candidate: str, most: int
) -> CandidateExplanation:
    """Explain one candidate with more items than explain.json holds."""
    graded = read_graded(store, config)
    if candidate not in graded.ranked:
        raise ConfigError(
            f"{store.path} has no ranked candidate {candidate!r}.",
            hint=did_you_mean(candidate, graded.ranked),
        )
    (found,) = _explain(graded, [candidate], most, config)
    return found


def explain_query(store: RunStore, config: RunConfig, query_id: str) -> QueryExplanation:
    """Explain the items of one query's checklist."""
    graded = read_graded(store, config)
    query = graded.queries.get(query_id)
    if query is None:
        raise ConfigError(
            f"{store.path} has no query {query_id!r}.",
            hint=did_you_mean(query_id, list(graded.queries)),
        )
    if query_id not in graded.checklists:
        raise ConfigError(
            f"Query {query_id!r} has no checklist to explain.",
            hint="See the failures of the checklist stage in manifest.json.",
        )
    rows = [row for row, own in enumerate(graded.answers.query_ids) if own == query_id]
    scores = graded.scores[rows]
    checklist = graded.checklists[query_id]
    texts = checklist.titles
    p_yes = np.full((len(rows), len(texts)), np.nan)
    for block in graded.answers.take(rows).as_given().blocks():
        p_yes[:, : block.p_yes.shape[1]] = block.p_yes
    items = item_figures(texts, p_yes, scores, graded.weights.get(query_id))
    if checklist.details is not None:
        shares = weight_shares(checklist, len(texts), points=graded.points)
        items = tuple(
            replace(item, equal_weight=float(share))
            for item, share in zip(items, shares, strict=True)
        )
    groups = checklist.groups or (None,) * len(items)
    return QueryExplanation(
        query_id,
        query.text,
        query.category,
        int(np.isfinite(scores).sum()),
        tuple(replace(item, group=group) for item, group in zip(items, groups, strict=True)),
    )


def read_graded(store: RunStore, config: RunConfig) -> GradedRun:
    """Return the run's answers, scores and ranking; raise StageMissing before ranking."""
    ranked = [row.candidate for row in read_ranking(store).rows]
    answers, keys = scored_answers(store)
    scores = store.scores(["score"])["score"]
    return GradedRun(
        answers=answers,
        scores=scores.to_numpy(zero_copy_only=False).astype(np.float64),
        judgments=keys,
        ranked=ranked,
        queries=store.inputs.queries,
        checklists=store.inputs.checklists(),
        weights=item_weights(store),
        scale=config.scorer.scale,
        points=config.scorer.kind == POINTS,
    )


def _explain(
    graded: GradedRun, candidates: list[str], most: int, config: RunConfig
) -> list[CandidateExplanation]:
    ranking = config.ranking
    return explain_candidates(
        graded, candidates, most=most, bootstrap=ranking.bootstrap, seed=ranking.seed
    )


def _dead_items(graded: GradedRun) -> list[DeadItem]:
    dead = []
    for block in graded.answers.as_given().blocks():
        for place, answers in enumerate(block.p_yes.T):
            why = why_dead(answers[~np.isnan(answers)])
            if why is not None:
                text = graded.checklists[block.query_id].titles[place]
                dead.append(DeadItem(block.query_id, place + 1, text, why))
    return dead
