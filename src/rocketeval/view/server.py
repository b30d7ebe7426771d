"""What the server answers: pages, their heads, blocks and pulses, and a run's own files.

A server on this machine, until it is stopped.
What every answer of the server has, and what it refuses: this machine's reader only, no change.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import html
import os
import re
import signal
import socket
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import replace
from ipaddress import ip_address
from pathlib import PurePath
from typing import IO, Any

from aiohttp import web
from aiohttp.typedefs import Middleware

from rocketeval.errors import ConfigError, RocketEvalError
from rocketeval.report.blocks import json_bytes, plain
from rocketeval.report.model import ReportHead
from rocketeval.report.page import served_page
from rocketeval.store.files import public_file
from rocketeval.view.catalog import RunCache
from rocketeval.view.live_run import LiveRun, StaleBlock

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

NOTHING = "default-src 'none'"
"""The content policy of whatever is no page."""
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-store",
    "Server": "rocketeval",
}


def is_loopback(host: str) -> bool:
    """Return whether a host, without its port, can only mean this machine.

    >>> is_loopback("127.0.0.1"), is_loopback("[::1]"), is_loopback("localhost")
    (True, True, True)
    >>> is_loopback("localhost.example.org"), is_loopback("0.0.0.0")
    (False, False)
    """
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.removeprefix("[").removesuffix("]")).is_loopback
    except ValueError:
        return False


def guard(*, allow_remote: bool, names: Iterable[str] = ()) -> Middleware:
    """Return the middleware that every request goes through.

    With `allow_remote` it also answers to the address that a request came to, and to `names`.
    """
    known = frozenset(map(_plain, names)) if allow_remote else frozenset()

    @web.middleware
    async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
        host = _plain(without_port(request.headers.get("Host", "")))
        reached = allow_remote and host == _reached_at(request)
        if not (is_loopback(host) or reached or host in known):
            told = "This address is not one that this server answers to.\n"
            hint = "Start it with --host-name and this name if it should.\n" if allow_remote else ""
            raise web.HTTPForbidden(text=told + hint)
        if request.method not in ("GET", "HEAD"):
            raise web.HTTPMethodNotAllowed(request.method, ("GET", "HEAD"))
        return await handler(request)

    return guarded


def own_names() -> frozenset[str]:
    """Return the names that others may know this machine by."""
    name = socket.gethostname()
    return frozenset(map(_plain, (name, socket.getfqdn(), f"{name.partition('.')[0]}.local")))


def _plain(host: str) -> str:
    return host.strip().lower().removeprefix("[").removesuffix("]").removesuffix(".")


def _reached_at(request: web.Request) -> str | None:
    """Return this machine's address that a request came to."""
    at = None if request.transport is None else request.transport.get_extra_info("sockname")
    return str(at[0]).partition("%")[0].removeprefix("::ffff:") if at else None


def without_port(host: str) -> str:
    """Return the host of a Host header.

    >>> without_port("[::1]:8700"), without_port("localhost:8700"), without_port("localhost")
    ('[::1]', 'localhost', 'localhost')
    """
    if host.startswith("["):
        return host[: host.find("]") + 1]
    return host.partition(":")[0]


async def add_headers(_: web.Request, response: web.StreamResponse) -> None:
    """Give an answer the headers that all have; a page has brought its own content policy."""
    response.headers.update(HEADERS)
    own = response.headers.get("Content-Security-Policy", NOTHING)
    response.headers["Content-Security-Policy"] = f"{own}; frame-ancestors 'none'"


_POLICY = re.compile(r'http-equiv="Content-Security-Policy"\s+content="([^"]*)"')
_CHUNK = 1 << 18
_TYPES = {
    ".json": "application/json",
    ".jsonl": "text/plain; charset=utf-8",
    ".yaml": "text/plain; charset=utf-8",
    ".csv": "text/csv; charset=utf-8",
}


def make_app(
    shelf: RunCache, *, allow_remote: bool = False, names: Iterable[str] = ()
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
    def __init__(self, shelf: RunCache) -> None:
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
        except StaleBlock:
            raise web.HTTPConflict(text="The run has gone on: load the page again.\n") from None
        if block is None:
            raise web.HTTPNotFound(text="There is no such block.\n")
        return web.Response(body=block, content_type="application/octet-stream")

    async def file(self, request: web.Request) -> web.StreamResponse:
        run = await self._run(request)
        path = public_file(run.path, request.match_info["name"])
        if path is None:
            raise web.HTTPNotFound(text="There is no such file.\n")
        try:
            # Should a link take the file's place at this moment, it is not followed.
            handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        except OSError:
            raise web.HTTPNotFound(text="There is no such file any more.\n") from None
        with os.fdopen(handle, "rb") as stream:
            return await _stream(request, stream, path.name)

    async def _run(self, request: web.Request) -> LiveRun:
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


FIRST_PORT = 8700
PORTS = 20
"""So many ports are tried, from the first, before the system chooses one."""


def bind(host: str, port: int | None, *, allow_remote: bool) -> socket.socket:
    """Return a socket to listen on; ConfigError for an address that others could reach.

    Without a port it is the first free one from 8700 on.
    """
    if not is_loopback(host) and not allow_remote:
        raise ConfigError(
            f"{host} is not this machine's own address: others could read the run.",
            hint="Leave --host away and use an SSH tunnel, or add --allow-remote if the network "
            "is one you trust: there is no password.",
        )
    address = "127.0.0.1" if host.lower() == "localhost" else host
    for number in [port] if port is not None else [*range(FIRST_PORT, FIRST_PORT + PORTS), 0]:
        try:
            return _bound(address, number)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or port is not None:
                raise _refused(host, number, error) from None
    raise RocketEvalError(f"{host} has no free port.")


def address_of(bound: socket.socket) -> str:
    """Return the address that a browser opens.

    >>> with bind("127.0.0.1", 0, allow_remote=False) as bound:
    ...     address_of(bound).startswith("http://127.0.0.1:")
    True
    """
    host, port = bound.getsockname()[:2]
    if ip_address(host).is_unspecified:
        host = socket.gethostname()
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


async def serve(app: web.Application, bound: socket.socket, started: Callable[[], None]) -> None:
    """Serve until SIGINT or SIGTERM; call `started` when requests are answered."""
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5)
    await runner.setup()
    try:
        await web.SockSite(runner, bound).start()
        with _stopping() as stop:
            started()
            await stop.wait()
    finally:
        await runner.cleanup()


@contextlib.contextmanager
def _stopping() -> Iterator[asyncio.Event]:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    # Windows has no handlers in its loop: there Ctrl-C ends the loop itself.
    with contextlib.suppress(NotImplementedError):
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop.set)
    yield stop


def _bound(address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        if os.name == "posix":
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((address, port))
        bound.listen(128)
    except BaseException:
        bound.close()
        raise
    return bound


def _refused(host: str, port: int, error: OSError) -> RocketEvalError:
    if error.errno == errno.EADDRINUSE:
        return RocketEvalError(
            f"Port {port} of {host} is taken.",
            hint="Give another --port, or none to have a free one found.",
        )
    return RocketEvalError(f"Cannot listen on port {port} of {host}: {error.strerror or error}.")
