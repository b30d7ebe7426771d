"""Files over HTTP, and posts that must not be made twice: what paid jobs need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import orjson

from rocketeval.engines.http import HttpClient, Setback, name_of
from rocketeval.store.files import replacing

LONGEST_TRANSFER = 3600.0
"""Seconds one file may take; a server that falls silent is noticed much earlier."""
CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Lost:
    """No answer came: nobody knows whether the server did what it was asked."""

    reason: str


class FileClient(HttpClient):
    """An HTTP client that also sends and fetches files."""

    async def upload(self, path: str, fields: Mapping[str, str], file: Path) -> dict[str, Any]:
        """Send `file` with the form's other `fields`; return the server's JSON answer.

        Tried again like any post, so the server may keep a second copy: free of charge, and unused.
        """
        url = self._url(path)

        async def send() -> dict[str, Any] | Setback:
            with file.open("rb") as stream:
                form = aiohttp.FormData()
                for name, value in fields.items():
                    form.add_field(name, value)
                form.add_field("file", stream, filename=file.name, content_type="application/jsonl")
                payload = form()
                assert isinstance(payload, aiohttp.MultipartWriter)
                headers = {"Content-Type": payload.headers["Content-Type"]}
                return await self._once(url, payload, headers, self._transfer_timeout())

        return await self._patiently(send)

    async def download(self, path: str, target: Path) -> bool:
        """Write what is at `path` into `target`, whole or not at all; False if nothing is there."""
        url = self._url(path)

        async def fetch() -> bool | Setback:
            try:
                return await self._fetch(url, target)
            except aiohttp.ClientSSLError as error:
                raise self._untrusted(error) from None
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                return Setback(name_of(error))

        return await self._patiently(fetch)

    async def post_once(self, path: str, body: Mapping[str, Any]) -> dict[str, Any] | Lost:
        """Return the server's answer to what must not be done twice, or how that answer got lost.

        A clear "not now" is tried again while patience lasts.
        """
        url = self._url(path)
        payload = orjson.dumps(body)

        async def send() -> dict[str, Any] | Lost | Setback:
            outcome = await self._once(url, payload, None)
            if isinstance(outcome, Setback) and not outcome.undone:
                return Lost(outcome.reason)
            return outcome

        return await self._patiently(send)

    async def _fetch(self, url: str, target: Path) -> bool | Setback:
        async with self._open().get(
            url, timeout=self._transfer_timeout(), proxy=self._proxy, allow_redirects=False
        ) as reply:
            if reply.status == 404:
                return False
            if reply.status != 200:
                refused = self._understood(reply, await reply.read())
                assert isinstance(refused, Setback)
                return refused
            with replacing(target) as temporary, temporary.open("wb") as stream:
                async for chunk in reply.content.iter_chunked(CHUNK):
                    stream.write(chunk)
            return True

    def _transfer_timeout(self) -> aiohttp.ClientTimeout:
        return aiohttp.ClientTimeout(
            total=LONGEST_TRANSFER, sock_connect=10, sock_read=self._timeout
        )
