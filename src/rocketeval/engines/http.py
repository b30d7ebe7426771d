"""JSON over HTTP with adaptive concurrency, retries with jitter, and usage counting."""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from ipaddress import ip_address
from typing import Any, TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import orjson

from rocketeval.engines.replies import (
    SHOWN_ERROR,
    Redactor,
    ReplyTooLarge,
    ReplyWatch,
    RetryableError,
    UsageMeter,
    code_of,
    error_in,
    json_object,
    json_reply,
    mapping_or_empty,
    name_of,
    parse_retry_after,
    read_bounded,
    refuse_control_characters,
)
from rocketeval.errors import EngineRefused, EngineUnavailable, RequestRejected, UnusableReply
from rocketeval.workers import AdaptiveLimiter, Interruption, Overdue

T = TypeVar("T")
BUSY = frozenset({429, 503, 529})
"""Status codes with which a server asks for fewer requests."""
RETRIED = frozenset({408, 409, 425, 429, *range(500, 600)}) - {501, 505}
"""Status codes after which the same request may succeed later."""
REFUSED = frozenset({*range(300, 400), 401, 402, 403, 404, 405, 407})
"""Status codes after which no request will succeed until somebody changes something."""
FIRST_WAIT = 0.5
LONGEST_WAIT = 20.0
LOOKS = 3
"""Number of attempts of a GET."""
LOOKS_AT_ONCE = 4
"""Connections for GETs."""
LOOK_SECONDS = 10.0
SLOW_START = 4
"""Initial concurrency; every quick answer adds one, up to the configured concurrency."""
MOST_FORGIVEN = 10
"""A request that a busy server turns away is given up after this many times the patience."""
MOST_UNUSABLE = 6
"""Attempts of a request whose replies have no usable answer; each of them may be billed."""
MOST_TRIED = 2
"""The same while a request form is tried."""
LOADING = 503
"""Status code of a server that is still loading its model."""
LOADING_POLL = 2.0
"""Longest time in seconds between two looks at a server that is loading."""
TIMEOUT = "timeout"
"""Retry reason: no answer arrived in time."""
_HINTS = {
    402: "The account of this key has no credit left: add credit, or use another key.",
    403: "The server accepts the key but does not allow this request; its message says why. Ask "
    "the owner of the key for that permission, or use another key or `model`.",
}


