"""Runs with an evaluator: question sets, decisions by experts, and all later stages."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from rocketeval.config import RunConfig
from rocketeval.engines.base import EngineIdentity
from rocketeval.engines.scripted import ScriptedEngine
from rocketeval.errors import (
    ArtifactError,
    BenchmarkError,
    BudgetSpent,
    ConfigError,
    RunMismatch,
    StageMissing,
    Stopped,
)
from rocketeval.evolve.artifact import load_evaluator, save_evaluator
from rocketeval.evolve.perspective import Asking
from rocketeval.observer import Observer
from rocketeval.pipeline import Outcome, Run
from rocketeval.records import Judgment, Query
from rocketeval.store.manifest import Stages
from rocketeval.store.run import RunStore
from support.evaluators import (
    ABOUT_RESPONSES,
    CANDIDATES,
    QUERIES,
    opinion_config,
    save_fitted,
)
from support.make import write_jsonl

KINDS: tuple[tuple[str, Asking], ...] = (("pairs", "each"), ("pairs", "pairs"), ("scores", "each"))


def given(
    tmp_path: Path,
    task: str = "pairs",
    asking: Asking = "each",
    *,
    name: str = "run",
    notes: dict[str, Any] | None = None,
    experts: int = 2,
    **changes: Any,
) -> RunConfig:
    """A config with an evaluator fitted to its judge."""
    config = opinion_config(tmp_path, name, **changes)
    path = save_fitted(
        tmp_path / f"{task}-{asking}.npz", config, task, asking, experts=experts, **(notes or {})
    )
    return config.model_copy(update={"evaluator": path})


def finish(config: RunConfig) -> Outcome:
    """Run all stages and return the outcome."""
    return asyncio.run(Run(config).all())


def scored(config: RunConfig) -> Path:
    """The folder of a scored run."""
    run = Run(config)
    asyncio.run(run.to_judgments())
    run.score()
    return run.store.path


def stages(run: Path) -> Stages:
    """The facts of each stage."""
    return RunStore(run).manifest().stages


def rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a JSON-lines file."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def scores_of(run: Path) -> dict[tuple[str, str], float | None]:
    """The score of every response."""
    table = pq.read_table(run / "scores.parquet").to_pylist()
    return {(row["query_id"], row["candidate"]): row["score"] for row in table}


def judged(run: Path, *, question_set: str | None = None) -> dict[tuple[str, str], Judgment]:
    """The judgments of a run, or of one of its question sets."""
    store = RunStore(run if question_set is None else run / "evaluator" / question_set)
    keys = [row["key"] for table in store.judgments(["key"]) for row in table.to_pylist()]
    return {(one.query_id, one.candidate): one for one in store.judgments_of(keys).values()}


@pytest.mark.parametrize(("task", "asking"), KINDS)
def test_all_stages_work_and_a_second_run_sends_no_requests(
    tmp_path: Path, task: str, asking: Asking
) -> None:
    """Ranking, audit, explanation and report exist; all answers are reused."""
    config = given(tmp_path, task, asking)
    outcome = finish(config)
    grade, score = outcome.stages.grade, outcome.stages.score
    sums = [facts.usage.requests for facts in grade.sheets.values()]
    assert grade.usage.requests == sum(sums) == grade.questions.all > 0
    assert grade.questions.decided == 18
    assert score.scores == 18
    assert (score.scorer, score.basis) == ("evaluator", {"unseen": 18})
    assert sorted(row.candidate for row in outcome.ranking.rows) == sorted(CANDIDATES)
    assert outcome.audit.agreement["mean of answers"]
    assert "Is it right?" in outcome.report.read_text()
    decisions = "preferences.jsonl" if task == "pairs" else "evaluated.jsonl"
    first = {name: (outcome.path / name).read_bytes() for name in (decisions, "scores.parquet")}
    again = finish(config)
    assert again.stages.grade.usage.requests == 0
    assert {name: (outcome.path / name).read_bytes() for name in first} == first


@pytest.mark.parametrize("asking", ["each", "pairs"])
def test_score_is_mean_share_of_wins_on_the_scale(tmp_path: Path, asking: Asking) -> None:
    """Every pair of responses is decided; a tie is half a win."""
    path = scored(given(tmp_path, "pairs", asking))
    found = rows(path / "preferences.jsonl")
    assert len(found) == len(QUERIES) * 3
    shares: dict[tuple[str, str], list[float]] = {}
    for row in found:
        assert row["p_a"] + row["p_tie"] + row["p_b"] == pytest.approx(1.0)
        for side in "ab":
            cell = (row["query_id"], row[f"candidate_{side}"])
            shares.setdefault(cell, []).append(row[f"p_{side}"] + row["p_tie"] / 2)
    expected = {cell: 1.0 + 9.0 * np.mean(own) for cell, own in shares.items()}
    assert scores_of(path) == pytest.approx(expected)


def test_voted_pair_keeps_the_order_of_its_vote(tmp_path: Path) -> None:
    """The cache holds evolve's answers in that order."""
    path = scored(given(tmp_path, "pairs", "pairs"))
    shown = {candidate for _, candidate in judged(path, question_set="pairs-choice")}
    assert shown == {'["bob","ada"]', '["ada","cid"]', '["bob","cid"]'}


