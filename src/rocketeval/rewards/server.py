"""The HTTP server of `rocketeval serve`: rewards and scores, health, metrics and OpenAPI.

`POST /v1/score` grades one response, `POST /v1/rewards` a batch in OpenRLHF's form. A server with
too much work answers 429 with Retry-After; a failed grade is an error with its reason, never a
number. On SIGTERM it stops accepting work and finishes what it has.
"""

from __future__ import annotations

import asyncio
import secrets
import signal
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

import yaml
from aiohttp import web

from rocketeval._version import __version__
from rocketeval.errors import EngineError, RocketEvalError
from rocketeval.grader import Grader, ResponseGrade, ResponseToGrade
from rocketeval.integrations.shared import checklist_for
from rocketeval.records import Turn
from rocketeval.rewards.functions import TIMEOUT, reward_batch, to_gradings
from rocketeval.text import did_you_mean
from rocketeval.view.server import is_loopback, without_port

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
MOST_WAITING = 512
"""Responses in work or waiting; more are answered with 429."""
MOST_BYTES = 16 << 20
RETRY_AFTER = "1"
BUCKETS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
"""Upper bounds of the latency histogram in seconds."""
OPEN = frozenset({"/health", "/metrics", "/openapi.json"})
"""Paths that need no token."""


@dataclass
class ServerCounts:
    """What a server has done, in figures."""

    started: float = field(default_factory=time.time)
    responses: Counter[str] = field(default_factory=Counter)
    """Graded responses by outcome."""
    statuses: Counter[int] = field(default_factory=Counter)
    buckets: Counter[float] = field(default_factory=Counter)
    seconds: float = 0.0
    waiting: int = 0
    closing: bool = False

    def observe(self, seconds: float) -> None:
        """Count the time of one request."""
        self.seconds += seconds
        for bound in BUCKETS:
            if seconds <= bound:
                self.buckets[bound] += 1

    def text(self, grader: Grader) -> str:
        """Return the figures in Prometheus' text format."""
        name = "rocketeval_request_seconds"
        total = sum(self.statuses.values())
        lines = [
            "# TYPE rocketeval_responses_total counter",
            *(
                f'rocketeval_responses_total{{outcome="{outcome}"}} {count}'
                for outcome, count in sorted(self.responses.items())
            ),
            "# TYPE rocketeval_http_requests_total counter",
            *(
                f'rocketeval_http_requests_total{{status="{status}"}} {count}'
                for status, count in sorted(self.statuses.items())
            ),
            "# TYPE rocketeval_waiting gauge",
            f"rocketeval_waiting {self.waiting}",
            "# TYPE rocketeval_judge_requests_total counter",
            f"rocketeval_judge_requests_total {grader.spent.requests}",
            "# TYPE rocketeval_answers_total counter",
            f'rocketeval_answers_total{{from="judge"}} {grader.asked}',
            f'rocketeval_answers_total{{from="file"}} {grader.reused}',
            "# TYPE rocketeval_answers_kept gauge",
            f"rocketeval_answers_kept {grader.kept}",
            f"# TYPE {name} histogram",
            *(f'{name}_bucket{{le="{bound:g}"}} {self.buckets[bound]}' for bound in BUCKETS),
            f'{name}_bucket{{le="+Inf"}} {total}',
            f"{name}_sum {self.seconds:.6f}",
            f"{name}_count {total}",
        ]
        return "\n".join(lines) + "\n"


