"""audit: how far people agree with the scores."""

from __future__ import annotations

from dataclasses import asdict

from rocketeval.audit.audit import Audit, audit
from rocketeval.config import RunConfig
from rocketeval.records import Gold
from rocketeval.stages.score import hard_grid, read_grid
from rocketeval.store.run import RunStore


def audit_run(store: RunStore, config: RunConfig) -> Audit:
    """Write the audit as JSON and return it."""
    store.drop_from("audit")
    gold = Gold(store.inputs.labels(), store.inputs.votes(), store.inputs.ratings())
    grid = read_grid(store)
    voted = {vote.query_id for vote in gold.votes}
    lengths = {
        (head.query_id, head.candidate): float(head.length)
        for head in store.inputs.heads()
        if head.query_id in voted
    }
    ranking = store.load_json("ranking", "rank")
    ratings = {row["candidate"]: row["rating"]["value"] for row in ranking["rows"]}
    hard = hard_grid(store, config.scorer) if voted else grid
    found = audit(grid, hard, lengths, ratings, gold, config.ranking)
    store.save_json("audit", asdict(found))
    return found
