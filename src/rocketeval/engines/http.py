"""JSON over HTTP with adaptive concurrency, retries with jitter, and usage counting."""

from __future__ import annotations

import asyncio
import math
import random
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from typing import Any, TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import orjson

from rocketeval.errors import EngineRefused, EngineUnavailable, RequestRejected
from rocketeval.records import Usage
from rocketeval.workers import AdaptiveLimiter, Overdue


def mapping_or_empty(value: Any) -> Mapping[str, Any]:
    """Return `value` if it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def count_or_zero(value: Any) -> int:
    """Return `value` if it is an integer, else zero."""
    return value if isinstance(value, int) else 0


class UsageMeter:
    """Counter of every request sent, including failed ones, and of the tokens used."""

    def __init__(self) -> None:
        self._counted = Usage()
        self._started = 0.0
        self._ended = 0.0

    def sent(self) -> None:
        """Count one request that is sent now."""
        if not self._counted.requests:
            self._started = time.monotonic()
        self._counted += Usage(requests=1)

    def answered(self, reply: Mapping[str, Any], *, cached_reported: bool = True) -> None:
        """Count the tokens that a reply reports.

        `cached_reported` is False if the server reports cached tokens only for some prompts.
        """
        self._ended = time.monotonic()
        usage = mapping_or_empty(reply.get("usage"))
        details = mapping_or_empty(usage.get("prompt_tokens_details")) if cached_reported else {}
        self._counted += Usage(
            prompt_tokens=count_or_zero(usage.get("prompt_tokens")),
            cached_tokens=count_or_zero(details.get("cached_tokens")),
            completion_tokens=count_or_zero(usage.get("completion_tokens")),
        )

    @property
    def usage(self) -> Usage:
        """Usage so far."""
        return replace(self._counted, seconds=max(0.0, self._ended - self._started))


T = TypeVar("T")
BUSY = frozenset({429, 503, 529})
"""Status codes with which a server asks for fewer requests."""
RETRIED = frozenset({408, 409, 425, 429, *range(500, 600)}) - {501, 505}
"""Status codes after which the same request may succeed later."""
REFUSED = frozenset({*range(300, 400), 401, 402, 403, 404, 405, 407})
"""Status codes after which no request will succeed until somebody changes something."""
FIRST_WAIT = 0.5
LONGEST_WAIT = 20.0
_USER_INFO = re.compile(r"//[^/@\s]+@")
LOOKS = 3
"""Number of attempts of a GET."""
LOOK_SECONDS = 10.0
SHOWN_ERROR = 300
SLOW_START = 4
"""Initial concurrency; every quick answer adds one, up to the configured concurrency."""
MOST_FORGIVEN = 10
"""A request that a busy server turns away is given up after this many times the patience."""
TIMEOUT = "timeout"
"""Retry reason: no answer arrived in time."""
ARRAY = "array"
"""Key under which a reply that is a JSON array keeps its rows."""
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
    ) -> None:
        """Set up the client; `key_variable` names the key's environment variable in messages."""
        self.base_url = base_url
        self.retry_reasons: Counter[str] = Counter()
        """Requests resent so far, by reason."""
        self._key_variable = key_variable
        self._key = (key or "").strip()
        self._timeout = timeout
        self._patience = patience
        self._concurrency = concurrency
        self._limiter = AdaptiveLimiter(concurrency, start=SLOW_START)
        self._proxy = environment_proxy(base_url)
        self._session: aiohttp.ClientSession | None = None
        self._drop_at: float | None = None
        self._waits: set[asyncio.Timeout] = set()

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
        self._drop_at = asyncio.get_running_loop().time() + seconds
        for wait in self._waits:
            wait.reschedule(self._drop_at)

    async def post(
        self,
        path: str,
        body: Mapping[str, Any],
        meter: UsageMeter,
        *,
        headers: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Return the server's JSON answer; retry temporary failures until patience runs out.

        `path` is relative to the base URL, or a full URL on the same server.

        Only time spent on the server counts against patience: neither time in our own queue, nor
        time during which a busy or slow server answers other requests. Raises EngineUnavailable,
        EngineRefused or RequestRejected.
        """
        url = self._url(path)
        payload = orjson.dumps(body)

        async def send(seconds: float) -> dict[str, Any] | RetryableError:
            meter.sent()
            return await self._once(url, payload, headers, seconds)

        return await self._patiently(send)

    async def _patiently(self, send: Callable[[float], Awaitable[T | RetryableError]]) -> T:
        """Return the result of `send`, repeating it after temporary failures until patience ends.

        `send` gets the number of seconds to wait for a silent server.
        """
        try:
            async with asyncio.timeout_at(self._drop_at) as wait:
                self._waits.add(wait)
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
        attempt = timeouts = 0
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
                if now - started <= self._timeout / 2:
                    self._limiter.succeeded()
                return outcome
            wait = _wait(attempt, outcome.retry_after)
            attempt += 1
            timeouts += outcome.kind == TIMEOUT
            total += now - started + wait
            spent += now - started
            if outcome.alive and total <= MOST_FORGIVEN * self._patience:
                spent = min(spent, now - self._limiter.answered_at)
            if spent + wait > self._patience or self._drop_at is not None:
                raise self._lost(outcome.reason, attempt, total - wait, outcome.kind)
            if outcome.busy:
                self._limiter.pushed_back(wait, started)
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
        for attempt in range(LOOKS):
            if attempt:
                await asyncio.sleep(_wait(attempt - 1, None))
            try:
                status, body = await self._look(url)
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                reason, answered = name_of(error), False
                silent = isinstance(error, TimeoutError)
                continue
            if status in RETRIED:
                reason, answered = f"HTTP {status}: {self._shown(body)}", True
                continue
            if status in (401, 403) and not optional:
                raise self._refused(status, self._shown(body))
            return _json_object(body) if status == 200 else None
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
        if self._session is not None:
            session, self._session = self._session, None
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
            async with (
                overdue,
                session.post(
                    url,
                    data=payload,
                    headers=headers,
                    timeout=timeout or session.timeout,
                    proxy=self._proxy,
                    allow_redirects=False,
                ) as reply,
            ):
                return self._understood(reply, await reply.read())
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
        self._limiter.heard(answer=reply.status not in RETRIED)
        if reply.status == 200:
            strange = RetryableError("the answer was not JSON", kind="not JSON")
            return strange if (found := _json_reply(body)) is None else found
        shown = self._shown(body)
        if reply.status in RETRIED:
            retry_after = parse_retry_after(reply.headers.get("Retry-After"))
            asked = "" if retry_after is None else f" (the server asks to wait {retry_after:.0f} s)"
            busy = reply.status in BUSY
            message = f"HTTP {reply.status}: {shown}{asked}"
            kind, undone = f"HTTP {reply.status}", reply.status == 429
            return RetryableError(message, retry_after, busy, undone, kind, alive=busy)
        if reply.status in REFUSED:
            moved = reply.headers.get("Location")
            raise self._refused(reply.status, f"moved to {moved}" if moved else shown)
        raise RequestRejected(
            f"HTTP {reply.status}: {shown}",
            hint="The prompt is too long for the model, or the server does not know a setting.",
        )

    async def _look(self, url: str) -> tuple[int, bytes]:
        timeout = aiohttp.ClientTimeout(total=LOOK_SECONDS)
        try:
            async with self._open().get(
                url, timeout=timeout, proxy=self._proxy, allow_redirects=False
            ) as reply:
                return reply.status, await reply.read()
        except aiohttp.ClientSSLError as error:
            raise self._untrusted(error) from None

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            headers = {"Content-Type": "application/json"}
            if self._key:
                headers["Authorization"] = f"Bearer {self._key}"
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=self._concurrency, keepalive_timeout=30),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=10),
                headers=headers,
            )
        return self._session

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
        reply = _json_reply(body) or {}
        error = reply.get("error", reply)
        message = error if isinstance(error, str) else mapping_or_empty(error).get("message")
        return self.safe(message if isinstance(message, str) else body.decode("utf-8", "replace"))

    def safe(self, text: str) -> str:
        """Return a server's text on one line, shortened and without our key."""
        text = " ".join(text.split())
        # Redact before cutting, so that no part of a key survives at the cut.
        return (text.replace(self._key, "***") if self._key else text)[:SHOWN_ERROR]


@dataclass(frozen=True, slots=True)
class RetryableError:
    """A request that failed and may succeed later."""

    reason: str
    retry_after: float | None = None
    """Seconds the server asks us to wait."""
    busy: bool = False
    """Whether the server asks for fewer requests."""
    undone: bool = False
    """Whether the server certainly did not act on the request; False if unknown."""
    kind: str = "other"
    """The reason in a word or two; retries are counted by it."""
    alive: bool = False
    """Whether the request may only have waited behind others, whose answers renew its patience."""


def environment_proxy(url: str) -> str | None:
    """Return the environment's proxy for `url`; None for this machine."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if _is_this_machine(host) or proxy_bypass(host):
        return None
    proxy = getproxies().get(parts.scheme)
    return proxy if proxy and proxy.startswith("http") else None


def parse_retry_after(header: str | None) -> float | None:
    """Return the seconds in a Retry-After header (a number or a date); None if unreadable.

    >>> parse_retry_after("3")
    3.0
    >>> parse_retry_after("soon") is None
    True
    """
    if not header:
        return None
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        when = parsedate_to_datetime(header)
    except ValueError:
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return max(0.0, (when - datetime.now(UTC)).total_seconds())


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


def _json_object(body: bytes) -> dict[str, Any] | None:
    reply = _json_reply(body)
    return None if reply is None or ARRAY in reply else reply


def _json_reply(body: bytes) -> dict[str, Any] | None:
    try:
        parsed = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    if isinstance(parsed, list):
        return {ARRAY: parsed}
    return parsed if isinstance(parsed, dict) else None


def name_of(error: BaseException) -> str:
    """Describe `error` in one line for a user."""
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"no server named {error.host} (DNS)"
    refused = isinstance(getattr(error, "os_error", None), ConnectionRefusedError)
    if isinstance(error, aiohttp.ClientConnectorError) and refused:
        return f"connection refused, nothing listens on {error.host}:{error.port}"
    if isinstance(error, aiohttp.ClientConnectorSSLError) and "WRONG_VERSION" in str(error):
        return "the server does not speak https"
    # A URL in an error message may contain a proxy's password.
    text = _USER_INFO.sub("//***@", str(error))
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