def test_answers_about_each_response_are_copied(tmp_path: Path) -> None:
    """Status, bounds and text come from the question sets, in the evaluator's order."""
    path = scored(given(tmp_path))
    own = judged(path)
    choice, graded = (
        judged(path, question_set="each-choice"),
        judged(path, question_set="each-graded"),
    )
    assert len(own) == 18
    for cell, judgment in own.items():
        assert judgment.answers == (*choice[cell].answers, *graded[cell].answers)
        assert judgment.usage.requests == 0


def test_answers_about_pairs_are_means_over_opponents(tmp_path: Path) -> None:
    """Answers are flipped for the second response of a pair."""
    path = scored(given(tmp_path, "pairs", "pairs"))
    own, question_set = judged(path), judged(path, question_set="pairs-choice")
    for query_id in QUERIES:
        first, second = (
            question_set[query_id, name].answers[0].p_yes
            for name in ('["bob","ada"]', '["ada","cid"]')
        )
        assert first is not None
        assert second is not None
        expected = ((1.0 - first) + second) / 2.0
        assert own[query_id, "ada"].answers[0].p_yes == pytest.approx(expected)


def test_perspectives_are_the_checklist(tmp_path: Path) -> None:
    """In order, grouped by origin, with attention as weights."""
    path = scored(given(tmp_path))
    made = RunStore(path).inputs.checklists()
    assert {one.items for one in made.values()} == {tuple(each.text for each in ABOUT_RESPONSES)}
    assert made["q0"].groups == ("rule", "failures", "depth")
    weights = json.loads((path / "item_weights.json").read_text())
    assert set(weights) == set(QUERIES)
    assert all(sum(own) == pytest.approx(1.0) for own in weights.values())


def test_values_outside_of_the_scale_are_clipped_and_counted(tmp_path: Path) -> None:
    """evaluated.jsonl keeps the original values."""
    config = given(tmp_path, "scores", scorer={"scale": [4.0, 5.0]})
    path = scored(config)
    values = [row["value"] for row in rows(path / "evaluated.jsonl")]
    outside = sum(not 4.0 <= value <= 5.0 for value in values)
    assert outside
    assert stages(path).score.evaluator.clipped == outside
    assert sum(score in (4.0, 5.0) for score in scores_of(path).values()) == outside


