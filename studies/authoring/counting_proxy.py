"""A proxy on loopback that forwards requests to a server and counts them.

A server's own metrics count the requests of all clients; this counts those of one study. If a
client disconnects, its request is dropped at the server too.
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
    """One prompt and its answers."""

    prompt: str
    """The prompt sent to the author."""
    sent: int = 0
    answered: int = 0
    """Answers that arrived completely."""
    texts: list[str] = field(default_factory=list)
    """The texts that the author wrote."""
    prompt_tokens: int = 0
    completion_tokens: int = 0

    @property
    def name(self) -> str:
        """Return a short hash of the prompt."""
        return hashlib.sha256(self.prompt.encode()).hexdigest()[:12]


@dataclass
class CountingProxy:
    """A counter of the chat completions that pass through it, by prompt."""

    upstream: str
    """The server's base URL, ending in `/v1`."""
    base_url: str = ""
    seen: dict[str, Seen] = field(default_factory=dict)

    @property
    def answered(self) -> int:
        """Return the number of completions answered so far."""
        return sum(each.answered for each in self.seen.values())

    def answers(self) -> Counter[str]:
        """Return how often each prompt was answered so far."""
        return Counter({prompt: each.answered for prompt, each in self.seen.items()})

    async def pass_on(self, request: web.Request) -> web.Response:
        """Forward the request to the server and return its response."""
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

    def _count(self, chat: Seen, result: Mapping[str, Any]) -> None:
        chat.answered += 1
        chat.texts.append(result["choices"][0]["message"]["content"] or "")
        usage = result.get("usage") or {}
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
