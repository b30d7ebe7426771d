"""`plan --cluster` as a person sees it, and what it learns from a real run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cli.test_cli import CONFIG, cli
from rocketeval.capacity.model import FEWEST_TRIALS
from support.make import QUERIES, write_benchmark, write_jsonl

ON = ("plan", "--cluster", "--losses", "0")
FLOATS = ("rate", "hours", "gpu-hour", "losses", "restart-minutes", "checkpoint-seconds")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_benchmark(tmp_path / "benchmark")
    (tmp_path / "rocketeval.yaml").write_text(CONFIG)
    return tmp_path


def planned(folder: Path, *options: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(cli(folder, *ON, "--json", *options).stdout)["cluster"]
    return found


def test_every_table_and_every_source_is_shown(folder: Path) -> None:
    """The plan, work, what lies around it, scatter, and each number with where it comes from."""
    shown = cli(folder, "plan", "--cluster", "--gpu-hour", "0.5").stdout
    for text in (
        "3 queries, 2 candidates, 6 responses",
        "Work: replicas for 24 hours, also when some are lost",
        "this run: 12",
        "GPU hours, none lost",
        "1e10",
        "Replicas lost",
        "client cores",
        "round-robin",
        "Qwen2.5-1.5B on an A5000",
        "prompts of 6 of its responses",
        "the header x-session-id is sent; the router must heed it",
        "The deadline of a day is assumed",
        "seed 0",
        "Not counted:",
    ):
        assert text in shown
    assert "\x1b" not in shown


def test_money_more_is_in_the_currency_of_the_price(folder: Path) -> None:
    """The paper's price is in dollars, and so is what losses cost."""
    assert "USD more (95 %)" in cli(folder, "plan", "--cluster", "--offline").stdout


def test_without_losses_nothing_is_said_to_be_simulated(folder: Path) -> None:
    """--losses 0 leaves the simulation out."""
    shown = cli(folder, *ON).stdout
    assert "some are lost" not in shown
    assert "simulated" not in shown
    assert "Replicas lost" not in shown


def test_as_json_plan_and_cluster_stand_side_by_side(folder: Path) -> None:
    """One document; what is given is in it as given, and numbers fit each other."""
    found = json.loads(cli(folder, *ON, "--json", "--rate", "100", "--hours", "10").stdout)
    assert found["plan"]["items"] == 12
    cluster = found["cluster"]
    assert cluster["assumed"]["rate"] == {"value": 100.0, "source": "given", "note": ""}
    assert cluster["this_run"]["answers"] == 12
    [large] = [size for size in cluster["sizes"] if size["answers"] == 1e8]
    assert large["replicas"] == 28
    assert large["hours"] == pytest.approx(1e8 / 100 / 3600 / 28)


def test_replicas_give_hours(folder: Path) -> None:
    """The other way round: no deadline, so many replicas."""
    found = planned(folder, "--replicas", "10", "--rate", "100", "--gpus", "2", "--gpu-hour", "3")
    size = found["sizes"][0]
    assert found["deadline"] is None
    assert size["money"] == pytest.approx(size["hours"] * 10 * 2 * 3)


def test_what_a_finished_run_tells_goes_before_defaults(folder: Path) -> None:
    """Its own rate on the clock, and the weight of its own ledger and scores."""
    names = [f"q{number}" for number in range(600)]
    write_jsonl(folder / "benchmark" / "queries.jsonl", [{"id": q, "text": q} for q in names])
    items = ["Is it right?", "Is it clear?"]
    checklists = [{"query_id": q, "items": items} for q in names]
    write_jsonl(folder / "benchmark" / "checklists.jsonl", checklists)
    for name in ("left", "right"):
        rows = [{"query_id": q, "text": f"{name} on {q}"} for q in names]
        write_jsonl(folder / "benchmark" / "responses" / f"{name}.jsonl", rows)
    (folder / "benchmark" / "votes.jsonl").unlink()
    cli(folder, "run", "--only", "grade")
    cli(folder, "run", "--only", "score")
    assumed = planned(folder)["assumed"]
    manifest = json.loads((folder / "runs" / "demo" / "manifest.json").read_text())
    seconds = manifest["stages"]["grade"]["seconds"]
    assert assumed["rate"]["value"] == pytest.approx(2400 / seconds)
    assert assumed["rate"]["note"].startswith("1,200 judgments in ")
    ledger = (folder / "runs" / "demo" / "ledger").glob("*.parquet")
    size = sum(path.stat().st_size for path in ledger)
    assert assumed["ledger_bytes"]["value"] == pytest.approx(size / 1200)
    own = ("rate", "task_bytes", "ledger_bytes", "score_bytes")
    assert {assumed[name]["source"] for name in own} == {"measured"}
    assert "nothing left to ask" in cli(folder, *ON).stdout


def test_a_few_judgments_tell_how_the_judge_is_asked_but_no_rate(folder: Path) -> None:
    """Of a small finished run, calls come from its ledger; the rate is the paper's, and why."""
    cli(folder, "run", "--only", "grade")
    for options in ((), ("--offline",)):
        assumed = planned(folder, *options)["assumed"]
        assert assumed["calls"] == {
            "value": 1.0,
            "source": "measured",
            "note": "6 judgments of its ledger, retries included",
        }
        assert "the header x-session-id is sent" in assumed["routed_by"]
        assert assumed["rate"]["source"] == "paper"
        assert "6 judgments are too few" in assumed["rate"]["note"]


