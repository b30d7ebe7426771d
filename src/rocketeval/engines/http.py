"""JSON over HTTP: bounded and adaptive concurrency, retries with jitter, and counted usage."""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections import deque
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

SHRINK_SECONDS = 1.0
"""One burst of push-back halves only once."""


class AdaptiveLimiter:
    """Additive increase, multiplicative decrease, and a shared pause after push-back.

    Whoever just gave a place back may take it again before those who wait: the next item of a
    response goes out while its prefix is still in the server's cache.
    """

    def __init__(self, ceiling: int) -> None:
        self.ceiling = ceiling
        self.allowed = float(ceiling)
        self.in_flight = 0
        self._resume_at = 0.0
        self._shrunk_at = -SHRINK_SECONDS
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def __aenter__(self) -> None:
        try:
            while not self._may_start():
                await self._wait()
        except BaseException:
            # The place this waiter was woken for must not be lost with it.
            self._wake()
            raise
        self.in_flight += 1

    async def __aexit__(self, *_: object) -> None:
        self.in_flight -= 1
        self._wake()

    def succeeded(self) -> None:
        """Let a little more through after an answer."""
        if self.allowed < self.ceiling:
            self.allowed = min(self.ceiling, self.allowed + 1.0 / self.allowed)
            self._wake()

    def pushed_back(self, pause: float) -> None:
        """Halve what is allowed, at most once a second, and start nothing for `pause` seconds."""
        now = time.monotonic()
        self._resume_at = max(self._resume_at, now + pause)
        if now - self._shrunk_at >= SHRINK_SECONDS:
            self.allowed = max(1.0, self.allowed / 2)
            self._shrunk_at = now

    def _may_start(self) -> bool:
        return self.in_flight < int(self.allowed) and time.monotonic() >= self._resume_at

    async def _wait(self) -> None:
        pause = self._resume_at - time.monotonic()
        if pause > 0:
            await asyncio.sleep(pause)
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        await turn

    def _wake(self) -> None:
        free = int(self.allowed) - self.in_flight
        while self._waiting and free > 0:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                free -= 1


