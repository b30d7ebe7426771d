"""A proxy on loopback that passes requests on to a server, and counts them.

A server's own metrics count everybody's requests; this counts those of one study. A request whose
client is gone is dropped at the server too.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import ClientSession, ClientTimeout, web

PASSED_ON = ("Authorization", "Content-Type")


@dataclass
class Seen:
    """One prompt, and what came of it."""

    prompt: str
    """What the author was asked."""
    sent: int = 0
    answered: int = 0
    """Answers that reached us whole."""
    texts: list[str] = field(default_factory=list)
    """What was written."""
    prompt_tokens: int = 0
    completion_tokens: int = 0

    @property
    def name(self) -> str:
        """A short hash of the prompt."""
        return hashlib.sha256(self.prompt.encode()).hexdigest()[:12]


@dataclass
class CountingProxy:
    """Counts the chat completions that pass through it, by prompt."""

    upstream: str
    """The server's base address, ending in `/v1`."""
    base_url: str = ""
    seen: dict[str, Seen] = field(default_factory=dict)

    @property
    def answered(self) -> int:
        """How many completions were answered until now."""
        return sum(each.answered for each in self.seen.values())

    def answers(self) -> Counter[str]:
        """How often each prompt was answered until now."""
        return Counter({prompt: each.answered for prompt, each in self.seen.items()})

    async def pass_on(self, request: web.Request) -> web.Response:
        """Ask the server the same, and give back what it says."""
        body = await request.read()
        headers = {name: request.headers[name] for name in PASSED_ON if name in request.headers}
        url = self.upstream.removesuffix("/v1") + request.path_qs
        chat = self._chat(request, body)
        if chat:
            chat.sent += 1
        async with request.app[SESSION].request(
            request.method, url, data=body, headers=headers
        ) as reply:
            content = await reply.read()
            if chat and reply.status == 200:
                self._count(chat, json.loads(content))
            kind = reply.headers.get("Content-Type", "application/json").split(";")[0]
            return web.Response(status=reply.status, body=content, content_type=kind)

    def _chat(self, request: web.Request, body: bytes) -> Seen | None:
        if not request.path.endswith("/chat/completions"):
            return None
        prompt = json.loads(body)["messages"][-1]["content"]
        return self.seen.setdefault(prompt, Seen(prompt))

    def _count(self, chat: Seen, told: Mapping[str, Any]) -> None:
        chat.answered += 1
        chat.texts.append(told["choices"][0]["message"]["content"] or "")
        usage = told.get("usage") or {}
        chat.prompt_tokens += usage.get("prompt_tokens", 0)
        chat.completion_tokens += usage.get("completion_tokens", 0)


SESSION: web.AppKey[ClientSession] = web.AppKey("session", ClientSession)


@asynccontextmanager
async def counting(upstream: str) -> AsyncIterator[CountingProxy]:
    """Serve a proxy for `upstream` for the length of the `async with` block."""
    proxy = CountingProxy(upstream.rstrip("/"))
    app = web.Application(client_max_size=1 << 26)
    app.router.add_route("*", "/{rest:.*}", proxy.pass_on)
    async with ClientSession(timeout=ClientTimeout(total=None)) as session:
        app[SESSION] = session
        runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            proxy.base_url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
            yield proxy
        finally:
            await runner.cleanup()
