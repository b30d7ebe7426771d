"""`plan`, prices, limits and bills as a person sees them."""

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


def test_a_plan_is_grasped_at_once(folder: Path) -> None:
    """Size, items, calls, tokens, money and time, a line each; the judge is asked nothing."""
    shown = cli(folder, "plan").stdout
    for text in (
        "3 queries, 2 candidates, 6 responses",
        "12 items of 6 responses to ask, in 12 calls",
        "in the prompts (exact), 12 written",
        "to compute at least, with a perfect cache",
        "USD with a perfect cache",
        "Time       not known",
        "plan.json",
    ):
        assert text in shown
    assert len(shown.splitlines()) < 12
    assert not (folder / "runs" / "demo" / "ledger").exists()


def test_a_plan_as_json(folder: Path) -> None:
    """--json is one JSON object, the same as plan.json."""
    shown = json.loads(cli(folder, "plan", "--json", "--rate", "4").stdout)
    assert (shown["items"], shown["seconds"], shown["currency"]) == (12, 3.0, "USD")
    kept = json.loads((folder / "runs" / "demo" / "plan.json").read_text())
    assert kept | shown == kept


def test_offline_and_dry_run_are_the_same_and_leave_no_trace(folder: Path) -> None:
    """`plan --offline` is what --dry-run prints; nothing is written."""
    shown = cli(folder, "plan", "--offline").stdout
    assert shown == cli(folder, "run", "--dry-run").stdout
    assert "estimated" in shown
    assert not (folder / "runs").exists()
    cli(folder, "plan", "--offline", "--probe", code=2)


def test_without_a_price_the_plan_says_so(folder: Path) -> None:
    """A judge that is not in the table has no price, and that is not zero."""
    assert "Money      no price set" in cli(folder, "plan", "--judge", "other").stdout


def test_the_bill_is_shown_beside_the_plan(folder: Path) -> None:
    """After grading, plan and bill stand side by side; a second run has no bill to show."""
    cli(folder, "plan", "--rate", "100")
    shown = cli(folder, "run").stdout
    judge, plan = (next(x for x in shown.splitlines() if f" {who}: " in x) for who in WHO)
    for text in ("12 calls", "prompt tokens", "USD"):
        assert text in judge
        assert text in plan
    again = cli(folder, "run").stdout
    assert "nothing was asked: 6 of 6 judgments were there" in again
    assert "plan:" not in again
    shown = cli(folder, "run", "--only", "grade", "--name", "other").stdout
    assert "Judging" not in shown
    assert "nothing is left to ask" in cli(folder, "plan").stdout


def test_the_limit_ends_a_run_with_its_own_exit_code(folder: Path) -> None:
    """Exit code 6, what was spent and left, and how to go on; a higher limit goes on."""
    shown = cli(folder, "run", "--max-cost", "0.0205", code=6).stderr
    for text in ("limit of 0.0205 USD is reached", "responses are not judged", "--max-cost"):
        assert text in shown
    assert "Error" not in shown
    assert "are already there" in cli(folder, "run", "--max-cost", "1").stderr


def test_a_limit_without_a_price_is_refused(folder: Path) -> None:
    """Exit code 2, and where a price can be given."""
    shown = cli(
        folder, "run", "--only", "grade", "--max-cost", "1", "--judge", "other", code=2
    ).stderr
    assert "the judge 'other' has no price" in shown
    assert "`judge.price`" in shown


def test_help_names_the_exit_code_of_the_limit(folder: Path) -> None:
    """The codes are where people look for them."""
    for verb in ("run", "audit", "lint", "evolve"):
        shown = cli(folder, verb, "--help").stdout
        assert "--max-cost MONEY" in shown
        assert "\n  6    --max-cost is reached" in shown


def test_what_waits_for_checklists_is_not_said_to_be_nothing(folder: Path) -> None:
    """Before the author has written, what the judge will be asked is an estimate, and says so."""
    author = "author: {kind: instance, engine: {engine: scripted, model: scripted}}\n"
    config = (folder / "rocketeval.yaml").read_text()
    (folder / "rocketeval.yaml").write_text(config + author)
    shown = cli(folder, "plan", "--offline").stdout
    assert "what to ask is not known before the checklists are written" in shown
    assert "6 responses wait for a checklist: in no figure but the estimate" in shown
    assert "Estimated  about 48 items of 6 responses, as in typical checklists" in shown
    assert "nothing is left to ask" not in shown


def test_a_plan_at_another_price_is_not_told_in_this_ones(folder: Path) -> None:
    """The plan's dollars are not shown as euros: the money is left out, and that is said."""
    cli(folder, "plan")
    (folder / "prices.yaml").write_text(PRICES.replace("USD", "EUR"))
    done = cli(folder, "run")
    plan = next(line for line in done.stdout.splitlines() if " plan: " in line)
    assert plan.endswith("made at another price")
    assert "EUR, planned at another price" in done.stderr
