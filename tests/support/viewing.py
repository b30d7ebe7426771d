"""A real view server over real run directories."""

from __future__ import annotations

import asyncio
import http.client
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

import rocketeval
from rocketeval.engines.scripted import ScriptedEngine
from rocketeval.view.catalog import RunCache, find_target
from rocketeval.view.server import bind, make_app
from support.make import make_config


@dataclass
class Answer:
    """The response of the server."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """Return the body as JSON."""
        return json.loads(self.body)


@dataclass
class View:
    """A listening server and its shelf."""

    port: int
    shelf: RunCache
    seen: list[int] = field(default_factory=list)

    async def get(self, path: str, method: str = "GET", **headers: str) -> Answer:
        """Request exactly this path, without normalization."""
        return await asyncio.to_thread(self._get, path, method, headers)

    async def json(self, path: str) -> Any:
        """Return the JSON at `path`; the request must succeed."""
        answer = await self.get(path)
        assert answer.status == 200, answer.body
        return answer.json

    def _get(self, path: str, method: str, headers: dict[str, str]) -> Answer:
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            line.putrequest(method, path, skip_host="Host" in headers)
            for name, value in headers.items():
                line.putheader(name, value)
            line.endheaders()
            said = line.getresponse()
            return Answer(said.status, dict(said.headers), said.read())
        finally:
            line.close()


Viewing = Callable[..., Awaitable[View]]


@asynccontextmanager
async def served(
    target: Path,
    *,
    allow_remote: bool = False,
    names: tuple[str, ...] = (),
    quiet: float = 30.0,
    **settings: Any,
) -> AsyncIterator[View]:
    """Serve a target on a free port; `settings` are those of the application."""
    shelf = RunCache(find_target(target), quiet=quiet)
    app = make_app(shelf, allow_remote=allow_remote, names=names, **settings)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5)
    await runner.setup()
    bound = bind("127.0.0.1", 0, allow_remote=False)
    await web.SockSite(runner, bound).start()
    try:
        yield View(bound.getsockname()[1], shelf)
    finally:
        await runner.cleanup()
        bound.close()


def prefer_left(prefix: str, suffix: str) -> float:
    """Return a probability that favors one candidate."""
    return 0.9 if "left explains" in prefix else 0.2


def finish(folder: Path, name: str = "run", **changes: Any) -> Path:
    """Make a finished run and return its directory."""
    config = make_config(folder, name, **changes)
    return rocketeval.run(config, judge=ScriptedEngine(prefer_left)).path


def files_of(folder: Path) -> dict[str, tuple[int, int]]:
    """Return every file below a folder with size and time."""
    return {
        str(path.relative_to(folder)): (path.stat().st_size, path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
