"""The study of a real author, with a server in the author's place whose every list is known."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from pathlib import Path

from fakes.openai_server import MODEL, serving
from support.dimension_author import AuthorServer

SCRIPT = Path(__file__).parents[2] / "studies" / "authoring" / "real_author.py"
SLOW = 300.0
"""Seconds after which something hangs, on however busy a machine."""


@dataclass
class Forgetful(AuthorServer):
    """Numbers its list wrong until it is shown so; never writes a haiku's."""

    def _written(self, prompt: str) -> str:
        if "haiku" in prompt:
            return "A haiku has three lines."
        if "<<<query>>>" not in prompt:
            return super()._written(prompt)
        first = 1 if "It was refused: number 2 stands where 1 should" in prompt else 2
        return "\n".join(f"{first + n}. Is point {n} made?" for n in range(5))


async def test_the_account_names_what_failed_and_what_was_kept() -> None:
    """Both authors are killed and go on; nothing that was kept is asked for again."""
    async with serving(Forgetful(latency=0.2)) as server, asyncio.timeout(SLOW):
        asked = ("--base-url", server.base_url, "--model", MODEL)
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *(str(SCRIPT), *asked, "--queries", "4", "--concurrency", "1"),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, errors = await process.communicate()
    told = out.decode()
    assert process.returncode == 0, errors.decode()
    assert told.count("killed (SIGKILL) with 2 lists safe") == 2, told
    assert "3 of 4 lists readable, 0 of them at the first attempt" in told
    assert "haiku-tides: 3 attempts, FAILED: the author's list was refused 3 times" in told
    assert "refused at first: 4 of 4 (" in told
    assert "9 of 9 lists readable, 9 of them at the first attempt" in told
    assert told.count("0 of them twice") == 2
    assert "a third time: exit code 3, 3 requests" in told
    assert "a third time: exit code 0, 0 requests" in told
