"""A run that is killed while its batches are open loses none and pays for nothing twice."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fakes.batch_server import FakeBatches, hung_after_it, serving
from fakes.openai_server import MODEL
from rocketeval.store.ledger import read_tables
from support.command import StartedCommand, start_cli
from support.make import write_benchmark

TASKS, REQUESTS, BATCHES = 6, 12, 3
SLOW = 240.0
"""Seconds after which something hangs, even on a busy machine."""
SOON = 20.0
"""Seconds in which a stopped command ends; a sleeping loop would wake only after thirty."""
CONFIG = """\
name: demo
benchmark: {{path: benchmark}}
judge:
  engine: openai_batch
  model: {model}
  base_url: {base_url}
  options: {{max_requests: 5, gather: 0.05, poll: 0.05}}
ranking: {{bootstrap: 50}}
cache: null
"""


@pytest.fixture
async def server() -> AsyncIterator[FakeBatches]:
    """A fake Batch API whose batches do not end yet."""
    async with serving(FakeBatches(stuck=True)) as running:
        yield running


class Command:
    """`rocketeval run` in a folder, as a process that can be killed."""

    def __init__(self, folder: Path, server: FakeBatches) -> None:
        self.folder = folder
        write_benchmark(folder / "benchmark")
        config = CONFIG.format(model=MODEL, base_url=server.base_url)
        (folder / "rocketeval.yaml").write_text(config)

    async def start(self) -> StartedCommand:
        """Start a new process."""
        return await start_cli(self.folder, "run")

    async def finish(self) -> str:
        """Run to the end; return its output."""
        process = await self.start()
        async with asyncio.timeout(SLOW):
            _, output = await process.communicate()
        assert process.returncode == 0, output.decode()
        return output.decode()

    @property
    def home(self) -> Path:
        """The folder of the judge's engine."""
        return self.folder / "runs" / "demo" / "engines" / "judge"

    def journaled(self, event: str) -> int:
        """Return the number of journal records of this kind."""
        lines = (self.home / "batches.jsonl").read_text().split("\n")
        return sum(json.loads(line)["event"] == event for line in lines if line)

    def judged(self) -> list[str]:
        """Return the keys in the ledger."""
        tables = read_tables(self.folder / "runs" / "demo" / "ledger", ["key"])
        return [key for table in tables for key in table["key"].to_pylist()]


@pytest.fixture
def command(tmp_path: Path, server: FakeBatches) -> Command:
    """The command of a run with six responses, judged in three batches."""
    return Command(tmp_path, server)


async def kill(process: StartedCommand) -> None:
    """Kill the process like a power cut would."""
    process.kill()
    await process.communicate()
    assert process.returncode == -signal.SIGKILL


def watched(server: FakeBatches) -> int:
    """Return the number of batches that were polled, so that their ids are recorded."""
    return len({call for call in server.calls if "/batches/batch_" in call})


def assert_paid_once(server: FakeBatches, command: Command) -> None:
    """Check that every request was accepted once, every response judged once, no file left."""
    assert len(server.paid) == REQUESTS
    assert set(server.paid.values()) == {1}
    assert len(server.batches) == BATCHES
    assert len(command.judged()) == len(set(command.judged())) == TASKS
    assert not list(command.home.iterdir())


async def test_killed_while_batches_are_open(server: FakeBatches, command: Command) -> None:
    """The next process resumes the open batches and waits for them."""
    process = await command.start()
    await server.until(lambda: watched(server) == BATCHES)
    await kill(process)
    assert command.journaled("created") == BATCHES
    assert command.judged() == []
    server.stuck = False
    output = await command.finish()
    assert "resuming 3 batches of an earlier process" in output
    assert_paid_once(server, command)


async def test_killed_before_batch_ids_arrived(server: FakeBatches, command: Command) -> None:
    """The batches were created, but their ids never arrived: the tags find them."""
    server.fail("POST /v1/batches", hung_after_it, times=BATCHES)
    process = await command.start()
    await server.until(lambda: len(server.batches) == BATCHES)
    await kill(process)
    assert (command.journaled("intent"), command.journaled("created")) == (BATCHES, 0)
    server.stuck = False
    await command.finish()
    assert_paid_once(server, command)


async def test_killed_while_answers_arrive(server: FakeBatches, command: Command) -> None:
    """Each downloaded or recorded answer is used, and none is paid for again."""
    server.stuck = False
    process = await command.start()
    await server.until(lambda: any(call.endswith("/content") for call in server.calls))
    await kill(process)
    await command.finish()
    assert len(server.paid) == REQUESTS
    assert set(server.paid.values()) == {1}
    assert len(set(command.judged())) == TASKS


@pytest.mark.parametrize("heard", [True, False], ids=["ids known", "ids unknown"])
async def test_stopped_while_batches_are_open(
    server: FakeBatches, command: Command, heard: bool
) -> None:
    """One Ctrl-C ends the waiting at once, not the batches; the next run continues."""
    if not heard:
        server.fail("POST /v1/batches", hung_after_it, times=BATCHES)
    process = await command.start()
    await server.until(
        lambda: watched(server) == BATCHES if heard else len(server.batches) == BATCHES
    )
    process.send_signal(signal.SIGINT)
    async with asyncio.timeout(SOON):
        _, output = await process.communicate()
    assert process.returncode == 130, output.decode()
    assert ("5 requests submitted" in output.decode()) == heard
    server.stuck = False
    await command.finish()
    assert_paid_once(server, command)
