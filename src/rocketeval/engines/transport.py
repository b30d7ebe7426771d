"""JSON over HTTP with bounded concurrency, retries with jitter and patience for a busy server."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import aiohttp
import orjson

from rocketeval.engines.limiter import AdaptiveLimiter
from rocketeval.errors import EngineRefused, EngineUnavailable, RequestRejected

BUSY = frozenset({429, 503})
RETRIED = BUSY | {408, 409, 425, 500, 502, 504}
REFUSED = frozenset({401, 403, 404, 405})
FIRST_WAIT = 0.5
LONGEST_WAIT = 20.0
SHOWN_ERROR = 300


class Transport:
    """One server, one connection pool."""

    def __init__(
        self,
        base_url: str,
        *,
        key: str | None,
        concurrency: int,
        timeout: float,
        patience: float,
    ) -> None:
        self.base_url = base_url
        self.retries = 0
        self._key = key
        self._timeout = timeout
        self._patience = patience
        self._concurrency = concurrency
        self._limiter = AdaptiveLimiter(concurrency)
        self._session: aiohttp.ClientSession | None = None

    async def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the server's JSON answer, retrying what may pass while patience lasts.

        Raises EngineUnavailable, EngineRefused or RequestRejected.
        """
        payload = orjson.dumps(body)
        started = time.monotonic()
        attempt = 0
        while True:
            async with self._limiter:
                outcome = await self._once(path, payload)
            if isinstance(outcome, dict):
                self._limiter.succeeded()
                return outcome
            wait = _wait(attempt, outcome.retry_after)
            if time.monotonic() - started + wait > self._patience:
                raise EngineUnavailable(
                    f"{self.base_url} gave no answer for {self._patience:.0f} s "
                    f"({outcome.reason}).",
                    hint="Is the server up? Finished judgments are safe: run the same command "
                    "again to go on.",
                )
            if outcome.busy:
                self._limiter.pushed_back(wait)
            self.retries += 1
            attempt += 1
            await asyncio.sleep(wait)

    async def get(self, path: str, *, optional: bool = False) -> dict[str, Any] | None:
        """Return the JSON at `path` (or at a full URL), None where the server has none."""
        url = path if path.startswith("http") else self.base_url + path
        try:
            async with self._open().get(url, timeout=aiohttp.ClientTimeout(total=10)) as reply:
                if reply.status in (401, 403) and not optional:
                    raise self._refused(reply.status, await reply.read())
                if reply.status != 200:
                    return None
                found = orjson.loads(await reply.read())
                return found if isinstance(found, dict) else None
        except orjson.JSONDecodeError:
            return None
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            if optional:
                return None
            raise EngineUnavailable(
                f"Cannot reach {self.base_url}: {_name(error)}.",
                hint="Start the server, or set `base_url` (or $OPENAI_BASE_URL) to where it is.",
            ) from None

    async def aclose(self) -> None:
        """Close the connection pool."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _once(self, path: str, payload: bytes) -> dict[str, Any] | _Setback:
        try:
            async with self._open().post(self.base_url + path, data=payload) as reply:
                body = await reply.read()
                if reply.status == 200:
                    return _parse(body)
                if reply.status in RETRIED:
                    reason = f"HTTP {reply.status}: {self._shown(body)}"
                    retry_after = parse_retry_after(reply.headers.get("Retry-After"))
                    return _Setback(reason, retry_after, busy=reply.status in BUSY)
                if reply.status in REFUSED:
                    raise self._refused(reply.status, body)
                raise RequestRejected(f"HTTP {reply.status}: {self._shown(body)}")
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            return _Setback(_name(error), None, busy=False)

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

    def _refused(self, status: int, body: bytes) -> EngineRefused:
        hint = {
            401: "Set the API key in the environment variable that `api_key_env` names.",
            403: "The key has no access to this model or endpoint.",
        }.get(status, "Check `base_url` (it usually ends in /v1) and `model`.")
        return EngineRefused(
            f"{self.base_url} refused us with HTTP {status}: {self._shown(body)}", hint=hint
        )

    def _shown(self, body: bytes) -> str:
        text = " ".join(body.decode("utf-8", "replace").split())[:SHOWN_ERROR]
        return text.replace(self._key, "***") if self._key else text


class _Setback:
    """A request that may succeed later."""

    __slots__ = ("busy", "reason", "retry_after")

    def __init__(self, reason: str, retry_after: float | None, *, busy: bool) -> None:
        self.reason = reason
        self.retry_after = retry_after
        self.busy = busy


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
    return max(0.0, (when - datetime.now(UTC)).total_seconds())


def _wait(attempt: int, retry_after: float | None) -> float:
    longest = min(LONGEST_WAIT, FIRST_WAIT * 2**attempt)
    jittered = random.uniform(longest / 2, longest)
    return jittered if retry_after is None else retry_after + random.uniform(0, FIRST_WAIT)


def _parse(body: bytes) -> dict[str, Any] | _Setback:
    try:
        parsed = orjson.loads(body)
    except orjson.JSONDecodeError:
        return _Setback("the answer was not JSON", None, busy=False)
    if not isinstance(parsed, dict):
        return _Setback("the answer was not a JSON object", None, busy=False)
    return parsed


def _name(error: BaseException) -> str:
    text = str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