class RewardServer:
    """The routes of the server, over one grader."""

    def __init__(
        self,
        grader: Grader,
        *,
        token: str | None = None,
        most_waiting: int = MOST_WAITING,
        timeout: float = TIMEOUT,
    ) -> None:
        self.grader = grader
        self.counts = ServerCounts()
        self._token = token
        self._most = most_waiting
        self._timeout = timeout

    def application(self) -> web.Application:
        """Return the application with its routes."""
        app = web.Application(middlewares=[self._guard], client_max_size=MOST_BYTES)
        app.router.add_post("/v1/score", self._score)
        app.router.add_post("/v1/rewards", self._rewards)
        app.router.add_get("/health", self._health)
        app.router.add_get("/metrics", self._metrics)
        app.router.add_get("/openapi.json", self._openapi)
        return app

    @property
    def _guard(self) -> Any:
        @web.middleware
        async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
            began = time.monotonic()
            reply = await self._answer(request, handler)
            if request.path not in OPEN:
                self.counts.statuses[reply.status] += 1
                self.counts.observe(time.monotonic() - began)
            return reply

        return guarded

    async def _answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path not in OPEN and not self._may(request):
            return _problem(401, "A token is needed.", "Send `Authorization: Bearer TOKEN`.")
        refused = "" if request.path in OPEN or self._token else _why_refused(request)
        if refused:
            return _problem(403, refused, "Or start the server with --token-env NAME.")
        retried = Counter(self.grader.status.retry_reasons)
        try:
            return await handler(request)
        except web.HTTPException as error:
            return _problem(error.status, error.reason)
        except _TooMuchWorkError:
            reply = _problem(429, f"{self._most} responses are waiting.", "Send it again later.")
            reply.headers["Retry-After"] = RETRY_AFTER
            return reply
        except EngineError as error:
            self.counts.responses["failed"] += 1
            return _problem(502, error.message, error.hint)
        except TimeoutError:
            self.counts.responses["failed"] += 1
            return _problem(504, f"No answer within {self._timeout:g} s{self._why(retried)}.")
        except (RocketEvalError, ValueError) as error:
            return _problem(400, str(error))

    def _may(self, request: web.Request) -> bool:
        if self._token is None:
            return True
        given = request.headers.get("Authorization", "").removeprefix("Bearer ").strip()
        return secrets.compare_digest(given.encode(), self._token.encode())

    async def _score(self, request: web.Request) -> web.Response:
        given = _grading(await _json(request))
        async with self._room(1):
            graded = await asyncio.wait_for(self.grader.grade_async(given), self._timeout)
        if graded.score is None:
            self.counts.responses["unanswered"] += 1
            return _problem(502, "No item has an answer.")
        self.counts.responses["graded"] += 1
        return web.json_response(_as_json(graded))

    async def _rewards(self, request: web.Request) -> web.Response:
        body = await _json(request)
        queries, prompts = _texts(body, "query"), _texts(body, "prompts")
        labels = body.get("labels") or [None] * len(queries)
        if not isinstance(labels, list) or not len(queries) == len(prompts) == len(labels):
            raise ValueError("`query`, `prompts` and `labels` must be lists of the same length.")
        if len(queries) > self._most:
            # There will never be room for it, so the client must not send it again.
            takes = f"this server takes at most {self._most} (--most-waiting)"
            return _problem(413, f"The batch has {len(queries)} responses; {takes}.")
        async with self._room(len(queries)):
            given = to_gradings(queries, prompts, labels)
            batch = await reward_batch(self.grader, given, self._timeout)
        self.counts.responses["graded"] += len(queries) - batch.failed
        self.counts.responses["failed"] += batch.failed
        if batch.failed:
            # A failed grade has no reward; the trainer sends the batch again.
            message = f"{batch.failed} of {len(queries)} responses have no grade"
            return _problem(502, f"{message}: {batch.failures[0]}")
        return web.json_response(batch.as_reply())

    def _why(self, before: Counter[str]) -> str:
        """Return why requests to the judge were repeated since then, in words."""
        found = Counter(self.grader.status.retry_reasons) - before
        told = ", ".join(f"{reason} ({count} times)" for reason, count in found.most_common(3))
        return f"; requests to the judge failed: {told}" if told else ""

    def _room(self, responses: int) -> _Room:
        return _Room(self.counts, responses, self._most)

    async def _health(self, _: web.Request) -> web.Response:
        closing = self.counts.closing
        body = {"status": "closing" if closing else "ok", "version": __version__}
        return web.json_response(
            {**body, "waiting": self.counts.waiting}, status=503 if closing else 200
        )

    async def _metrics(self, _: web.Request) -> web.Response:
        return web.Response(text=self.counts.text(self.grader), content_type="text/plain")

    async def _openapi(self, _: web.Request) -> web.Response:
        return web.json_response(openapi())


