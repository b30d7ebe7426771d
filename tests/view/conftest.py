"""A real server with real run directories."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from support.viewing import View, Viewing, served


@pytest.fixture
async def viewing() -> AsyncIterator[Viewing]:
    """Serve a target; every server is stopped after the test."""
    async with AsyncExitStack() as stack:

        async def start(target: Path, **settings: Any) -> View:
            return await stack.enter_async_context(served(target, **settings))

        yield start
