"""Free ports on this machine, for servers that end with the program."""

from __future__ import annotations

import socket


def free_port() -> int:
    """Return a free loopback port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def listens(port: int) -> bool:
    """Return whether a server listens at a loopback port."""
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0
