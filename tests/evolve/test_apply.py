"""A run with an evaluator: asked sheet by sheet, decided by experts, read like any other run."""

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
from rocketeval.records import Judgment
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
    """A config with an evaluator that was fitted with its judge."""
    config = opinion_config(tmp_path, name, **changes)
    path = save_fitted(
        tmp_path / f"{task}-{asking}.npz", config, task, asking, experts=experts, **(notes or {})
    )
    return config.model_copy(update={"evaluator": path})


def finish(config: RunConfig) -> Outcome:
    """The outcome of all stages."""
    return asyncio.run(Run(config).all())


def scored(config: RunConfig) -> Path:
    """The folder of a run that is scored."""
    run = Run(config)
    asyncio.run(run.to_judgments())
    run.score()
    return run.store.path


def stages(run: Path) -> Stages:
    """What each stage did."""
    return RunStore(run).manifest().stages


def rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a JSON lines file."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def scores_of(run: Path) -> dict[tuple[str, str], float | None]:
    """The score of every response."""
    table = pq.read_table(run / "scores.parquet").to_pylist()
    return {(row["query_id"], row["candidate"]): row["score"] for row in table}


def judged(run: Path, *, sheet: str | None = None) -> dict[tuple[str, str], Judgment]:
    """The judgments of a run, or of one of its sheets."""
    store = RunStore(run if sheet is None else run / "evaluator" / sheet)
    keys = [row["key"] for table in store.judgments(["key"]) for row in table.to_pylist()]
    return {(one.query_id, one.candidate): one for one in store.judgments_of(keys).values()}


@pytest.mark.parametrize(("task", "asking"), KINDS)
def test_every_stage_works_and_a_second_run_asks_nothing(
    tmp_path: Path, task: str, asking: Asking
) -> None:
    """Ranking, audit, explanation and report are there; what was asked is not asked again."""
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
    said = "preferences.jsonl" if task == "pairs" else "evaluated.jsonl"
    first = {name: (outcome.path / name).read_bytes() for name in (said, "scores.parquet")}
    again = finish(config)
    assert again.stages.grade.usage.requests == 0
    assert {name: (outcome.path / name).read_bytes() for name in first} == first


@pytest.mark.parametrize("asking", ["each", "pairs"])
def test_a_score_is_the_mean_share_of_wins_on_the_scale(tmp_path: Path, asking: Asking) -> None:
    """Every two responses are decided about; a tie is half a win."""
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


def test_a_voted_pair_is_shown_in_the_order_of_its_vote(tmp_path: Path) -> None:
    """What evolve asked is in the cache that way round."""
    path = scored(given(tmp_path, "pairs", "pairs"))
    shown = {candidate for _, candidate in judged(path, sheet="pairs-choice")}
    assert shown == {'["bob","ada"]', '["ada","cid"]', '["bob","cid"]'}


def test_answers_about_each_response_are_the_judges_own(tmp_path: Path) -> None:
    """Status, bounds and text are those of the sheets, in the evaluator's order."""
    path = scored(given(tmp_path))
    own = judged(path)
    choice, graded = judged(path, sheet="each-choice"), judged(path, sheet="each-graded")
    assert len(own) == 18
    for cell, judgment in own.items():
        assert judgment.answers == (*choice[cell].answers, *graded[cell].answers)
        assert judgment.usage.requests == 0


def test_answers_about_pairs_are_means_over_opponents(tmp_path: Path) -> None:
    """A response that stands second is turned to its own side."""
    path = scored(given(tmp_path, "pairs", "pairs"))
    own, sheet = judged(path), judged(path, sheet="pairs-choice")
    for query_id in QUERIES:
        first, second = (
            sheet[query_id, name].answers[0].p_yes for name in ('["bob","ada"]', '["ada","cid"]')
        )
        assert first is not None
        assert second is not None
        expected = ((1.0 - first) + second) / 2.0
        assert own[query_id, "ada"].answers[0].p_yes == pytest.approx(expected)


def test_perspectives_are_the_checklist(tmp_path: Path) -> None:
    """In their order, grouped by where they came from; attention weighs them."""
    path = scored(given(tmp_path))
    made = RunStore(path).inputs.checklists()
    assert {one.items for one in made.values()} == {tuple(each.text for each in ABOUT_RESPONSES)}
    assert made["q0"].groups == ("rule", "failures", "depth")
    weights = json.loads((path / "item_weights.json").read_text())
    assert set(weights) == set(QUERIES)
    assert all(sum(own) == pytest.approx(1.0) for own in weights.values())


