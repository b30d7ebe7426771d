"""A fake Batch API on loopback with the documented limits, rule-based answers and faults.

In a test: `async with serving(FakeBatches()) as server`, then for instance
`server.fail("POST /v1/batches", dropped_after_it)`. A batch moves one step with every status
request: validating, in_progress, finalizing, and then as `ends_as` says.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import Counter, defaultdict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from fakes.openai_server import MODEL, Distribution, FakeOpenAI, by_content

MOST_REQUESTS = 50_000
MOST_BYTES = 200_000_000
MOST_LISTED = 100
STEPS = ("validating", "in_progress", "finalizing")

Act = Callable[[], Awaitable[web.StreamResponse]]
Fault = Callable[[web.Request, Act], Awaitable[web.StreamResponse]]
"""A fault gets the request and the normal action, and returns any response."""


@dataclass
class FakeBatch:
    """One batch at the server."""

    id: str
    rows: list[dict[str, Any]]
    metadata: Mapping[str, str]
    created: float
    looks: int = 0
    status: str = "validating"
    errors: list[dict[str, Any]] = field(default_factory=list)
    output: str | None = None
    error_output: str | None = None
    answered: int = 0


@dataclass
class FakeBatches:
    """A scriptable server; `serving` puts it on a port."""

    rejects: str | None = None
    """Requests whose prompt contains this text end in the error file with HTTP 400."""
    reason: str = "the prompt is too long"
    """Error message for them."""
    text: str = FakeOpenAI.text
    distribution: Distribution = by_content
    ends_as: str = "completed"
    """Final status of batches: completed, expired, cancelled."""
    answers: int | None = None
    """Number of requests of a batch that are answered before it ends; all if None."""
    silent: bool = False
    """Whether unanswered requests are missing from the error file too."""
    stuck: bool = False
    """While True, no batch passes in_progress."""
    queue: int | None = None
    """Maximum requests in open batches; a batch beyond it fails."""
    base_url: str = ""
    calls: list[str] = field(default_factory=list)
    """Method and path of every call, in order."""
    paid: Counter[str] = field(default_factory=Counter)
    """How often each request was accepted and billed, by custom_id."""
    batches: dict[str, FakeBatch] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    uploaded: list[int] = field(default_factory=list)
    """Size of each uploaded file in bytes."""
    _faults: dict[str, deque[Fault]] = field(default_factory=lambda: defaultdict(deque))
    _random: random.Random = field(default_factory=lambda: random.Random(5))
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def fail(self, call: str, fault: Fault, *, times: int = 1) -> None:
        """Let `fault` answer the next `times` calls whose method and path begin with `call`."""
        self._faults[call].extend([fault] * times)

    def mend(self) -> None:
        """Remove all faults."""
        self._faults.clear()

    async def until(self, true: Callable[[], bool], seconds: float = 90.0) -> None:
        """Wait until a call has made `true` true."""
        async with asyncio.timeout(seconds):
            while not true():
                self._changed.clear()
                await self._changed.wait()

    def application(self) -> web.Application:
        """Return the application with its routes."""
        app = web.Application(client_max_size=MOST_BYTES + 10_000)
        app.router.add_route("*", "/{rest:.*}", self._handle)
        return app

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        call = f"{request.method} {request.path}"
        self.calls.append(call)

        async def act() -> web.StreamResponse:
            try:
                return await self._answer(request)
            finally:
                self._changed.set()

        for start, faults in self._faults.items():
            if faults and call.startswith(start):
                return await faults.popleft()(request, act)
        return await act()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        path = request.path.removeprefix("/v1")
        if path == "/models":
            return web.json_response({"object": "list", "data": [{"id": MODEL}]})
        if path == "/files" and request.method == "POST":
            return await self._upload(request)
        if path.startswith("/files/") and path.endswith("/content"):
            name = path.split("/")[2]
            return web.Response(body=self.files[name]) if name in self.files else _no(404, "gone")
        if path == "/batches" and request.method == "POST":
            return self._create(await request.json())
        if path == "/batches":
            return self._list(request.query)
        batch = self.batches.get(path.removeprefix("/batches/"))
        if batch is None:
            return _no(404, "no such path")
        self._move(batch)
        return web.json_response(_shown(batch))

    async def _upload(self, request: web.Request) -> web.StreamResponse:
        form = await request.post()
        file = form.get("file")
        if form.get("purpose") != "batch" or not isinstance(file, web.FileField):
            return _no(400, "a file with purpose=batch is needed")
        content = file.file.read()
        if len(content) > MOST_BYTES:
            return _no(400, "the file is too large")
        name = f"file-{len(self.files)}"
        self.files[name] = content
        self.uploaded.append(len(content))
        return web.json_response({"id": name, "object": "file", "purpose": "batch"})

    def _create(self, body: Any) -> web.StreamResponse:
        if body["completion_window"] != "24h" or body["endpoint"] != "/v1/chat/completions":
            return _no(400, "unknown completion_window or endpoint")
        if not all(isinstance(value, str) for value in body["metadata"].values()):
            return _no(400, "metadata must be text")
        if body["input_file_id"] not in self.files:
            return _no(404, "no such file")
        rows = [json.loads(line) for line in self.files[body["input_file_id"]].splitlines()]
        name = f"batch_{len(self.batches)}"
        batch = FakeBatch(name, rows, body["metadata"], time.time())
        problem = self._problem(rows)
        self.batches[name] = batch
        if problem is None:
            self.paid.update(row["custom_id"] for row in rows)
        else:
            batch.errors = [problem]
        return web.json_response(_shown(batch))

    def _problem(self, rows: list[dict[str, Any]]) -> dict[str, Any] | None:
        """Return why a file of requests is not accepted."""
        if not rows or len(rows) > MOST_REQUESTS:
            return {"code": "too_many", "message": "a batch holds 1 to 50,000 requests"}
        if len({row["custom_id"] for row in rows}) < len(rows):
            return {"code": "duplicate_custom_id", "message": "a custom_id stands twice"}
        for number, row in enumerate(rows, 1):
            if row["method"] != "POST" or row["url"] != "/v1/chat/completions":
                return {"code": "invalid_url", "message": "another endpoint", "line": number}
            if row["body"]["model"] != MODEL:
                return {"code": "model_not_found", "message": "no such model", "line": number}
        waiting = sum(len(b.rows) for b in self.batches.values() if b.status in STEPS)
        if self.queue is not None and waiting + len(rows) > self.queue:
            return {"code": "token_limit_exceeded", "message": "Enqueued token limit reached"}
        return None

    def _list(self, query: Mapping[str, str]) -> web.StreamResponse:
        newest_first = list(reversed(self.batches.values()))
        names = [batch.id for batch in newest_first]
        start = names.index(query["after"]) + 1 if "after" in query else 0
        end = start + min(int(query.get("limit", "20")), MOST_LISTED)
        rows = [_shown(batch) for batch in newest_first[start:end]]
        return web.json_response(
            {"object": "list", "data": rows, "has_more": end < len(newest_first)}
        )

    def _move(self, batch: FakeBatch) -> None:
        if batch.status not in STEPS:
            return
        batch.looks += 1
        if batch.errors:
            batch.status = "failed"
        elif batch.looks <= 1 or self.stuck:
            batch.status, batch.answered = "in_progress", len(batch.rows) // 2
        elif batch.looks == 2:
            batch.status = "finalizing"
        else:
            self._finish(batch)

    def _finish(self, batch: FakeBatch) -> None:
        brain = self._brain()
        outputs, errors = [], []
        for number, row in enumerate(self._random.sample(batch.rows, len(batch.rows))):
            prompt = row["body"]["messages"][-1]["content"]
            if self.answers is not None and number >= self.answers:
                if not self.silent:
                    error = {"code": "batch_expired", "message": "the window has closed"}
                    errors.append(_row(row, None, error))
            elif self.rejects is not None and self.rejects in prompt:
                body = {"error": {"message": self.reason}}
                errors.append(_row(row, {"status_code": 400, "body": body}, None))
            else:
                body = brain.reply(prompt, row["body"])
                outputs.append(_row(row, {"status_code": 200, "body": body}, None))
        batch.output, batch.error_output = self._keep(outputs), self._keep(errors)
        batch.status, batch.answered = self.ends_as, len(outputs)

    def _brain(self) -> FakeOpenAI:
        """Return the server that writes the answers."""
        return FakeOpenAI(self.distribution, self.text)

    def _keep(self, rows: list[dict[str, Any]]) -> str | None:
        if not rows:
            return None
        name = f"file-{len(self.files)}"
        self.files[name] = "".join(json.dumps(row) + "\n" for row in rows).encode()
        return name


@asynccontextmanager
async def serving(server: FakeBatches) -> AsyncIterator[FakeBatches]:
    """Serve on loopback for the length of the `async with` block."""
    runner = web.AppRunner(server.application(), shutdown_timeout=0.05)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.base_url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    try:
        yield server
    finally:
        await runner.cleanup()


def status(code: int, message: str = "scripted") -> Fault:
    """Return an HTTP status instead of acting."""

    async def fault(_: web.Request, __: Act) -> web.StreamResponse:
        return _no(code, message)

    return fault


async def dropped_before_it(request: web.Request, _: Act) -> web.StreamResponse:
    """Cut the connection without acting."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def dropped_after_it(request: web.Request, act: Act) -> web.StreamResponse:
    """Act, then cut the connection before the answer."""
    await act()
    return await dropped_before_it(request, act)


