"""A server on this machine, until it is stopped."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
import socket
from collections.abc import Callable, Iterator
from ipaddress import ip_address

from aiohttp import web

from rocketeval.errors import ConfigError, RocketEvalError
from rocketeval.view.guard import is_loopback

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
