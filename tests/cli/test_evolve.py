"""End-to-end tests of `rocketeval evolve`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
import yaml
from mad_eval.planted_benchmark import make_planted

from rocketeval.cli.evolve import next_step
from rocketeval.cli.run import Typed
from rocketeval.engines.scripted import ScriptedEngine
from rocketeval.evolve.artifact import load_evaluator
from rocketeval.evolve.forest import SPACES, ForestSettings
from rocketeval.evolve.result import EvaluatorVerdict, Evolution
from support.in_process import cli
from support.planted_run import Engines

CONFIG = {
    "name": "demo",
    "benchmark": {"path": "benchmark"},
    "judge": {
        "engine": "scripted",
        "model": "judge",
        "price": {"prompt": 1, "completion": 1, "currency": "EUR"},
    },
    "evolve": {
        "seeds": ["benchmark/seeds.yaml"],
        "optimizer": {"engine": "scripted", "model": "optimizer"},
        "price": {"prompt": 1, "completion": 1, "currency": "EUR"},
        "rounds": 1,
        "patience": 2,
        "folds": 2,
        "experts": [1, 2],
    },
}


@pytest.fixture(autouse=True)
def planted_engines(monkeypatch: pytest.MonkeyPatch) -> Iterator[Engines]:
    """Replace the scripted engine by the planted judge or the optimizer."""
    engines = Engines()
    monkeypatch.setattr(ScriptedEngine, "create", engines.make)
    monkeypatch.setitem(SPACES, "short", (ForestSettings(5, 3, 2, 5),))
    return engines


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A benchmark and its config."""
    make_planted(20).write(tmp_path / "benchmark")
    (tmp_path / "rocketeval.yaml").write_text(yaml.safe_dump(CONFIG))
    return tmp_path


def test_evolve_prints_results_and_continues(folder: Path, planted_engines: Engines) -> None:
    """The output has all results; the same command then reuses every answer."""
    told = cli(folder, "evolve").stdout
    assert "Trained on votes: 48 pairs of 8 queries; held out: 72 pairs of 12" in told
    assert "Pool: " in told
    assert "Rounds (accuracy on the training cases, out of fold)" in told
    assert "+ requests" in told
    assert "No further round: " in told
    assert "On 72 held-out cases of 12 queries, in percent" in told
    for arm in ("single prompt", "mean of perspectives", "without experts", "with experts"):
        assert f"\n{arm}" in told
    assert "macro-F1" in told
    assert told.startswith("The evaluator, with experts: ")
    assert "The single prompt asks: " in told
    assert "about responses, most important first" in told
    assert "Confidence on held-out pairs" in told
    assert "one pair alone" in told
    assert " EUR" in told
    assert re.search(r"judge \d+ questions in \d+ requests, ", told)
    assert "after held-out figures" not in told
    assert "runs/demo/evaluator.npz" in told
    assert "runs/demo/evolve/pool.yaml" in told
    assert told.rstrip().endswith("rocketeval evolve")
    judged = cli(folder, "run", "--evaluator", "runs/demo/evaluator.npz")
    assert "Traceback" not in judged.stderr
    planted_engines.asked.clear()
    planted_engines.written.clear()
    pool = folder / "runs/demo/evolve/pool.yaml"
    pool.write_text(pool.read_text() + "  - text: Does the response name a town?\n")
    again = cli(folder, "evolve").stdout
    assert "People added 1, 1 of them since the last command." in again
    assert re.search(r"the evaluator uses [01]\.", again)
    assert "1 of them was added after held-out figures were first shown" in again
    assert not planted_engines.written
    assert all("name a town?" in prompt for _, prompt in planted_engines.asked)


