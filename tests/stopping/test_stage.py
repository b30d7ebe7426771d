"""Runs that stop early: what is graded, what is shown, and how they go on."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rocketeval
from fakes.openai_server import MODEL, FakeOpenAI, serving, yes_no
from rocketeval.api import run
from rocketeval.compare.anchors import choose_queries
from rocketeval.config import parse_config
from rocketeval.errors import ConfigError, RocketEvalError, Stopped
from rocketeval.judges.draw import check_cascade
from rocketeval.judges.runs import JudgedRun
from rocketeval.observer import Observer
from rocketeval.pipeline import Outcome, Run
from rocketeval.records import Interval, Judgment
from rocketeval.report.run_diff import diff_runs
from rocketeval.stopping.race import RaceResult, draw_order
from rocketeval.store.files import write_jsonl
from rocketeval.store.run import RunStore

QUERIES, CANDIDATES = 120, 5
KINDS = ("math", "code", "prose")


def answer(prefix: str, item: str) -> float:
    """Return a probability that falls with the candidate's number."""
    number = int(prefix.partition("candidate ")[2][0])
    noise = int(hashlib.md5((prefix + item).encode()).hexdigest()[:8], 16) / 2**32 - 0.5
    return min(0.99, max(0.01, 0.8 - 0.1 * number + 0.5 * noise))


@pytest.fixture
def benchmark(tmp_path: Path) -> Path:
    """Return a benchmark of five candidates, the first the best."""
    folder = tmp_path / "benchmark"
    folder.mkdir()
    ids = [f"q{number}" for number in range(QUERIES)]
    queries = [
        {"id": name, "text": f"Question {name}?", "category": KINDS[place % 3]}
        for place, name in enumerate(ids)
    ]
    responses = [
        {"query_id": name, "candidate": f"v{number}", "text": f"candidate {number} to {name}"}
        for name in ids
        for number in range(CANDIDATES)
    ]
    items = [{"query_id": name, "items": ["Is it right?", "Is it short?"]} for name in ids]
    write_jsonl(folder / "queries.jsonl", queries)
    write_jsonl(folder / "responses.jsonl", responses)
    write_jsonl(folder / "checklists.jsonl", items)
    return folder


def config_of(benchmark: Path, until: str | None, name: str = "run", **more: Any) -> dict[str, Any]:
    """Return the config of a run."""
    return {
        "name": name,
        "benchmark": {"path": str(benchmark)},
        "judge": {"model": "scripted", "engine": "scripted"},
        "output": str(benchmark.parent / "runs"),
        "cache": None,
        "ranking": {"bootstrap": 50},
        **({} if until is None else {"until": until}),
        **more,
    }


def graded(
    benchmark: Path, until: str | None, name: str = "run", engine: Any = None, **more: Any
) -> Outcome:
    """Run the benchmark with a scripted judge, until a goal."""
    judge = engine or rocketeval.ScriptedEngine(answer)
    return run(config_of(benchmark, until, name, **more), judge=judge)


def result_of(outcome: Outcome) -> RaceResult:
    """Return the saved result of a race."""
    return RunStore(outcome.path).read(RaceResult)


def test_best_is_found_and_the_rest_is_not_graded(benchmark: Path) -> None:
    """The judge is asked about few responses; scores, ranking and report say so."""
    engine = rocketeval.ScriptedEngine(answer)
    outcome = graded(benchmark, "best", engine=engine)
    found = result_of(outcome)
    assert (found.ending, found.named("in")) == ("decided", ["v0"])
    assert found.judgments < found.of == QUERIES * CANDIDATES
    ahead = 2 * engine.in_flight
    assert found.judgments <= engine.items_asked / 2 <= found.judgments + ahead
    grade, score = outcome.stages.grade, outcome.stages.score
    assert (grade.unfinished, grade.not_needed) == (0, found.of - found.judgments)
    assert found.judgments + grade.graded_ahead == engine.items_asked / 2
    assert (score.scores, score.without_score) == (found.judgments, grade.not_needed)
    assert "Decided after" in outcome.ranking.stopped[1]
    assert "not needed, because grading stopped early" in outcome.report.read_text("utf-8")
    assert {row.candidate: row.queries for row in outcome.ranking.rows} == {
        row.candidate: row.queries for row in found.rows
    }


