"""Clusters of queries: the same figure has the same interval in every verb.

Both turns of every conversation are alike, so that intervals must be those of the first turns.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from rocketeval.audit.audit import Audit
from rocketeval.audit.compare_scorers import VoteFigures, compare_scorers
from rocketeval.audit.figures import agreement_with_votes, find_paired_votes, hits, measure_votes
from rocketeval.audit.votes import majority_agreement, verdict_agreement
from rocketeval.config import RankingConfig, RunConfig, ScorerConfig
from rocketeval.engines.scripted import ScriptedEngine
from rocketeval.grid import ScoreGrid
from rocketeval.judges.ensemble import make_ensemble
from rocketeval.judges.runs import open_run
from rocketeval.pipeline import Run
from rocketeval.ranking.rank import Ranking
from rocketeval.records import Gold, Interval, Vote
from rocketeval.scoring.stage import read_grid
from rocketeval.view.provisional import provisional_figures
from support.made_runs import answer_table
from support.make import make_config, write_jsonl

CONVERSATIONS = 12
QUERIES = [f"{number:02}-{turn}" for number in range(CONVERSATIONS) for turn in (1, 2)]
CLUSTERS = {query: query[:2] for query in QUERIES}
WON = {number for number in range(CONVERSATIONS) if number % 3}
"""Conversations whose votes are for the response with the higher score."""
TIED = {3, 6}
"""Conversations whose votes are ties."""


def vote(query: str) -> Vote:
    number = int(query[:2])
    return Vote(query, "x", "y", "tie" if number in TIED else "a" if number in WON else "b")


def first_turns(votes: Sequence[Vote]) -> list[Vote]:
    return [each for each in votes if each.query_id.endswith("-1")]


VOTES = [vote(query) for query in QUERIES]


def grid(clusters: dict[str, str] | None = None) -> ScoreGrid:
    """Return a grid in which `x` has the higher score on every query."""
    scores = np.tile([7.0, 4.0], (len(QUERIES), 1))
    return ScoreGrid(tuple(QUERIES), ("x", "y"), scores).clustered(clusters or {})


def level(prefix: str, suffix: str) -> float:
    """Answer by the number of the conversation in the response; `x` is better than `y`."""
    found = re.search(r"([xy]) on (\d\d)", prefix)
    assert found is not None
    return 0.03 * int(found[2]) + (0.5 if found[1] == "x" else 0.1)


def clustered_config(tmp_path: Path, name: str = "run") -> RunConfig:
    """Return a config for a benchmark of conversations with two turns each."""
    folder = tmp_path / "benchmark"
    queries = [{"id": q, "text": f"Why {q}?", "cluster": CLUSTERS[q]} for q in QUERIES]
    write_jsonl(folder / "queries.jsonl", queries)
    for candidate in "xy":
        rows = [{"query_id": q, "text": f"{candidate} on {q}"} for q in QUERIES]
        write_jsonl(folder / "responses" / f"{candidate}.jsonl", rows)
    items = [{"query_id": q, "items": ["Is it right?"]} for q in QUERIES]
    write_jsonl(folder / "checklists.jsonl", items)
    given = [
        {"query_id": v.query_id, "candidate_a": "x", "candidate_b": "y", "winner": v.winner}
        for v in VOTES
    ]
    write_jsonl(folder / "votes.jsonl", given)
    return make_config(tmp_path, name)


def test_agreement_is_that_of_independent_conversations() -> None:
    """The interval equals that of `measure_votes`, and that of the first turns alone."""
    both, alone = agreement_with_votes(grid(CLUSTERS), VOTES), first_turns(VOTES)
    paired = find_paired_votes(grid(CLUSTERS), VOTES)
    measured = measure_votes(paired, {0: hits(paired, grid().scores, 0.1)})[0]
    single = agreement_with_votes(grid(), alone)
    assert measured.with_ties is not None
    assert measured.without_ties is not None
    assert both.with_ties == measured.with_ties.value == single.with_ties
    assert both.without_ties == measured.without_ties.value == single.without_ties
    assert (both.used, single.used) == (24, 12)
    assert majority_agreement([grid(CLUSTERS)] * 3, VOTES) == both


def test_verdicts_are_compared_by_conversation() -> None:
    """The interval equals that of the first turns alone."""
    verdicts = [Vote(query, "x", "y", "a") for query in QUERIES]
    both = verdict_agreement(verdicts, VOTES, clusters=CLUSTERS)
    single = verdict_agreement(verdicts, first_turns(VOTES))
    assert both is not None
    assert single is not None
    assert (both.with_ties, both.without_ties) == (single.with_ties, single.without_ties)


def test_scorers_are_compared_by_conversation() -> None:
    """`audit --scorers` has the interval of the first turns alone."""
    rows = [(q, c, [0.9 if c == "x" else 0.3]) for q in QUERIES for c in "xy"]
    config = ScorerConfig.model_validate(
        {"kind": "select", "learn_from": "votes", "options": {"among": ["mean", "hard"]}}
    )
    gold = Gold(votes=VOTES, clusters=CLUSTERS)
    ranking = RankingConfig(bootstrap=100, tie_margin=0.1)
    found = compare_scorers(config, answer_table(rows), gold, ranking)
    alone = agreement_with_votes(grid(), first_turns(VOTES), bootstrap=100)
    for row in found.rows:
        assert isinstance(row, VoteFigures)
        assert (row.with_ties, row.without_ties) == (alone.with_ties, alone.without_ties)


def test_every_verb_has_the_interval_of_the_audit(tmp_path: Path) -> None:
    """`audit`, `audit --methods` and `ensemble` give one interval for one judge and its votes."""
    configs = {name: clustered_config(tmp_path, name) for name in ("one", "two")}
    for name, config in configs.items():
        asyncio.run(Run(config, judge=ScriptedEngine(level, model=name)).all())
    one = open_run(configs["one"].run_path)
    audited = one.store.read(Audit).agreement["judge"]
    alone = agreement_with_votes(read_grid(one.store), first_turns(VOTES), bootstrap=50)
    assert (audited.with_ties, audited.without_ties) == (alone.with_ties, alone.without_ties)
    engine = ScriptedEngine(level, model="one")
    methods = asyncio.run(Run(configs["one"], judge=engine).compare_methods(["checklist"]))
    assert methods.rows[0].agreement == audited
    runs = [one, open_run(configs["two"].run_path)]
    ensemble = make_ensemble(runs, one.config.ranking)
    assert set(ensemble.agreement) == {"one", "two", "mean of judges", "pooled matches"}
    assert all(agreement == audited for agreement in ensemble.agreement.values())


def test_provisional_intervals_are_those_of_the_finished_run(tmp_path: Path) -> None:
    """The page of an unfinished run resamples conversations, as its ranking does."""
    run = Run(clustered_config(tmp_path), judge=ScriptedEngine(level))
    asyncio.run(run.to_judgments())
    content = provisional_figures(run.store).source.content
    run.score()
    run.rank()

    def means(ranking: Ranking) -> list[Interval]:
        return [row.mean_score for row in ranking.rows]

    expected = means(run.store.read(Ranking))
    assert [each.value for each in expected] == pytest.approx([6.985, 3.385])
    assert means(content.findings.ranking) == expected