class HttpClient:
    """A client for one server, with one connection pool.

    A request is overdue after `timeout` seconds. An overdue request is not resent at once, because
    most overdue requests wait in the server's own queue, and a second copy would only make that
    queue longer. Instead the client lowers its concurrency and keeps waiting while the server
    answers other requests. It resends the request, with a longer timeout, once the server has
    answered nothing for `timeout` seconds, or has answered far more requests than were ahead of it.
    """

    def __init__(
        self,
        base_url: str,
        *,
        key: str | None,
        concurrency: int,
        timeout: float,
        patience: float,
        key_variable: str = "OPENAI_API_KEY",
        secrets: Iterable[str] = (),
    ) -> None:
        """Set up the client; `key_variable` names the key's environment variable in messages.

        Neither the key nor any of the `secrets` is ever shown.
        """
        self.base_url = base_url
        self.retry_reasons: Counter[str] = Counter()
        """Requests resent so far, by reason."""
        self.most_unusable = MOST_UNUSABLE
        self._key_variable = key_variable
        self._key = (key or "").strip()
        refuse_control_characters(self._key, key_variable)
        self.redact = Redactor(self._key, *secrets)
        """Hides the key in a server's text."""
        self.watch = ReplyWatch(self.safe)
        """The model and system fingerprint in the replies."""
        self._timeout = timeout
        self._patience = patience
        self._concurrency = concurrency
        self._limiter = AdaptiveLimiter(concurrency, start=SLOW_START)
        self._proxy = environment_proxy(base_url)
        self._session: aiohttp.ClientSession | None = None
        self._look_session: aiohttp.ClientSession | None = None
        """For GETs, which must not wait for a connection behind requests in flight."""
        self._drop_at: float | None = None
        self._dropping: asyncio.TimerHandle | None = None
        self._waits: set[Interruption] = set()

    @property
    def retries(self) -> int:
        """Number of requests resent so far."""
        return self.retry_reasons.total()

    @property
    def at_once(self) -> int | None:
        """Current concurrency limit after push-back; None if there was no push-back."""
        return int(self._limiter.allowed) if self._limiter.shrunk else None

    def drop_after(self, seconds: float) -> None:
        """Stop retrying, and end every request that has no answer within `seconds`."""
        loop = asyncio.get_running_loop()
        self._drop_at = loop.time() + seconds
        self._dropping = loop.call_at(self._drop_at, self._drop)

    def _drop(self) -> None:
        for wait in self._waits:
            wait.end()

    async def post(
        self,
        path: str,
        body: Mapping[str, Any],
        meter: UsageMeter,
        *,
        headers: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Return the server's JSON answer, like `ask`, without reading an answer from it."""
        return await self.ask(path, body, meter, dict, headers=headers)

    async def ask(
        self,
        path: str,
        body: Mapping[str, Any],
        meter: UsageMeter,
        read: Callable[[dict[str, Any]], T],
        *,
        headers: Mapping[str, str] | None = None,
    ) -> T:
        """Return what `read` finds in the server's JSON answer.

        `path` is relative to the base URL, or a full URL on the same server. Temporary failures are
        retried until patience runs out. `read` raises UnusableReply if the reply has no usable
        answer; then the request is repeated a few times, because such replies are usually faults of
        the moment.

        Only time spent on the server counts against patience: neither time in our own queue, nor
        time during which a busy or slow server answers other requests. Raises EngineUnavailable,
        EngineRefused, RequestRejected or UnusableReply.
        """
        url = self._url(path)
        payload = orjson.dumps(body)

        async def send(seconds: float) -> T | RetryableError:
            meter.sent()
            reply = await self._once(url, payload, headers, seconds)
            if isinstance(reply, RetryableError):
                return reply
            self.watch.check(reply)
            try:
                return read(reply)
            except UnusableReply as error:
                return RetryableError(error.message, kind=error.kind, unusable=True)

        return await self._patiently(send)

    @contextmanager
    def trying(self) -> Iterator[None]:
        """Repeat unusable replies only once, while it is tried whether a request form works."""
        before, self.most_unusable = self.most_unusable, MOST_TRIED
        try:
            yield
        finally:
            self.most_unusable = before

    async def _patiently(self, send: Callable[[float], Awaitable[T | RetryableError]]) -> T:
        """Return the result of `send`, repeating it after temporary failures until patience ends.

        `send` gets the number of seconds to wait for a silent server.
        """
        try:
            with Interruption() as wait:
                self._waits.add(wait)
                if self._drop_at is not None and self._drop_at <= asyncio.get_running_loop().time():
                    wait.end()
                try:
                    return await self._retrying(send)
                finally:
                    self._waits.discard(wait)
                    if not self._waits:
                        self._limiter.heard()
        except TimeoutError:
            raise EngineUnavailable("the run was stopped before an answer arrived.") from None

    async def _retrying(self, send: Callable[[float], Awaitable[T | RetryableError]]) -> T:
        spent = total = 0.0
        attempt = timeouts = unusable = 0
        while True:
            longest = min(self._timeout * 2.0**timeouts, max(self._timeout, self._patience - spent))
            async with self._limiter:
                if self._limiter.silence > max(self._patience, self._timeout):
                    # Earlier requests have used up the patience for all.
                    raise self._lost("no request answered", max(1, attempt), self._limiter.silence)
                started = time.monotonic()
                outcome = await send(longest)
                now = time.monotonic()
            if not isinstance(outcome, RetryableError):
                self._limiter.took(now - started)
                if now - started <= self._timeout / 2:
                    self._limiter.succeeded()
                return outcome
            wait = _wait(attempt, outcome.retry_after)
            if outcome.busy and outcome.retry_after is None and self._limiter.accepting:
                # The server still answers others: wait about as long as an answer takes.
                wait = min(wait, random.uniform(0.5, 1.5) * self._limiter.usual_seconds)
            attempt += 1
            timeouts += outcome.kind == TIMEOUT
            unusable += outcome.unusable
            total += now - started + wait
            spent += now - started
            if outcome.alive and total <= MOST_FORGIVEN * self._patience:
                spent = min(spent, now - self._limiter.answered_at)
            ends = spent + wait > self._patience or self._drop_at is not None
            if unusable >= self.most_unusable or (outcome.unusable and ends):
                raise _still_unusable(outcome, unusable)
            if ends:
                raise self._lost(outcome.reason, attempt, total - wait, outcome.kind)
            if outcome.busy:
                # Only a pause that the server asks for is one for everybody.
                self._limiter.rejected()
                self._limiter.pushed_back(wait if outcome.retry_after else 0.0, started)
            self.retry_reasons[outcome.kind] += 1
            spent += wait
            await asyncio.sleep(wait)

    async def get(self, path: str, *, optional: bool = False) -> dict[str, Any] | None:
        """Return the JSON at `path` (or at a full URL); None if the server has none.

        An unreachable server is an error even if the answer is `optional`: it must not be mistaken
        for a server without this endpoint.
        """
        url = self._url(path)
        reason, answered, silent = "", False, False
        attempt, loading_until = 0, time.monotonic() + self._patience
        while attempt < LOOKS:
            if attempt:
                await asyncio.sleep(_wait(attempt - 1, None))
            attempt += 1
            try:
                status, body = await self._look(url)
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                reason, answered = name_of(error), False
                silent = isinstance(error, TimeoutError)
                continue
            if status in RETRIED:
                reason, answered = f"HTTP {status}: {self._shown(body)}", True
                if status == LOADING and not optional and time.monotonic() < loading_until:
                    # The server is there and loads its model: this is no failed attempt.
                    attempt = min(attempt, 1)
                    await asyncio.sleep(min(LOADING_POLL, max(0.0, self._patience / 4)))
                continue
            if status in (401, 403) and not optional:
                raise self._refused(status, self._shown(body))
            return json_object(body) if status == 200 else None
        if answered and optional:
            return None
        if silent and not answered:
            raise EngineUnavailable(
                f"{self.base_url} gave no answer: {LOOKS} attempts of {LOOK_SECONDS:g} s each.",
                hint="The server may be busy or still loading its model: wait, then run the same "
                "command again. Otherwise check for a firewall, and check `base_url`.",
            )
        raise EngineUnavailable(
            f"Cannot reach {self.base_url}: {reason}.",
            hint="Start the server, or set `base_url` (or $OPENAI_BASE_URL) to its address.",
        )

    async def aclose(self) -> None:
        """Close the connection pool."""
        self._drop_at = None
        if self._dropping is not None:
            self._dropping.cancel()
            self._dropping = None
        sessions = [self._session, self._look_session]
        self._session = self._look_session = None
        for session in sessions:
            if session is not None:
                await session.close()

    def _url(self, path: str) -> str:
        return path if path.startswith("http") else self.base_url + path

    async def _once(
        self,
        url: str,
        payload: bytes | aiohttp.MultipartWriter,
        headers: Mapping[str, str] | None,
        seconds: float,
        timeout: aiohttp.ClientTimeout | None = None,
    ) -> dict[str, Any] | RetryableError:
        """Send one request; wait `seconds` for a silent server, or follow `timeout`."""
        session = self._open()
        overdue = Overdue(self._limiter, math.inf if timeout else seconds)
        try:
            with overdue:
                async with session.post(
                    url,
                    data=payload,
                    headers=headers,
                    timeout=timeout or session.timeout,
                    proxy=self._proxy,
                    allow_redirects=False,
                ) as reply:
                    return self._understood(reply, await read_bounded(reply))
        except ReplyTooLarge as error:
            raise RequestRejected(f"{name_of(error)}.") from None
        except aiohttp.ClientSSLError as error:
            raise self._untrusted(error) from None
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            if overdue.ended:
                reason = f"no answer within {overdue.seconds:.0f} s"
                return RetryableError(reason, kind=TIMEOUT, alive=not overdue.overtaken)
            unsent = isinstance(
                error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError
            )
            kind = "no connection" if unsent else "connection lost"
            return RetryableError(name_of(error), undone=unsent, kind=kind)

    def _understood(
        self, reply: aiohttp.ClientResponse, body: bytes
    ) -> dict[str, Any] | RetryableError:
        found = json_reply(body) if reply.status == 200 else None
        failed = None if found is None else error_in(found)
        status = reply.status if failed is None else code_of(failed) or 500
        self._limiter.heard(answer=status not in RETRIED)
        if reply.status == 200 and failed is None:
            strange = RetryableError("the answer was not JSON", kind="not JSON")
            return strange if found is None else found
        shown = self._shown(body)
        if status in RETRIED:
            retry_after = parse_retry_after(reply.headers.get("Retry-After"))
            asked = "" if retry_after is None else f" (the server asks to wait {retry_after:.0f} s)"
            busy = status in BUSY
            where = f"HTTP {reply.status}" if failed is None else "HTTP 200 with an error"
            kind = f"HTTP {reply.status}" if failed is None else "error in the answer"
            message = f"{where}: {shown}{asked}"
            return RetryableError(message, retry_after, busy, status == 429, kind, alive=busy)
        if status in REFUSED:
            moved = reply.headers.get("Location")
            raise self._refused(status, f"moved to {self.safe(moved)}" if moved else shown)
        raise RequestRejected(
            f"HTTP {status}: {shown}",
            hint="The prompt is too long for the model, or the server does not know a setting.",
        )

    async def _look(self, url: str) -> tuple[int, bytes]:
        timeout = aiohttp.ClientTimeout(total=LOOK_SECONDS)
        try:
            if self._look_session is None:
                self._look_session = self._new_session(LOOKS_AT_ONCE)
            async with self._look_session.get(
                url, timeout=timeout, proxy=self._proxy, allow_redirects=False
            ) as reply:
                return reply.status, await read_bounded(reply)
        except aiohttp.ClientSSLError as error:
            raise self._untrusted(error) from None

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = self._new_session(self._concurrency)
        return self._session

    def _new_session(self, connections: int) -> aiohttp.ClientSession:
        headers = {"Content-Type": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=connections, keepalive_timeout=30),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=10),
            headers=headers,
        )

    def _lost(
        self, reason: str, attempts: int, spent: float, kind: str = TIMEOUT
    ) -> EngineUnavailable:
        times = "1 attempt" if attempts == 1 else f"{attempts} attempts"
        slower = ", or slower than `timeout`" if kind == TIMEOUT else ""
        return EngineUnavailable(
            f"{self.base_url} gave no answer in {times} over {spent:.1f} s: {reason}.",
            hint=f"Is the server up{slower}? Finished judgments are safe: run the same command "
            "again to continue. `patience` sets how long a request is retried.",
        )

    def _refused(self, status: int, shown: str) -> EngineRefused:
        hint = self._key_hint() if status == 401 else _HINTS.get(status, self._path_hint())
        return EngineRefused(f"{self.base_url} returned HTTP {status}: {shown}", hint=hint)

    def _key_hint(self) -> str:
        if not self._key:
            return (
                f"The environment variable {self._key_variable} is not set. Set it to the API key, "
                "or name the variable that holds the key in `api_key_env`."
            )
        return (
            f"The environment variable {self._key_variable} is set, but this server rejects the "
            "key in it. Check that the key is complete, not expired, and meant for this "
            "`base_url`."
        )

    def _path_hint(self) -> str:
        if not self.base_url.endswith("/v1"):
            return f"`base_url` does not end in /v1: try {self.base_url}/v1. Then check `model`."
        return "Check `base_url` and `model`."

    def _untrusted(self, error: aiohttp.ClientSSLError) -> EngineRefused:
        return EngineRefused(
            f"No secure connection to {self.base_url}: {name_of(error)}.",
            hint=f"If the server has no https, use {self.base_url.replace('https:', 'http:')} as "
            "`base_url`; for a private certificate authority set $SSL_CERT_FILE.",
        )

    def _shown(self, body: bytes) -> str:
        """Return the message in an error's body, or the whole body if there is none."""
        reply = json_reply(body) or {}
        error = reply.get("error", reply)
        message = error if isinstance(error, str) else mapping_or_empty(error).get("message")
        return self.safe(message if isinstance(message, str) else body.decode("utf-8", "replace"))

    def safe(self, text: str) -> str:
        """Return a server's text on one line, shortened and without our key."""
        text = " ".join(text[: 20 * SHOWN_ERROR].split())
        # Redact before cutting, so that no part of a key survives at the cut.
        return self.redact(text[: 4 * SHOWN_ERROR])[:SHOWN_ERROR]


def environment_proxy(url: str) -> str | None:
    """Return the environment's proxy for `url`; None for this machine."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if _is_this_machine(host) or proxy_bypass(host):
        return None
    proxy = getproxies().get(parts.scheme)
    return proxy if proxy and proxy.startswith("http") else None


def _is_this_machine(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _wait(attempt: int, retry_after: float | None) -> float:
    if retry_after is not None:
        return retry_after + random.uniform(0, FIRST_WAIT)
    longest = min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(attempt, 16))
    return random.uniform(longest / 2, longest)


def _still_unusable(outcome: RetryableError, times: int) -> UnusableReply:
    error = UnusableReply(
        f"{outcome.reason.rstrip('.')} ({times} times).",
        hint="Run the same command again to ask once more; `rocketeval doctor` checks the judge.",
    )
    error.kind = outcome.kind
    return error
