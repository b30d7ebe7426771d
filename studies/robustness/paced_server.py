"""A judge and author that answers one request at a time, at a given pace, and may hang.

    python studies/robustness/paced_server.py --port 8123 --log seen.jsonl --pace 5

Other requests wait in its queue. It answers by a hash of the prompt: yes or no if log-probabilities
are requested, a checklist otherwise. With --hangs-after it stops answering after that many requests
and keeps every connection open. The log has one line per answered prompt; requests of the first
contact are answered at once and are not logged.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import math
from pathlib import Path
from typing import Any

from aiohttp import web

from rocketeval.engines.probe import PREFIX

MODEL = "paced"
ITEMS = "1. Is it right?\n2. Is it clear?\n3. Is it short?"


class PacedServer:
    """A server that answers one request at a time."""

    def __init__(self, pace: float, hangs_after: int | None, log: Path) -> None:
        self._pace = pace
        self._hangs_after = hangs_after
        self._log = log
        self._turn = asyncio.Lock()
        self._served = 0

    def application(self) -> web.Application:
        """Return the application with its routes."""
        app = web.Application()
        app.router.add_get("/v1/models", self._models)
        app.router.add_post("/v1/chat/completions", self._chat)
        return app

    async def _models(self, _: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": MODEL}]})

    async def _chat(self, request: web.Request) -> web.Response:
        body = await request.json()
        prompt: str = body["messages"][-1]["content"]
        if prompt.startswith(PREFIX):
            return web.json_response(completion(prompt, body))
        async with self._turn:
            if self._hangs_after is not None and self._served >= self._hangs_after:
                await asyncio.Event().wait()
            await asyncio.sleep(self._pace)
            self._served += 1
            with self._log.open("a") as stream:
                stream.write(json.dumps(prompt) + "\n")
        return web.json_response(completion(prompt, body))


def completion(prompt: str, body: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to a prompt."""
    usage = {"prompt_tokens": len(prompt.split()), "completion_tokens": 1}
    choice: dict[str, Any] = {"index": 0, "finish_reason": "stop", "logprobs": None}
    if not body.get("logprobs"):
        choice["message"] = {"role": "assistant", "content": ITEMS}
        return {"object": "chat.completion", "choices": [choice], "usage": usage}
    share = 0.05 + 0.9 * hashlib.sha256(prompt.encode()).digest()[0] / 255
    odds = {"Yes": 0.9 * share, "No": 0.9 * (1 - share), "Maybe": 0.06, "Well": 0.04}
    rows = [
        {"token": token, "logprob": math.log(p)}
        for token, p in sorted(odds.items(), key=lambda pair: -pair[1])
    ]
    choice["message"] = {"role": "assistant", "content": rows[0]["token"]}
    choice["logprobs"] = {"content": [{**rows[0], "top_logprobs": rows}]}
    return {"object": "chat.completion", "choices": [choice], "usage": usage}


async def serve(port: int, server: PacedServer) -> None:
    """Serve until killed; print a line when it listens."""
    runner = web.AppRunner(server.application())
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port, reuse_address=True).start()
    print("ready", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--pace", type=float, default=0.0, help="seconds per answer")
    parser.add_argument("--hangs-after", type=int)
    result = parser.parse_args()
    asyncio.run(serve(result.port, PacedServer(result.pace, result.hangs_after, result.log)))
