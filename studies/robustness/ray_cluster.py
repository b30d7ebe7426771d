"""A real Ray cluster of several nodes on this machine, with ways to break it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

STORE = 128 << 20
WAIT_SECONDS = 240.0
STARTS = 4
"""How often a node is started: Ray gives a node 30 seconds, too little on a busy machine."""


class LocalCluster:
    """A head and further nodes, each with its own processes."""

    def __init__(self, *, head_cpus: int = 4, node_cpus: int = 2) -> None:
        from ray.cluster_utils import Cluster

        self._node_cpus = node_cpus
        head = {
            "num_cpus": head_cpus,
            "object_store_memory": STORE,
            "include_dashboard": False,
        }
        self._cluster = _patiently(lambda: Cluster(initialize_head=True, head_node_args=head))
        self.nodes: list[Any] = []

    @property
    def address(self) -> str:
        """Return the address for a driver on this machine."""
        return str(self._cluster.address)

    def add_node(self) -> None:
        """Start another node; it joins when it is ready."""
        node = _patiently(
            lambda: self._cluster.add_node(
                wait=False, num_cpus=self._node_cpus, object_store_memory=STORE
            )
        )
        self.nodes.append(node)

    def remove_node(self) -> None:
        """Kill all processes of the last node without notifying the head."""
        self._cluster.remove_node(self.nodes.pop(), allow_graceful=False)

    def judges(self, node: Any | None = None) -> list[int]:
        """Return the ids of the judging processes on one node, or on the whole cluster."""
        nodes = self._cluster.list_all_nodes() if node is None else [node]
        raylets = {info.process.pid for one in nodes for info in one.all_processes["raylet"]}
        pids = map(_number, Path("/proc").iterdir())
        return [pid for pid in pids if _judges(pid) and _parent(pid) in raylets]

    def shutdown(self) -> None:
        """End every process."""
        self._cluster.shutdown()


@contextmanager
def local_cluster(nodes: int = 1) -> Iterator[LocalCluster]:
    """Yield a cluster of a head and `nodes` nodes; all processes end with the block."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ["RAY_gcs_server_port_wait_time_s"] = "120"  # noqa: SIM112 - as Ray spells it
    os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112
    cluster = LocalCluster()
    try:
        for _ in range(nodes):
            cluster.add_node()
        yield cluster
    finally:
        cluster.shutdown()


def _patiently(start: Callable[[], Any]) -> Any:
    """Start again if it fails; what a failed attempt left behind ends with this process."""
    for _ in range(STARTS - 1):
        with suppress(Exception):
            return start()
    return start()


def wait_until(true: Callable[[], bool], what: str) -> None:
    """Wait until a condition holds; raise TimeoutError naming `what` if it does not."""
    until = time.monotonic() + WAIT_SECONDS
    while not true():
        if time.monotonic() > until:
            raise TimeoutError(what)
        time.sleep(0.05)


def kill(pid: int) -> None:
    """Kill a process without warning, like a power cut."""
    os.kill(pid, signal.SIGKILL)


def _number(path: Path) -> int:
    return int(path.name) if path.name.isdigit() else 0


def _judges(pid: int) -> bool:
    try:
        title = (Path("/proc") / str(pid) / "cmdline").read_bytes() if pid else b""
    except OSError:
        return False
    return title.startswith(b"ray::") and b"BatchGrader" in title


def _parent(pid: int) -> int:
    try:
        status = (Path("/proc") / str(pid) / "stat").read_text()
    except OSError:
        return 0
    return int(status.rpartition(")")[2].split()[1])
