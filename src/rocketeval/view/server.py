"""The HTTP server: pages, heads, blocks, pulses and files of runs, read-only by default.

It answers only requests from this machine, unless remote access is allowed, and only with the token
of its address: other users of this machine cannot read the runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import hashlib
import html
import json
import os
import re
import secrets
import signal
import socket
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import replace
from ipaddress import ip_address
from pathlib import PurePath
from typing import IO, Any, TypeVar

from aiohttp import web
from aiohttp.typedefs import Middleware

from rocketeval.errors import ConfigError, RocketEvalError
from rocketeval.report.blocks import json_bytes, plain
from rocketeval.report.model import ReportHead
from rocketeval.report.page import served_page
from rocketeval.store.files import public_file
from rocketeval.view.catalog import RunCache
from rocketeval.view.labeling import MistakenLabel
from rocketeval.view.live_judge import ItemQuestion, LiveJudges, MistakenQuestion
from rocketeval.view.live_run import LiveRun, StaleBlock

T = TypeVar("T")
MOST_WORDS = 200
"""Number of characters of a search."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

NOTHING = "default-src 'none'"
"""Content policy of everything except pages."""
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
    """Return whether a host, without its port, is always this machine.

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


def guard(
    *, allow_remote: bool, names: Iterable[str] = (), posts: Iterable[str] = ()
) -> Middleware:
    """Return the middleware that checks the host and method of every request.

    With `allow_remote`, also accept the address that a request came to, and `names`. `posts` are
    the ends of paths to which a page of this server may send something.
    """
    known = frozenset(map(_plain, names)) if allow_remote else frozenset()
    accepted = tuple(f"/{end}" for end in posts)

    @web.middleware
    async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
        host = _plain(without_port(request.headers.get("Host", "")))
        reached = allow_remote and host == _reached_at(request)
        if not (is_loopback(host) or reached or host in known):
            reason = "This server does not accept requests for this host name.\n"
            hint = "To allow it, start the server with --host-name.\n" if allow_remote else ""
            raise web.HTTPForbidden(text=reason + hint)
        posted = request.method == "POST" and request.path.endswith(accepted)
        if posted and not _is_own_page(request):
            raise web.HTTPForbidden(text="This is accepted only from a page of this server.\n")
        if not posted and request.method not in ("GET", "HEAD"):
            raise web.HTTPMethodNotAllowed(request.method, ("GET", "HEAD"))
        return await handler(request)

    return guarded


def _is_own_page(request: web.Request) -> bool:
    """Return whether a page of this server sent a request; browsers set the origin."""
    origin = request.headers.get("Origin", "")
    return (
        origin.partition("://")[2] == request.headers.get("Host", "")
        and request.headers.get("Sec-Fetch-Site", "same-origin") == "same-origin"
        and request.content_type == "application/json"
    )


TOKEN = "token"
"""Query field of the token in the address."""
NO_TOKEN = (
    "This address needs the token that `rocketeval view` printed. Open the whole address, from "
    "http:// to the end of the line.\n"
)


def ask_for_token(token: str) -> Middleware:
    """Return the middleware that accepts requests with the token, and keeps it in a cookie."""
    # Cookies do not distinguish ports, so servers on one machine need different names.
    name = f"rocketeval-{hashlib.blake2b(token.encode(), digest_size=6).hexdigest()}"

    @web.middleware
    async def asked(request: web.Request, handler: Handler) -> web.StreamResponse:
        given = request.query.get(TOKEN, "")
        kept = request.cookies.get(name, "")
        if secrets.compare_digest(kept.encode(), token.encode()):
            return await handler(request)
        if not secrets.compare_digest(given.encode(), token.encode()):
            raise web.HTTPForbidden(text=NO_TOKEN)
        # The address in the browser's history then works only while the server runs.
        answer = web.HTTPFound(request.path)
        answer.set_cookie(name, token, httponly=True, samesite="Strict", path="/")
        raise answer

    return asked


def new_token() -> str:
    """Return a token that cannot be guessed."""
    return secrets.token_urlsafe(18)


def own_names() -> frozenset[str]:
    """Return the host names of this machine."""
    name = socket.gethostname()
    return frozenset(map(_plain, (name, socket.getfqdn(), f"{name.partition('.')[0]}.local")))


def _plain(host: str) -> str:
    return host.strip().lower().removeprefix("[").removesuffix("]").removesuffix(".")


def _reached_at(request: web.Request) -> str | None:
    """Return the local address that a request came to."""
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
    """Add the common headers; keep the content policy of a page."""
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
    cache: RunCache,
    *,
    allow_remote: bool = False,
    names: Iterable[str] = (),
    token: str | None = None,
    labeler: str = "",
    ask_judge: bool = False,
) -> web.Application:
    """Return the application; with `allow_remote`, it also accepts this machine's `names`.

    With a `token`, it answers only requests that have it. With a `labeler`, it collects labels.
    With `ask_judge`, its pages may ask the judge of a run again.
    """
    judges = LiveJudges() if ask_judge else None
    views = _Views(cache, labeler, judges)
    posts = [end for end, on in (("label", labeler), ("influence", judges)) if on]
    checks = [guard(allow_remote=allow_remote, names=names, posts=posts)]
    checks += [] if token is None else [ask_for_token(token)]
    app = web.Application(middlewares=[*checks, _in_words])
    app.on_response_prepare.append(add_headers)
    app.router.add_get("/", views.index)
    app.router.add_get("/runs.json", views.runs_head)
    app.router.add_get("/pulse.json", views.runs_pulse)
    app.router.add_get("/run/{slug}", views.with_slash)
    app.router.add_get("/run/{slug}/", views.page)
    app.router.add_get("/run/{slug}/head.json", views.head)
    app.router.add_get("/run/{slug}/pulse.json", views.pulse)
    app.router.add_get("/run/{slug}/search.json", views.search)
    app.router.add_get("/run/{slug}/baselines.json", views.baselines)
    app.router.add_get("/run/{slug}/diff.json", views.diff)
    app.router.add_get("/run/{slug}/response.json", views.response)
    app.router.add_get("/run/{slug}/block/{name}", views.block)
    app.router.add_get("/run/{slug}/files/{name:.+}", views.file)
    if labeler:
        app.router.add_get("/run/{slug}/label", views.label_queue)
        app.router.add_post("/run/{slug}/label", views.label)
    if judges is not None:
        app.router.add_get("/run/{slug}/influence", views.influence_offer)
        app.router.add_post("/run/{slug}/influence", views.influence)
        app.on_shutdown.append(lambda _: judges.aclose())

    async def close(_: web.Application) -> None:
        cache.close()

    app.on_cleanup.append(close)
    return app


class _Views:
    def __init__(self, cache: RunCache, labeler: str, judges: LiveJudges | None) -> None:
        self._cache = cache
        self._labeler = labeler
        self._judges = judges

    async def index(self, _: web.Request) -> web.StreamResponse:
        runs = await self._cache.runs()
        if len(runs) == 1:
            raise web.HTTPFound(f"run/{next(iter(runs))}/")
        return _page(served_page(await self._cache.list(), "runs"))

    async def runs_head(self, _: web.Request) -> web.StreamResponse:
        return _json(await self._cache.list())

    async def runs_pulse(self, _: web.Request) -> web.StreamResponse:
        return _json({"version": (await self._cache.list()).version})

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
            raise web.HTTPConflict(text="The run has new results: reload the page.\n") from None
        if block is None:
            raise web.HTTPNotFound(text="There is no such block.\n")
        return web.Response(body=block, content_type="application/octet-stream")

    async def search(self, request: web.Request) -> web.StreamResponse:
        run = await self._run(request)
        return _json(await run.search(request.query.get("words", "")[:MOST_WORDS]))

    async def baselines(self, request: web.Request) -> web.StreamResponse:
        return _json(await self._cache.baselines(request.match_info["slug"]))

    async def diff(self, request: web.Request) -> web.StreamResponse:
        base = request.query.get("base", "")
        return _json(_found(await self._cache.diff(request.match_info["slug"], base)))

    async def response(self, request: web.Request) -> web.StreamResponse:
        wanted = (request.query.get(name, "") for name in ("base", "query", "candidate"))
        return _json(_found(await self._cache.response(request.match_info["slug"], *wanted)))

    async def file(self, request: web.Request) -> web.StreamResponse:
        run = await self._run(request)
        path = public_file(run.path, request.match_info["name"])
        if path is None:
            raise web.HTTPNotFound(text="There is no such file.\n")
        try:
            # Do not follow a link that replaces the file at this moment.
            handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        except OSError:
            raise web.HTTPNotFound(text="The file no longer exists.\n") from None
        with os.fdopen(handle, "rb") as stream:
            return await _stream(request, stream, path.name)

    async def label_queue(self, request: web.Request) -> web.StreamResponse:
        return _json(await (await self._run(request)).label_queue(self._labeler))

    async def label(self, request: web.Request) -> web.StreamResponse:
        run = await self._run(request)
        return _json(await run.label(self._labeler, await _object_in(request)))

    async def influence_offer(self, request: web.Request) -> web.StreamResponse:
        assert self._judges is not None
        run = await self._run(request)
        return _json(await self._judges.offer(run.path, ItemQuestion.of(request.query)))

    async def influence(self, request: web.Request) -> web.StreamResponse:
        """Send the progress and the result as JSON lines; a closed page cancels the asking."""
        assert self._judges is not None
        run = await self._run(request)
        question = ItemQuestion.of(await _object_in(request))
        response = web.StreamResponse(headers={"Content-Type": "application/jsonl"})
        await response.prepare(request)
        with contextlib.suppress(ConnectionResetError):
            async with contextlib.aclosing(self._judges.steps(run.path, question)) as steps:
                async for step in steps:
                    await response.write(json_bytes(plain(step)) + b"\n")
            await response.write_eof()
        return response

    async def _run(self, request: web.Request) -> LiveRun:
        run = await self._cache.run(request.match_info["slug"])
        if run is None:
            raise web.HTTPNotFound(text="There is no such run.\n")
        return run

    async def _head(self, request: web.Request) -> ReportHead:
        run = await self._run(request)
        several = len(await self._cache.runs()) > 1
        head = await run.head()
        return replace(
            head,
            live=head.live and replace(head.live, asks_judge=self._judges is not None),
            files_at="files/",
            index_at="../../" if several else None,
            blocks="served",
            labeler=self._labeler,
        )


@web.middleware
async def _in_words(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Return the message of an error, never a traceback."""
    try:
        return await handler(request)
    except (MistakenLabel, MistakenQuestion) as error:
        raise web.HTTPBadRequest(text=f"{error.message}\n") from None
    except RocketEvalError as error:
        text = f"{error.message}\n{error.hint}".strip()
        if request.path.endswith("/"):
            body = f"<!doctype html><title>RocketEval</title><pre>{html.escape(text)}</pre>"
            return web.Response(text=body, content_type="text/html", status=500)
        return web.Response(text=f"{text}\n", status=500)


