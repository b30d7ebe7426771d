"""A stopped command ends soon, whatever its server does, and keeps its answers."""

from __future__ import annotations

import asyncio
import random
import signal
from pathlib import Path

import pytest
from robustness import stops

from rocketeval.grading.loop import Grading, grade
from rocketeval.observer import Observer
from rocketeval.records import GradingTask, Judgment
from support.make import key
from support.slow_server import SlowServer, engine_for, in_virtual_time

ITEMS = ("One?", "Two?", "Three?")


@pytest.mark.parametrize(
    ("kind", "number", "code"),
    [
        ("hung", signal.SIGTERM, 130),
        ("dead", signal.SIGINT, 130),
        ("slow", signal.SIGHUP, 130),
        ("hung", signal.SIGQUIT, -signal.SIGQUIT),
    ],
)
def test_stopped_command_can_be_continued(
    kind: str, number: signal.Signals, code: int, tmp_path: Path
) -> None:
    """Runs the real command once per case; studies/robustness/stops.py measures the time."""
    assert stops.stop_once(kind, tmp_path, random.Random(7), number).code == code


def test_paused_command_goes_on(tmp_path: Path) -> None:
    """After SIGSTOP and SIGCONT the run ends as usual, and asks for everything once."""
    assert stops.pause_once(tmp_path, random.Random(7)).lost == 0


def test_nohup_survives_the_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command started with SIGHUP ignored, as by `nohup`, goes on when the terminal closes."""
    monkeypatch.setattr(
        stops, "_listen_to_signals", lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)
    )
    stops.write_benchmark(tmp_path / "benchmark")
    server = stops.Server(tmp_path, stops.free_port())
    (tmp_path / "rocketeval.yaml").write_text(stops.CONFIG.format(port=server.port))
    server.start("--pace", "0.02")
    try:
        running = stops.start_run(tmp_path)
        stops.wait_for(lambda: len(server.served(0)) >= 3, running)
        running.send_signal(signal.SIGHUP)
        _, output = running.communicate(timeout=120)
    finally:
        server.kill()
    assert running.returncode == 0, output
    assert "Stopping" not in output


def test_second_interrupt_ends_at_once(tmp_path: Path) -> None:
    """Answers in flight are not waited for, and there is no traceback."""
    stops.write_benchmark(tmp_path / "benchmark")
    server = stops.Server(tmp_path, stops.free_port())
    (tmp_path / "rocketeval.yaml").write_text(stops.CONFIG.format(port=server.port))
    server.start("--hangs-after", "3")
    try:
        running = stops.start_run(tmp_path)
        stops.wait_for(lambda: len(server.served(0)) == 3, running)
        running.send_signal(signal.SIGINT)
        assert running.stderr is not None
        while "Stopping" not in running.stderr.readline():
            assert running.poll() is None
        running.send_signal(signal.SIGINT)
        _, output = running.communicate(timeout=60)
    finally:
        server.kill()
    assert running.returncode == 130
    assert "Traceback" not in output


def task(number: int) -> GradingTask:
    """Return a task with three items."""
    return GradingTask(key(f"{number}"), f"q{number}", "c", f"Text {number}. ", ITEMS)


@pytest.mark.parametrize("hangs_at", [None, 0, 4])
def test_answers_of_interrupted_responses_are_kept(
    hangs_at: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a stop, tasks in flight have some seconds; then their answers are kept."""

    async def work() -> tuple[Grading, list[Judgment], int, float]:
        server = SlowServer(2.0)
        if hangs_at is not None:
            server.loses = set(range(hangs_at, 1000))
        engine, stop, judged = engine_for(server), asyncio.Event(), list[Judgment]()
        await engine.identify()
        loop = asyncio.get_running_loop()
        loop.call_later(31.0, stop.set)
        grading = await grade(
            map(task, range(100)),
            engine,
            judged.append,
            concurrency=engine.in_flight,
            known={},
            observer=Observer(),
            stop=stop,
        )
        await engine.aclose()
        return grading, judged, len(server.served), loop.time()

    grading, judged, served, end = in_virtual_time(work(), monkeypatch)
    assert grading.stopped
    assert not grading.failures
    assert 31.0 <= end < 41.0
    kept = sum(answer.p_yes is not None for cut in grading.cut_off for answer in cut.answers) + len(
        ITEMS
    ) * len(judged)
    # What the server answered after the last moment is lost.
    assert served - 1 <= kept <= served
    assert bool(kept) == (hangs_at != 0)
