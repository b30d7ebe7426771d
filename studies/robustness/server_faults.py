"""Run against a server that fails in many ways, and check that every answer is an honest one.

    python studies/robustness/server_faults.py [--rates 0.1 0.5] [--kinds 40] [--seed 1]

Each kind of fault hits a share of the chat requests, at random. A run of 5 queries, 3 candidates
and 4 items is judged; a second command follows on a server that has recovered. Every answer must be
the one of a run without faults; none may be lost, and none may be a hole.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import random
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from aiohttp import web

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from fakes.openai_server import MODEL, FakeOpenAI, dropped, garbage, serving, status
from rocketeval.config import parse_config
from rocketeval.engines import http
from rocketeval.errors import RocketEvalError
from rocketeval.pipeline import Run
from support.make import write_grid

Fault = Callable[[web.Request], Awaitable[web.StreamResponse]]


def body(content: Any, code: int = 200, **headers: str) -> Fault:
    """Return a fault that sends JSON."""

    async def fault(_: web.Request) -> web.StreamResponse:
        return web.json_response(content, status=code, headers=headers)

    return fault


def raw(content: bytes, **headers: str) -> Fault:
    """Return a fault that sends bytes."""

    async def fault(_: web.Request) -> web.StreamResponse:
        return web.Response(body=content, headers=headers, content_type="application/json")

    return fault


async def half(request: web.Request) -> web.StreamResponse:
    """Send half of the announced body, then cut the connection."""
    torn = web.StreamResponse(headers={"Content-Length": "4000"})
    await torn.prepare(request)
    await torn.write(b'{"choices": [')
    return await dropped(request)


def logprob(value: Any) -> Fault:
    """Return a completion whose only log-probability is `value`."""
    top = [{"token": "Yes", "logprob": value}]
    return body({"choices": [{"logprobs": {"content": [{"top_logprobs": top}]}}]})


KINDS: dict[str, Fault] = {
    **{f"HTTP {code}": status(code) for code in (408, 409, 425, 429, 500, 502, 503, 504, 529)},
    "429 Retry-After 0": status(429, headers={"Retry-After": "0"}),
    "429 Retry-After 1e9": status(429, headers={"Retry-After": "nan"}),
    "503 absurd date": status(503, headers={"Retry-After": "Fri, 99 Foo 99999 99:99:99 GMT"}),
    "error body": body({"error": {"message": "overloaded"}}),
    "error text": body({"error": "overloaded"}),
    "error code 503": body({"error": {"message": "busy", "code": 503}}),
    "error code text": body({"error": {"message": "busy", "code": "500"}}),
    "no choices": body({"object": "chat.completion"}),
    "empty choices": body({"choices": []}),
    "two choices": body({"choices": [{}, {}]}),
    "choices of text": body({"choices": ["Yes"]}),
    "choices object": body({"choices": {"0": 1}}),
    "no logprobs": body({"choices": [{"message": {"content": "Yes"}, "logprobs": None}]}),
    "empty logprobs": body({"choices": [{"logprobs": {"content": []}}]}),
    "logprobs text": body({"choices": [{"logprobs": "yes"}]}),
    "logprob above one": logprob(9.5),
    "logprob NaN text": logprob("NaN"),
    "logprob null": logprob(None),
    "logprob object": logprob({}),
    "array": body([1, 2, 3]),
    "number": body(7),
    "null": body(None),
    "empty body": raw(b""),
    "not JSON": garbage,
    "HTML": raw(b"<html>gateway</html>"),
    "binary": raw(bytes(range(256))),
    "bad gzip": raw(b"not gzip", **{"Content-Encoding": "gzip"}),
    "gzip error": raw(gzip.compress(b'{"error": "x"}'), **{"Content-Encoding": "gzip"}),
    "cut connection": dropped,
    "half a body": half,
    "deep nesting": raw(b"[" * 2000 + b"]" * 2000),
}


class Faulty(FakeOpenAI):
    """A server that fails for a share of the chats."""

    rate, fault, dice = 0.0, garbage, random.Random(1)

    async def _chat(self, request: web.Request, body: Any) -> web.StreamResponse:
        probing = body["messages"][-1]["content"].startswith("Read the response, then")
        if not probing and self.dice.random() < self.rate:
            return await type(self).fault(request)
        return await super()._chat(request, body)


def answers(run: Run) -> dict[str, list[Any]]:
    """Return status and p_yes of every judgment, by key."""
    rows = [row for table in run.store.judgments() for row in table.to_pylist()]
    return {row["key"]: [row["status"], row["p_yes"]] for row in rows}


async def try_fault(kind: str, rate: float, folder: Path, seed: int) -> dict[str, Any]:
    """Run against one kind of fault; return the counts."""

    def config(name: str, url: str) -> Any:
        judge = {"model": MODEL, "base_url": url, "patience": 30, "timeout": 10, "canaries": 0}
        return parse_config(
            {
                "name": name,
                "benchmark": {"path": str(folder / "benchmark")},
                "judge": judge,
                "output": str(folder / f"{kind}-{rate}".replace("/", "_")),
                "cache": None,
            }
        )

    server = Faulty()
    server.dice = random.Random(seed)
    async with serving(server):
        clean = Run(config("clean", server.base_url))
        await clean.to_judgments()
        Faulty.fault, server.rate = KINDS[kind], rate
        started, error = time.monotonic(), ""
        run = Run(config("faulty", server.base_url))
        try:
            await run.to_judgments()
        except RocketEvalError as stopped:
            error = type(stopped).__name__
        seconds, first = time.monotonic() - started, len(answers(run))
        server.rate = 0.0
        again = Run(config("faulty", server.base_url))
        await again.to_judgments()
    expected, found = answers(clean), answers(again)
    return {
        "kind": kind,
        "rate": rate,
        "judged at first": first,
        "judged after recovery": len(found),
        "different": sum(found.get(key) != value for key, value in expected.items()),
        "seconds": round(seconds, 1),
        "error": error,
    }


async def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rates", type=float, nargs="+", default=[0.1, 0.5, 0.9])
    parser.add_argument("--kinds", type=int, default=len(KINDS))
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    http.FIRST_WAIT, http.LONGEST_WAIT = 0.02, 0.2
    rows, broken = [], 0
    with tempfile.TemporaryDirectory() as scratch:
        write_grid(Path(scratch) / "benchmark", queries=5, candidates=3, items=4)
        chosen = random.Random(args.seed).sample(list(KINDS), min(args.kinds, len(KINDS)))
        for kind in sorted(chosen):
            for rate in args.rates:
                row = await try_fault(kind, rate, Path(scratch), args.seed)
                broken += row["different"] > 0 or row["judged after recovery"] < 15
                rows.append(row)
                print(json.dumps(row), flush=True)
    print(f"{len(rows)} cases of {len(chosen)} kinds: {broken} with a lost or different answer")
    sys.exit(bool(broken))


if __name__ == "__main__":
    asyncio.run(main())