async def hung_after_it(_: web.Request, act: Act) -> web.StreamResponse:
    """Act, then never answer."""
    await act()
    await asyncio.sleep(3600)
    return web.Response()


async def half_of_it(request: web.Request, act: Act) -> web.StreamResponse:
    """Act, then send only half of the announced answer."""
    answer = await act()
    assert isinstance(answer, web.Response)
    assert isinstance(answer.body, bytes)
    torn = web.StreamResponse(headers={"Content-Length": str(len(answer.body))})
    await torn.prepare(request)
    await torn.write(answer.body[: len(answer.body) // 2])
    return await dropped_before_it(request, act)


async def echoed_key(request: web.Request, _: Act) -> web.StreamResponse:
    """Refuse with a message that repeats the key."""
    return _no(400, "you sent " + request.headers.get("Authorization", ""))


def _no(code: int, message: str) -> web.Response:
    return web.json_response({"error": {"message": message}}, status=code)


def _row(asked: Mapping[str, Any], response: Any, error: Any) -> dict[str, Any]:
    name = asked["custom_id"]
    return {"id": f"row_{name}", "custom_id": name, "response": response, "error": error}


def _shown(batch: FakeBatch) -> dict[str, Any]:
    failed = batch.status == "failed"
    return {
        "id": batch.id,
        "object": "batch",
        "status": batch.status,
        "errors": {"object": "list", "data": batch.errors} if failed else None,
        "created_at": int(batch.created),
        "output_file_id": batch.output,
        "error_file_id": batch.error_output,
        "request_counts": {"total": len(batch.rows), "completed": batch.answered, "failed": 0},
        "metadata": batch.metadata,
    }