def test_training_queries_are_not_evidence(tmp_path: Path) -> None:
    """Their scores are marked as fitted, and the audit ignores their reference data."""
    config = given(tmp_path)
    asyncio.run(Run(config).to_checklists())
    queries = RunStore(config.run_path).inputs.queries
    learned = sorted(queries[name].content_hash.hex() for name in QUERIES[:2])
    outcome = finish(given(tmp_path, notes={"learned_from": learned}))
    assert outcome.stages.score.basis == {"fitted": 6, "unseen": 12}
    refused = outcome.audit.refused
    assert (refused.labels, refused.votes) == (6, 2)
    assert outcome.audit.agreement["judge"].used == 4


def test_other_turn_of_a_training_conversation_is_not_evidence(tmp_path: Path) -> None:
    """The evaluator learned from q0; q1 and q2 are in its conversation, q2 by the same text."""
    opinion_config(tmp_path)
    texts = {name: f"Why {name}?" for name in QUERIES} | {"q2": "Why q1?"}
    clusters = {"q0": {"cluster": "talk"}, "q1": {"cluster": "talk"}}
    queries = [{"id": q, "text": texts[q], **clusters.get(q, {})} for q in QUERIES]
    write_jsonl(tmp_path / "benchmark" / "queries.jsonl", queries)
    learned = [Query("q0", "Why q0?").content_hash.hex()]
    path = scored(given(tmp_path, notes={"learned_from": learned}))
    table = pq.read_table(path / "scores.parquet").to_pylist()
    fitted = {row["query_id"] for row in table if row["basis"] == "fitted"}
    assert fitted == {"q0", "q1", "q2"}


def test_unknown_training_queries_make_all_scores_fitted(tmp_path: Path) -> None:
    """An evaluator without this information may have seen every query."""
    config = given(tmp_path)
    assert config.evaluator is not None
    known = load_evaluator(config.evaluator)
    notes = {name: note for name, note in known.provenance.items() if name != "learned_from"}
    save_evaluator(replace(known, provenance=notes), config.evaluator)
    outcome = finish(config)
    assert outcome.stages.score.basis == {"fitted": 18}
    assert outcome.stages.score.evaluator.learned_from_known is False
    assert outcome.audit.refused.labels == 18


def test_decision_counts_are_stored(tmp_path: Path) -> None:
    """Cases per expert, a confidence histogram, and the number of cases for a person."""
    path = scored(given(tmp_path, notes={"threshold": 0.5}))
    found = json.loads((path / "evaluator.json").read_text())
    sure = [row["confidence"] for row in rows(path / "preferences.jsonl")]
    assert found["run"]["cases"] == sum(found["run"]["by_expert"]) == 18
    assert sum(found["run"]["confidence"]["counts"]) == 18
    assert found["run"]["to_person"] == sum(value < 0.5 for value in sure)
    assert [each["text"] for each in found["perspectives"]][:1] == ["Is it right?"]


def test_one_expert_needs_no_questions_about_queries(tmp_path: Path) -> None:
    """There is nothing to route."""
    path = scored(given(tmp_path, experts=1))
    assert set(stages(path).grade.sheets) == {"each-choice", "each-graded"}


def test_evaluator_without_query_perspectives(tmp_path: Path) -> None:
    """`evolve.most_about_queries: 0` gives one expert without routing."""
    config = opinion_config(tmp_path)
    path = save_fitted(tmp_path / "plain.npz", config, experts=1, routing=0)
    run = scored(config.model_copy(update={"evaluator": path}))
    assert stages(run).score.evaluator.about_queries == 0
    assert json.loads((run / "evaluator.json").read_text())["run"]["by_expert"] == [18]


def test_changed_benchmark_recomputes_means(tmp_path: Path) -> None:
    """With one opponent fewer, a response's mean answer changes."""
    config = given(tmp_path, "pairs", "pairs")
    before = judged(scored(config))
    fewer = config.benchmark.model_copy(update={"candidates": ["ada", "bob"]})
    after = judged(scored(config.model_copy(update={"benchmark": fewer})))
    assert len(after) == 12
    assert before["q0", "ada"].key == after["q0", "ada"].key
    assert before["q0", "ada"].answers != after["q0", "ada"].answers


