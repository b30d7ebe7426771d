"""The HTTP client: retries, patience, and error messages."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from fakes.openai_server import (
    FakeOpenAI,
    Fault,
    array,
    dropped,
    echoed_key,
    garbage,
    hang,
    status,
)
from rocketeval import workers
from rocketeval.engines import http as module
from rocketeval.engines import replies
from rocketeval.engines.http import HttpClient, environment_proxy
from rocketeval.engines.replies import UsageMeter, parse_retry_after
from rocketeval.errors import EngineError, EngineRefused, EngineUnavailable, RequestRejected
from support.timed_replies import Reply, TimedReplies
from support.virtual_time import run_in_virtual_time

KEY = "sk-very-secret-0123456789"
CHAT = {"messages": [{"role": "user", "content": "Well?"}], "logprobs": True, "top_logprobs": 5}

PASSING = {
    **{str(code): status(code) for code in (408, 409, 425, 429, 500, 502, 503, 504, 524, 529)},
    "dropped": dropped,
    "garbage": garbage,
}


@asynccontextmanager
async def connected(server: FakeOpenAI, **settings: Any) -> AsyncIterator[HttpClient]:
    """Yield a client of the fake server, closed afterwards."""
    defaults: dict[str, Any] = {"key": KEY, "concurrency": 4, "timeout": 5.0, "patience": 5.0}
    client = HttpClient(server.base_url, **{**defaults, **settings})
    try:
        yield client
    finally:
        await client.aclose()


async def ask(client: HttpClient) -> tuple[dict[str, Any], int]:
    """Send one chat request; return its answer and the number of requests sent."""
    meter = UsageMeter()
    reply = await client.post("/chat/completions", CHAT, meter)
    return reply, meter.usage.requests


async def failing(server: FakeOpenAI, **settings: Any) -> EngineError:
    """Return the error that one chat request ends with."""
    async with connected(server, **settings) as client:
        with pytest.raises(EngineError) as caught:
            await ask(client)
    return caught.value


@pytest.mark.usefixtures("fast_retries")
@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING.keys())
async def test_temporary_failures_are_retried(server: FakeOpenAI, fault: Fault) -> None:
    """Three failures of this kind, then an answer: four requests and an answer."""
    server.fail(fault, times=3)
    async with connected(server) as client:
        reply, requests = await ask(client)
        assert reply["choices"]
        assert requests == 4
        assert client.retries == 3
    assert len(server.chats) == 4
    assert len({str(seen.body) for seen in server.chats}) == 1


@pytest.mark.parametrize("code", [301, 308, 401, 402, 403, 404, 405, 407])
async def test_refusal_is_not_retried(server: FakeOpenAI, code: int) -> None:
    """One request is sent if none can succeed, and the hint says what to change."""
    server.fail(status(code, "go away", {"Location": "http://elsewhere.test/v1"}))
    error = await failing(server)
    assert isinstance(error, EngineRefused)
    assert f"HTTP {code}" in error.message
    assert error.hint
    assert len(server.chats) == 1


@pytest.mark.parametrize("code", [400, 413, 422, 501, 202])
async def test_rejected_request_is_not_retried(server: FakeOpenAI, code: int) -> None:
    """A bad request is sent once, and the error has the server's message."""
    server.fail(status(code, "the prompt is too long"))
    error = await failing(server)
    assert isinstance(error, RequestRejected)
    assert "the prompt is too long" in error.message
    assert error.hint
    assert len(server.chats) == 1


async def test_zero_patience_sends_one_request(server: FakeOpenAI) -> None:
    """A patience of zero means no retries."""
    async with connected(server, patience=0.0) as client:
        assert (await ask(client))[1] == 1
        server.fail(status(503))
        with pytest.raises(EngineUnavailable):
            await ask(client)
    assert len(server.chats) == 2