def test_values_outside_of_the_scale_are_clipped_and_counted(tmp_path: Path) -> None:
    """They stay as they are in evaluated.jsonl."""
    config = given(tmp_path, "scores", scorer={"scale": [4.0, 5.0]})
    path = scored(config)
    values = [row["value"] for row in rows(path / "evaluated.jsonl")]
    outside = sum(not 4.0 <= value <= 5.0 for value in values)
    assert outside
    assert stages(path).score.evaluator.clipped == outside
    assert sum(score in (4.0, 5.0) for score in scores_of(path).values()) == outside


def test_queries_learned_from_are_no_evidence(tmp_path: Path) -> None:
    """Their scores are marked as fitted, and the audit refuses their gold."""
    config = given(tmp_path)
    asyncio.run(Run(config).to_checklists())
    queries = RunStore(config.run_path).inputs.queries
    learned = sorted(queries[name].content_hash.hex() for name in QUERIES[:2])
    outcome = finish(given(tmp_path, notes={"learned_from": learned}))
    assert outcome.stages.score.basis == {"fitted": 6, "unseen": 12}
    refused = outcome.audit.refused
    assert (refused.labels, refused.votes) == (6, 2)
    assert outcome.audit.agreement["judge"].used == 4


def test_what_learned_from_nobody_knows_what_is_no_evidence(tmp_path: Path) -> None:
    """An evaluator that was saved without a word on it may have seen every query."""
    config = given(tmp_path)
    assert config.evaluator is not None
    known = load_evaluator(config.evaluator)
    notes = {name: note for name, note in known.provenance.items() if name != "learned_from"}
    save_evaluator(replace(known, provenance=notes), config.evaluator)
    outcome = finish(config)
    assert outcome.stages.score.basis == {"fitted": 18}
    assert outcome.stages.score.evaluator.learned_from_known is False
    assert outcome.audit.refused.labels == 18


def test_what_an_evaluator_did_is_kept(tmp_path: Path) -> None:
    """Cases by expert, a histogram of confidence, and how many go to a person."""
    path = scored(given(tmp_path, notes={"threshold": 0.5}))
    found = json.loads((path / "evaluator.json").read_text())
    sure = [row["confidence"] for row in rows(path / "preferences.jsonl")]
    assert found["run"]["cases"] == sum(found["run"]["by_expert"]) == 18
    assert sum(found["run"]["confidence"]["counts"]) == 18
    assert found["run"]["to_person"] == sum(value < 0.5 for value in sure)
    assert [each["text"] for each in found["perspectives"]][:1] == ["Is it right?"]


def test_one_expert_needs_no_questions_about_queries(tmp_path: Path) -> None:
    """There is nobody to choose between."""
    path = scored(given(tmp_path, experts=1))
    assert set(stages(path).grade.sheets) == {"each-choice", "each-graded"}


def test_an_evaluator_may_know_nothing_about_queries(tmp_path: Path) -> None:
    """`evolve.most_about_queries: 0` leaves one expert, and nothing to route by."""
    config = opinion_config(tmp_path)
    path = save_fitted(tmp_path / "plain.npz", config, experts=1, routing=0)
    run = scored(config.model_copy(update={"evaluator": path}))
    assert stages(run).score.evaluator.about_queries == 0
    assert json.loads((run / "evaluator.json").read_text())["run"]["by_expert"] == [18]


def test_a_changed_benchmark_makes_the_means_anew(tmp_path: Path) -> None:
    """With one opponent less, a response's answer is another one."""
    config = given(tmp_path, "pairs", "pairs")
    before = judged(scored(config))
    fewer = config.benchmark.model_copy(update={"candidates": ["ada", "bob"]})
    after = judged(scored(config.model_copy(update={"benchmark": fewer})))
    assert len(after) == 12
    assert before["q0", "ada"].key == after["q0", "ada"].key
    assert before["q0", "ada"].answers != after["q0", "ada"].answers


