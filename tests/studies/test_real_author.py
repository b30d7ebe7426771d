"""The study of a real author, with a fake server whose lists are all known."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from pathlib import Path

from fakes.openai_server import MODEL, serving
from support.dimension_author import AuthorServer

SCRIPT = Path(__file__).parents[2] / "studies" / "authoring" / "real_author.py"
SLOW = 300.0
"""Timeout in seconds, generous enough for a busy machine."""


@dataclass
class Forgetful(AuthorServer):
    """An author with wrong numbering until it sees its mistake; it never lists a haiku's items."""

    def _written(self, prompt: str) -> str:
        if "haiku" in prompt:
            return "A haiku has three lines."
        if "<<<query>>>" not in prompt:
            return super()._written(prompt)
        first = 1 if "It was refused: number 2 stands where 1 should" in prompt else 2
        return "\n".join(f"{first + n}. Is point {n} made?" for n in range(5))


async def test_report_names_failed_and_kept_lists() -> None:
    """Both authors are killed and resume; no kept list is asked for again."""
    async with serving(Forgetful(latency=0.2)) as server, asyncio.timeout(SLOW):
        asked = ("--base-url", server.base_url, "--model", MODEL)
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *(str(SCRIPT), *asked, "--queries", "4", "--concurrency", "1"),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, errors = await process.communicate()
    output = out.decode()
    assert process.returncode == 0, errors.decode()
    assert output.count("killed (SIGKILL) with 2 lists safe") == 2, output
    assert "3 of 4 lists readable, 0 of them at the first attempt" in output
    assert "haiku-tides: 3 attempts, FAILED: " in output
    assert "refused at first: 4 of 4 (" in output
    assert "9 of 9 lists readable, 9 of them at the first attempt" in output
    assert output.count("0 of them twice") == 2
    assert "a third time: exit code 3, 3 requests" in output
    assert "a third time: exit code 0, 0 requests" in output
