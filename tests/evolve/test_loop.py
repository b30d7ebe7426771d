"""The evolution loop: results, resuming, and that nothing is paid for twice."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from mad_eval.planted_benchmark import make_planted

from rocketeval.config import EngineConfig, RunConfig
from rocketeval.engines.base import EngineAnswers, EngineIdentity
from rocketeval.engines.scripted import ScriptedEngine
from rocketeval.errors import (
    BudgetSpent,
    ChecklistError,
    ConfigError,
    EngineRefused,
    EngineUnavailable,
    RunLocked,
    RunMismatch,
    Stopped,
)
from rocketeval.evolve import forest
from rocketeval.evolve.apply_setup import EvaluatorCases
from rocketeval.evolve.artifact import load_evaluator
from rocketeval.evolve.ask import most_questions
from rocketeval.evolve.forest import SPACES, ForestSettings
from rocketeval.evolve.history import Spending, gather_cases, split_cases
from rocketeval.evolve.perspective import Perspective, PerspectiveKind, PerspectiveOrigin, Pool
from rocketeval.evolve.pool import read_pool, write_pool
from rocketeval.evolve.result import Evolution
from rocketeval.pipeline import Run
from rocketeval.records import Answer, GradingTask
from rocketeval.scoring.forest import grow_trees
from rocketeval.store.codec import encode
from rocketeval.store.files import write_jsonl
from rocketeval.store.run import RunStore
from support.planted_run import Engines, planted_config

PRICE = {"prompt": 1.0, "completion": 1.0}
PERSON = "Does the response name a town?"


async def evolve(config: RunConfig, engines: Engines, **settings: Any) -> Evolution:
    """Run one command."""
    return await Run(config).evolve(make_engine=engines.make, **settings)


@pytest.fixture(scope="module", autouse=True)
def small_forests() -> Iterator[None]:
    """Use forests of a few trees; prediction quality does not matter here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(SPACES, "short", (ForestSettings(5, 3, 2, 5),))
        yield


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Evolution, Engines]:
    """A run of one round."""
    folder = tmp_path_factory.mktemp("finished")
    engines = Engines()
    return folder, asyncio.run(evolve(planted_config(folder), engines)), engines


@pytest.fixture
def run_folder(tmp_path: Path, finished: tuple[Path, Evolution, Engines]) -> Path:
    """A copy of that run to continue."""
    shutil.copytree(finished[0], tmp_path, dirs_exist_ok=True)
    return tmp_path


def timeless(found: Evolution) -> Any:
    """An evolution's result without times."""
    encoded = encode(found)
    for name in ("created", "path", "pool_path", "benchmark", "spent"):
        del encoded[name]
    del encoded["evaluator"]["provenance"]["created"]
    for done in encoded["rounds"]:
        for name in ("seconds", "judge", "optimizer"):
            del done[name]
    return encoded


class Unplugged(Engines):
    """Judges that cannot be reached."""

    def make(self, config: EngineConfig, home: Path | None = None) -> ScriptedEngine:
        async def identify() -> EngineIdentity:
            raise EngineUnavailable("Nobody answers.")

        engine = super().make(config, home)
        engine.identify = identify  # type: ignore[method-assign]
        return engine


def edit_pool(run: Path, text: str) -> None:
    """Append an entry to the pool file, as a person does."""
    pool = run / "evolve" / "pool.yaml"
    pool.write_text(pool.read_text() + f"  - text: {text}\n")


async def test_finished_evolution_needs_no_judge(
    run_folder: Path, finished: tuple[Path, Evolution, Engines]
) -> None:
    """The same result without a reachable judge."""
    again = await evolve(planted_config(run_folder), Unplugged())
    assert timeless(again) == timeless(finished[1])
    edit_pool(run_folder / "runs" / "planted", PERSON)
    with pytest.raises(EngineUnavailable):
        await evolve(planted_config(run_folder), Unplugged())


