"""What the server answers: pages, their heads, blocks and pulses, and a run's own files."""

from __future__ import annotations

import html
import os
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import PurePath
from typing import IO, Any

from aiohttp import web

from rocketeval.errors import RocketEvalError
from rocketeval.report.data import ReportHead
from rocketeval.report.page import served_page
from rocketeval.report.plain import json_bytes, plain
from rocketeval.store.shown import shown_file
from rocketeval.view.guard import Handler, add_headers, guard
from rocketeval.view.shelf import Shelf
from rocketeval.view.watched import Outdated, WatchedRun

_POLICY = re.compile(r'http-equiv="Content-Security-Policy"\s+content="([^"]*)"')
_CHUNK = 1 << 18
_TYPES = {
    ".json": "application/json",
    ".jsonl": "text/plain; charset=utf-8",
    ".yaml": "text/plain; charset=utf-8",
    ".csv": "text/csv; charset=utf-8",
}


def make_app(
    shelf: Shelf, *, allow_remote: bool = False, names: Iterable[str] = ()
) -> web.Application:
    """Return the application; with `allow_remote` it answers to this machine's `names` too."""
    views = _Views(shelf)
    app = web.Application(middlewares=[guard(allow_remote=allow_remote, names=names), _in_words])
    app.on_response_prepare.append(add_headers)
    app.router.add_get("/", views.index)
    app.router.add_get("/runs.json", views.runs_head)
    app.router.add_get("/pulse.json", views.runs_pulse)
    app.router.add_get("/run/{slug}", views.with_slash)
    app.router.add_get("/run/{slug}/", views.page)
    app.router.add_get("/run/{slug}/head.json", views.head)
    app.router.add_get("/run/{slug}/pulse.json", views.pulse)
    app.router.add_get("/run/{slug}/block/{name}", views.block)
    app.router.add_get("/run/{slug}/files/{name:.+}", views.file)

    async def close(_: web.Application) -> None:
        shelf.close()

    app.on_cleanup.append(close)
    return app


class _Views:
    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf

    async def index(self, _: web.Request) -> web.StreamResponse:
        runs = await self._shelf.runs()
        if len(runs) == 1:
            raise web.HTTPFound(f"run/{next(iter(runs))}/")
        return _page(served_page(await self._shelf.list(), "runs"))

    async def runs_head(self, _: web.Request) -> web.StreamResponse:
        return _json(await self._shelf.list())

    async def runs_pulse(self, _: web.Request) -> web.StreamResponse:
        return _json({"version": (await self._shelf.list()).version})

    async def with_slash(self, request: web.Request) -> web.StreamResponse:
        await self._run(request)
        raise web.HTTPFound(f"{request.match_info['slug']}/")

    async def page(self, request: web.Request) -> web.StreamResponse:
        return _page(served_page(await self._head(request), "report"))

    async def head(self, request: web.Request) -> web.StreamResponse:
        return _json(await self._head(request))

    async def pulse(self, request: web.Request) -> web.StreamResponse:
        return _json(await (await self._run(request)).pulse())

    async def block(self, request: web.Request) -> web.StreamResponse:
        run = await self._run(request)
        try:
            block = await run.block(request.match_info["name"], request.query.get("version"))
        except Outdated:
            raise web.HTTPConflict(text="The run has gone on: load the page again.\n") from None
        if block is None:
            raise web.HTTPNotFound(text="There is no such block.\n")
        return web.Response(body=block, content_type="application/octet-stream")

    async def file(self, request: web.Request) -> web.StreamResponse:
        run = await self._run(request)
        path = shown_file(run.path, request.match_info["name"])
        if path is None:
            raise web.HTTPNotFound(text="There is no such file.\n")
        try:
            # Should a link take the file's place at this moment, it is not followed.
            handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        except OSError:
            raise web.HTTPNotFound(text="There is no such file any more.\n") from None
        with os.fdopen(handle, "rb") as stream:
            return await _stream(request, stream, path.name)

    async def _run(self, request: web.Request) -> WatchedRun:
        run = await self._shelf.run(request.match_info["slug"])
        if run is None:
            raise web.HTTPNotFound(text="There is no such run.\n")
        return run

    async def _head(self, request: web.Request) -> ReportHead:
        run = await self._run(request)
        several = len(await self._shelf.runs()) > 1
        return replace(
            await run.head(),
            files_at="files/",
            index_at="../../" if several else None,
            blocks="served",
        )


@web.middleware
async def _in_words(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer with the words of an error, never with a traceback."""
    try:
        return await handler(request)
    except RocketEvalError as error:
        text = f"{error.message}\n{error.hint}".strip()
        if request.path.endswith("/"):
            body = f"<!doctype html><title>RocketEval</title><pre>{html.escape(text)}</pre>"
            return web.Response(text=body, content_type="text/html", status=500)
        return web.Response(text=f"{text}\n", status=500)


async def _stream(request: web.Request, stream: IO[bytes], name: str) -> web.StreamResponse:
    """Send as much of a file as it has now; it may grow meanwhile."""
    left = os.fstat(stream.fileno()).st_size
    kind = _TYPES.get(PurePath(name).suffix)
    response = web.StreamResponse()
    response.headers["Content-Type"] = kind or "application/octet-stream"
    if kind is None or name.endswith(".csv"):
        response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    response.content_length = left
    await response.prepare(request)
    while left and request.method != "HEAD":
        part = stream.read(min(_CHUNK, left))
        if not part:
            # It became shorter than was promised: the reader must not take it for whole.
            raise ConnectionResetError(f"{name} was cut while it was sent")
        left -= len(part)
        await response.write(part)
    await response.write_eof()
    return response


def _page(text: str) -> web.Response:
    found = _POLICY.search(text)
    response = web.Response(text=text, content_type="text/html")
    if found:
        response.headers["Content-Security-Policy"] = html.unescape(found[1])
    return response


def _json(record: Any) -> web.Response:
    return web.Response(body=json_bytes(plain(record)), content_type="application/json")
