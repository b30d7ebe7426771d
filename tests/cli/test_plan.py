"""End-to-end tests of `plan`, prices, cost limits and actual usage."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.test_cli import CONFIG, cli
from support.make import write_benchmark

WHO = ("judge", "plan")
PRICES = """\
currency: USD
models:
  scripted: {prompt: 2.5, cached: 1.25, completion: 10}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_benchmark(tmp_path / "benchmark")
    (tmp_path / "rocketeval.yaml").write_text(CONFIG + "prices: prices.yaml\n")
    (tmp_path / "prices.yaml").write_text(PRICES)
    return tmp_path


def test_plan_shows_work_cost_and_time(folder: Path) -> None:
    """The plan has size, items, requests, tokens, money and time; no item is asked."""
    shown = cli(folder, "plan").stdout
    for text in (
        "3 queries, 2 candidates, 6 responses",
        "12 items of 6 responses to ask, in 12 requests",
        "prompt tokens (exact), 12 output tokens",
        "to compute, with a perfect cache",
        "USD with a perfect cache",
        "Time       unknown",
        "plan.json",
    ):
        assert text in shown
    assert len(shown.splitlines()) < 12
    assert not (folder / "runs" / "demo" / "ledger").exists()


def test_plan_as_json(folder: Path) -> None:
    """--json prints the content of plan.json."""
    shown = json.loads(cli(folder, "plan", "--json", "--rate", "4").stdout)
    assert (shown["items"], shown["seconds"], shown["currency"]) == (12, 3.0, "USD")
    kept = json.loads((folder / "runs" / "demo" / "plan.json").read_text())
    assert kept | shown == kept


def test_offline_and_dry_run_are_equal_and_write_nothing(folder: Path) -> None:
    """`plan --offline` prints the same as --dry-run, without writing a file."""
    shown = cli(folder, "plan", "--offline").stdout
    assert shown == cli(folder, "run", "--dry-run").stdout
    assert "estimated" in shown
    assert not (folder / "runs").exists()
    cli(folder, "plan", "--offline", "--probe", code=2)


def test_plan_without_a_price(folder: Path) -> None:
    """A judge without a price has an unknown cost, not zero."""
    assert "Money      no price set" in cli(folder, "plan", "--judge", "other").stdout


def test_run_shows_plan_and_actual_usage(folder: Path) -> None:
    """After grading, the plan is shown too; a second run sends no requests."""
    cli(folder, "plan", "--rate", "100")
    shown = cli(folder, "run").stdout
    judge, plan = (next(x for x in shown.splitlines() if f" {who}: " in x) for who in WHO)
    for text in ("12 requests", "prompt tokens", "USD"):
        assert text in judge
        assert text in plan
    again = cli(folder, "run").stdout
    assert "no requests: 6 of 6 judgments reused" in again
    assert "plan:" not in again
    shown = cli(folder, "run", "--only", "grade", "--name", "other").stdout
    assert "Judging" not in shown
    assert "nothing left to ask" in cli(folder, "plan").stdout


def test_max_cost_ends_a_run_with_exit_code_6(folder: Path) -> None:
    """The message has the limit and what is left; a higher limit continues the run."""
    shown = cli(folder, "run", "--max-cost", "0.0205", code=6).stderr
    for text in ("limit of 0.0205 USD is reached", "responses are not judged", "--max-cost"):
        assert text in shown
    assert "Error" not in shown
    assert "already done" in cli(folder, "run", "--max-cost", "1").stderr


def test_max_cost_without_a_price_is_refused(folder: Path) -> None:
    """The exit code is 2, and the hint names the price setting."""
    shown = cli(
        folder, "run", "--only", "grade", "--max-cost", "1", "--judge", "other", code=2
    ).stderr
    assert "the judge 'other' has no price" in shown
    assert "`judge.price`" in shown


def test_help_names_the_exit_code_of_max_cost(folder: Path) -> None:
    """The help of verbs with --max-cost lists exit code 6."""
    for verb in ("run", "audit", "lint", "evolve"):
        shown = cli(folder, verb, "--help").stdout
        assert "--max-cost MONEY" in shown
        assert "\n  6    --max-cost is reached" in shown


def test_plan_before_checklists_is_an_estimate(folder: Path) -> None:
    """Before checklists are written, the plan estimates the items and says so."""
    author = "author: {kind: instance, engine: {engine: scripted, model: scripted}}\n"
    config = (folder / "rocketeval.yaml").read_text()
    (folder / "rocketeval.yaml").write_text(config + author)
    shown = cli(folder, "plan", "--offline").stdout
    assert "items unknown" in shown
    assert "6 responses wait for a checklist: counted in the estimate only" in shown
    assert "Estimated  about 48 items of 6 responses, as in typical checklists" in shown
    assert "nothing left to ask" not in shown


def test_plan_at_a_different_price_has_no_cost(folder: Path) -> None:
    """After a change of currency, the planned cost is replaced by a note."""
    cli(folder, "plan")
    (folder / "prices.yaml").write_text(PRICES.replace("USD", "EUR"))
    done = cli(folder, "run")
    plan = next(line for line in done.stdout.splitlines() if " plan: " in line)
    assert plan.endswith("made at a different price")
    assert "EUR, planned at a different price" in done.stderr