def test_files_of_a_finished_run(finished: tuple[Path, Evolution, Engines]) -> None:
    """The evaluator with provenance, the weighted pool, rounds and figures."""
    folder, found, engines = finished
    run = folder / "runs" / "planted"
    evaluator = load_evaluator(run / "evaluator.npz")
    notes = evaluator.provenance
    assert notes["cases"] == 120
    assert len(notes["learned_from"]) == 20
    assert [arm["name"] for arm in notes["figures"]["arms"]][-2:] == [
        "without experts",
        "with experts",
    ]
    assert sum(notes["cases by expert"]) == 120
    assert {row["threshold"] for row in notes["confidence"]} == {0.0, 0.25, 0.5, 0.67, 0.8}
    pool = read_pool(run / "evolve" / "pool.yaml")
    assert len(pool) == found.pool.size
    assert all(each.importance is not None for each in pool)
    (row,) = (run / "evolve" / "rounds.jsonl").read_text().strip().splitlines()
    assert json.loads(row) == encode(found.rounds[0])
    assert encode(RunStore(run).read(Evolution)) == encode(found)
    assert found.spent.judge.requests == engines.asked.total()
    assert found.spent.optimizer.requests == engines.written.total()


def test_optimizer_never_sees_held_out_queries(
    finished: tuple[Path, Evolution, Engines],
) -> None:
    """No held-out query is in an optimizer prompt, and dropped perspectives are not asked."""
    folder, found, engines = finished
    texts = {
        row["text"]
        for row in map(json.loads, (folder / "benchmark/queries.jsonl").read_text().splitlines())
        if any(row["text"] in prompt for prompt in engines.written)
    }
    assert 0 < len(texts) <= found.seen.queries
    store = RunStore(folder / "runs" / "planted")
    held_out = store.inside("evolve/held_out", "each-graded").inputs.queries
    assert not {query.text for query in held_out.values()} & texts
    assert len(held_out) == found.held_out.queries


def test_query_questions_are_all_asked_on_held_out_queries(
    finished: tuple[Path, Evolution, Engines],
) -> None:
    """Traits without effect on the few seen queries may matter for others."""
    folder, found, _ = finished
    run = folder / "runs" / "planted"
    pool = read_pool(run / "evolve" / "pool.yaml").of(PerspectiveKind.QUERY)
    asked = RunStore(run).inside("evolve/held_out", "queries").inputs.checklists()
    wanted = {each.text for each in pool if each.round <= found.best_round}
    assert {frozenset(one.items) for one in asked.values()} == {frozenset(wanted)}
    assert any(not each.importance for each in pool)


async def test_second_command_sends_no_requests(
    run_folder: Path, finished: tuple[Path, Evolution, Engines]
) -> None:
    """And gives the same result."""
    again = Engines()
    found = await evolve(planted_config(run_folder), again)
    assert (again.asked, again.written) == ({}, {})
    assert timeless(found) == timeless(finished[1])
    assert found.spent == finished[1].spent


def at(prompts: int, run: Run) -> Any:
    """Stop the run before a number of prompts are answered."""

    def hears(engines: Engines) -> None:
        if engines.asked.total() + engines.written.total() >= prompts:
            run.stop.set()

    return hears


@pytest.mark.parametrize("share", [0.1, 0.35, 0.45, 0.6, 0.9])
async def test_interrupted_evolution_resumes(
    tmp_path: Path, finished: tuple[Path, Evolution, Engines], share: float
) -> None:
    """Wherever it is stopped, the next command asks only the rest and gives the same result."""
    whole = finished[2]
    engines = Engines()
    run = Run(planted_config(tmp_path))
    engines.hears = at(int(share * (whole.asked.total() + whole.written.total())), run)
    with pytest.raises(Stopped, match="Stopped before the end"):
        await run.evolve(make_engine=engines.make)
    assert engines.asked.total() < whole.asked.total()
    engines.hears = None
    found = await evolve(planted_config(tmp_path), engines)
    assert engines.asked == whole.asked
    assert engines.written == whole.written
    assert timeless(found) == timeless(finished[1])


