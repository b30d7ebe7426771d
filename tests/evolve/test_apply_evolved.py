"""An evaluator in the run that trained it: all answers are reused."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from mad_eval.planted_benchmark import make_planted

from rocketeval.config import RunConfig
from rocketeval.engines.scripted import ScriptedEngine
from rocketeval.evolve.artifact import load_evaluator
from rocketeval.evolve.forest import SPACES, ForestSettings
from rocketeval.evolve.perspective import Asking
from rocketeval.pipeline import Run
from rocketeval.store.files import write_jsonl
from support.in_process import cli
from support.planted_run import Engines, planted_config

QUERIES = 20


Finished = dict[Asking, tuple[Path, Engines]]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """A run of one round for each way of asking, with its engines."""
    found: Finished = {}
    for asking in ("each", "pairs"):
        folder, engines = tmp_path_factory.mktemp(asking), Engines()
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(SPACES, "short", (ForestSettings(5, 3, 2, 5),))
            asyncio.run(Run(config_of(folder, asking)).evolve(make_engine=engines.make))
        found[asking] = folder, engines
    return found


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> Engines:
    """Replaces the scripted engine by the planted judge or optimizer, and counts requests."""
    engines = Engines()
    monkeypatch.setattr(ScriptedEngine, "create", engines.make)
    return engines


def config_of(folder: Path, asking: Asking) -> RunConfig:
    """The config of the run in a folder."""
    return planted_config(folder, asking=asking, answers="both", experts=[2])


def evolved(folder: Path, finished: Finished, asking: Asking) -> RunConfig:
    """A config with the evaluator of its run, copied into a folder."""
    shutil.copytree(finished[asking][0], folder, dirs_exist_ok=True)
    config = config_of(folder, asking)
    return config.model_copy(update={"evaluator": config.run_path / "evaluator.npz"})


def add_candidate(folder: Path) -> None:
    """Add a fifth candidate with a response to every query."""
    planted = make_planted(QUERIES)
    more = [
        {"query_id": query["id"], "candidate": "fir", "text": "Quite another thing."}
        for query in planted.queries
    ]
    write_jsonl(folder / "benchmark" / "responses.jsonl", [*planted.responses, *more])


def requests(run: Run) -> int:
    """The number of requests that grading reports."""
    found: int = run.store.manifest().stages.grade.usage.requests
    return found


def answers_of(run: Run) -> list[Any]:
    """The ledger entries with the evaluator's judgments."""
    return [
        (row["key"], row["p_yes"]) for table in run.store.judgments() for row in table.to_pylist()
    ]


@pytest.mark.parametrize("asking", ["each", "pairs"])
def test_all_answers_are_reused(
    tmp_path: Path, finished: Finished, engines: Engines, asking: Asking
) -> None:
    """The plan and the run have no requests, and the answers equal those of a fresh run."""
    config = evolved(tmp_path, finished, asking)
    offline, plan = (asyncio.run(made) for made in (Run(config).plan_offline(), Run(config).plan()))
    assert (offline.items, plan.items, plan.requests) == (0, 0, 0)
    run = Run(config)
    asyncio.run(run.to_judgments())
    assert (engines.asked.total(), requests(run)) == (0, 0)
    fresh = Run(config.model_copy(update={"name": "fresh"}))
    asyncio.run(fresh.to_judgments())
    assert engines.asked.total() == requests(fresh) > 0
    assert answers_of(run) == answers_of(fresh)


@pytest.mark.parametrize("asking", ["each", "pairs"])
def test_new_candidate_needs_only_its_own_questions(
    tmp_path: Path, finished: Finished, engines: Engines, asking: Asking
) -> None:
    """Only perspectives about its responses or pairs are asked."""
    config = evolved(tmp_path, finished, asking)
    add_candidate(tmp_path)
    plan = asyncio.run(Run(config).plan())
    run = Run(config)
    asyncio.run(run.to_judgments())
    assert config.evaluator is not None
    perspectives = len(load_evaluator(config.evaluator).about_responses)
    shown = 1 if asking == "each" else 4
    expected = QUERIES * shown * perspectives
    assert engines.asked.total() == requests(run) == plan.items == expected
    assert max(engines.asked.values()) == 1
    assert not engines.asked.keys() & finished[asking][1].asked.keys()


def test_suggested_command_sends_no_requests(
    tmp_path: Path, finished: Finished, engines: Engines
) -> None:
    """The same config, with the evaluator in the run directory."""
    config = evolved(tmp_path, finished, "each")
    given = config.model_dump(mode="json", exclude_unset=True, exclude={"evaluator"})
    (tmp_path / "my.yaml").write_text(yaml.safe_dump(given))
    named = ("my.yaml", "--evaluator", "runs/planted/evaluator.npz")
    assert "0 items of" in cli(tmp_path, "run", *named, "--dry-run").stdout
    found = json.loads(cli(tmp_path, "run", *named, "--json").stdout)
    assert engines.asked.total() == found["stages"]["grade"]["usage"]["requests"] == 0
    assert len(found["ranking"]["rows"]) == 4
    assert found["stages"]["score"]["basis"] == {"fitted": 4 * QUERIES}