def mapping_or_empty(value: Any) -> Mapping[str, Any]:
    """Return `value` if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def rows_or_empty(value: Any) -> list[dict[str, Any]]:
    """Return the objects in `value` if it is a list, else an empty one."""
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


def count_or_zero(value: Any) -> int:
    """Return `value` if it is a whole number, else zero."""
    return value if isinstance(value, int) else 0


class UsageMeter:
    """Counts every request sent, also those that failed, and the tokens the server reports."""

    def __init__(self) -> None:
        self._counted = Usage()
        self._started = 0.0
        self._ended = 0.0

    def sent(self) -> None:
        """Count one request that goes out now."""
        if not self._counted.requests:
            self._started = time.monotonic()
        self._counted += Usage(requests=1)

    def answered(self, reply: Mapping[str, Any], *, cached_told: bool = True) -> None:
        """Count the tokens that a reply says it used.

        `cached_told` is False where the server does not count the cached tokens of every prompt.
        """
        self._ended = time.monotonic()
        usage = mapping_or_empty(reply.get("usage"))
        details = mapping_or_empty(usage.get("prompt_tokens_details")) if cached_told else {}
        self._counted += Usage(
            prompt_tokens=count_or_zero(usage.get("prompt_tokens")),
            cached_tokens=count_or_zero(details.get("cached_tokens")),
            completion_tokens=count_or_zero(usage.get("completion_tokens")),
        )

    @property
    def usage(self) -> Usage:
        """What was spent so far."""
        return replace(self._counted, seconds=max(0.0, self._ended - self._started))


T = TypeVar("T")
BUSY = frozenset({429, 503, 529})
"""Answers that ask for fewer requests."""
RETRIED = frozenset({408, 409, 425, 429, *range(500, 600)}) - {501, 505}
"""Answers after which the same request may succeed later."""
REFUSED = frozenset({*range(300, 400), 401, 402, 403, 404, 405, 407})
"""Answers after which no request will succeed: someone has to change something."""
FIRST_WAIT = 0.5
LONGEST_WAIT = 20.0
_USER_INFO = re.compile(r"//[^/@\s]+@")
LOOKS = 3
"""How often a GET is tried."""
LOOK_SECONDS = 10.0
SHOWN_ERROR = 300
ARRAY = "array"
"""Where the rows of a reply stand that is a JSON array, not an object."""
_HINTS = {
    402: "The account behind the key has no credit left: add some, or use another key.",
    403: "The server knows the key and does not allow this: its words say what. Ask whoever "
    "manages the key for that permission, or use another key or `model`.",
}


class HttpClient:
    """One server, one connection pool."""

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
        """`key_variable` is the environment variable that holds the key, for messages."""
        self.base_url = base_url
        self._key_variable = key_variable
        self.retries = 0
        self._key = (key or "").strip()
        self._timeout = timeout
        self._patience = patience
        self._concurrency = concurrency
        self._limiter = AdaptiveLimiter(concurrency)
        self._proxy = environment_proxy(base_url)
        self._session: aiohttp.ClientSession | None = None

    async def post(
        self,
        path: str,
        body: Mapping[str, Any],
        meter: UsageMeter,
        *,
        headers: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Return the server's JSON answer, retrying what may pass while patience lasts.

        `path` follows the base address, or is a full URL on the same server.

        Only time spent on the server counts against patience, not our own queue for a place.
        Raises EngineUnavailable, EngineRefused or RequestRejected.
        """
        url = self._url(path)
        payload = orjson.dumps(body)

        async def send() -> dict[str, Any] | RetryableError:
            meter.sent()
            return await self._once(url, payload, headers)

        return await self._patiently(send)

    async def _patiently(self, send: Callable[[], Awaitable[T | RetryableError]]) -> T:
        """Return what `send` brings, sending again after every setback while patience lasts."""
        spent, attempt = 0.0, 0
        while True:
            async with self._limiter:
                started = time.monotonic()
                outcome = await send()
                spent += time.monotonic() - started
            if not isinstance(outcome, RetryableError):
                self._limiter.succeeded()
                return outcome
            wait = _wait(attempt, outcome.retry_after)
            attempt += 1
            if spent + wait > self._patience:
                raise self._lost(outcome, attempt, spent)
            if outcome.busy:
                self._limiter.pushed_back(wait)
            self.retries += 1
            spent += wait
            await asyncio.sleep(wait)

    async def get(self, path: str, *, optional: bool = False) -> dict[str, Any] | None:
        """Return the JSON at `path` (or at a full URL), None where the server has none.

        A server that cannot be reached is an error even where the answer is `optional`: it must
        not pass for one that has nothing to say.
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
                f"{self.base_url} gave no answer: {LOOKS} times none within {LOOK_SECONDS:g} s.",
                hint="It may be busy or still loading its model: wait, then run the same command "
                "again. Or a firewall is in the way, or `base_url` is wrong.",
            )
        raise EngineUnavailable(
            f"Cannot reach {self.base_url}: {reason}.",
            hint="Start the server, or set `base_url` (or $OPENAI_BASE_URL) to where it is.",
        )

    async def aclose(self) -> None:
        """Close the connection pool."""
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
        timeout: aiohttp.ClientTimeout | None = None,
    ) -> dict[str, Any] | RetryableError:
        session = self._open()
        try:
            async with session.post(
                url,
                data=payload,
                headers=headers,
                timeout=timeout or session.timeout,
                proxy=self._proxy,
                allow_redirects=False,
            ) as reply:
                return self._understood(reply, await reply.read())
        except aiohttp.ClientSSLError as error:
            raise self._untrusted(error) from None
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            unsent = isinstance(error, aiohttp.ClientConnectorError)
            return RetryableError(name_of(error), undone=unsent)

    def _understood(
        self, reply: aiohttp.ClientResponse, body: bytes
    ) -> dict[str, Any] | RetryableError:
        if reply.status == 200:
            found = _json_reply(body)
            return RetryableError("the answer was not JSON") if found is None else found
        shown = self._shown(body)
        if reply.status in RETRIED:
            retry_after = parse_retry_after(reply.headers.get("Retry-After"))
            asked = "" if retry_after is None else f" (it asks to wait {retry_after:.0f} s)"
            busy = reply.status in BUSY
            told = f"HTTP {reply.status}: {shown}{asked}"
            return RetryableError(told, retry_after, busy=busy, undone=reply.status == 429)
        if reply.status in REFUSED:
            moved = reply.headers.get("Location")
            raise self._refused(reply.status, f"moved to {moved}" if moved else shown)
        raise RequestRejected(
            f"HTTP {reply.status}: {shown}",
            hint="It is too long for the model, or holds a setting this server does not know.",
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
                timeout=aiohttp.ClientTimeout(total=self._timeout, sock_connect=10),
                headers=headers,
            )
        return self._session

    def _lost(self, setback: RetryableError, attempts: int, spent: float) -> EngineUnavailable:
        times = "1 attempt" if attempts == 1 else f"{attempts} attempts"
        return EngineUnavailable(
            f"{self.base_url} gave no answer in {times} over {spent:.1f} s: {setback.reason}.",
            hint="Is the server up? Finished judgments are safe: run the same command again to "
            "go on. `patience` says how long one request is retried.",
        )

    def _refused(self, status: int, shown: str) -> EngineRefused:
        hint = self._key_hint() if status == 401 else _HINTS.get(status, self._path_hint())
        return EngineRefused(f"{self.base_url} refused us with HTTP {status}: {shown}", hint=hint)

    def _key_hint(self) -> str:
        if not self._key:
            return (
                f"The environment variable {self._key_variable} is not set. Put the API key there, "
                "or name the variable that holds it in `api_key_env`."
            )
        return (
            f"The environment variable {self._key_variable} is set, but this server does not "
            "accept the key in it. Check that the key is whole, not expired, and meant for this "
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
        """Return the message in an error's body, or the whole body where there is none."""
        reply = _json_reply(body) or {}
        error = reply.get("error", reply)
        message = error if isinstance(error, str) else mapping_or_empty(error).get("message")
        return self.safe(message if isinstance(message, str) else body.decode("utf-8", "replace"))

    def safe(self, text: str) -> str:
        """Return a server's words on one line, short and without our key."""
        text = " ".join(text.split())
        # Redacted before it is cut, so that no part of a key survives at the cut.
        return (text.replace(self._key, "***") if self._key else text)[:SHOWN_ERROR]