def test_a_later_run_grades_the_rest(benchmark: Path) -> None:
    """Without the goal the run goes on, asks nothing twice, and is like one never stopped."""
    engine = rocketeval.ScriptedEngine(answer)
    graded(benchmark, "best", engine=engine)
    whole = graded(benchmark, None, engine=engine)
    assert engine.items_asked == 2 * QUERIES * CANDIDATES
    assert whole.ranking.stopped == ()
    assert not (whole.path / "race.json").exists()
    fresh = graded(benchmark, None, name="fresh")
    for file in ("scores.parquet", "ranking.json", "ranking.csv"):
        assert (whole.path / file).read_bytes() == (fresh.path / file).read_bytes()


async def test_a_decided_race_needs_no_judge(benchmark: Path) -> None:
    """The same command again sends nothing, and works without a server."""
    async with serving(FakeOpenAI(distribution=by_candidate)) as server:
        judge = {"model": MODEL, "base_url": server.base_url, "patience": 2}
        config = parse_config(config_of(benchmark, "best", judge=judge))
        first = await Run(config).all()
        sent = len(server.seen)
        again = await Run(config).all()
        assert len(server.seen) == sent
    gone = await Run(config).all()
    assert first.stages.grade.not_needed > 0
    for outcome in (again, gone):
        assert outcome.ranking == first.ranking
        assert outcome.stages.grade.not_needed == first.stages.grade.not_needed


def by_candidate(prompt: str) -> dict[str, float]:
    """Return the probabilities of a judge that prefers the first candidate."""
    return yes_no(answer(prompt, "") if "candidate " in prompt else 0.5)


def test_another_goal_uses_what_was_graded(benchmark: Path) -> None:
    """A second goal on the same run asks only for what it lacks."""
    engine = rocketeval.ScriptedEngine(answer)
    graded(benchmark, "best", engine=engine)
    before = engine.items_asked
    outcome = graded(benchmark, "beats:v4", engine=engine)
    found = result_of(outcome)
    assert {row.state for row in found.rows} == {"better", "reference"}
    assert engine.items_asked - before <= 2 * found.judgments


def test_intervals_are_wider_than_without_looks(benchmark: Path) -> None:
    """The ranking of a run that stopped has wider intervals than its scores alone would give."""
    from rocketeval.ranking.rank import rank
    from rocketeval.scoring.stage import read_grid

    outcome = graded(benchmark, "best")
    grid = read_grid(RunStore(outcome.path))
    plain = {row.candidate: row for row in rank(grid, bootstrap=50).rows}
    for row in outcome.ranking.rows:
        before = plain[row.candidate]
        assert row.rating.high - row.rating.low > before.rating.high - before.rating.low
        assert row.mean_score.value == pytest.approx(before.mean_score.value)
    # A race at another level has means at that level; the ranking's are at its own.
    race = result_of(outcome)
    points = tuple(replace(row, mean=Interval(*[row.mean.value] * 3)) for row in race.rows)
    for row in rank(grid, bootstrap=50, race=replace(race, level=0.5, rows=points)).rows:
        before = plain[row.candidate]
        assert row.mean_score.high - row.mean_score.low > (
            before.mean_score.high - before.mean_score.low
        )


def test_failures_leave_gaps_and_are_asked_again(benchmark: Path) -> None:
    """A response that cannot be judged is missing at the look, and retried by the next run."""
    first = draw_order(np.arange(QUERIES), [KINDS[place % 3] for place in range(QUERIES)], 0).rows[
        0
    ]
    broken = rocketeval.ScriptedEngine(answer, fail_on=f"candidate 0 to q{first}\n")
    with_gap = graded(benchmark, "within:0.5", engine=broken)
    assert with_gap.stages.grade.unfinished == 1
    rows = {row.candidate: row for row in with_gap.ranking.rows}
    assert rows["v0"].queries == result_of(with_gap).rows[0].queries - 1
    whole = graded(benchmark, "within:0.5", name="whole")
    again = graded(benchmark, "within:0.5")
    assert again.stages.grade.unfinished == 0
    assert (again.path / "race.json").read_bytes() == (whole.path / "race.json").read_bytes()


class StopAfter(Observer):
    """Stops a run after some judgments."""

    def __init__(self, judgments: int) -> None:
        self.left = judgments
        self.run: Run | None = None

    def judged(self, judgment: Judgment) -> None:
        """Count, and stop at zero."""
        del judgment
        self.left -= 1
        if not self.left and self.run is not None:
            self.run.stop.set()