def test_second_evaluator_replaces_the_first(tmp_path: Path) -> None:
    """Shared questions are asked once; scoring with an evaluator that was not graded fails."""
    config = given(tmp_path)
    scored(config)
    other = given(tmp_path, "scores")
    with pytest.raises(StageMissing, match="has not been graded with the current evaluator"):
        Run(other).score()
    path = scored(other)
    assert stages(path).grade.usage.requests < 18
    assert not (path / "preferences.jsonl").exists()


def test_other_judge_model_is_refused_before_writing(tmp_path: Path) -> None:
    """The config names the model."""
    config = given(tmp_path)
    judge = config.judge.model_copy(update={"model": "other"})
    with pytest.raises(ArtifactError, match=r"another judge's answers \(model 'scripted' -> 'oth"):
        finish(config.model_copy(update={"judge": judge}))
    assert not (config.run_path / "manifest.json").exists()


def test_other_judge_version_is_refused_before_any_request(tmp_path: Path) -> None:
    """Only the engine knows the version."""
    config = given(tmp_path)
    assert config.evaluator is not None
    evaluator = load_evaluator(config.evaluator)
    judges = {name: replace(judge, version="0") for name, judge in evaluator.judges.items()}
    save_evaluator(evaluator.documented(judges, {}), config.evaluator)
    with pytest.raises(ArtifactError, match=r"version '0' -> '1'"):
        finish(config)
    assert not list(config.run_path.glob("evaluator/*/ledger/*"))


def test_checklist_run_and_evaluator_do_not_mix(tmp_path: Path) -> None:
    """In either order."""
    config = given(tmp_path)
    items = [{"query_id": q, "items": ["Is it kind?"]} for q in QUERIES]
    write_jsonl(tmp_path / "benchmark" / "checklists.jsonl", items)
    plain = config.model_copy(update={"evaluator": None})
    scored(plain)
    with pytest.raises(RunMismatch, match="judged without an evaluator"):
        scored(config)
    scored(config.model_copy(update={"name": "other"}))
    with pytest.raises(RunMismatch, match="prompt or grading method"):
        scored(plain.model_copy(update={"name": "other"}))


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"distributed": {"cluster": "ray"}}, "cannot use Ray"),
        ({"method": {"kind": "direct"}}, "'direct' conflicts"),
    ],
)
def test_unsupported_settings_are_refused(
    tmp_path: Path, changes: dict[str, Any], problem: str
) -> None:
    """Before anything is written."""
    config = given(tmp_path, **changes)
    with pytest.raises(ConfigError, match=problem):
        finish(config)
    assert not (config.run_path / "manifest.json").exists()


def test_too_many_pairs_are_refused(tmp_path: Path) -> None:
    """The error counts the pairs and suggests a fix."""
    config = given(tmp_path, "pairs", "pairs")
    for number in range(20):
        path = tmp_path / "benchmark" / "responses" / f"more{number}.jsonl"
        write_jsonl(path, [{"query_id": q, "text": f"more {number}"} for q in QUERIES])
    with pytest.raises(BenchmarkError, match=r"23 responses.* 253 in total"):
        finish(config)
    assert not list(config.run_path.glob("evaluator/*/ledger/*"))


def test_response_without_opponent_has_no_score(tmp_path: Path) -> None:
    """It is counted, and the others are scored."""
    config = given(tmp_path)
    for name in ("bob", "cid"):
        kept = [{"query_id": q, "text": f"{name} says this on {q}"} for q in QUERIES[1:]]
        write_jsonl(tmp_path / "benchmark" / "responses" / f"{name}.jsonl", kept)
    write_jsonl(tmp_path / "benchmark" / "votes.jsonl", [])
    write_jsonl(tmp_path / "benchmark" / "labels.jsonl", [])
    path = scored(config)
    assert stages(path).grade.responses_without_opponent == 1
    assert stages(path).score.without_score == 1
    assert scores_of(path)["q0", "ada"] is None


