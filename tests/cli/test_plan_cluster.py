"""End-to-end tests of `plan --cluster`, and its measurements of a real run."""

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


def test_all_tables_and_sources_are_shown(folder: Path) -> None:
    """The output has the plan, all tables, and the source of each assumption."""
    shown = cli(folder, "plan", "--cluster", "--gpu-hour", "0.5").stdout
    for text in (
        "3 queries, 2 candidates, 6 responses",
        "24 hours, including losses",
        "this run: 12",
        "GPU hours, no losses",
        "1e10",
        "lost replicas",
        "client cores",
        "round-robin",
        "Qwen2.5-1.5B on an A5000",
        "prompts of 6 of its responses",
        "x-session-id",
        "deadline of 24 hours is assumed",
        "seed 0",
        "Not counted:",
    ):
        assert text in shown
    assert "\x1b" not in shown


def test_extra_money_has_the_currency_of_the_price(folder: Path) -> None:
    """The paper's price is in USD, and so is the extra cost of losses."""
    assert "extra USD (95%)" in cli(folder, "plan", "--cluster", "--offline").stdout


def test_without_losses_there_is_no_simulation(folder: Path) -> None:
    """--losses 0 leaves the simulation out."""
    shown = cli(folder, *ON).stdout
    assert "including losses" not in shown
    assert "simulated" not in shown
    assert "lost replicas" not in shown


def test_plan_and_cluster_as_json(folder: Path) -> None:
    """The document has both; given values are marked as given, and numbers are consistent."""
    found = json.loads(cli(folder, *ON, "--json", "--rate", "100", "--hours", "10").stdout)
    assert found["plan"]["items"] == 12
    cluster = found["cluster"]
    assert cluster["assumed"]["rate"] == {"value": 100.0, "source": "given", "note": ""}
    assert cluster["this_run"]["answers"] == 12
    [large] = [size for size in cluster["sizes"] if size["answers"] == 1e8]
    assert large["replicas"] == 28
    assert large["hours"] == pytest.approx(1e8 / 100 / 3600 / 28)


def test_replicas_give_hours(folder: Path) -> None:
    """With --replicas there is no deadline, and hours are computed."""
    found = planned(folder, "--replicas", "10", "--rate", "100", "--gpus", "2", "--gpu-hour", "3")
    size = found["sizes"][0]
    assert found["deadline"] is None
    assert size["money"] == pytest.approx(size["hours"] * 10 * 2 * 3)


def test_measurements_of_a_finished_run_override_defaults(folder: Path) -> None:
    """The rate and the sizes of ledger and scores are measured."""
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


def test_few_judgments_give_requests_but_no_rate(folder: Path) -> None:
    """For a small run, requests come from its ledger, and the rate from the paper."""
    cli(folder, "run", "--only", "grade")
    for options in ((), ("--offline",)):
        assumed = planned(folder, *options)["assumed"]
        assert (assumed["calls"]["value"], assumed["calls"]["source"]) == (1.0, "measured")
        assert assumed["calls"]["note"].startswith("6 judgments of its ledger")
        assert "the header x-session-id is sent" in assumed["routed_by"]
        assert assumed["rate"]["source"] == "paper"
        assert "6 judgments are too few" in assumed["rate"]["note"]


@pytest.mark.parametrize(
    ("items", "routing", "reason"),
    [
        (["Is it right?"], "together", "went in one request"),
        (["Is it right?", "Is it clear?"], "random", "went in several requests"),
    ],
)
def test_routing_of_a_finished_run_comes_from_its_ledger(
    folder: Path, items: list[str], routing: str, reason: str
) -> None:
    """The number of past requests per response determines the routing."""
    rows = [{"query_id": name, "items": items} for name in QUERIES]
    write_jsonl(folder / "benchmark" / "checklists.jsonl", rows)
    config = CONFIG.replace("model: scripted}", "model: scripted, session_header: null}")
    (folder / "rocketeval.yaml").write_text(config)
    cli(folder, "run", "--only", "grade")
    assumed = planned(folder)["assumed"]
    assert (assumed["routing"], assumed["routing_from"]) == (routing, "measured")
    assert reason in assumed["routed_by"]


