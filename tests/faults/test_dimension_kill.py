"""An author that is killed between its steps pays for no step twice."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from fakes.openai_server import MODEL, serving
from support.command import start_cli
from support.dimension_author import AUGMENTING, FILTERING, TWO_PARTS, AuthorServer
from support.make import write_benchmark

SLOW = 240.0
"""Seconds after which something hangs, even on a busy machine."""
CONFIG = """\
name: demo
benchmark: {{path: benchmark}}
judge: {{engine: scripted, model: m}}
author:
  kind: dimension
  engine: {{model: {model}, base_url: {base_url}, concurrency: 1}}
  options: {{file: own.yaml}}
cache: null
"""


def steps_in(journal: Path) -> list[str]:
    """Return the names of the recorded steps."""
    lines = journal.read_text().split("\n") if journal.exists() else []
    return [json.loads(line)["query_id"] for line in lines if line]


async def test_author_killed_twice_pays_each_step_once(tmp_path: Path) -> None:
    """SIGKILL during the augmenting steps, and again before the last filter."""
    write_benchmark(tmp_path / "benchmark")
    (tmp_path / "own.yaml").write_text(TWO_PARTS)
    journal = tmp_path / "runs" / "demo" / "authored.jsonl"
    async with serving(AuthorServer(latency=0.3)) as server, asyncio.timeout(SLOW):
        config = CONFIG.format(model=MODEL, base_url=server.base_url)
        (tmp_path / "rocketeval.yaml").write_text(config)
        for safe in (3, AUGMENTING + 1):
            process = await start_cli(tmp_path, "run", "--only", "checklist", "--json")
            while len(steps_in(journal)) < safe:
                assert process.returncode is None
                await asyncio.sleep(0.01)
            process.kill()
            await process.wait()
        survived = steps_in(journal)
        process = await start_cli(tmp_path, "run", "--only", "checklist", "--json")
        out, output = await process.communicate()
        assert process.returncode == 0, output.decode()
        facts = json.loads(out)
        steps = steps_in(journal)
        assert len(steps) == len(set(steps)) == AUGMENTING + FILTERING
        assert facts["composition"]["reused_steps"] == len(survived)
        # A request in flight at each kill is the only one that can be repeated.
        assert len(server.chats) <= AUGMENTING + FILTERING + 2
