"""audit: how far people agree with the scores."""

from __future__ import annotations

from dataclasses import asdict, replace

from rocketeval.audit.advice import advice
from rocketeval.audit.audit import Audit, audit
from rocketeval.audit.training import gold_cells
from rocketeval.certainty.power import queries_needed
from rocketeval.config import RunConfig, ScorerConfig
from rocketeval.grid import ScoreGrid
from rocketeval.records import Basis, Gold
from rocketeval.scoring.base import create_scorer
from rocketeval.stages.score import read_answers, read_grid
from rocketeval.store.run import RunStore


def audit_run(store: RunStore, config: RunConfig) -> Audit:
    """Write the audit as JSON and return it."""
    store.drop_from("audit")
    gold = Gold(store.inputs.labels(), store.inputs.votes(), store.inputs.ratings())
    ranking = store.load_json("ranking", "rank")
    ratings = {row["candidate"]: row["rating"]["value"] for row in ranking["rows"]}
    told = bool(gold.votes or gold.labels)
    found = audit(
        read_grid(store),
        _rivals(store, config.scorer) if told else {},
        _lengths(store, gold) if told else {},
        ratings,
        gold,
        _basis(store, gold),
        config.ranking,
        categories=_categories(store, gold),
        scale=config.scorer.scale,
    )
    found = replace(found, advice=advice(found, queries_needed))
    store.save_json("audit", asdict(found))
    return found


def _lengths(store: RunStore, gold: Gold) -> dict[tuple[str, str], float]:
    """Return the characters of every response to a query with gold."""
    known = {vote.query_id for vote in gold.votes} | {label.query_id for label in gold.labels}
    return {
        (head.query_id, head.candidate): float(head.length)
        for head in store.inputs.heads()
        if head.query_id in known
    }


def _categories(store: RunStore, gold: Gold) -> dict[str, str]:
    """Return the category of every query that has one, by its id; nothing without votes."""
    if not gold.votes:
        return {}
    queries = store.inputs.queries.values()
    return {query.id: query.category for query in queries if query.category}


def _rivals(store: RunStore, config: ScorerConfig) -> dict[str, ScoreGrid]:
    """Return the same judgments scored by simpler means than the run's scorer."""
    answers, _ = read_answers(store)
    own = config.kind if config.fitted is None else None
    simpler = {name: kind for name, kind in _SIMPLER.items() if kind != own}

    def grid(kind: str) -> ScoreGrid:
        settings = ScorerConfig(kind=kind, scale=config.scale, missing=config.missing)
        scores = create_scorer(settings).predict(answers).tolist()
        return ScoreGrid.from_columns(answers.query_ids, answers.candidates, scores)

    return {name: grid(kind) for name, kind in simpler.items()}


def _basis(store: RunStore, gold: Gold) -> dict[tuple[str, str], Basis]:
    """Return what the score of every response with gold rests on."""
    cells = gold_cells(gold)
    if not cells:
        return {}
    columns = map(store.score_names, ("query_id", "candidate", "basis"))
    return {
        (query_id, candidate): Basis(basis)
        for query_id, candidate, basis in zip(*columns, strict=True)
        if (query_id, candidate) in cells
    }


_SIMPLER = {"mean of answers": "mean", "hard yes/no": "hard"}
