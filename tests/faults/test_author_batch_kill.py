"""Batch authors that are killed while a batch is open pay for nothing twice."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fakes.batch_server import FakeBatches, serving
from fakes.openai_server import MODEL, FakeOpenAI
from support.command import start_cli
from support.dimension_author import AUGMENTING, FILTERING, TWO_PARTS, AuthorServer
from support.make import QUERIES, write_benchmark

SLOW = 240.0
"""Seconds after which something hangs, even on a busy machine."""
CONFIG = """\
name: demo
benchmark: {{path: benchmark}}
judge: {{engine: scripted, model: m}}
author:
  kind: {kind}
  engine:
    engine: openai_batch
    model: {model}
    base_url: {base_url}
    options: {{gather: 0.1, poll: 0.05}}
  options: {options}
cache: null
"""
OPTIONS = {"instance": "{}", "dimension": "{file: own.yaml}"}


@dataclass
class Author(AuthorServer):
    """Writes for either author; the list about the sea is right only after its mistake."""

    def _written(self, prompt: str) -> str:
        if "<<<query>>>" not in prompt:
            return super()._written(prompt)
        first = 2 if "Why the sea?" in prompt and "<<<your last turn>>>\n2. " not in prompt else 1
        return "\n".join(f"{first + n}. Is point {n} made?" for n in range(5))


@dataclass
class AuthorBatches(FakeBatches):
    """A Batch API with this author behind it."""

    def _brain(self) -> FakeOpenAI:
        return Author()

    @property
    def sizes(self) -> list[int]:
        """Number of requests in each batch."""
        return [len(batch.rows) for batch in self.batches.values()]

    def watched(self) -> int:
        """Number of batches that were polled, so that their ids have been recorded."""
        return len({call for call in self.calls if "/batches/batch_" in call})


@pytest.fixture
async def server() -> AsyncIterator[AuthorBatches]:
    """A Batch API whose batches do not end yet."""
    async with serving(AuthorBatches(stuck=True)) as running:
        assert isinstance(running, AuthorBatches)
        yield running


async def finish(folder: Path) -> dict[str, Any]:
    """Run to the end; return its output."""
    process = await start_cli(folder, "run", "--only", "checklist", "--json")
    async with asyncio.timeout(SLOW):
        out, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    summary: dict[str, Any] = json.loads(out)
    return summary


async def kill_at(folder: Path, server: AuthorBatches, batches: int) -> None:
    """Start, kill once this many batches are recorded, then let the open ones end."""
    process = await start_cli(folder, "run", "--only", "checklist", "--json")
    await server.until(lambda: server.watched() == batches, SLOW)
    process.kill()
    await process.communicate()
    assert process.returncode == -signal.SIGKILL


def prepare(folder: Path, server: AuthorBatches, kind: str) -> None:
    """Write a benchmark, a dimension file and the config of one kind of author."""
    write_benchmark(folder / "benchmark")
    (folder / "own.yaml").write_text(TWO_PARTS)
    summary = {"kind": kind, "options": OPTIONS[kind]}
    config = CONFIG.format(model=MODEL, base_url=server.base_url, **summary)
    (folder / "rocketeval.yaml").write_text(config)


async def test_killed_instance_author_and_its_retries(
    tmp_path: Path, server: AuthorBatches
) -> None:
    """One batch for all queries, one more for the refused list; killed in the first."""
    prepare(tmp_path, server, "instance")
    await kill_at(tmp_path, server, 1)
    server.stuck = False
    summary = await finish(tmp_path)
    assert (summary["checklists"], summary["failures"]) == (len(QUERIES), {})
    assert summary["refusals"]["mistakes"] == {"numbers out of order": 1}
    assert server.sizes == [len(QUERIES), 1]
    assert set(server.paid.values()) == {1}
    assert (await finish(tmp_path))["reused"] == len(QUERIES)
    assert server.sizes == [len(QUERIES), 1]


async def test_dimension_author_killed_in_both_batches(
    tmp_path: Path, server: AuthorBatches
) -> None:
    """One batch for all steps that add questions, one for the filters."""
    prepare(tmp_path, server, "dimension")
    await kill_at(tmp_path, server, 1)
    journal = tmp_path / "runs" / "demo" / "authored.jsonl"
    assert not journal.exists()
    for batch in server.batches.values():
        server._finish(batch)
    await kill_at(tmp_path, server, 2)
    assert len([line for line in journal.read_text().split("\n") if line]) == AUGMENTING
    server.stuck = False
    summary = await finish(tmp_path)
    assert summary["composition"]["reused_steps"] == AUGMENTING
    assert summary["composition"]["failed_steps"] == {}
    assert server.sizes == [AUGMENTING, FILTERING]
    assert set(server.paid.values()) == {1}