async def test_stop_while_the_optimizer_loads(tmp_path: Path) -> None:
    """A command does not wait for an optimizer that is not ready."""
    run = Run(planted_config(tmp_path))

    class Loading(Engines):
        def make(self, config: EngineConfig, home: Path | None = None) -> ScriptedEngine:
            async def ready() -> None:
                run.stop.set()
                await asyncio.Event().wait()

            engine = super().make(config, home)
            engine.ready = ready  # type: ignore[method-assign]
            return engine

    with pytest.raises(Stopped):
        await asyncio.wait_for(run.evolve(make_engine=Loading().make), timeout=30)


async def test_stop_while_fitting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command ends at once, and its thread before the next forest."""
    run = Run(planted_config(tmp_path))
    loop, fitted = asyncio.get_running_loop(), threading.Event()
    grown = 0

    def grow(*args: Any, **settings: Any) -> Any:
        nonlocal grown
        grown += 1
        loop.call_soon_threadsafe(run.stop.set)
        time.sleep(0.1)
        fitted.set()
        return grow_trees(*args, **settings)

    monkeypatch.setattr(forest, "grow_trees", grow)
    with pytest.raises(Stopped, match="Stopped before the end"):
        await run.evolve(make_engine=Engines().make)
    assert not fitted.is_set()
    await loop.shutdown_default_executor()
    assert grown == 1


async def test_round_with_lost_record_is_replayed_free(
    run_folder: Path, finished: tuple[Path, Evolution, Engines]
) -> None:
    """Killed between pool and record: the journal restores the same perspectives."""
    (run_folder / "runs/planted/evolve/rounds.jsonl").unlink()
    (run_folder / "runs/planted/evaluator.npz").unlink()
    again = Engines()
    found = await evolve(planted_config(run_folder), again)
    assert (again.asked, again.written) == ({}, {})
    assert timeless(found) == timeless(finished[1])


async def test_cost_limit_keeps_paid_answers(
    tmp_path: Path, finished: tuple[Path, Evolution, Engines]
) -> None:
    """For judge and optimizer alike."""
    engines = Engines()
    for limit in (0.15, 0.2):
        config = planted_config(tmp_path, judge={"price": PRICE}, price=PRICE, max_cost=limit)
        with pytest.raises(BudgetSpent, match="is reached") as error:
            await evolve(config, engines)
        assert "run the same command again" in error.value.hint
    config = planted_config(tmp_path, judge={"price": PRICE}, price=PRICE)
    found = await evolve(config, engines)
    assert engines.asked == finished[2].asked
    assert engines.written == finished[2].written
    assert found.spent.judge.cost > 0.35
    assert found.cost.alone.money is not None


@pytest.mark.parametrize(("limit", "proposed"), [(340, False), (350, False), (450, True)])
async def test_calls_are_limited(
    tmp_path: Path, finished: tuple[Path, Evolution, Engines], limit: int, proposed: bool
) -> None:
    """A round that could exceed the limit does not start or is not asked, until there is room.

    The seeds take 136 questions, the end up to 204 and the optimizer up to 21: with 450 it is
    asked, but its proposals are too many for the judge.
    """
    engines = Engines()
    found = await evolve(planted_config(tmp_path, max_calls=limit), engines)
    assert found.rounds == ()
    needed = r"round 1 and the held-out cases need up to \d+ .* after the \d+ so far"
    assert re.match(
        rf"{needed}, which exceeds the {limit} that `evolve.max_calls` allows", found.stopped
    )
    assert bool(engines.written) is proposed
    assert engines.asked.total() + engines.written.total() <= limit
    await evolve(planted_config(tmp_path), engines)
    assert engines.written == finished[2].written
    assert set(engines.asked.values()) == {1}


def least_limit(folder: Path, config: RunConfig) -> int:
    """Return the smallest `max_calls` with which a finished run of this config does its round."""
    run = folder / "runs" / "planted"
    paid = map(json.loads, (run / "evolve" / "spent.jsonl").read_text().splitlines())
    before = (row.get("questions", row["requests"]) for row in paid if row["why"] != "held out")
    held_out = split_cases(RunStore(run).inputs, config.evolve).held_out
    pool = read_pool(run / "evolve" / "pool.yaml")
    return sum(before) + most_questions(pool, held_out, config.evolve)


@pytest.mark.parametrize("stopped_in", ["optimizer", "judge"])
async def test_limited_round_resumes(
    tmp_path: Path, finished: tuple[Path, Evolution, Engines], stopped_in: str
) -> None:
    """What was paid before the stop is not counted again, so the round is finished."""
    folder, whole, asked = finished
    limit = least_limit(folder, planted_config(folder))
    config = planted_config(tmp_path, max_calls=limit)
    engines, run = Engines(), Run(config)
    (done,) = whole.rounds

    def hears(engines: Engines) -> None:
        late = engines.written.total() + (engines.asked.total() - 136) // 10
        if late > (3 if stopped_in == "optimizer" else done.optimizer.requests + 4):
            run.stop.set()

    engines.hears = hears
    with pytest.raises(Stopped):
        await run.evolve(make_engine=engines.make)
    assert 0 < engines.written.total() <= done.optimizer.requests
    assert (engines.asked.total() > 136) is (stopped_in == "judge")
    assert engines.asked.total() < 136 + done.judge.questions
    engines.hears = None
    found = await evolve(config, engines)
    assert (engines.asked, engines.written) == (asked.asked, asked.written)
    assert timeless(found) == timeless(whole)


async def test_round_does_not_start_below_its_least_limit(
    tmp_path: Path, finished: tuple[Path, Evolution, Engines]
) -> None:
    """One call less is refused."""
    limit = least_limit(finished[0], planted_config(finished[0]))
    found = await evolve(planted_config(tmp_path, max_calls=limit - 1), Engines())
    assert found.rounds == ()


@pytest.mark.parametrize("limit", [1, 339])
async def test_limit_below_seeds_is_refused_before_any_request(tmp_path: Path, limit: int) -> None:
    """The error names the needed number, also with guidelines."""
    engines = Engines()
    with pytest.raises(ConfigError, match=f"allows {limit} .* need up to 340 ") as error:
        await evolve(planted_config(tmp_path, max_calls=limit), engines)
    assert "`evolve.max_calls` to at least 340" in error.value.hint
    (tmp_path / "guide.txt").write_text("Responses should be well written.")
    guided = planted_config(tmp_path, max_calls=342, guidelines=str(tmp_path / "guide.txt"))
    with pytest.raises(ConfigError, match="need up to 343 "):
        await evolve(guided, engines)
    assert not engines.asked
    assert not engines.written


async def test_lowered_limit_sends_no_requests(
    run_folder: Path, finished: tuple[Path, Evolution, Engines]
) -> None:
    """The result is shown again; additions beyond the limit are refused."""
    engines = Engines()
    found = await evolve(planted_config(run_folder, max_calls=1, rounds=2, patience=3), engines)
    so_far = finished[2].asked.total() + finished[2].written.total()
    assert f"after the {so_far} so far, which exceeds the 1 that" in found.stopped
    edit_pool(run_folder / "runs" / "planted", PERSON)
    with pytest.raises(ConfigError, match=r"`evolve\.max_calls` allows 1 "):
        await evolve(planted_config(run_folder, max_calls=1), engines)
    assert not engines.asked


class SeveralAtOnce(Engines):
    """Judges that answer all questions about a response in one request."""

    def make(self, config: EngineConfig, home: Path | None = None) -> ScriptedEngine:
        engine = super().make(config, home)
        grade = engine.grade

        async def grade_at_once(task: GradingTask, known: Mapping[int, Answer]) -> EngineAnswers:
            graded = await grade(task, known)
            return replace(graded, usage=replace(graded.usage, requests=1))

        engine.grade = grade_at_once  # type: ignore[method-assign]
        return engine


async def test_limit_counts_questions_not_requests(
    tmp_path: Path, finished: tuple[Path, Evolution, Engines]
) -> None:
    """Both are recorded, and the limit applies to questions."""
    engines = SeveralAtOnce()
    found = await evolve(planted_config(tmp_path), engines)
    judge = found.spent.judge
    assert judge.questions == engines.asked.total() == finished[1].spent.judge.questions
    assert judge.requests < judge.questions / 2
    (done,) = found.rounds
    assert done.judge.questions == finished[1].rounds[0].judge.requests
    assert done.judge.requests < done.judge.questions
    engines = SeveralAtOnce()
    found = await evolve(planted_config(tmp_path, max_calls=450, name="limited"), engines)
    assert "`evolve.max_calls` allows" in found.stopped
    assert engines.asked.total() + engines.written.total() <= 450


def ledgers(run: Path) -> int:
    """Requests of all judgments in a run's question sets."""
    question_sets = [path.parent for path in (run / "evolve").glob("*/*/ledger")]
    return sum(RunStore(question_set).ledger_usage().requests for question_set in question_sets)