@dataclass(frozen=True, slots=True)
class RetryableError:
    """A request that may succeed later."""

    reason: str
    retry_after: float | None = None
    """Seconds the server asks to wait."""
    busy: bool = False
    """Whether the server asks for fewer requests."""
    undone: bool = False
    """Whether the server certainly did not act on it; otherwise nobody knows."""


def environment_proxy(url: str) -> str | None:
    """Return the proxy that the environment names for `url`; never one for this machine itself."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if _is_this_machine(host) or proxy_bypass(host):
        return None
    proxy = getproxies().get(parts.scheme)
    return proxy if proxy and proxy.startswith("http") else None


def parse_retry_after(header: str | None) -> float | None:
    """Return the seconds a Retry-After header asks for (seconds or a date), None if unreadable.

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
    """Return what went wrong, in the words of `error` itself."""
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"there is no server named {error.host} (DNS)"
    refused = isinstance(getattr(error, "os_error", None), ConnectionRefusedError)
    if isinstance(error, aiohttp.ClientConnectorError) and refused:
        return f"connection refused, nothing listens on {error.host}:{error.port}"
    if isinstance(error, aiohttp.ClientConnectorSSLError) and "WRONG_VERSION" in str(error):
        return "the server does not speak https"
    # An address in an error's text may carry a proxy's password.
    text = _USER_INFO.sub("//***@", str(error))
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