async def test_a_redirect_is_not_followed(server: FakeOpenAI) -> None:
    """Private texts never go to another URL; the error names the new location."""
    server.fail(status(307, headers={"Location": f"{server.base_url}/elsewhere"}))
    error = await failing(server)
    assert f"moved to {server.base_url}/elsewhere" in error.message
    assert [seen.path for seen in server.seen] == ["/v1/chat/completions"]


@pytest.mark.usefixtures("fast_retries")
@pytest.mark.parametrize("form", ["seconds", "date"])
async def test_retry_after_is_honored(
    server: FakeOpenAI, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Retry-After is honored as seconds and as a date."""
    now = datetime(2030, 1, 1, tzinfo=UTC)
    monkeypatch.setattr(replies, "datetime", Frozen(now))
    header = "0.15" if form == "seconds" else format_datetime(now + timedelta(seconds=1), True)
    asked = 0.15 if form == "seconds" else 1.0
    server.fail(status(429, headers={"Retry-After": header}))
    async with connected(server) as client:
        await ask(client)
    first, second = (seen.at for seen in server.chats)
    assert asked <= second - first < asked + 2


@pytest.mark.usefixtures("fast_retries")
async def test_retry_after_pauses_all_requests(server: FakeOpenAI) -> None:
    """One 429 with Retry-After delays the other requests too."""
    server.fail(status(429, headers={"Retry-After": "0.2"}))
    async with connected(server, concurrency=2) as client:
        pushed_back = asyncio.create_task(ask(client))
        while not client.retries:
            await asyncio.sleep(0.005)
        await asyncio.gather(pushed_back, *(ask(client) for _ in range(3)))
    first, *others = (seen.at for seen in server.chats)
    assert min(others) - first >= 0.2


def test_wait_longer_than_patience_fails_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the server asks for an hour, the request fails at once with that reason."""
    busy = Reply(429, headers={"Retry-After": "3600"})
    server = TimedReplies(lambda _: busy, {"concurrency": 4, "timeout": 5, "patience": 30})

    async def seconds() -> float:
        with pytest.raises(EngineUnavailable, match="asks to wait 3600 s"):
            await ask(server.client)
        return asyncio.get_running_loop().time()

    assert run_in_virtual_time(seconds(), monkeypatch, module, workers) < 1
    assert len(server.sent) == 1


def test_patience_runs_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries end with patience; the error has the last reason and the next step."""
    busy = Reply(503, body=b'{"error": {"message": "still loading"}}')
    server = TimedReplies(lambda _: busy, {"concurrency": 4, "timeout": 5, "patience": 60})
    with pytest.raises(EngineUnavailable) as caught:
        run_in_virtual_time(ask(server.client), monkeypatch, module, workers)
    error = caught.value
    assert 60 - 2 * module.LONGEST_WAIT < server.sent[-1] <= 60
    assert "HTTP 503" in error.message
    assert "still loading" in error.message
    assert f"{len(server.sent)} attempts" in error.message
    assert "again" in error.hint
    assert len(server.sent) > 3


def test_own_queue_costs_no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request that queued here for longer than patience is still retried."""
    settings = {"concurrency": 1, "timeout": 5, "patience": 2}
    server = TimedReplies(lambda number: Reply(500 if number == 6 else 200, seconds=1), settings)

    async def last() -> int:
        others = [asyncio.create_task(ask(server.client)) for _ in range(5)]
        await asyncio.sleep(0.5)
        requests = (await ask(server.client))[1]
        await asyncio.gather(*others)
        return requests

    assert run_in_virtual_time(last(), monkeypatch, module, workers) == 2
    assert server.sent[5] == 5.0


@pytest.mark.usefixtures("fast_retries")
async def test_a_hanging_server_times_out(server: FakeOpenAI) -> None:
    """An unanswered request ends after the timeout and is retried."""
    server.fail(hang)
    async with connected(server, timeout=0.1) as client:
        started = time.monotonic()
        _, requests = await ask(client)
    # On a busy machine a request may time out before the server sees it.
    assert requests >= len(server.chats) >= 2
    assert time.monotonic() - started >= 0.1


@pytest.mark.usefixtures("fast_retries")
async def test_timeouts_cost_patience(server: FakeOpenAI) -> None:
    """A server that always hangs fails after patience, not after a number of attempts."""
    server.fail(hang, times=1000)
    error = await failing(server, timeout=0.5, patience=1.25)
    assert isinstance(error, EngineUnavailable)
    assert 2 <= len(server.chats) <= 3


@pytest.mark.usefixtures("fast_retries")
async def test_closed_port_is_unavailable() -> None:
    """A closed port raises EngineUnavailable after patience."""
    server = FakeOpenAI(base_url="http://127.0.0.1:9/v1")
    error = await failing(server, patience=0.1)
    assert isinstance(error, EngineUnavailable)
    assert "127.0.0.1:9" in error.message


async def test_plain_http_behind_https_is_refused(server: FakeOpenAI) -> None:
    """A TLS failure is not retried, and the hint mentions https."""
    server.base_url = server.base_url.replace("http:", "https:")
    error = await failing(server)
    assert isinstance(error, EngineRefused)
    assert "https" in error.hint
    async with connected(server) as client:
        with pytest.raises(EngineRefused, match="secure"):
            await client.get("/models")


@pytest.mark.usefixtures("fast_retries")
@pytest.mark.parametrize("code", [401, 400, 503])
@pytest.mark.parametrize("padding", [0, 265, 270, 280])
async def test_errors_never_show_the_key(server: FakeOpenAI, code: int, padding: int) -> None:
    """If a server echoes the key anywhere in its answer, the error does not contain it."""
    server.fail(echoed_key(code, "x" * padding), times=1000)
    error = await failing(server, patience=0.01)
    assert server.chats[0].headers["Authorization"] == f"Bearer {KEY}"
    for shown in (str(error), repr(error), error.message, error.hint):
        assert not any(KEY[:length] in shown for length in range(4, len(KEY) + 1))


async def test_repr_hides_the_key(server: FakeOpenAI) -> None:
    """Printing a client shows no secret."""
    async with connected(server) as client:
        assert KEY not in repr(client)


@pytest.mark.parametrize(("key", "header"), [(f" {KEY}\r\n", f"Bearer {KEY}"), ("", None)])
async def test_key_is_stripped(server: FakeOpenAI, key: str, header: str | None) -> None:
    """Whitespace around a key is removed, and an empty key sends no header."""
    async with connected(server, key=key) as client:
        await ask(client)
    assert server.chats[0].headers.get("Authorization") == header


async def test_concurrency_is_bounded(server: FakeOpenAI) -> None:
    """The server sees at most, and up to, `concurrency` requests at once."""
    server.latency = 0.02
    async with connected(server, concurrency=3) as client:
        await asyncio.gather(*(ask(client) for _ in range(30)))
    assert server.most_in_flight == 3


@pytest.mark.usefixtures("fast_retries")
async def test_push_back_lowers_the_concurrency(server: FakeOpenAI) -> None:
    """After a 429 fewer requests are in flight, and all are answered in the end."""
    server.latency = 0.05
    async with connected(server, concurrency=8) as client:
        await asyncio.gather(*(ask(client) for _ in range(24)))
        assert server.most_in_flight == 8
        assert client.at_once is None
        server.fail(status(429))
        await ask(client)
        assert client.at_once == 4
        server.most_in_flight = 0
        await asyncio.gather(*(ask(client) for _ in range(4)))
        assert server.most_in_flight == 4
        await asyncio.gather(*(ask(client) for _ in range(60)))
        assert 4 < server.most_in_flight <= 8


async def test_requests_in_flight_can_be_dropped(server: FakeOpenAI) -> None:
    """All waiting requests end, and nothing is retried afterwards."""
    server.fail(hang, times=2)
    async with connected(server, concurrency=2) as client:
        asked = [asyncio.create_task(ask(client)) for _ in range(4)]
        while len(server.chats) < 2:
            await asyncio.sleep(0.005)
        client.drop_after(0.01)
        ended = await asyncio.wait_for(asyncio.gather(*asked, return_exceptions=True), timeout=60)
        assert [type(error) for error in ended] == [EngineUnavailable] * 4
        server.fail(status(503), times=2)
        with pytest.raises(EngineUnavailable):
            await ask(client)
    assert len(server.chats) <= 3


async def test_cancelled_request_frees_its_slot(server: FakeOpenAI) -> None:
    """The client stays usable after a request in flight is cancelled."""
    server.fail(hang)
    async with connected(server, concurrency=1) as client:
        hanging = asyncio.create_task(ask(client))
        while not server.chats:
            await asyncio.sleep(0.005)
        hanging.cancel()
        with pytest.raises(asyncio.CancelledError):
            await hanging
        reply, _ = await asyncio.wait_for(ask(client), timeout=60)
    assert reply["choices"]


async def test_client_can_be_closed_twice_and_reused(server: FakeOpenAI) -> None:
    """Closing is idempotent, and a closed client opens again on use."""
    async with connected(server) as client:
        await client.aclose()
        await ask(client)
        await client.aclose()
        await client.aclose()
        await ask(client)
    assert len(server.chats) == 2


@pytest.mark.usefixtures("fast_retries")
@pytest.mark.parametrize("code", [404, 400, 301, 501])
async def test_get_of_missing_path_is_none(server: FakeOpenAI, code: int) -> None:
    """A server without this path is not an error."""
    server.always("/v1/models", status(code))
    async with connected(server) as client:
        assert await client.get("/models") is None
    assert len(server.seen) == 1


@pytest.mark.usefixtures("fast_retries")
async def test_get_of_non_json_is_none(server: FakeOpenAI) -> None:
    """A web page, or a list instead of an object, counts as missing."""
    async with connected(server) as client:
        for fault in (garbage, array):
            server.always("/v1/models", fault)
            assert await client.get("/models") is None


@pytest.mark.usefixtures("fast_retries")
@pytest.mark.parametrize("code", [401, 403])
async def test_get_with_a_wrong_key(server: FakeOpenAI, code: int) -> None:
    """A rejected key is an error before grading, unless the answer is optional."""
    server.always("/v1/models", status(code))
    async with connected(server) as client:
        assert await client.get("/models", optional=True) is None
        with pytest.raises(EngineRefused, match=str(code)):
            await client.get("/models")


@pytest.mark.usefixtures("fast_retries")
async def test_get_retries_temporary_failures(server: FakeOpenAI) -> None:
    """One dropped connection or one 503 does not hide the server's version."""
    faults = iter([dropped, status(503)])

    async def hiccup(request: Any) -> Any:
        fault = next(faults, None)
        return await (fault or status(200))(request)

    server.always("/v1/models", hiccup)
    async with connected(server) as client:
        assert await client.get("/models") is not None


@pytest.mark.usefixtures("fast_retries")
async def test_first_contact_waits_while_the_model_loads(
    server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HTTP 503 is no failed attempt, however often it comes, until patience runs out."""
    monkeypatch.setattr(module, "LOADING_POLL", 0.005)
    answers = iter([503] * (5 * module.LOOKS))

    async def loading(request: Any) -> Any:
        return await status(next(answers, 200), "loading model")(request)

    server.always("/v1/models", loading)
    async with connected(server, patience=60) as client:
        assert await client.get("/models") is not None
    assert next(answers, None) is None
    server.always("/v1/models", status(503, "loading model"))
    async with connected(server, patience=0.1) as client:
        with pytest.raises(EngineUnavailable, match="loading model"):
            await client.get("/models")


@pytest.mark.usefixtures("fast_retries")
async def test_get_does_not_wait_behind_requests(
    server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A GET has a connection of its own while all others are taken."""
    monkeypatch.setattr(module, "LOOK_SECONDS", 5.0)
    server.fail(hang)
    async with connected(server, concurrency=1, timeout=600.0) as client:
        hanging = asyncio.create_task(ask(client))
        while not server.chats:
            await asyncio.sleep(0.005)
        assert await client.get("/models") is not None
        hanging.cancel()
        with pytest.raises(asyncio.CancelledError):
            await hanging


async def test_get_without_answer_is_unavailable(server: FakeOpenAI) -> None:
    """An unreachable server is not mistaken for one without this endpoint."""
    server.always("/v1/models", dropped)
    server.always("/v1/loading", status(503, "loading"))
    async with connected(server) as client:
        for optional in (False, True):
            with pytest.raises(EngineUnavailable, match="Cannot reach"):
                await client.get("/models", optional=optional)
        with pytest.raises(EngineUnavailable, match="loading"):
            await client.get("/loading")
        assert await client.get("/loading", optional=True) is None


def test_backoff_is_jittered_and_bounded() -> None:
    """Waits double from 0.5 s to 20 s, each between half its bound and the bound."""
    random.seed(3)
    for attempt in (0, 1, 2, 3, 5, 8, 5000):
        bound = min(module.LONGEST_WAIT, module.FIRST_WAIT * 2.0 ** min(attempt, 16))
        waits = {module._wait(attempt, None) for _ in range(200)}
        assert bound / 2 <= min(waits) < max(waits) <= bound
        assert max(waits) - min(waits) > bound / 4


def test_retry_after_has_jitter() -> None:
    """Clients with the same Retry-After do not return at the same instant, nor earlier."""
    waits = {module._wait(0, 3.0) for _ in range(200)}
    assert 3.0 <= min(waits) < max(waits) <= 3.0 + module.FIRST_WAIT


class Frozen:
    """A fixed clock."""

    def __init__(self, at: datetime) -> None:
        self._at = at

    def now(self, _: Any) -> datetime:
        return self._at


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("", None),
        ("soon", None),
        ("7", 7.0),
        ("1.5", 1.5),
        ("-3", 0.0),
        ("nan", None),
        ("Tue, 01 Jan 2030 00:00:09 GMT", 9.0),
        ("Tue, 01 Jan 2030 00:00:09 -0000", 9.0),
        ("Tue, 01 Jan 2030 00:00:09", 9.0),
        ("Tue, 01 Jan 2030 01:00:09 +0100", 9.0),
        ("Mon, 31 Dec 2029 23:59:00 GMT", 0.0),
        ("Tue, 99 Jan 2030 00:00:09 GMT", None),
    ],
)
def test_retry_after_forms(
    header: str | None, seconds: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seconds and dates are parsed, a past date means now, and nonsense is None."""
    monkeypatch.setattr(replies, "datetime", Frozen(datetime(2030, 1, 1, tzinfo=UTC)))
    assert parse_retry_after(header) == seconds


@pytest.mark.parametrize(
    ("url", "proxy"),
    [
        ("http://judge.example/v1", "http://proxy.example:3128"),
        ("https://judge.example/v1", "http://secure.example:3128"),
        ("http://inside.example/v1", None),
        ("http://127.0.0.1:8000/v1", None),
        ("http://localhost:8000/v1", None),
        ("http://[::1]:8000/v1", None),
    ],
)
def test_proxy_comes_from_the_environment(
    url: str, proxy: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Proxy variables are honored, but never for a server on this machine."""
    monkeypatch.setenv("http_proxy", "http://proxy.example:3128")
    monkeypatch.setenv("https_proxy", "http://secure.example:3128")
    monkeypatch.setenv("no_proxy", "inside.example")
    assert environment_proxy(url) == proxy


async def test_requests_go_through_the_proxy(
    server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request to a remote host arrives at the proxy."""
    monkeypatch.setenv("http_proxy", server.base_url.removesuffix("/v1"))
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    far = FakeOpenAI(base_url="http://judge.invalid/v1")
    async with connected(far) as client:
        await ask(client)
    assert server.chats[0].headers["Host"] == "judge.invalid"