def test_responses_waiting_for_a_checklist_are_reported(folder: Path) -> None:
    """Before any checklist is written, the run has no row, and a note says why."""
    author = "author: {kind: instance, engine: {engine: scripted, model: scripted}}\n"
    (folder / "rocketeval.yaml").write_text(CONFIG + author)
    shown = cli(folder, *ON, "--offline").stdout
    assert "This run has no row: 6 responses wait for a checklist." in shown
    assert "nothing left to ask" not in shown


def test_responses_without_a_checklist_are_left_out(folder: Path) -> None:
    """The row counts only responses with a checklist, and a note says so."""
    items = ["Is it right?", "Is it clear?"]
    rows = [{"query_id": "sky", "items": items}, {"query_id": "sea", "items": items}]
    write_jsonl(folder / "benchmark" / "checklists.jsonl", rows)
    shown = cli(folder, *ON, "--offline").stdout
    assert "this run: 8" in shown
    assert "only responses with a checklist" in shown
    assert "2 responses have no checklist and no author" in shown


def test_idle_replicas_are_reported(folder: Path) -> None:
    """Six responses are one batch, which stays on one of ten replicas."""
    shown = cli(folder, *ON, "--offline", "--replicas", "10").stdout
    assert "1 of 10: only these replicas have work" in shown


@pytest.mark.parametrize(
    ("hours", "losses", "cause"),
    [
        ("0.01", "0", "late: too slow even with one replica per batch"),
        ("0.036", "2", "late: on time without losses"),
    ],
)
def test_missed_deadline_has_its_cause(
    folder: Path, hours: str, losses: str, cause: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch of 128 answers at one per second is too slow by itself, or only with losses."""
    monkeypatch.setattr("rocketeval.capacity.model.TRIALS", FEWEST_TRIALS)
    options = ("--rate", "1", "--hours", hours, "--losses", losses, "--restart-minutes", "30")
    shown = cli(folder, "plan", "--cluster", "--offline", *options).stdout
    notes = [line for line in shown.splitlines() if line.startswith("late: ")]
    assert [note[: len(cause)] for note in notes] == [cause]


def test_default_is_assumed_not_given(folder: Path) -> None:
    """Only values set in the config are given."""
    assert planned(folder, "--offline")["assumed"]["batch"]["source"] == "assumed"
    (folder / "rocketeval.yaml").write_text(CONFIG + "distributed: {batch: 32}\n")
    assumed = planned(folder, "--offline")["assumed"]
    assert (assumed["batch"]["value"], assumed["batch"]["source"]) == (32, "given")
    assert assumed["in_hand"]["source"] == "assumed"


def test_task_size_from_a_small_sample_is_an_estimate(folder: Path) -> None:
    """With six tasks, the Parquet header dominates."""
    weighed = planned(folder, "--offline")["assumed"]["task_bytes"]
    assert weighed["source"] == "estimated"
    assert weighed["note"].startswith("prompts of 6 of its responses")


def test_without_a_session_header_routing_is_random(folder: Path) -> None:
    """Without a session header and with one item per request, items are scattered."""
    config = CONFIG.replace("model: scripted}", "model: scripted, session_header: null}")
    (folder / "rocketeval.yaml").write_text(config)
    assumed = planned(folder, "--offline")["assumed"]
    assert assumed["routing"] == "random"
    assert "session_header" in assumed["routed_by"]


def test_offline_writes_nothing(folder: Path) -> None:
    """With --offline, tokens are estimated and no file is written."""
    assert planned(folder, "--offline")["assumed"]["prefix_tokens"]["source"] == "estimated"
    assert not (folder / "runs").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--hours", "3"), "Only with --cluster: --hours"),
        (("--cluster", "--hours", "3", "--replicas", "2"), "not both"),
        (("--cluster", "--losses", "1000", "--restart-minutes", "60"), "lost so often"),
        (("--rate", "nan"), "--rate"),
        *(
            (("--cluster", f"--{name}", value), f"'--{name}'")
            for name in FLOATS
            for value in ("nan", "inf")
        ),
    ],
)
def test_invalid_options_are_refused(folder: Path, options: tuple[str, ...], message: str) -> None:
    """The exit code is 2, and the message names the reason."""
    assert message in cli(folder, "plan", "--offline", *options, code=2).stderr


def test_planning_does_not_import_ray() -> None:
    """The capacity model needs only numpy."""
    code = "import sys, rocketeval.cli.plan; print('ray' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
