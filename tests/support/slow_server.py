"""A server that answers one request at a time, in virtual time.

Everything but the sockets runs as in a real run: timeouts of minutes take milliseconds, and the
same run takes the same time on every machine.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

import aiohttp
import orjson
import pytest

from fakes.openai_server import MODEL, FakeOpenAI
from rocketeval.config import EngineConfig
from rocketeval.engines.openai_http import OpenAIEngine
from rocketeval.engines.probe import PREFIX

T = TypeVar("T")


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock jumps to the next scheduled event."""

    now = 0.0

    def time(self) -> float:
        return self.now

    def _run_once(self) -> None:
        if not self._ready and self._scheduled:  # type: ignore[attr-defined]
            self.now = max(self.now, self._scheduled[0].when())  # type: ignore[attr-defined]
        super()._run_once()  # type: ignore[misc]


def in_virtual_time(work: Coroutine[Any, Any, T], patch: pytest.MonkeyPatch) -> T:
    """Run `work` on a virtual clock and return its result."""
    loop = VirtualLoop()
    patch.setattr(time, "monotonic", loop.time)
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(work)


class Reply:
    """The part of an HTTP response that the client uses."""

    def __init__(self, work: asyncio.Future[tuple[int, Any]], *, dropped: bool = False) -> None:
        self._work = work
        self._dropped = dropped
        self.status = 0
        self.headers: dict[str, str] = {}

    async def __aenter__(self) -> Reply:
        work = self._work if self._dropped else asyncio.shield(self._work)
        self.status, body = await work
        self._unread = orjson.dumps(body)
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    @property
    def content(self) -> Reply:
        """Return the body's stream, which is this reply."""
        return self

    async def readany(self) -> bytes:
        """Return the body, then nothing."""
        body, self._unread = self._unread, b""
        return body


class SlowServer:
    """A server that answers one request at a time, each in `pace` seconds; the others queue.

    It replaces a client's session. It still works on a request that its client gave up, unless it
    `drops` such requests. Probe requests are answered at once.
    """

    timeout = aiohttp.ClientTimeout(total=None)

    def __init__(self, pace: float, *, drops: bool = False) -> None:
        self.pace = pace
        self._drops = drops
        self.served: list[str] = []
        """Answered prompts, in order."""
        self.loses: set[int] = set()
        """Numbers of requests that are never answered."""
        self.busy: set[int] = set()
        """Numbers of requests that get HTTP 503."""
        self.seen = 0
        self._turn = asyncio.Lock()
        self._never = asyncio.Event()
        self._works: set[asyncio.Future[tuple[int, Any]]] = set()
        self._rule = FakeOpenAI()

    def post(self, url: str, *, data: bytes, **_: Any) -> Reply:
        """Add a request to the queue."""
        work = asyncio.ensure_future(self._answer(orjson.loads(data)))
        self._works.add(work)
        return Reply(work, dropped=self._drops)

    def get(self, url: str, **_: Any) -> Reply:
        """Return the model list."""
        models = (200, {"data": [{"id": MODEL}]}) if url.endswith("/models") else (404, {})
        result: asyncio.Future[tuple[int, Any]] = asyncio.get_running_loop().create_future()
        result.set_result(models)
        return Reply(result)

    async def close(self) -> None:
        """Do nothing."""

    async def _answer(self, body: Mapping[str, Any]) -> tuple[int, Any]:
        prompt: str = body["messages"][-1]["content"]
        if not prompt.startswith(PREFIX):
            number, self.seen = self.seen, self.seen + 1
            if number in self.busy:
                return 503, {}
            if number in self.loses:
                await self._never.wait()
            async with self._turn:
                await asyncio.sleep(self.pace)
            self.served.append(prompt)
        return 200, self._rule.reply(prompt, body)


def engine_for(server: SlowServer, **settings: Any) -> OpenAIEngine:
    """Return an engine whose requests all go to `server`."""
    engine = OpenAIEngine(EngineConfig(model=MODEL, base_url="http://slow.test/v1", **settings))
    engine._http._session = engine._http._look_session = server  # type: ignore[assignment]
    return engine
