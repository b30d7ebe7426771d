"""Client of the OpenAI Batch API: uploads, exactly-once creation, status and downloads."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import orjson

from rocketeval.engines.http import HttpClient
from rocketeval.engines.replies import (
    RetryableError,
    count_or_zero,
    mapping_or_empty,
    name_of,
    read_bounded,
)
from rocketeval.engines.server import rows_or_empty
from rocketeval.errors import EngineError, EngineRefused, EngineUnavailable
from rocketeval.store.files import replacing, writing

LONGEST_TRANSFER = 3600.0
"""Time limit of one transfer in seconds; a silent server is noticed much earlier."""
CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class AnswerLost:
    """A lost reply: the server may or may not have acted on the request."""

    reason: str


class FileClient(HttpClient):
    """An HTTP client that also sends and fetches files."""

    async def upload(self, path: str, fields: Mapping[str, str], file: Path) -> dict[str, Any]:
        """Send `file` with the form's other `fields`, and return the server's JSON answer.

        Retried like any POST, so the server may keep a second, unused copy; copies are free.
        """
        url = self._url(path)

        async def send(seconds: float) -> dict[str, Any] | RetryableError:
            with file.open("rb") as stream:
                form = aiohttp.FormData()
                for name, value in fields.items():
                    form.add_field(name, value)
                form.add_field("file", stream, filename=file.name, content_type="application/jsonl")
                payload = form()
                assert isinstance(payload, aiohttp.MultipartWriter)
                headers = {"Content-Type": payload.headers["Content-Type"]}
                return await self._once(url, payload, headers, seconds, self._transfer_timeout())

        return await self._patiently(send)

    async def download(self, path: str, target: Path) -> bool:
        """Write the content at `path` to `target` atomically; False if there is none."""
        url = self._url(path)

        async def fetch(_: float) -> bool | RetryableError:
            try:
                return await self._fetch(url, target)
            except aiohttp.ClientSSLError as error:
                raise self._untrusted(error) from None
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                return RetryableError(name_of(error), kind="connection lost")

        return await self._patiently(fetch)

    async def post_once(self, path: str, body: Mapping[str, Any]) -> dict[str, Any] | AnswerLost:
        """Send a request that must not be repeated; return the answer, or how it was lost.

        A request that the server certainly did not act on is retried until patience runs out.
        """
        url = self._url(path)
        payload = orjson.dumps(body)

        async def send(seconds: float) -> dict[str, Any] | AnswerLost | RetryableError:
            outcome = await self._once(url, payload, None, seconds)
            if isinstance(outcome, RetryableError) and not outcome.undone:
                return AnswerLost(outcome.reason)
            return outcome

        return await self._patiently(send)

    async def _fetch(self, url: str, target: Path) -> bool | RetryableError:
        async with self._open().get(
            url, timeout=self._transfer_timeout(), proxy=self._proxy, allow_redirects=False
        ) as reply:
            if reply.status == 404:
                return False
            if reply.status != 200:
                refused = self._understood(reply, await read_bounded(reply))
                assert isinstance(refused, RetryableError)
                return refused
            with writing(target), replacing(target) as temporary, temporary.open("wb") as stream:
                while chunk := await _next_chunk(reply):
                    stream.write(chunk)
            return True

    def _transfer_timeout(self) -> aiohttp.ClientTimeout:
        return aiohttp.ClientTimeout(
            total=LONGEST_TRANSFER, sock_connect=10, sock_read=self._timeout
        )


async def _next_chunk(reply: aiohttp.ClientResponse) -> bytes:
    """Return the next part of a body; ClientError, which is no OSError, if the connection broke."""
    try:
        return await reply.content.read(CHUNK)
    except OSError as error:
        raise aiohttp.ClientPayloadError(name_of(error)) from None


ENDPOINT = "/v1/chat/completions"
TAG = "rocketeval"
"""Metadata key of our tag for a batch."""
ENDED = frozenset({"completed", "failed", "expired", "cancelled"})
QUEUE_FULL = "token_limit_exceeded"
"""Error code of a batch that failed because too many tokens are queued in others."""
PAGE = 100
TRIES = 3
"""Attempts to create a batch if every answer is lost."""
SETTLE = 5.0
"""Seconds after which a batch whose creation was interrupted would be listed."""
PAUSE = 5.0
"""Seconds between two attempts to reach a server."""
SKEW = 86_400.0
"""Maximum difference between the server's clock and ours, in seconds."""

log = logging.getLogger("rocketeval.batch")


class InDoubt(Exception):
    """It is unknown whether a batch was created; `reason` is why the server does not say."""

    def __init__(self, reason: EngineError) -> None:
        super().__init__(reason.message)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class BatchState:
    """The state of a batch as the server reports it."""

    id: str
    status: str
    total: int = 0
    completed: int = 0
    failed: int = 0
    output_file: str | None = None
    error_file: str | None = None
    problem: str = ""
    """Why the whole batch failed."""
    queue_full: bool = False
    """Whether it failed only because too much is queued in other batches."""
    tag: str | None = None
    created: float | None = None

    @property
    def ended(self) -> bool:
        """Whether the batch has reached a final status."""
        return self.status in ENDED