def test_another_evaluator_takes_the_place_of_the_first(tmp_path: Path) -> None:
    """What both ask is asked once; scoring with one that was not asked says so."""
    config = given(tmp_path)
    scored(config)
    other = given(tmp_path, "scores")
    with pytest.raises(StageMissing, match="has not been graded with the evaluator"):
        Run(other).score()
    path = scored(other)
    assert stages(path).grade.usage.requests < 18
    assert not (path / "preferences.jsonl").exists()


def test_another_judge_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    """Its model is known from the config."""
    config = given(tmp_path)
    judge = config.judge.model_copy(update={"model": "other"})
    with pytest.raises(ArtifactError, match=r"another judge's answers \(model 'scripted' -> 'oth"):
        finish(config.model_copy(update={"judge": judge}))
    assert not (config.run_path / "manifest.json").exists()


def test_another_version_of_the_judge_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    """Only the engine itself can tell."""
    config = given(tmp_path)
    assert config.evaluator is not None
    evaluator = load_evaluator(config.evaluator)
    judges = {name: replace(judge, version="0") for name, judge in evaluator.judges.items()}
    save_evaluator(evaluator.documented(judges, {}), config.evaluator)
    with pytest.raises(ArtifactError, match=r"version '0' -> '1'"):
        finish(config)
    assert not list(config.run_path.glob("evaluator/*/ledger/*"))


def test_a_judged_run_is_not_mixed_with_an_evaluator(tmp_path: Path) -> None:
    """Neither way round."""
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
    ("changes", "told"),
    [
        ({"distributed": {"cluster": "ray"}}, "cannot use Ray"),
        ({"method": {"kind": "direct"}}, "'direct' conflicts"),
    ],
)
def test_what_an_evaluator_cannot_do_is_refused(
    tmp_path: Path, changes: dict[str, Any], told: str
) -> None:
    """Before anything is written."""
    config = given(tmp_path, **changes)
    with pytest.raises(ConfigError, match=told):
        finish(config)
    assert not (config.run_path / "manifest.json").exists()


def test_too_many_responses_to_compare_side_by_side_are_refused(tmp_path: Path) -> None:
    """The pairs are counted, and a way out is told."""
    config = given(tmp_path, "pairs", "pairs")
    for number in range(20):
        path = tmp_path / "benchmark" / "responses" / f"more{number}.jsonl"
        write_jsonl(path, [{"query_id": q, "text": f"more {number}"} for q in QUERIES])
    with pytest.raises(BenchmarkError, match=r"23 responses.* 253 pairs"):
        finish(config)
    assert not list(config.run_path.glob("evaluator/*/ledger/*"))


def test_a_response_without_an_opponent_has_no_score(tmp_path: Path) -> None:
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


def test_what_cannot_be_judged_is_counted_and_asked_again(tmp_path: Path) -> None:
    """A response without answers has no score; the next run asks for it alone."""
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
    """Stops a run after some judgments."""

    def __init__(self, most: int) -> None:
        self.left = most
        self.run: Run | None = None

    def judged(self, judgment: Judgment) -> None:
        """Count one."""
        self.left -= 1
        if not self.left and self.run is not None:
            self.run.stop.set()


def test_a_stopped_run_goes_on_from_there(tmp_path: Path) -> None:
    """All that was answered is kept; together nothing was asked twice."""
    config = given(tmp_path)
    observer = StopsAt(5)
    run = observer.run = Run(config, observer=observer)
    with pytest.raises(Stopped):
        asyncio.run(run.to_judgments())
    asked = run.store.manifest().stages.grade.usage.requests
    assert 0 < asked < 66
    assert asked + stages(scored(config)).grade.usage.requests == 66


def test_money_is_kept_to(tmp_path: Path) -> None:
    """The limit holds over all sheets, and no author needs a price."""
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
def test_the_run_does_what_the_plan_said(tmp_path: Path, task: str, asking: Asking) -> None:
    """Questions, calls and tokens; afterwards nothing is left to ask."""
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


def test_an_evaluator_is_planned_on_one_machine(tmp_path: Path) -> None:
    """There is no cluster to plan."""
    run = Run(given(tmp_path))
    plan = asyncio.run(run.plan_offline())
    with pytest.raises(ConfigError, match="no cluster to plan"):
        asyncio.run(run.plan_cluster(plan))