async def _stream(request: web.Request, stream: IO[bytes], name: str) -> web.StreamResponse:
    """Send the current content of a file, which may grow meanwhile."""
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
            # The file shrank; the reader must not accept it as complete.
            raise ConnectionResetError(f"{name} was truncated while it was sent")
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


async def _object_in(request: web.Request) -> dict[str, object]:
    with contextlib.suppress(ValueError):
        given = json.loads(await request.text())
        if isinstance(given, dict):
            return given
    raise web.HTTPBadRequest(text="The request is not a JSON object.\n")


def _found(record: T | None) -> T:
    if record is None:
        raise web.HTTPNotFound(text="There is no such run or response.\n")
    return record


def _json(record: Any) -> web.Response:
    return web.Response(body=json_bytes(plain(record)), content_type="application/json")


FIRST_PORT = 8700
PORTS = 20
"""Number of ports to try before the system chooses one."""


def bind(host: str, port: int | None, *, allow_remote: bool) -> socket.socket:
    """Return a socket to listen on; raise ConfigError for an address that others can reach.

    Without a port, use the first free one from 8700.
    """
    if not is_loopback(host) and not allow_remote:
        raise ConfigError(
            f"{host} can be reached by other machines, which could read the run.",
            hint="Drop --host and use an SSH tunnel, or add --allow-remote on a network you "
            "trust: there is no password.",
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
    """Return the URL to open in a browser.

    >>> with bind("127.0.0.1", 0, allow_remote=False) as bound:
    ...     address_of(bound).startswith("http://127.0.0.1:")
    True
    """
    host, port = bound.getsockname()[:2]
    if ip_address(host).is_unspecified:
        host = socket.gethostname()
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


async def serve(app: web.Application, bound: socket.socket, started: Callable[[], None]) -> None:
    """Serve until SIGINT or SIGTERM; call `started` once requests are accepted."""
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
    # On Windows, event loops have no signal handlers, and Ctrl-C ends the loop.
    with contextlib.suppress(NotImplementedError):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
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
            hint="Give another --port, or none to use a free one.",
        )
    return RocketEvalError(f"Cannot listen on port {port} of {host}: {error.strerror or error}.")