def test_failed_responses_are_counted_and_retried(tmp_path: Path) -> None:
    """A response without answers has no score; the next run asks only about it."""
    broken = {"engine": "scripted", "model": "scripted", "options": {"fail_on": "cid says this"}}
    config = given(tmp_path, judge=broken)
    path = scored(config)
    assert stages(path).grade.responses_unfinished == 6
    assert stages(path).score.without_score == 6
    assert stages(path).score.evaluator.undecided == 12
    assert {failure.candidate for failure in RunStore(path).failures()} == {"cid"}
    scored(given(tmp_path))
    assert stages(path).grade.usage.requests == 6 * len(ABOUT_RESPONSES)
    assert stages(path).score.without_score == 0


class StopsAt(Observer):
    """Stops a run after a number of judgments."""

    def __init__(self, most: int) -> None:
        self.left = most
        self.run: Run | None = None

    def judged(self, judgment: Judgment) -> None:
        """Count one."""
        self.left -= 1
        if not self.left and self.run is not None:
            self.run.stop.set()


def test_stopped_run_resumes(tmp_path: Path) -> None:
    """All answers are kept, and none is requested twice."""
    config = given(tmp_path)
    observer = StopsAt(5)
    run = observer.run = Run(config, observer=observer)
    with pytest.raises(Stopped):
        asyncio.run(run.to_judgments())
    asked = run.store.manifest().stages.grade.usage.requests
    assert 0 < asked < 66
    assert asked + stages(scored(config)).grade.usage.requests == 66


def test_stop_while_the_judge_loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run with an evaluator does not wait for a judge that is not ready."""
    run = Run(given(tmp_path))

    async def loading(engine: ScriptedEngine) -> EngineIdentity:
        run.stop.set()
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr(ScriptedEngine, "identify", loading)
    with pytest.raises(Stopped):
        asyncio.run(asyncio.wait_for(run.to_judgments(), timeout=30))


def test_cost_limit_holds(tmp_path: Path) -> None:
    """The limit covers all question sets, and no author needs a price."""
    price = {"prompt": 1.0, "completion": 1.0, "currency": "USD"}
    judge = {"engine": "scripted", "model": "scripted", "price": price}
    author = {"kind": "instance", "engine": {"model": "an-author", "base_url": "http://x/v1"}}
    config = given(tmp_path, judge=judge, author=author, max_cost=0.02)
    with pytest.raises(BudgetSpent):
        scored(config)
    path = scored(config.model_copy(update={"max_cost": 1.0}))
    assert stages(path).grade.usage_of_ledger.cost > 0.02
    assert stages(path).checklist.not_used == ("author",)


@pytest.mark.parametrize(("task", "asking"), KINDS)
def test_run_matches_its_plan(tmp_path: Path, task: str, asking: Asking) -> None:
    """Questions, calls and tokens match; afterwards nothing is left to ask."""
    config = given(tmp_path, task, asking)
    offline = asyncio.run(Run(config).plan_offline())
    assert not config.run_path.exists()
    plan = asyncio.run(Run(config).plan())
    assert (plan.queries, plan.candidates, plan.responses) == (6, 3, 18)
    grade = stages(scored(config)).grade
    assert plan.items == offline.items == grade.questions.all
    assert plan.requests == grade.usage.requests
    assert plan.prompt_tokens == grade.usage.prompt_tokens
    assert grade.bill.plan.requests == grade.bill.bill.requests == plan.requests
    after = asyncio.run(Run(config).plan())
    assert (after.items, after.finished) == (0, plan.tasks)


def test_plan_has_no_cluster(tmp_path: Path) -> None:
    """A run with an evaluator does not use a cluster."""
    run = Run(given(tmp_path))
    plan = asyncio.run(run.plan_offline())
    with pytest.raises(ConfigError, match="no cluster to plan"):
        asyncio.run(run.plan_cluster(plan))