async def test_usage_before_a_judge_failure_is_recorded(
    tmp_path: Path, finished: tuple[Path, Evolution, Engines]
) -> None:
    """The recorded usage equals the ledgers, after the failure and after the next command."""
    engines = Engines()

    def gone(engines: Engines) -> None:
        if engines.asked.total() >= 100:
            raise EngineRefused("The server is gone.")

    engines.hears = gone
    config = planted_config(tmp_path)
    with pytest.raises(EngineRefused):
        await evolve(config, engines)
    spending = Spending(config.run_path / "evolve" / "spent.jsonl")
    assert spending.calls == spending.total("judge").requests == ledgers(config.run_path) > 50
    engines.hears = None
    found = await evolve(config, engines)
    assert found.spent.judge.requests == ledgers(config.run_path)
    assert found.spent.judge.questions == finished[1].spent.judge.questions


async def test_usage_of_failed_optimizer_requests_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every request failed, with all retries."""
    engines = Engines()
    monkeypatch.setattr("support.planted_run.optimizer_writes", lambda prompt: "I cannot.")
    config = planted_config(tmp_path)
    with pytest.raises(ChecklistError, match="every request failed"):
        await evolve(config, engines)
    spending = Spending(config.run_path / "evolve" / "spent.jsonl")
    assert spending.total("optimizer").requests == engines.written.total() > 3
    assert spending.calls == engines.asked.total() + engines.written.total()


async def test_without_an_optimizer(tmp_path: Path) -> None:
    """The evaluator selects from the seeds, and the result says so."""
    found = await evolve(planted_config(tmp_path, optimizer=None, rounds=3), Engines())
    assert found.rounds == ()
    assert "no `evolve.optimizer`" in found.stopped
    assert found.optimizer is None
    assert (found.path).exists()


async def test_added_perspective_is_asked_and_counted(run_folder: Path) -> None:
    """One question per response, in the configured format; finished rounds are not repeated."""
    run = run_folder / "runs" / "planted"
    edit_pool(run, PERSON)
    again = Engines()
    found = await evolve(planted_config(run_folder), again)
    assert not again.written
    assert again.asked
    assert all(PERSON in prompt for _, prompt in again.asked)
    assert (found.pool.people, found.pool.new_people) == (1, 1)
    added = [
        each
        for each in read_pool(run / "evolve/pool.yaml")
        if each.origin is PerspectiveOrigin.PERSON
    ]
    assert [each.text for each in added] == [PERSON]
    assert added[0].importance is not None
    once_more = await evolve(planted_config(run_folder), again)
    assert (once_more.pool.people, once_more.pool.new_people) == (1, 0)


def when_first_written(do: Callable[[], None]) -> Callable[[Engines], None]:
    """Call a function when the optimizer first gets a request."""
    left = [do]

    def hears(engines: Engines) -> None:
        if engines.written and left:
            left.pop()()

    return hears


async def test_perspective_added_during_a_round_joins_the_next(tmp_path: Path) -> None:
    """It is kept and counts as added by a person."""
    config = planted_config(tmp_path, rounds=2, patience=3)
    engines = Engines()
    engines.hears = when_first_written(lambda: edit_pool(config.run_path, PERSON))
    found = await evolve(config, engines)
    assert [done.people for done in found.rounds] == [0, 1]
    assert (found.pool.people, found.pool.new_people, found.pool.waiting) == (1, 1, 0)
    added = [each for each in read_pool(found.pool_path) if each.text == PERSON]
    assert [(each.origin, each.round) for each in added] == [(PerspectiveOrigin.PERSON, 0)]
    assert added[0].importance is not None
    assert set(engines.asked.values()) == {1}


async def test_perspective_added_in_the_last_round_waits(
    tmp_path: Path,
) -> None:
    """It stays in the file after the round's proposals, and is counted."""
    config = planted_config(tmp_path)
    engines = Engines()
    engines.hears = when_first_written(lambda: edit_pool(config.run_path, PERSON))
    found = await evolve(config, engines)
    assert (found.pool.people, found.pool.waiting) == (0, 1)
    pool = list(read_pool(found.pool_path))
    assert len(pool) == found.pool.size + 1
    assert (pool[-1].text, pool[-1].importance) == (PERSON, None)
    again = await evolve(config, engines)
    assert (again.pool.people, again.pool.new_people, again.pool.waiting) == (1, 1, 0)


