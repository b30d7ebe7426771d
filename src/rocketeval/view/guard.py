"""What every answer of the server has, and what it refuses: this machine's reader only, no change.

A page of another site could have a browser ask this server under a name that it made to mean
127.0.0.1, or this machine's address in its network. Such a request names that site in its Host
header, and is refused.
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Iterable
from ipaddress import ip_address

from aiohttp import web
from aiohttp.typedefs import Middleware

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