@pytest.mark.parametrize(
    ("usable", "optimizer", "command", "why"),
    [
        (True, None, "rocketeval run --evaluator e.npz --limit 9", "Judge with it"),
        (False, "strong", "rocketeval evolve --limit 9", "more votes or labels or your own"),
        (False, None, "rocketeval evolve --limit 9", "more votes or labels, an `evolve.optimizer`"),
    ],
)
def test_next_step_uses_only_a_good_evaluator(
    usable: bool, optimizer: str | None, command: str, why: str
) -> None:
    """The next command uses the evaluator only if it beats the baselines."""
    found = SimpleNamespace(
        worth=EvaluatorVerdict(usable, ""), path=Path("e.npz"), optimizer=optimizer
    )
    step = next_step(cast(Evolution, found), Typed((), None, None, run=("--limit", "9")))
    assert step.command == command
    assert why in step.why


def test_late_additions_to_the_pool_are_reported(folder: Path, planted_engines: Engines) -> None:
    """Perspectives of another run, and ones added too late, are reported."""
    cli(folder, "evolve", "--rounds", "0", "--quiet")
    pool = folder / "runs/demo/evolve/pool.yaml"
    pool.write_text(pool.read_text() + "  - text: Does the response name a town?\n    round: 3\n")

    def add(engines: Engines) -> None:
        engines.hears = None
        pool.write_text(pool.read_text() + "  - text: Does the response name a river?\n")

    planted_engines.hears = add
    told = " ".join(cli(folder, "evolve", "--rounds", "0").stdout.split())
    assert "1 of them has the number of a round" in told
    assert "1 more was added too late" in told


def test_evolve_as_json(folder: Path) -> None:
    """The evaluator is written to --out; --quiet prints nothing."""
    told = cli(folder, "evolve", "--json", "--rounds", "0", "--out", "mine/best.npz")
    found = json.loads(told.stdout)
    assert found["rounds"] == []
    assert found["path"] == "mine/best.npz"
    assert {arm["name"] for arm in found["figures"]["arms"]} >= {"with experts", "single prompt"}
    assert load_evaluator(folder / "mine" / "best.npz").provenance["cases"] == 120
    quiet = cli(folder, "evolve", "--quiet", "--rounds", "0")
    assert (quiet.stdout, quiet.stderr) == ("", "")


def test_insufficient_data_is_refused(folder: Path) -> None:
    """Too few cases, missing votes and a wrong file name are errors with exit code 2."""
    told = cli(folder, "evolve", "--limit", "7", code=2)
    assert "42 cases of 7 queries" in told.stderr
    assert "20 cases and 8 queries" in told.stderr
    cli(folder, "evolve", "--limit", "8", "--quiet")
    (folder / "benchmark" / "votes.jsonl").unlink()
    told = cli(folder, "evolve", "--json", code=2)
    assert "votes" in json.loads(told.stdout)["error"]["message"]
    told = cli(folder, "evolve", "--out", "evaluator.txt", code=2)
    assert ".npz" in told.stderr


def test_max_cost_is_exit_code_6(folder: Path) -> None:
    """The message names the limit and the option."""
    told = cli(folder, "evolve", "--max-cost", "0.1", "--quiet", code=6)
    assert "The limit of 0.1 EUR is reached" in told.stderr
    assert "Raise --max-cost" in told.stderr
    cli(folder, "evolve", "--quiet")


def test_missing_answers_are_exit_code_3(
    folder: Path, planted_engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are counted, and the same command retries them."""

    def failing(config: object, home: object = None) -> ScriptedEngine:
        engine = planted_engines.make(config)  # type: ignore[arg-type]
        monkeypatch.setattr(engine, "_fail_on", "the lost key")
        return engine

    with monkeypatch.context() as patch:
        patch.setattr(ScriptedEngine, "create", failing)
        told = cli(folder, "evolve", "--rounds", "0", code=3).stdout
    assert "could not be answered; run it again to retry." in told
    assert "replaced by the mean answer" in told
    assert "missing" not in cli(folder, "evolve", "--rounds", "0").stdout


def test_help_fits_80_columns(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Help fits, and the verb is listed."""
    told = cli(folder, "evolve", "--help").stdout
    assert max(map(len, told.splitlines())) <= 80
    assert "evolve " in cli(folder, "--help").stdout