async def test_unreadable_pool_file_is_left_unchanged(
    tmp_path: Path, finished: tuple[Path, Evolution, Engines]
) -> None:
    """An error; once fixed, nothing of the round is paid for again."""
    config = planted_config(tmp_path)
    pool = config.run_path / "evolve" / "pool.yaml"
    engines = Engines()
    engines.hears = when_first_written(lambda: edit_pool(config.run_path, "''"))
    with pytest.raises(ConfigError, match="perspective"):
        await evolve(config, engines)
    assert pool.read_text().endswith("  - text: ''\n")
    pool.write_text(pool.read_text().removesuffix("  - text: ''\n"))
    found = await evolve(config, engines)
    assert engines.written == finished[2].written
    assert timeless(found) == timeless(finished[1])


async def test_entry_of_another_run_counts_as_added_by_a_person(run_folder: Path) -> None:
    """Its round is later than this run's; it is kept and weighed here."""
    run = run_folder / "runs" / "planted"
    fields = (PERSON, "origin: failures", "form: graded", "round: 2", "importance: 0.9")
    edit_pool(run, "\n    ".join(fields))
    found = await evolve(planted_config(run_folder), Engines())
    assert (found.pool.people, found.pool.new_people, found.pool.elsewhere) == (1, 1, 1)
    (added,) = [each for each in read_pool(found.pool_path) if each.text == PERSON]
    assert (added.origin, added.round) == (PerspectiveOrigin.PERSON, 0)
    assert added.importance != 0.9
    again = await evolve(planted_config(run_folder), Engines())
    assert (again.pool.people, again.pool.elsewhere) == (1, 0)


