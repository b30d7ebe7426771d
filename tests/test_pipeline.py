"""Whole runs: reuse of judgments, changed inputs, failures and stops."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import rocketeval
from rocketeval.engines.base import EngineAnswers
from rocketeval.engines.scripted import ScriptedEngine
from rocketeval.errors import (
    BenchmarkError,
    ConfigError,
    EngineUnavailable,
    PromptError,
    RocketEvalError,
    RunMismatch,
    StageMissing,
    Stopped,
)
from rocketeval.pipeline import Outcome, Run
from rocketeval.records import Answer, GradingTask, Judgment, Status, Usage
from rocketeval.store.codec import encode
from rocketeval.store.files import write_json
from rocketeval.store.manifest import ChecklistFacts
from rocketeval.store.run import RunStore
from support.forked import is_held
from support.make import CANDIDATES, QUERIES, make_config, write_benchmark

ITEMS = 2


def prefer_left(prefix: str, suffix: str) -> float:
    return 0.9 if "left explains" in prefix else 0.2


def evaluate(tmp_path: Path, name: str = "run", **changes: Any) -> tuple[Outcome, int]:
    """Run everything; return the outcome and the number of items asked."""
    engine = ScriptedEngine(prefer_left)
    outcome = rocketeval.run(make_config(tmp_path, name, **changes), judge=engine)
    return outcome, engine.items_asked


def test_better_candidate_wins_and_all_files_are_written(tmp_path: Path) -> None:
    """One call gives a ranking, an audit and all files."""
    outcome, asked = evaluate(tmp_path)
    assert [row.candidate for row in outcome.ranking.rows] == ["left", "right"]
    assert outcome.ranking.rows[0].mean_score.value == pytest.approx(1 + 9 * 0.9)
    agreement = outcome.audit.agreement["judge"].with_ties
    assert agreement is not None
    assert agreement.value == 1.0
    assert asked == len(QUERIES) * len(CANDIDATES) * ITEMS
    names = "run.yaml manifest.json scores.parquet scores.jsonl ranking.json ranking.csv audit.json"
    assert all((outcome.path / name).stat().st_size for name in [*names.split(), "report.html"])


def test_second_run_asks_nothing(tmp_path: Path) -> None:
    """The same run again reuses all judgments and gives the same scores."""
    first, _ = evaluate(tmp_path)
    scores = (first.path / "scores.parquet").read_bytes()
    second, asked = evaluate(tmp_path)
    assert asked == 0
    assert second.stages.grade.finished_earlier == 6
    assert (second.path / "scores.parquet").read_bytes() == scores


def test_another_run_reuses_the_shared_cache(tmp_path: Path) -> None:
    """A run with another name reuses the judgments of earlier runs."""
    evaluate(tmp_path, "one")
    two, asked = evaluate(tmp_path, "two")
    assert asked == 0
    assert two.stages.grade.from_cache == 6


def test_without_a_cache_runs_share_nothing(tmp_path: Path) -> None:
    """`cache: null` disables the cache."""
    evaluate(tmp_path, "one", cache=None)
    _, asked = evaluate(tmp_path, "two", cache=None)
    assert asked == 12
    assert not (tmp_path / "cache").exists()


def test_only_changed_inputs_are_judged_again(tmp_path: Path) -> None:
    """A changed response costs its items; a changed item is asked once per response."""
    evaluate(tmp_path)
    benchmark = tmp_path / "benchmark"
    left = benchmark / "responses" / "left.jsonl"
    left.write_text(left.read_text().replace("left explains the sea", "left explains it all"))
    _, asked = evaluate(tmp_path)
    assert asked == ITEMS
    checklists = benchmark / "checklists.jsonl"
    text = checklists.read_text().splitlines()
    text[0] = text[0].replace("Is it clear?", "Is it short?")
    checklists.write_text("\n".join(text))
    _, asked = evaluate(tmp_path)
    assert asked == len(CANDIDATES)
    left.write_text(left.read_text().replace("left explains it all", "left explains the sea"))
    outcome, asked = evaluate(tmp_path)
    assert asked == 0
    assert outcome.stages.score.without_score == 0


def test_identical_responses_are_judged_once(tmp_path: Path) -> None:
    """Two identical responses share one judgment and get the same score."""
    write_benchmark(tmp_path / "benchmark", texts={"sea": "the same words"})
    outcome, asked = evaluate(tmp_path)
    assert asked == 5 * ITEMS
    assert outcome.stages.score.without_score == 0


def test_run_refuses_another_judge(tmp_path: Path) -> None:
    """A different judge under the same name is refused before any item is asked."""
    evaluate(tmp_path)
    other = ScriptedEngine(prefer_left, model="another")
    with pytest.raises(RunMismatch, match="`name`"):
        rocketeval.run(make_config(tmp_path), judge=other)
    assert other.items_asked == 0


def test_failures_are_counted_and_retried(tmp_path: Path) -> None:
    """A failed task is counted as missing, and the next run retries it."""
    config = make_config(tmp_path)
    engine = ScriptedEngine(prefer_left, fail_on="right explains the sun")
    outcome = rocketeval.run(config, judge=engine)
    assert outcome.stages.grade.failed == 1
    assert outcome.stages.score.without_score == 1
    right = next(row for row in outcome.ranking.rows if row.candidate == "right")
    assert (right.queries, right.missing) == (2, 1)
    again, asked = evaluate(tmp_path)
    assert asked == ITEMS
    assert again.stages.score.without_score == 0
    assert not (again.path / "failures.jsonl").exists()


def test_query_without_checklist_is_counted(tmp_path: Path) -> None:
    """Its responses are counted and not scored."""
    write_benchmark(tmp_path / "benchmark")
    checklists = tmp_path / "benchmark" / "checklists.jsonl"
    checklists.write_text("".join(checklists.read_text().splitlines(keepends=True)[:2]))
    outcome, _ = evaluate(tmp_path)
    assert list(outcome.stages.checklist.failures) == ["sun"]
    assert outcome.stages.grade.responses_without_checklist == 2
    assert outcome.stages.score.without_score == 2


async def test_stopping_keeps_finished_judgments(tmp_path: Path) -> None:
    """A stopped run finishes requests in flight; the next one asks only the rest."""
    engine = ScriptedEngine(prefer_left, delay=0.001)
    run = Run(make_config(tmp_path), judge=engine)
    run.config = run.config.model_copy(
        update={"judge": run.config.judge.model_copy(update={"concurrency": 1})}
    )

    class StopAfterTwo(rocketeval.Observer):
        seen = 0

        def judged(self, judgment: Judgment) -> None:
            self.seen += 1
            if self.seen == 2:
                run.stop.set()

    run.observer = StopAfterTwo()
    with pytest.raises(Stopped):
        await run.all()
    assert engine.items_asked == 2 * ITEMS
    _, asked = await asyncio.to_thread(evaluate, tmp_path)
    assert asked == 4 * ITEMS


async def test_run_works_inside_a_running_loop(tmp_path: Path) -> None:
    """The synchronous call works with a running event loop, as in a notebook."""
    outcome = rocketeval.run(make_config(tmp_path), judge=ScriptedEngine(prefer_left))
    assert len(outcome.ranking.rows) == 2


def test_full_run_after_a_limit_asks_only_the_rest(tmp_path: Path) -> None:
    """The judgments of a trial on a few queries are reused."""
    benchmark = {"path": str(tmp_path / "benchmark"), "limit": 1}
    _, asked = evaluate(tmp_path, benchmark=benchmark)
    assert asked == 2 * ITEMS
    _, asked = evaluate(tmp_path)
    assert asked == 4 * ITEMS


def test_refused_judge_leaves_the_run_unchanged(tmp_path: Path) -> None:
    """Another model under the same name overwrites no file."""
    rocketeval.run(make_config(tmp_path))
    files = {path: path.read_bytes() for path in (tmp_path / "runs").rglob("*") if path.is_file()}
    other = make_config(tmp_path, judge={"engine": "scripted", "model": "other"})
    with pytest.raises(RunMismatch):
        rocketeval.run(other)
    assert all(path.read_bytes() == content for path, content in files.items())


def test_invalid_benchmark_leaves_the_run_unchanged(tmp_path: Path) -> None:
    """A duplicate response is refused, and the old inputs can still be used."""
    outcome, _ = evaluate(tmp_path)
    left = tmp_path / "benchmark" / "responses" / "left.jsonl"
    left.write_text(left.read_text() * 2)
    with pytest.raises(BenchmarkError, match="two responses"):
        evaluate(tmp_path)
    run = Run(make_config(tmp_path))
    run.score()
    assert [row.candidate for row in run.rank().rows] == ["left", "right"]
    assert outcome.report.name == "report.html"


async def test_results_of_old_inputs_are_dropped(tmp_path: Path) -> None:
    """After a response changed, later stages must run again."""
    await asyncio.to_thread(evaluate, tmp_path)
    left = tmp_path / "benchmark" / "responses" / "left.jsonl"
    left.write_text(left.read_text().replace("left explains the sea", "nothing"))
    run = Run(make_config(tmp_path), judge=ScriptedEngine(prefer_left))
    await run.to_judgments()
    for stage in (run.rank, run.audit, run.report):
        with pytest.raises(StageMissing):
            stage()
    run.score()
    assert run.rank().rows


async def test_renaming_a_candidate_drops_the_old_scores(tmp_path: Path) -> None:
    """Names are part of the inputs: judgments are reused, but scores are dropped."""
    await asyncio.to_thread(evaluate, tmp_path)
    responses = tmp_path / "benchmark" / "responses"
    (responses / "left.jsonl").rename(responses / "left2.jsonl")
    engine = ScriptedEngine(prefer_left)
    run = Run(make_config(tmp_path), judge=engine)
    await run.to_judgments()
    assert engine.items_asked == 0
    with pytest.raises(StageMissing):
        run.report()


async def test_changed_vote_drops_the_old_audit(tmp_path: Path) -> None:
    """The report must not show agreement with outdated votes."""
    await asyncio.to_thread(evaluate, tmp_path)
    votes = tmp_path / "benchmark" / "votes.jsonl"
    votes.write_text(votes.read_text().replace('"a"', '"b"', 1))
    run = Run(make_config(tmp_path), judge=ScriptedEngine(prefer_left))
    await run.to_judgments()
    with pytest.raises(StageMissing):
        run.report()


def test_config_errors_are_found_before_anything_is_spent(tmp_path: Path) -> None:
    """An unknown scorer, author or engine, or a broken prompt, is an error at the start."""
    broken = tmp_path / "prompt.txt"
    broken.write_text("no placeholders")
    judge = {"engine": "scripted", "model": "scripted"}
    for changes in (
        {"scorer": {"kind": "meen"}},
        {"author": {"kind": "imprted"}},
        {"judge": {"engine": "scriptd", "model": "m"}},
        {"judge": {**judge, "options": {"dely": 1}}},
        {"judge": {**judge, "template": str(broken)}},
    ):
        with pytest.raises((ConfigError, PromptError)):
            rocketeval.run(make_config(tmp_path, **changes))
        assert not list((tmp_path / "runs").rglob("*.yaml"))


def test_run_is_locked_during_all_stages(tmp_path: Path) -> None:
    """No other process can change the inputs meanwhile."""
    config = make_config(tmp_path)

    class Intruder(rocketeval.Observer):
        refused = 0

        def stage_ended(self, stage: str, facts: object) -> None:
            self.refused += is_held(config.run_path)

    intruder = Intruder()
    rocketeval.run(config, observer=intruder)
    assert intruder.refused == 8


def test_items_without_logprobs_are_asked_again(tmp_path: Path) -> None:
    """Once the server sends log-probabilities, tasks without any are repeated."""

    class Silent(ScriptedEngine):
        async def grade(self, task: GradingTask, known: Mapping[int, Answer]) -> EngineAnswers:
            return EngineAnswers((Answer(Status.NO_LOGPROBS),) * len(task.suffixes), Usage())

    with contextlib.suppress(RocketEvalError):
        rocketeval.run(make_config(tmp_path), judge=Silent())
    outcome, asked = evaluate(tmp_path)
    assert asked == 12
    assert outcome.stages.score.without_score == 0


def test_total_cost_of_the_ledger_is_kept(tmp_path: Path) -> None:
    """A rerun without requests still reports the cost of its judgments."""
    evaluate(tmp_path)
    outcome, _ = evaluate(tmp_path)
    assert outcome.stages.grade.usage.requests == 0
    assert outcome.stages.grade.usage_of_ledger.requests == 12


def test_bill_counts_the_requests_of_a_command_without_a_judge(tmp_path: Path) -> None:
    """Answers that were paid for before the judge became unreachable are in the bill once."""
    config = make_config(tmp_path)

    class Gone(ScriptedEngine):
        async def grade(self, task: GradingTask, known: Mapping[int, Answer]) -> EngineAnswers:
            found = await super().grade(task, known)
            answers = {task.left(known)[0]: found.answers[0]}
            paid = Usage(requests=1)
            return EngineAnswers.of(task, answers, paid, "no answer", unavailable=True)

    with pytest.raises(EngineUnavailable):
        rocketeval.run(config, judge=Gone(prefer_left, in_flight=1))
    unpaid = RunStore(config.run_path).manifest().stages.grade.paid.requests
    outcome, asked = evaluate(tmp_path)
    assert unpaid == 1
    assert outcome.stages.grade.paid.requests == asked + unpaid == 12


def test_bill_counts_the_requests_of_failed_responses(tmp_path: Path) -> None:
    """A response that a later command finishes is paid for by both, and the bill has both."""
    config = make_config(tmp_path)
    checklists = config.benchmark.path / "checklists.jsonl"
    lines = checklists.read_text().splitlines()
    checklists.write_text("\n".join([*lines[:2], lines[2].replace("clear", "bright")]))
    engine = ScriptedEngine(prefer_left, fail_on="Is it bright?")
    outcome = rocketeval.run(config, judge=engine)
    assert outcome.stages.grade.failed == 2
    assert outcome.stages.grade.paid.requests == engine.items_asked == 10
    for _ in range(2):
        outcome, _ = evaluate(tmp_path)
        assert outcome.stages.grade.paid.requests == 12


async def test_bill_of_the_author_is_kept(tmp_path: Path) -> None:
    """A later command that writes no checklist, or fewer, has the cost of all of them."""
    price = {"prompt": 1.0, "completion": 1.0}
    engine = {"engine": "scripted", "model": "author"}
    author = {"kind": "instance", "engine": engine, "price": price}
    limit = {"path": str(tmp_path / "benchmark"), "limit": 2}
    write_benchmark(tmp_path / "benchmark")
    for changes, paid in (({"benchmark": limit}, 2), ({}, 3), ({}, 3)):
        config = make_config(tmp_path, author=author, **changes)
        facts = await Run(config).to_checklists()
        assert facts.paid.requests == paid
    manifest = Run(config).store.manifest()
    killed = replace(manifest.stages, checklist=ChecklistFacts())
    write_json(Run(config).store.path / "manifest.json", encode(replace(manifest, stages=killed)))
    assert (await Run(config).to_checklists()).paid.requests == 3
