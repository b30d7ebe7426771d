"""`rocketeval view` in a process of its own."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.forked import Forked


def start(folder: Path, *args: str) -> Forked:
    """Start a command in a folder, with its output unbuffered."""
    return Forked(folder, args, {**os.environ, "PYTHONUNBUFFERED": "1"})


def start_view(folder: Path, *args: str) -> tuple[Forked, str]:
    """Start a server; return it and the address that it prints."""
    server = start(folder, "view", *args)
    for line in server.stdout:
        found = re.search(r"http://127\.0\.0\.1:\d+/\S+", line)
        if found:
            return server, found[0]
    pytest.fail("the server printed no address")


@contextmanager
def viewed(folder: Path, *args: str) -> Iterator[str]:
    """Serve for the length of the `with` block; yield the address. SIGTERM must end it well."""
    server, address = start_view(folder, *args)
    yield address
    server.send_signal(signal.SIGTERM)
    _, errors = server.communicate()
    assert server.returncode == 0, errors