async def test_pool_of_another_run_as_seeds_gives_one_result(tmp_path: Path) -> None:
    """The same command gives it again, and both say that the figures may be too optimistic."""
    config = planted_config(tmp_path, optimizer=None, rounds=0)
    proposal = Perspective(PERSON, origin=PerspectiveOrigin.FAILURES, round=2, importance=0.9)
    seeds = tmp_path / "benchmark" / "seeds.yaml"
    write_pool(Pool([*read_pool(seeds), proposal]), seeds)
    once, again = [await evolve(config, Engines()) for _ in range(2)]
    assert timeless(once) == timeless(again)
    assert (again.pool.people, again.pool.elsewhere, again.pool.of_other_rounds) == (0, 0, 1)
    assert "1 seed is from rounds of another run" in again.worth.words
    assert load_evaluator(again.path).provenance["figures"]["worth"] == again.worth.words


async def test_winner_first_in_every_vote(tmp_path: Path) -> None:
    """The order of each pair is drawn, the output says so, and the evaluator's run keeps it."""
    config = planted_config(tmp_path, optimizer=None, rounds=0, asking="pairs")
    path = tmp_path / "benchmark" / "votes.jsonl"
    votes = [json.loads(line) for line in path.read_text().splitlines()]
    for vote in votes:
        if vote["winner"] == "b":
            sides = vote["candidate_b"], vote["candidate_a"]
            vote |= {"candidate_a": sides[0], "candidate_b": sides[1], "winner": "a"}
    write_jsonl(path, votes)
    found = await evolve(config, Engines())
    assert "order of each pair was drawn at random" in found.worth.words
    inputs = RunStore(config.run_path).inputs
    cases = gather_cases(inputs, config.evolve)
    wins = [case.gold for case in cases if case.gold]
    assert 0.3 < np.mean(np.array(wins) == 1.0) < 0.7
    own = EvaluatorCases.of(inputs, load_evaluator(found.path)).asked()
    shown = {(case.query_id, case.candidates) for case in own}
    assert all((case.query_id, case.candidates) in shown for case in cases)