class BatchApi:
    """The batches of one server."""

    def __init__(self, http: FileClient, *, completion_window: str, patience: float) -> None:
        self._http = http
        self._window = completion_window
        self._patience = patience

    async def check(self) -> None:
        """Raise EngineRefused unless the server has a Batch API."""
        await self._list(1, "")

    async def upload(self, file: Path) -> str:
        """Upload a file of requests and return the server's name for it."""
        answer = await self._http.upload("/files", {"purpose": "batch"}, file)
        name = answer.get("id")
        if not isinstance(name, str) or not name:
            raise EngineRefused(
                f"{self._http.base_url} accepted an upload but returned no file id.",
                hint="Use a server with the OpenAI Batch API, or `engine: openai`.",
            )
        return name

    async def create(self, file: str, tag: str) -> BatchState:
        """Create one batch from an uploaded file, exactly once even if replies are lost.

        InDoubt is raised if the server cannot be asked whether the batch exists; any other error
        means that it does not.
        """
        body = {
            "input_file_id": file,
            "endpoint": ENDPOINT,
            "completion_window": self._window,
            "metadata": {TAG: tag},
        }
        reason = ""
        for _ in range(TRIES):
            began = time.time()
            answer = await self._http.post_once("/batches", body)
            state = None if isinstance(answer, AnswerLost) else self._read(answer)
            if state is not None:
                return state
            reason = (
                answer.reason if isinstance(answer, AnswerLost) else "the answer is not a batch"
            )
            log.info("batch %s: no answer to its creation (%s); searching for it", tag, reason)
            await asyncio.sleep(SETTLE)
            found = await self.look_for(tag, began)
            if found is not None:
                return found
        raise EngineUnavailable(
            f"{self._http.base_url} did not create a batch in {TRIES} attempts: {reason}.",
            hint="No batch was created, so nothing was paid: run the same command again.",
        )

    async def look_for(self, tag: str, since: float) -> BatchState | None:
        """Return the batch with `tag`, if it exists; InDoubt if the server does not say."""
        try:
            return (await self.find([tag], since)).get(tag)
        except EngineError as error:
            raise InDoubt(error) from None

    async def find(self, tags: Collection[str], since: float) -> dict[str, BatchState]:
        """Return the batches with one of `tags` among those created after `since`."""
        found: dict[str, BatchState] = {}
        after = ""
        while len(found) < len(tags):
            rows, more = await self._list(PAGE, after)
            found |= {row.tag: row for row in rows if row.tag is not None and row.tag in tags}
            oldest = min((row.created for row in rows if row.created is not None), default=since)
            if not rows or not more or oldest < since - SKEW or after == rows[-1].id:
                break
            after = rows[-1].id
        return found

    async def state(self, batch: str) -> BatchState:
        """Return the state of a batch; EngineRefused if the server does not know it."""
        answer = await self._get(f"/batches/{quote(batch, safe='')}")
        state = None if answer is None else self._read(answer)
        if state is None:
            raise EngineRefused(
                f"{self._http.base_url} does not know the batch {batch}, which this run has "
                "open there.",
                hint="Use the key and `base_url` it was created with. To abandon it and pay again, "
                "delete the folder `engines` in the run directory.",
            )
        return state

    async def fetch(self, file: str, target: Path) -> bool:
        """Download a file to `target`; False if the server no longer has it."""
        return await self._http.download(f"/files/{quote(file, safe='')}/content", target)

    async def _list(self, limit: int, after: str) -> tuple[list[BatchState], bool]:
        cursor = f"&after={quote(after, safe='')}" if after else ""
        answer = await self._get(f"/batches?limit={limit}{cursor}")
        rows = (answer or {}).get("data")
        if not isinstance(rows, list):
            raise EngineRefused(
                f"{self._http.base_url} has no Batch API (GET /batches returned no list).",
                hint="Check `base_url`, or use `engine: openai`, which sends live requests.",
            )
        states = [self._read(row) for row in rows if isinstance(row, dict)]
        return [state for state in states if state], bool((answer or {}).get("has_more"))

    async def _get(self, path: str) -> dict[str, Any] | None:
        started = time.monotonic()
        while True:
            try:
                return await self._http.get(path)
            except EngineUnavailable:
                if time.monotonic() - started >= self._patience:
                    raise
            await asyncio.sleep(min(PAUSE, self._patience))

    def _read(self, raw: Mapping[str, Any]) -> BatchState | None:
        name, status = raw.get("id"), raw.get("status")
        if not isinstance(name, str) or not name or not isinstance(status, str):
            return None
        counts, metadata = (
            mapping_or_empty(raw.get("request_counts")),
            mapping_or_empty(raw.get("metadata")),
        )
        problems = rows_or_empty(mapping_or_empty(raw.get("errors")).get("data"))
        created = raw.get("created_at")
        return BatchState(
            name,
            status,
            total=count_or_zero(counts.get("total")),
            completed=count_or_zero(counts.get("completed")),
            failed=count_or_zero(counts.get("failed")),
            output_file=_text(raw.get("output_file_id")),
            error_file=_text(raw.get("error_file_id")),
            problem=self._http.safe("; ".join(map(_problem, problems[:3]))),
            queue_full=any(problem.get("code") == QUEUE_FULL for problem in problems),
            tag=_text(metadata.get(TAG)),
            created=float(created) if isinstance(created, int | float) else None,
        )


def _problem(raw: Mapping[str, Any]) -> str:
    line = raw.get("line")
    where = f" (line {line})" if isinstance(line, int) else ""
    return f"{raw.get('message') or raw.get('code') or 'no reason given'}{where}"


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
