"""The connection to Ray: a cluster started here, or the one named in the config."""

from __future__ import annotations

import logging
import math
import os
import signal
import socket
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from rocketeval.errors import ClusterError, ConfigError

START_SECONDS = "120"
"""How long Ray may take to start on a busy machine."""
REACH_SECONDS = 10.0
"""How long a cluster's port may take to answer."""
OBJECT_STORE = 256 << 20
"""Bytes of shared memory for tasks in flight, if Ray is started here."""
CLIENT = "ray://"
STARTED_OR_FOUND = ("local", "auto")
"""Addresses that Ray resolves itself."""
_log = logging.getLogger(__name__)


def need_ray() -> None:
    """Raise ConfigError unless Ray Data is installed."""
    if find_spec("ray") is None:
        raise ConfigError(
            "Grading on Ray needs Ray, which is not installed.",
            hint="pip install 'rocketeval[ray]'",
        )


@contextmanager
def connected(on: str, cpus: float = 0.0) -> Iterator[Any]:
    """Connect to the cluster that `on` names; a cluster started here ends with the block.

    A cluster started here has at least `cpus` Ray CPUs. If the program is already connected to
    Ray, that connection is used and kept.
    """
    need_ray()
    os.environ.setdefault("RAY_raylet_start_wait_time_s", START_SECONDS)
    import ray

    if ray.is_initialized():
        yield ray
        return
    check_address(on)
    check_reachable(on)
    address = cluster_address(on)
    with _notices_logged():
        with _own_signals(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _start(ray, address, cpus)
        try:
            yield ray
        finally:
            ray.shutdown()


def starts_here(on: str) -> bool:
    """Return whether `connected` would start a cluster that nothing else can join."""
    ray = sys.modules.get("ray")
    return cluster_address(on) == "local" and not (ray and ray.is_initialized())


def cluster_address(on: str) -> str:
    """Return the address in the form that Ray understands.

    >>> cluster_address("ray://head:10001"), cluster_address("head:6379")
    ('ray://head:10001', 'head:6379')
    """
    if on == "ray":
        return os.environ.get("RAY_ADDRESS") or "local"
    return on


def check_address(on: str) -> None:
    """Raise ConfigError unless `on` has the form of a cluster address."""
    address = cluster_address(on)
    if address in STARTED_OR_FOUND:
        return
    host, port = _host_and_port(address)
    if not host or not port.isdigit():
        raise ConfigError(
            f"{address!r} is not the address of a Ray cluster.",
            hint="Use ray (start one here, or $RAY_ADDRESS), ray://head:10001, or head:6379 on a "
            "machine of the cluster.",
        )


def check_reachable(on: str) -> None:
    """Raise ClusterError if `on` names a cluster whose port is closed."""
    address = cluster_address(on)
    if address not in STARTED_OR_FOUND:
        _check_reachable(address)


def _host_and_port(address: str) -> tuple[str, str]:
    host, _, port = address.removeprefix(CLIENT).partition("/")[0].rpartition(":")
    return host, port


def _start(ray: Any, address: str, cpus: float) -> None:
    settings: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address == "local":
        # No usage statistics leave the user's machine.
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        # Ray would give its workers, which the user waits for, the lowest priority.
        os.environ.setdefault("RAY_worker_niceness", "0")
        settings |= {
            "num_cpus": max(math.ceil(cpus), os.cpu_count() or 1),
            "include_dashboard": False,
            "object_store_memory": OBJECT_STORE,
        }
    try:
        ray.init(address=address, **settings)
    except ImportError as error:
        raise ConfigError(
            f"Ray's client is not available here: {error}.", hint="pip install 'ray[client]'"
        ) from None
    except Exception as error:  # noqa: BLE001 - such as a bare Exception if Ray starts too slowly
        where = "started here" if address == "local" else f"reached at {address}"
        raise ClusterError(
            f"Ray could not be {where}: {_first_line(error)}",
            hint="Is this machine too busy? Try again, or use --on local."
            if address == "local"
            else "Is it up, and does it run the same versions of Ray and Python as this machine?",
        ) from None


def _check_reachable(address: str) -> None:
    """Raise ClusterError unless the port is open: Ray itself would retry for minutes."""
    host, port = _host_and_port(address)
    try:
        socket.create_connection((host.strip("[]"), int(port)), REACH_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise ClusterError(
            f"No Ray cluster answers at {address}: {error}.",
            hint="Start it (`ray start --head`), or correct --on (`distributed.cluster`).",
        ) from None


@contextmanager
def _own_signals() -> Iterator[None]:
    """Keep our signal handlers: Ray's would end the run without finishing tasks in flight."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ours = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in ours.items():
            if handler is not None:
                signal.signal(number, handler)


@contextmanager
def _notices_logged() -> Iterator[None]:
    """Log Ray's notices, which it would otherwise print to standard output, into our JSON."""
    from ray._private import worker

    printing = getattr(worker, "print_to_stdstream", None)
    if printing is None:
        yield
        return

    def log(notice: dict[str, Any], ignore_prefix: bool = False) -> None:
        _log.debug("%s", " ".join(map(str, notice.get("lines", ()))))

    vars(worker)["print_to_stdstream"] = log
    try:
        yield
    finally:
        vars(worker)["print_to_stdstream"] = printing


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
