"""End-to-end tests of `rocketeval doctor`: output, marks, exit codes, no tracebacks."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from fakes import batch_server
from fakes.openai_server import MODEL, FakeOpenAI, serving, status, yes_no
from rocketeval.doctor.quality import GOLD
from support.command import start_cli
from support.forked import Forked, run_forked

RIGHT = {
    item: right for case in GOLD for item, right in zip(case.items, case.expected, strict=True)
}
NOWHERE = "http://127.0.0.1:9/v1"
SECRET = "sk-secret-123"


def knowing(prompt: str) -> dict[str, float]:
    """Answer every reference item correctly."""
    right = next((known for item, known in RIGHT.items() if item in prompt), True)
    return yes_no(0.9 if right else 0.1)


def doctor(
    folder: Path, *args: str, code: int = 0, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the command in `folder` and check its exit code."""
    plain = {name: value for name, value in os.environ.items() if name != "OPENAI_BASE_URL"}
    environment = {**plain, "PYTHONIOENCODING": "utf-8", "OPENAI_API_KEY": SECRET, **(env or {})}
    done = run_forked(folder, ("doctor", *args), environment)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert SECRET not in done.stdout + done.stderr
    return done


async def test_good_judge_without_a_config(tmp_path: Path) -> None:
    """A URL and a name suffice; the verdict comes first, then one marked line per finding."""
    async with serving(FakeOpenAI(distribution=knowing)) as server:
        options = ("--judge", MODEL, "--base-url", server.base_url)
        shown = (await asyncio.to_thread(doctor, tmp_path, *options)).stdout
    assert f"Judge {MODEL} at {server.base_url}" in shown
    assert shown.splitlines()[1] == "Verdict: ready"
    assert "24 of 24 test questions" in shown.splitlines()[2]
    assert "\u2713  accuracy" in shown
    assert "24 of 24 reference items correct" in shown
    assert "104 requests" in shown
    assert list(tmp_path.iterdir()) == []


async def test_doctor_as_json(tmp_path: Path) -> None:
    """--json --quick prints one object with the verdict and the judge's fingerprint."""
    async with serving(FakeOpenAI(distribution=knowing)) as server:
        options = ("--json", "--quick", "--judge", MODEL, "--base-url", server.base_url)
        told = json.loads((await asyncio.to_thread(doctor, tmp_path, *options)).stdout)
    assert told["verdict"] == "ready"
    assert told["judge"]["model"] == MODEL
    assert told["figures"]["accuracy"] == 1.0
    assert told["figures"]["repeat_alone"] is None


def test_unreachable_judge_is_exit_code_four(tmp_path: Path) -> None:
    """An unreachable judge is a bad finding with a hint, in text and JSON."""
    shown = doctor(tmp_path, "--judge", "m", "--base-url", NOWHERE, code=4).stdout
    assert f"\u2717  judge  Cannot reach {NOWHERE}" in shown
    assert "\u2192 Start the server" in shown
    assert "Verdict: do not use (judge)" in shown
    told = json.loads(
        doctor(tmp_path, "--judge", "m", "--base-url", NOWHERE, "--json", code=4).stdout
    )
    assert told["verdict"] == "unusable"
    assert told["judge"] is None
    assert told["reasons"] == ["judge"]


async def test_rejected_key_is_exit_code_four(tmp_path: Path) -> None:
    """HTTP 401 gives a finding about the key, which is not shown."""
    async with serving(FakeOpenAI()) as server:
        server.always("/v1/models", status(401, f"bad key {SECRET}"))
        options = ("--judge", MODEL, "--base-url", server.base_url)
        shown = (await asyncio.to_thread(doctor, tmp_path, *options, code=4)).stdout
    assert "HTTP 401" in shown
    assert "OPENAI_API_KEY" in shown


def test_guessing_judge_is_exit_code_four(tmp_path: Path) -> None:
    """The scripted judge answers by hash, which the doctor detects."""
    shown = doctor(tmp_path, "--engine", "scripted", "--judge", "coin", code=4).stdout
    assert "this judge guesses" in shown
    assert "Verdict: do not use (accuracy)" in shown


def test_ascii_terminal_gets_ascii_marks(tmp_path: Path) -> None:
    """If check marks cannot be shown, ASCII marks replace them."""
    ascii_only = {"PYTHONIOENCODING": "ascii"}
    options = ("--engine", "scripted", "--judge", "coin")
    shown = doctor(tmp_path, *options, code=4, env=ascii_only).stdout
    assert shown.isascii()
    assert "?" not in shown
    assert "X   accuracy" in shown
    assert "ok  latency" in shown
    assert "-> Its scores" in shown


def write_config(folder: Path, judge: str) -> None:
    """Write a rocketeval.yaml whose benchmark does not exist: the doctor does not need it."""
    (folder / "rocketeval.yaml").write_text(f"benchmark: {{path: nowhere}}\njudge: {judge}\n")


def test_judge_of_the_config_is_examined(tmp_path: Path) -> None:
    """rocketeval.yaml is the default, and only its judge matters."""
    write_config(tmp_path, "{engine: scripted, model: from-config}")
    assert "Judge from-config (engine scripted)" in doctor(tmp_path, "--quick", code=4).stdout
    named = doctor(tmp_path, "rocketeval.yaml", "--quick", code=4).stdout
    assert "Judge from-config" in named