def test_interrupted_races_end_the_same(benchmark: Path) -> None:
    """A race that was stopped after every few judgments decides the same, byte for byte."""
    whole = graded(benchmark, "within:0.7", name="whole")
    config = parse_config(config_of(benchmark, "within:0.7"))
    stops = 0
    while stops < 40:
        observer = StopAfter(67)
        observer.run = Run(config, judge=rocketeval.ScriptedEngine(answer), observer=observer)
        try:
            outcome = asyncio.run(observer.run.all())
            break
        except Stopped:
            stops += 1
    assert stops >= 2
    for file in ("race.json", "scores.parquet", "ranking.json", "ranking.csv"):
        assert (outcome.path / file).read_bytes() == (whole.path / file).read_bytes()


def test_what_cannot_stop_early_is_refused(benchmark: Path) -> None:
    """A scorer that learns and a goal without its candidate are refused before grading."""
    engine = rocketeval.ScriptedEngine(answer)
    with pytest.raises(ConfigError, match="v9"):
        graded(benchmark, "beats:v9", engine=engine)
    with pytest.raises(ConfigError, match="not a goal"):
        graded(benchmark, "fastest", engine=engine)
    with pytest.raises(RocketEvalError):
        graded(benchmark, "best", engine=engine, scorer={"kind": "isotonic"})
    assert engine.items_asked == 0


def test_a_race_that_used_everything_did_not_stop_early(benchmark: Path) -> None:
    """Anchors, a cascade and the diff of two runs treat such a run as any other."""
    whole = graded(benchmark, "interval:0.01", "whole")
    strong = parse_config(config_of(benchmark, None, "strong", judge={"model": "strong"}))
    same = JudgedRun(RunStore(whole.path), parse_config(config_of(benchmark, None, "whole")))
    assert result_of(whole).judgments == QUERIES * CANDIDATES
    assert not result_of(whole).stopped_early
    assert len(choose_queries(same.store, 4).queries) == 4
    check_cascade(same, strong, 0.3)
    assert not any("early" in note for note in diff_runs(same, same).notes)
    early = JudgedRun(RunStore(graded(benchmark, "best", "early").path), same.config)
    with pytest.raises(ConfigError, match="early"):
        choose_queries(early.store, 4)
    with pytest.raises(ConfigError, match="early"):
        check_cascade(early, strong, 0.3)
    assert any("early stopped early" in note for note in diff_runs(early, same).notes)


def test_evaluate_stops_early() -> None:
    """`rocketeval.evaluate(until=...)` stops early and says so."""
    rows = [
        {"question": f"Question {query}?", "version": f"v{number}", "output": f"candidate {number}"}
        for query in range(60)
        for number in range(2)
    ]
    engine = rocketeval.ScriptedEngine(answer)
    found = rocketeval.evaluate(
        rows, judge=engine, checklists=["Is it right?"], until="beats:v0", progress=False
    )
    assert any("judgments" in note for note in found.notes)
    assert engine.items_asked < 120


def test_plan_estimates_a_race(benchmark: Path) -> None:
    """`plan --until` simulates races from a pilot, or from a spread, and scales the cost."""
    from rocketeval.stopping.plan import AssumedSpread
    from rocketeval.stopping.stage import plan_stop

    price = {"prompt": 1.0, "completion": 1.0}
    judge = {"model": "scripted", "engine": "scripted", "price": price}
    config = parse_config(config_of(benchmark, "best", name="planned", judge=judge))
    planned = Run(config, judge=rocketeval.ScriptedEngine(answer))
    plan = asyncio.run(planned.plan_offline())
    with pytest.raises(ConfigError, match="no scores"):
        plan_stop(planned.store, planned.config, plan)
    pilot = graded(benchmark, None, name="pilot", engine=None)
    found = plan_stop(planned.store, planned.config, plan, pilot=pilot.path)
    real = result_of(graded(benchmark, "best"))
    assert found.decided == 1.0
    assert 0.5 * real.judgments < found.judgments < 2.0 * real.judgments
    assert plan.cost is not None
    assert found.cost == pytest.approx(plan.cost * found.judgments / found.of)
    clear = plan_stop(planned.store, planned.config, plan, spread=AssumedSpread(1.0, 1.0))
    near = plan_stop(planned.store, planned.config, plan, spread=AssumedSpread(1.0, 0.05))
    assert clear.judgments < near.judgments
    assert near.decided < clear.decided == 1.0