async def test_additions_after_held_out_figures_are_counted(
    run_folder: Path, finished: tuple[Path, Evolution, Engines]
) -> None:
    """From the first command that showed figures, in all later commands."""
    assert finished[1].pool.people_before_figures == 0
    edit_pool(run_folder / "runs" / "planted", PERSON)
    for _ in range(2):
        found = await evolve(planted_config(run_folder), Engines())
        assert (found.pool.people, found.pool.people_before_figures) == (1, 0)


async def test_more_rounds_continue_after_the_last(run_folder: Path) -> None:
    """The first round's record is unchanged."""
    again = Engines()
    found = await evolve(planted_config(run_folder, rounds=2, patience=2), again)
    assert [done.round for done in found.rounds] == [1, 2]
    assert found.rounds[1].before == found.rounds[0].after
    assert again.written
    assert not any("Request: round 1," in prompt for prompt in again.written)


async def test_another_split_is_refused(run_folder: Path) -> None:
    """Perspectives that saw a query must not be measured on it."""
    engines = Engines()
    with pytest.raises(RunMismatch, match="may be held out now"):
        await evolve(planted_config(run_folder, seed=7), engines)
    assert not engines.asked


async def test_pool_mistake_is_named_before_any_request(run_folder: Path) -> None:
    """The error gives the entry's number."""
    edit_pool(run_folder / "runs" / "planted", "''")
    engines = Engines()
    with pytest.raises(ConfigError, match="perspective"):
        await evolve(planted_config(run_folder), engines)
    assert not engines.asked


async def test_rounds_without_gain_stop_evolution(tmp_path: Path) -> None:
    """With random votes, no round follows one without a gain."""
    planted = make_planted(20, shuffled=True)
    found = await evolve(planted_config(tmp_path, planted, rounds=9, patience=1), Engines())
    assert len(found.rounds) < 9
    assert "in a row brought no gain" in found.stopped
    assert found.best_round < found.rounds[-1].round