def test_options_override_the_config(tmp_path: Path) -> None:
    """--judge, --base-url and --engine override the config."""
    write_config(tmp_path, "{engine: scripted, model: from-config}")
    options = ("--judge", "other", "--engine", "openai", "--base-url", NOWHERE)
    shown = doctor(tmp_path, *options, code=4).stdout
    assert f"Judge other at {NOWHERE} (engine openai)" in shown


def test_template_and_price_of_the_config_are_used(tmp_path: Path) -> None:
    """The user's grading prompt and price are used."""
    price = "{prompt: 1000, completion: 0, currency: EUR}"
    write_config(tmp_path, f"{{engine: scripted, model: m, template: own.txt, price: {price}}}")
    (tmp_path / "own.txt").write_text("{{history}}{{query}}{{response}}")
    assert "{{item}}" in doctor(tmp_path, code=2).stderr
    (tmp_path / "own.txt").write_text("{{history}}{{query}}{{response}}\n{{item}}\nYes or No?")
    assert " EUR" in doctor(tmp_path, "--quick", code=4).stdout


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "Which judge? Give --judge MODEL"),
        (("--judge", "m"), "Give --base-url URL, or set $OPENAI_BASE_URL"),
        (("--judge", "m", "--engine", "opnai"), "Did you mean 'openai'?"),
        (("--judge", "m", "--base-url", NOWHERE, "--transport", "chatt"), "Did you mean 'chat'?"),
        (("--judge", "m", "--base-url", "http://me:pw@host/v1"), "password"),
        (("--judge", "m", "--base-url", "nonsense"), "not an http(s) address"),
        (("absent.yaml",), "absent.yaml"),
    ],
)
def test_invalid_options_are_exit_code_two(
    tmp_path: Path, options: tuple[str, ...], words: str
) -> None:
    """The error names a valid alternative, and no server is contacted."""
    assert words in doctor(tmp_path, *options, code=2).stderr


def test_url_may_come_from_the_environment(tmp_path: Path) -> None:
    """$OPENAI_BASE_URL is used if there is no --base-url."""
    shown = doctor(tmp_path, "--judge", "m", code=4, env={"OPENAI_BASE_URL": NOWHERE}).stdout
    assert f"Cannot reach {NOWHERE}" in shown


def test_help_has_an_example_and_exit_codes(tmp_path: Path) -> None:
    """--help shows an example and the exit codes."""
    shown = doctor(tmp_path, "--help").stdout
    assert "rocketeval doctor --judge MODEL --base-url http://127.0.0.1:8000/v1\n" in shown
    assert "0    ready, or usable with care" in shown


async def test_control_characters_of_a_server_do_not_reach_the_terminal(tmp_path: Path) -> None:
    """A hostile error text cannot rewrite the terminal."""
    async with serving(FakeOpenAI()) as server:
        server.always("/v1/models", status(401, "red \x1b[31m"))
        options = ("--judge", "evil\x1b[2J", "--base-url", server.base_url)
        shown = (await asyncio.to_thread(doctor, tmp_path, *options, code=4)).stdout
    assert "\x1b" not in shown


async def test_progress_goes_to_stderr(tmp_path: Path) -> None:
    """The progress of a slow judge is on stderr, not on stdout."""
    async with serving(FakeOpenAI(distribution=knowing, latency=0.05)) as server:
        options = ("--json", "--judge", MODEL, "--base-url", server.base_url)
        done = await asyncio.to_thread(doctor, tmp_path, *options)
    assert "reference items: " in done.stderr
    assert json.loads(done.stdout)["verdict"] == "ready"


async def test_ctrl_c_is_exit_code_130(tmp_path: Path) -> None:
    """An interrupted examination has no result."""
    async with serving(FakeOpenAI(latency=30)) as server:
        judge = ("--judge", MODEL, "--base-url", server.base_url)
        process = await start_cli(tmp_path, "doctor", *judge)
        while not server.chats:
            await asyncio.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, told = await process.communicate()
    assert process.returncode == 130
    assert "Interrupted; no result." in told.decode()


async def test_a_server_that_keeps_it_waiting_does_not_silence_it(tmp_path: Path) -> None:
    """Before the first answer, lines say what it waits for, and for how long."""
    async with serving(FakeOpenAI(latency=600)) as server:
        judge = ("doctor", "--judge", MODEL, "--base-url", server.base_url)
        process = await asyncio.to_thread(Forked, tmp_path, judge)
        line = await asyncio.to_thread(process.stderr.readline)
        process.send_signal(signal.SIGINT)
        await asyncio.to_thread(process.wait)
    assert " so far" in line


async def test_no_batch_is_submitted(tmp_path: Path) -> None:
    """A batch API is identified, but no batch is submitted."""
    async with batch_server.serving(batch_server.FakeBatches()) as server:
        options = ("--engine", "openai_batch", "--judge", MODEL, "--base-url", server.base_url)
        shown = (await asyncio.to_thread(doctor, tmp_path, *options)).stdout
        assert not server.batches
    assert "not asked: this engine answers hours later" in shown
    assert "Verdict: usable with care (reference items)" in shown
