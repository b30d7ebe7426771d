"""The ensemble of several judges' runs on the same responses: two combined rankings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from rocketeval.audit.figures import Agreement, agreement_with_votes
from rocketeval.audit.votes import majority_agreement
from rocketeval.config import RankingConfig
from rocketeval.errors import ConfigError
from rocketeval.grid import ScoreGrid
from rocketeval.judges.runs import (
    CommonGrids,
    JudgedRun,
    Missing,
    common_grids,
    ensemble_mean,
    judge_names,
    refuse_other_responses,
    refuse_other_scales,
)
from rocketeval.ranking.rank import Ranking, rank, rank_pooled
from rocketeval.ranking.summary import ranking_csv
from rocketeval.records import Basis, Gold
from rocketeval.scoring.split import RefusedGold, honest_gold
from rocketeval.scoring.stage import read_grid
from rocketeval.stats.correlation import Correlation, correlate
from rocketeval.store.codec import encode_finding
from rocketeval.store.files import write_bytes, write_json

MEAN, POOLED = "mean of judges", "pooled matches"


@dataclass(frozen=True, slots=True)
class Ensemble:
    """The combined results of several judges."""

    FILE: ClassVar[str] = "ensemble"
    COMMAND: ClassVar[str] = "ensemble"
    SCHEMA: ClassVar[int] = 1

    judges: tuple[str, ...]
    """One per run: the model name, plus the run name if two runs share a model."""
    queries: int
    """Queries that all runs have."""
    queries_left_out: int
    candidates_left_out: tuple[str, ...]
    partly_scored: int
    """Responses scored by some judges but not all."""
    missing: Missing
    """How the mean treats these; pooled matches use every comparison a judge can make."""
    mean: Ranking
    pooled: Ranking
    agreement: Mapping[str, Agreement]
    """With human votes, by judge and for both ensembles; pooled judges decide by majority."""
    ratings: Mapping[str, Correlation]
    """With the reference ratings, by judge and for both ensembles."""
    refused: RefusedGold
    """Reference data left out because some run's scorer was fitted to it."""


def make_ensemble(
    runs: Sequence[JudgedRun], ranking: RankingConfig, missing: Missing = "drop"
) -> Ensemble:
    """Return both ensembles of the runs' scores, on the responses that all of them judged."""
    if len(runs) < 2:
        raise ConfigError(
            f"An ensemble needs at least two runs, not {len(runs)}.",
            hint="Give two runs or more, one per judge.",
        )
    refuse_other_scales(runs)
    common = common_grids([read_grid(run.store) for run in runs])
    refuse_other_responses(runs, common)
    judges = judge_names(runs)
    settings = ranking.model_dump()
    mean = ensemble_mean(common.grids, missing)
    rankings = {
        **{name: rank(grid, **settings) for name, grid in zip(judges, common.grids, strict=True)},
        MEAN: rank(mean, **settings),
        POOLED: rank_pooled(common.grids, **settings),
    }
    gold, refused = _gold(runs)
    return Ensemble(
        judges=judges,
        queries=len(mean.query_ids),
        queries_left_out=common.queries_left_out,
        candidates_left_out=common.candidates_left_out,
        partly_scored=common.partly_scored,
        missing=missing,
        mean=rankings[MEAN],
        pooled=rankings[POOLED],
        agreement=_agreement(judges, common, mean, gold, ranking),
        ratings={
            name: correlate(_ratings(found), gold.ratings, seed=ranking.seed)
            for name, found in rankings.items()
        }
        if gold.ratings
        else {},
        refused=refused,
    )


def save_ensemble(found: Ensemble, folder: Path) -> None:
    """Write ensemble.json, and ranking.json and ranking.csv for each ensemble."""
    if (folder / "run.yaml").exists():
        raise ConfigError(
            f"{folder} is a run directory.", hint="Choose another folder for the ensemble."
        )
    facts = encode_finding(found)
    for name, ranking in (("mean", found.mean), ("pooled", found.pooled)):
        del facts[name]
        write_json(folder / name / "ranking.json", encode_finding(ranking))
        write_bytes(folder / name / "ranking.csv", ranking_csv(ranking).encode())
    write_json(folder / "ensemble.json", facts)


def _agreement(
    judges: Sequence[str], common: CommonGrids, mean: ScoreGrid, gold: Gold, ranking: RankingConfig
) -> dict[str, Agreement]:
    if not gold.votes:
        return {}
    grids = {**dict(zip(judges, common.grids, strict=True)), MEAN: mean}
    margin, times, seed = ranking.tie_margin, ranking.bootstrap, ranking.seed
    return {
        **{
            name: agreement_with_votes(
                grid, gold.votes, tie_margin=margin, bootstrap=times, seed=seed
            )
            for name, grid in grids.items()
        },
        POOLED: majority_agreement(
            common.grids, gold.votes, tie_margin=margin, bootstrap=times, seed=seed
        ),
    }


def _ratings(ranking: Ranking) -> dict[str, float]:
    return {row.candidate: row.rating.value for row in ranking.rows}


def _gold(runs: Sequence[JudgedRun]) -> tuple[Gold, RefusedGold]:
    """Return the first run's reference data without what any run's scorer was fitted to."""
    inputs = runs[0].store.inputs
    fitted: dict[tuple[str, str], Basis] = {}
    for run in runs:
        columns = map(run.store.score_names, ("query_id", "candidate", "basis"))
        fitted |= {
            (query_id, candidate): Basis.FITTED
            for query_id, candidate, basis in zip(*columns, strict=True)
            if basis == Basis.FITTED
        }
    return honest_gold(
        Gold(votes=inputs.votes(), ratings=inputs.ratings(), clusters=inputs.clusters()), fitted
    )