@pytest.mark.parametrize(
    ("items", "routing", "told"),
    [
        (["Is it right?"], "together", "all items of a response went in one call"),
        (["Is it right?", "Is it clear?"], "random", "items went in several calls"),
    ],
)
def test_of_a_finished_run_the_ledger_tells_how_many_calls_there_were(
    folder: Path, items: list[str], routing: str, told: str
) -> None:
    """Nothing left to ask is not one call per response."""
    rows = [{"query_id": name, "items": items} for name in QUERIES]
    write_jsonl(folder / "benchmark" / "checklists.jsonl", rows)
    config = CONFIG.replace("model: scripted}", "model: scripted, session_header: null}")
    (folder / "rocketeval.yaml").write_text(config)
    cli(folder, "run", "--only", "grade")
    assumed = planned(folder)["assumed"]
    assert (assumed["routing"], assumed["routing_from"]) == (routing, "measured")
    assert told in assumed["routed_by"]


def test_responses_that_wait_for_a_checklist_are_not_nothing(folder: Path) -> None:
    """Before any checklist is written the run has no row, and the plan says why."""
    author = "author: {kind: instance, engine: {engine: scripted, model: scripted}}\n"
    (folder / "rocketeval.yaml").write_text(CONFIG + author)
    shown = cli(folder, *ON, "--offline").stdout
    assert "This run has no row: 6 responses wait for a checklist." in shown
    assert "nothing left to ask" not in shown


def test_responses_without_a_checklist_are_left_out_of_this_run(folder: Path) -> None:
    """The row covers those that have one, and says so."""
    items = ["Is it right?", "Is it clear?"]
    rows = [{"query_id": "sky", "items": items}, {"query_id": "sea", "items": items}]
    write_jsonl(folder / "benchmark" / "checklists.jsonl", rows)
    shown = cli(folder, *ON, "--offline").stdout
    assert "this run: 8" in shown
    assert "only responses that have a checklist" in shown
    assert "2 responses have no checklist and no author" in shown


def test_replicas_without_work_are_told(folder: Path) -> None:
    """Six responses are one batch, which stays on one of ten replicas."""
    shown = cli(folder, *ON, "--offline", "--replicas", "10").stdout
    assert "1 of 10: so many have work" in shown


@pytest.mark.parametrize(
    ("hours", "losses", "told"),
    [
        ("0.01", "0", "late: not in time although every batch has a replica of its own"),
        ("0.036", "2", "late: in time if no replica is lost"),
    ],
)
def test_late_names_its_cause(
    folder: Path, hours: str, losses: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch of 128 answers at one a second: too long itself, or only when replicas are lost."""
    monkeypatch.setattr("rocketeval.capacity.model.TRIALS", FEWEST_TRIALS)
    options = ("--rate", "1", "--hours", hours, "--losses", losses, "--restart-minutes", "30")
    shown = cli(folder, "plan", "--cluster", "--offline", *options).stdout
    notes = [line for line in shown.splitlines() if line.startswith("late: ")]
    assert [note[: len(told)] for note in notes] == [told]


def test_a_default_is_not_said_to_be_given(folder: Path) -> None:
    """Only what the config sets is given."""
    assert planned(folder, "--offline")["assumed"]["batch"]["source"] == "assumed"
    (folder / "rocketeval.yaml").write_text(CONFIG + "distributed: {batch: 32}\n")
    assumed = planned(folder, "--offline")["assumed"]
    assert (assumed["batch"]["value"], assumed["batch"]["source"]) == (32, "given")
    assert assumed["in_hand"]["source"] == "assumed"


def test_a_small_sample_of_tasks_is_an_estimate(folder: Path) -> None:
    """Six tasks are mostly the head of a Parquet file."""
    weighed = planned(folder, "--offline")["assumed"]["task_bytes"]
    assert weighed["source"] == "estimated"
    assert weighed["note"].startswith("prompts of 6 of its responses")


def test_without_a_header_items_go_anywhere(folder: Path) -> None:
    """A config that sends no session header, and one item a call, is planned as scattered."""
    config = CONFIG.replace("model: scripted}", "model: scripted, session_header: null}")
    (folder / "rocketeval.yaml").write_text(config)
    assumed = planned(folder, "--offline")["assumed"]
    assert assumed["routing"] == "random"
    assert "session_header" in assumed["routed_by"]


def test_offline_leaves_no_trace(folder: Path) -> None:
    """Nothing is contacted or written."""
    assert planned(folder, "--offline")["assumed"]["prefix_tokens"]["source"] == "estimated"
    assert not (folder / "runs").exists()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--hours", "3"), "Only with --cluster: --hours"),
        (("--cluster", "--hours", "3", "--replicas", "2"), "give one"),
        (("--cluster", "--losses", "1000", "--restart-minutes", "60"), "lost so often"),
        (("--rate", "nan"), "--rate"),
        *(
            (("--cluster", f"--{name}", value), f"'--{name}'")
            for name in FLOATS
            for value in ("nan", "inf")
        ),
    ],
)
def test_what_makes_no_sense_is_refused(folder: Path, options: tuple[str, ...], told: str) -> None:
    """Exit code 2, and why."""
    assert told in cli(folder, "plan", "--offline", *options, code=2).stderr


def test_no_cluster_is_needed_to_plan_one() -> None:
    """The model is numpy alone: planning imports no Ray."""
    code = "import sys, rocketeval.cli.plan; print('ray' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