async def test_guidelines_become_questions(tmp_path: Path) -> None:
    """They have the origin `rule`; without an optimizer they are refused."""
    (tmp_path / "guide.txt").write_text("Responses should be well written.")
    config = planted_config(tmp_path, guidelines=str(tmp_path / "guide.txt"), rounds=0)
    engines = Engines()
    found = await evolve(config, engines)
    assert len(engines.written) == 1
    assert found.pool.by_origin["rule"] == 3 + 4
    with pytest.raises(ConfigError, match="needs an optimizer"):
        await evolve(
            planted_config(tmp_path, guidelines=str(tmp_path / "guide.txt"), optimizer=None),
            engines,
        )


async def test_labels(tmp_path: Path) -> None:
    """Responses are scored; figures are rank correlations, without a confidence table."""
    planted = make_planted(20)
    folder = planted.write(tmp_path / "benchmark")
    rows = [
        {
            "query_id": row["query_id"],
            "candidate": row["candidate"],
            "value": (1 if planted.is_sum(row["query_id"]) else -1) * -len(row["text"].split()),
        }
        for row in planted.responses
    ]
    write_jsonl(folder / "labels.jsonl", rows)
    config = planted_config(tmp_path, gold="labels", asking="pairs", rounds=0)
    found = await evolve(config, Engines())
    assert found.figures.measure == "rho"
    assert found.asking == "each"
    assert found.confidence is None
    assert found.seen.cases + found.held_out.cases == 80
    assert load_evaluator(found.path).task == "scores"


async def test_pairs_with_both_answer_formats(tmp_path: Path) -> None:
    """The judge sees pairs, and answers every perspective in both formats."""
    found = await evolve(
        planted_config(tmp_path, asking="pairs", answers="both", rounds=0), Engines()
    )
    store = RunStore(tmp_path / "runs" / "planted")
    question_sets = {path.name for path in (store.path / "evolve" / "seen").iterdir()}
    assert question_sets == {"pairs-choice", "pairs-graded", "queries"}
    assert found.cost.alone.calls == found.cost.about_responses + found.cost.about_queries


async def test_locked_run_is_left_alone(tmp_path: Path) -> None:
    """RunLocked, and no requests."""
    from filelock import FileLock

    config = planted_config(tmp_path)
    config.run_path.mkdir(parents=True)
    engines = Engines()
    with FileLock(config.run_path / ".lock"), pytest.raises(RunLocked):
        await evolve(config, engines)
    assert not engines.asked


async def test_missing_prices_and_bad_paths_are_refused(tmp_path: Path) -> None:
    """Errors come before the first request."""
    engines = Engines()
    limited = planted_config(tmp_path, judge={"price": PRICE}, max_cost=1.0)
    with pytest.raises(ConfigError, match="needs a price for the optimizer 'optimizer'"):
        await evolve(limited, engines)
    with pytest.raises(ConfigError, match="needs a price for the judge 'judge'"):
        await evolve(planted_config(tmp_path, price=PRICE, max_cost=1.0), engines)
    own = Run(planted_config(tmp_path), judge=ScriptedEngine())
    with pytest.raises(ConfigError, match="one engine per question set"):
        await own.evolve()
    with pytest.raises(ConfigError, match="must end in"):
        await evolve(planted_config(tmp_path), engines, path=tmp_path / "evaluator.zip")
    given = planted_config(tmp_path).model_copy(update={"evaluator": tmp_path / "e.npz"})
    with pytest.raises(ConfigError):
        await evolve(given, engines)
    assert not engines.asked
    assert not (tmp_path / "runs").exists()


async def test_optimizer_price_comes_from_the_price_file(tmp_path: Path) -> None:
    """As for a judge and an author."""
    table = {"currency": "EUR", "models": {"judge": PRICE, "optimizer": PRICE}}
    (tmp_path / "prices.yaml").write_text(yaml.safe_dump(table))
    config = planted_config(tmp_path, rounds=0, max_cost=5.0)
    config = config.model_copy(update={"prices": tmp_path / "prices.yaml"})
    found = await evolve(config, Engines())
    assert found.spent.judge.currency == "EUR"