def _why_refused(request: web.Request) -> str:
    """Return why a request without a token is refused; empty if a program here may have sent it."""
    for header in ("Origin", "Sec-Fetch-Site"):
        if header in request.headers:
            # Browsers set it, and programs do not.
            return f"Without a token, requests from web pages (with {header}) are refused."
    host = request.headers.get("Host", "")
    if is_loopback(without_port(host)):
        return ""
    return f"Without a token, the server answers at 127.0.0.1 or localhost, not at {host[:80]!r}."


class _TooMuchWorkError(Exception):
    """The server has as much work as it accepts."""


@dataclass
class _Room:
    """Counts responses while they are graded; raises if there is no room for them."""

    counts: ServerCounts
    responses: int
    most: int

    async def __aenter__(self) -> None:
        if self.counts.closing or self.counts.waiting + self.responses > self.most:
            raise _TooMuchWorkError
        self.counts.waiting += self.responses

    async def __aexit__(self, *_: object) -> None:
        self.counts.waiting -= self.responses


async def serve_rewards(
    server: RewardServer, host: str, port: int, started: Callable[[str], None], grace: float = 30.0
) -> None:
    """Serve until SIGTERM or SIGINT, then finish the responses in work within `grace` seconds."""
    runner = web.AppRunner(server.application(), shutdown_timeout=grace, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, host, port)
    await site.start()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    address = runner.addresses[0]
    started(f"http://{address[0]}:{address[1]}")
    await stop.wait()
    server.counts.closing = True
    await runner.cleanup()


@cache
def openapi() -> dict[str, Any]:
    """Return the OpenAPI description of the routes, for client generators."""
    text = (resources.files("rocketeval.rewards") / "openapi.yaml").read_text(encoding="utf-8")
    found: dict[str, Any] = yaml.safe_load(text)
    found["info"]["version"] = __version__
    return found


async def _json(request: web.Request) -> dict[str, Any]:
    body = await request.json()
    if not isinstance(body, dict):
        raise ValueError("The body must be a JSON object.")
    return body


def _texts(body: dict[str, Any], name: str) -> list[str]:
    found = body.get(name)
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise ValueError(f"`{name}` must be a list of texts.")
    return found


def _grading(body: dict[str, Any]) -> ResponseToGrade:
    """Return the response of a request; ValueError names the field that is wrong."""
    fields = list(openapi()["components"]["schemas"]["ScoreRequest"]["properties"])
    for name in body:
        if name not in fields:
            # Without this, a misspelled `reference` would give a reward of another question.
            meant = did_you_mean(name, fields)
            raise ValueError(f"There is no field {name!r}. {meant}".rstrip())
    for name in ("query", "response"):
        if not isinstance(body.get(name), str):
            raise ValueError(f"`{name}` must be a text.")
    for name in ("reference", "system"):
        if not isinstance(body.get(name), str | None):
            raise ValueError(f"`{name}` must be a text.")
    context = None if body.get("context") is None else _texts(body, "context")
    turns = body.get("history") or []
    try:
        history = tuple(Turn(turn["role"], turn["content"]) for turn in turns)
    except (TypeError, KeyError):
        history = None
    if history is None or not all(
        isinstance(text, str) for turn in history for text in (turn.role, turn.content)
    ):
        raise ValueError("`history` must be a list of objects with texts `role` and `content`.")
    return ResponseToGrade(
        body["query"],
        body["response"],
        checklist_for(body.get("checklist"), None),
        history,
        body.get("reference"),
        body.get("system"),
        context,
    )


def _as_json(graded: ResponseGrade) -> dict[str, object]:
    return {
        "score": graded.score,
        "low": graded.low,
        "high": graded.high,
        "judge": graded.judge.model if graded.judge else None,
        "reused": graded.reused,
        "items": [
            {
                "text": item.text,
                "weight": item.weight,
                "status": item.answer.status,
                "p_yes": item.answer.p_yes,
                "value": item.value,
            }
            for item in graded.items
        ],
    }


def _problem(status: int, message: str, hint: str = "") -> web.Response:
    body = {"error": message, **({"hint": hint} if hint else {})}
    return web.json_response(body, status=status)
