"""A fake server, and shortened waits."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from fakes.openai_server import FakeOpenAI, serving
from rocketeval.engines import http


@pytest.fixture
async def server() -> AsyncIterator[FakeOpenAI]:
    """A fake OpenAI-compatible server that answers."""
    async with serving(FakeOpenAI()) as running:
        yield running


@pytest.fixture
def fast_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make retries wait only milliseconds."""
    monkeypatch.setattr(http, "FIRST_WAIT", 0.004)
    monkeypatch.setattr(http, "LONGEST_WAIT", 0.02)
