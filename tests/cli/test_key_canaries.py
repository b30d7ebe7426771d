"""A server that repeats the API key wherever it can: no file and no output of a command has it."""

from __future__ import annotations

import asyncio
import base64
import gzip
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from fakes.openai_server import MODEL, FakeOpenAI, answer, serving, status
from support.forked import run_forked
from support.make import write_benchmark

KEY = "kq7Zt2Xv9Lm4Rb8Wd3Nc6Hs1"
SHORTEST = 8
"""Characters of a key that must not appear in a row."""
CONFIG = """\
name: canary
benchmark: {{path: benchmark}}
author:
  kind: instance
  engine: {{model: {model}, base_url: "{url}", patience: 1}}
judge: {{model: {model}, base_url: "{url}", patience: 1, extra_body: {extra}}}
ranking: {{bootstrap: 50}}
"""


async def _redirect(request: web.Request) -> web.StreamResponse:
    return web.Response(status=307, headers={"Location": f"/v1/{KEY}/chat?key={KEY}"})


async def _text(request: web.Request) -> web.StreamResponse:
    return web.Response(text=f"<html>{KEY}</html>")


async def _reason(request: web.Request) -> web.StreamResponse:
    return web.Response(status=400, reason=f"Bad {KEY}")


FAULTS = {
    **{f"HTTP {code}": status(code, f"bad key {KEY}") for code in (400, 401, 403, 404, 413, 500)},
    "HTTP 429": status(429, f"{KEY} is busy", {"Retry-After": "0"}),
    "Retry-After": status(429, "busy", {"Retry-After": KEY}),
    "error body": answer({"error": {"message": f"{KEY} overloaded", "code": KEY}}),
    "error text": answer({"error": KEY}),
    "key as a name": answer({KEY: {KEY: KEY}}),
    "choices": answer({"choices": [KEY]}),
    "half of the key": status(400, f"your key starts with {KEY[:12]}"),
    "end of the key": status(401, f"your key ends with {KEY[-9:]}"),
    "not JSON": _text,
    "reason phrase": _reason,
    "Location": _redirect,
}
"""Faults of every chat, by the place of the key."""
REPLIES = ("model", "system_fingerprint", "usage", "logprob tokens", "written text", "id")
ELSEWHERE = ("/v1/models", "/version", "extra_body", "password in the URL")


class Echoing(FakeOpenAI):
    """A server whose good replies contain the key in one place."""

    place = ""

    def reply(self, prompt: str, body: Any) -> dict[str, Any]:
        """Return the completion with the key in it."""
        found = super().reply(prompt, body)
        if self.place in ("model", "system_fingerprint", "id"):
            found[self.place] = f"judge-{KEY}"
        elif self.place == "usage":
            found["usage"][KEY] = KEY
        elif self.place == "logprob tokens" and body.get("logprobs"):
            listed = found["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
            listed[-1]["token"] = KEY
        elif self.place == "written text" and not body.get("logprobs"):
            found["choices"][0]["message"]["content"] = f"{KEY}\n1. Is it {KEY}?\n2. x"
        return found


def every_text(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the content of all files that commands wrote, also of the blocks in a report."""
    for path in folder.rglob("*"):
        if path.is_file() and path.name != "rocketeval.yaml":
            content = path.read_bytes()
            yield str(path), content
            if path.suffix == ".html":
                for block in re.findall(rb"[A-Za-z0-9+/]{40,}={0,2}", content):
                    with suppress(ValueError, OSError, EOFError):
                        yield f"{path} (block)", gzip.decompress(base64.b64decode(block))


@pytest.mark.parametrize("place", [*FAULTS, *REPLIES, *ELSEWHERE])
async def test_the_key_is_nowhere(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a run nor `doctor` writes or prints eight characters of the key."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    write_benchmark(tmp_path / "benchmark")
    server = Echoing()
    server.place = place
    if place in FAULTS:
        server.always("/v1/chat/completions", FAULTS[place])
    elif place == "/v1/models":
        server.always(place, answer({"data": [{"id": f"{MODEL}-{KEY}"}]}))
    elif place == "/version":
        server.always(place, answer({"version": KEY}))
    async with serving(server):
        url = server.base_url
        if place == "password in the URL":
            url = url.replace("http://", f"http://me:{KEY}@")
        extra = f"{{api_key: {KEY}}}" if place == "extra_body" else "{}"
        config = CONFIG.format(model=MODEL, url=url, extra=extra)
        (tmp_path / "rocketeval.yaml").write_text(config)
        shown = []
        for command in (["run"], ["doctor"]):
            done = await asyncio.to_thread(run_forked, tmp_path, tuple(command))
            assert "Traceback" not in done.stderr
            shown += [("stdout", done.stdout.encode()), ("stderr", done.stderr.encode())]
    assert server.seen or place == "password in the URL"
    parts = [KEY[start : start + SHORTEST] for start in range(len(KEY) - SHORTEST + 1)]
    pattern = re.compile("|".join(parts).encode())
    for name, content in (*shown, *every_text(tmp_path)):
        found = pattern.search(content)
        assert found is None, (name, content[max(0, found.start() - 80) : found.end() + 40])
