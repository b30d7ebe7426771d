"""The loop of evolution: what it leaves, how it goes on, and that nothing is paid for twice."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from mad_eval.planted_benchmark import make_planted

from rocketeval import ScriptedEngine
from rocketeval.config import RunConfig
from rocketeval.errors import BudgetSpent, ConfigError, RunLocked, RunMismatch, Stopped
from rocketeval.evolve.artifact import load_evaluator
from rocketeval.evolve.grow import SPACES, ForestSettings
from rocketeval.evolve.perspective import Origin
from rocketeval.evolve.pool_file import read_pool
from rocketeval.pipeline import Run
from rocketeval.stages.evolve.evolution import Evolution, as_json
from rocketeval.store.files import write_jsonl
from rocketeval.store.run import RunStore
from support.planted_run import Engines, planted_config

PRICE = {"prompt": 1.0, "completion": 1.0}
PERSON = "Does the response name a town?"


async def evolve(config: RunConfig, engines: Engines, **settings: Any) -> Evolution:
    """One command."""
    return await Run(config).evolve(make_engine=engines.make, **settings)


@pytest.fixture(scope="module", autouse=True)
def small_forests() -> Iterator[None]:
    """Forests of a few trees: how well they predict is not what is shown here."""
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
    """A copy of that run to go on with."""
    shutil.copytree(finished[0], tmp_path, dirs_exist_ok=True)
    return tmp_path


def timeless(found: Evolution) -> Any:
    """What an evolution found, but when and how long it took."""
    told = as_json(found)
    for name in ("created", "path", "pool_path", "benchmark", "spent"):
        del told[name]
    del told["evaluator"]["provenance"]["created"]
    for done in told["rounds"]:
        for name in ("seconds", "judge", "optimizer"):
            del done[name]
    return told


def edit_pool(run: Path, text: str) -> None:
    """Append an entry as a person does."""
    pool = run / "evolve" / "pool.yaml"
    pool.write_text(pool.read_text() + f"- text: {text}\n")


def test_what_is_left_in_the_run(finished: tuple[Path, Evolution, Engines]) -> None:
    """The evaluator with where it came from, the pool with what it is worth, rounds and figures."""
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
    assert json.loads(row) == as_json(found.rounds[0])
    assert json.loads((run / "evolve" / "evolution.json").read_text()) == as_json(found)
    assert found.spent["judge"]["requests"] == engines.asked.total()
    assert found.spent["optimizer"]["requests"] == engines.written.total()


def test_the_figures_rest_on_cases_the_optimizer_never_saw(
    finished: tuple[Path, Evolution, Engines],
) -> None:
    """No held-out query stands in a prompt to the optimizer, and none is asked what was dropped."""
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


async def test_a_second_command_asks_nothing(
    run_folder: Path, finished: tuple[Path, Evolution, Engines]
) -> None:
    """And finds the same."""
    again = Engines()
    found = await evolve(planted_config(run_folder), again)
    assert (again.asked, again.written) == ({}, {})
    assert timeless(found) == timeless(finished[1])
    assert found.spent == finished[1].spent


def at(prompts: int, run: Run) -> Any:
    """Ask the run to stop before so many prompts are answered."""

    def hears(engines: Engines) -> None:
        if engines.asked.total() + engines.written.total() >= prompts:
            run.stop.set()

    return hears


@pytest.mark.parametrize("share", [0.1, 0.35, 0.45, 0.6, 0.9])
async def test_killed_and_gone_on_with(
    tmp_path: Path, finished: tuple[Path, Evolution, Engines], share: float
) -> None:
    """Wherever it is stopped, the next command asks the rest, nothing twice, and finds the same."""
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


async def test_a_round_whose_record_is_lost_is_done_again_for_nothing(
    run_folder: Path, finished: tuple[Path, Evolution, Engines]
) -> None:
    """Killed between the pool and the record: the journal brings the same perspectives."""
    (run_folder / "runs/planted/evolve/rounds.jsonl").unlink()
    (run_folder / "runs/planted/evaluator.npz").unlink()
    again = Engines()
    found = await evolve(planted_config(run_folder), again)
    assert (again.asked, again.written) == ({}, {})
    assert timeless(found) == timeless(finished[1])


async def test_money_is_limited_and_what_was_paid_is_kept(
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
    assert found.spent["judge"]["cost"] > 0.35
    assert found.cost.alone.money is not None


@pytest.mark.parametrize(("limit", "proposed"), [(350, False), (450, True)])
async def test_calls_are_limited(
    tmp_path: Path, finished: tuple[Path, Evolution, Engines], limit: int, proposed: bool
) -> None:
    """A round that could go over it does not begin, or is not asked; it goes on when there is room.

    The seeds take 136 calls, the end up to 204 and the optimizer up to 21: with 450 it is asked,
    but what it proposes is too much for the judge.
    """
    engines = Engines()
    found = await evolve(planted_config(tmp_path, max_calls=limit), engines)
    assert found.rounds == ()
    assert "`evolve.max_calls` allows" in found.stopped
    assert bool(engines.written) is proposed
    assert engines.asked.total() + engines.written.total() <= limit
    await evolve(planted_config(tmp_path), engines)
    assert engines.written == finished[2].written
    assert set(engines.asked.values()) == {1}


async def test_without_an_optimizer(tmp_path: Path) -> None:
    """The evaluator chooses among the seeds, and it is said."""
    found = await evolve(planted_config(tmp_path, optimizer=None, rounds=3), Engines())
    assert found.rounds == ()
    assert "no `evolve.optimizer`" in found.stopped
    assert found.optimizer is None
    assert (found.path).exists()


async def test_what_a_person_adds_is_asked_alone_and_counted(run_folder: Path) -> None:
    """One question a response, in the wanted form; the round that is over is not done again."""
    run = run_folder / "runs" / "planted"
    edit_pool(run, PERSON)
    again = Engines()
    found = await evolve(planted_config(run_folder), again)
    assert not again.written
    assert {prompt.split("\n# What to grade\n")[1].split("\n")[0] for _, prompt in again.asked} == {
        PERSON
    }
    assert (found.pool.people, found.pool.new_people) == (1, 1)
    added = [each for each in read_pool(run / "evolve/pool.yaml") if each.origin is Origin.PERSON]
    assert [each.text for each in added] == [PERSON]
    assert added[0].importance is not None
    once_more = await evolve(planted_config(run_folder), again)
    assert (once_more.pool.people, once_more.pool.new_people) == (1, 0)


async def test_more_rounds_go_on_after_the_last(run_folder: Path) -> None:
    """The first round stays as it was recorded."""
    again = Engines()
    found = await evolve(planted_config(run_folder, rounds=2, patience=2), again)
    assert [done.round for done in found.rounds] == [1, 2]
    assert found.rounds[1].before == found.rounds[0].after
    assert again.written
    assert not any("Request: round 1," in prompt for prompt in again.written)


async def test_another_split_is_refused(run_folder: Path) -> None:
    """Perspectives that know a query must not be measured on it."""
    engines = Engines()
    with pytest.raises(RunMismatch, match="could be held out now"):
        await evolve(planted_config(run_folder, seed=7), engines)
    assert not engines.asked


async def test_a_mistake_in_the_pool_is_named_before_anything_is_asked(run_folder: Path) -> None:
    """By its number."""
    edit_pool(run_folder / "runs" / "planted", "''")
    engines = Engines()
    with pytest.raises(ConfigError, match="perspective"):
        await evolve(planted_config(run_folder), engines)
    assert not engines.asked


async def test_rounds_that_bring_nothing_end_it(tmp_path: Path) -> None:
    """Votes by chance: after one round without a gain no other begins."""
    planted = make_planted(20, shuffled=True)
    found = await evolve(planted_config(tmp_path, planted, rounds=9, patience=1), Engines())
    assert len(found.rounds) < 9
    assert "in a row brought no gain" in found.stopped
    assert found.best_round < found.rounds[-1].round


async def test_guidelines_are_taken_apart(tmp_path: Path) -> None:
    """What they bring is a rule of the pool; without an optimizer they are refused."""
    (tmp_path / "guide.txt").write_text("Responses should be well written.")
    config = planted_config(tmp_path, guidelines=str(tmp_path / "guide.txt"), rounds=0)
    engines = Engines()
    found = await evolve(config, engines)
    assert len(engines.written) == 1
    assert found.pool.by_origin["rule"] == 3 + 4
    with pytest.raises(ConfigError, match="taken apart by an optimizer"):
        await evolve(
            planted_config(tmp_path, guidelines=str(tmp_path / "guide.txt"), optimizer=None),
            engines,
        )


async def test_labels(tmp_path: Path) -> None:
    """Responses are scored; figures are rank correlations, and there is no table of confidence."""
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


async def test_side_by_side_and_both_forms(tmp_path: Path) -> None:
    """The judge sees pairs, and answers every perspective either way."""
    found = await evolve(
        planted_config(tmp_path, asking="pairs", answers="both", rounds=0), Engines()
    )
    store = RunStore(tmp_path / "runs" / "planted")
    sheets = {path.name for path in (store.path / "evolve" / "seen").iterdir()}
    assert sheets == {"pairs-choice", "pairs-graded", "queries"}
    assert found.cost.alone.calls == found.cost.about_responses + found.cost.about_queries


async def test_a_run_that_is_written_by_another_is_left_alone(tmp_path: Path) -> None:
    """RunLocked, and nothing was asked."""
    from filelock import FileLock

    config = planted_config(tmp_path)
    config.run_path.mkdir(parents=True)
    engines = Engines()
    with FileLock(config.run_path / ".lock"), pytest.raises(RunLocked):
        await evolve(config, engines)
    assert not engines.asked


async def test_money_without_prices_and_places_that_cannot_be(tmp_path: Path) -> None:
    """What is wrong is said before anything is asked."""
    engines = Engines()
    limited = planted_config(tmp_path, judge={"price": PRICE}, max_cost=1.0)
    with pytest.raises(ConfigError, match="the optimizer 'optimizer' has no price"):
        await evolve(limited, engines)
    with pytest.raises(ConfigError, match="the judge 'judge' has no price"):
        await evolve(planted_config(tmp_path, price=PRICE, max_cost=1.0), engines)
    own = Run(planted_config(tmp_path), judge=ScriptedEngine())
    with pytest.raises(ConfigError, match="one given engine"):
        await own.evolve()
    with pytest.raises(ConfigError, match="ends in"):
        await evolve(planted_config(tmp_path), engines, path=tmp_path / "evaluator.zip")
    given = planted_config(tmp_path).model_copy(update={"evaluator": tmp_path / "e.npz"})
    with pytest.raises(ConfigError):
        await evolve(given, engines)
    assert not engines.asked
    assert not (tmp_path / "runs").exists()


async def test_the_price_of_the_optimizer_comes_from_the_table(tmp_path: Path) -> None:
    """As that of a judge and an author does."""
    table = {"currency": "EUR", "models": {"judge": PRICE, "optimizer": PRICE}}
    (tmp_path / "prices.yaml").write_text(yaml.safe_dump(table))
    config = planted_config(tmp_path, rounds=0, max_cost=5.0)
    config = config.model_copy(update={"prices": tmp_path / "prices.yaml"})
    found = await evolve(config, Engines())
    assert found.spent["judge"]["currency"] == "EUR"
