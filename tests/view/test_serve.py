"""`rocketeval view` as a person uses it: an address, Ctrl-C, and words for what goes wrong."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rocketeval.errors import ConfigError, RocketEvalError
from rocketeval.view.server import bind
from support.command import cli
from support.forked import Forked
from support.viewing import finish


@contextmanager
def shown(folder: Path, *args: str) -> Iterator[tuple[Forked, str]]:
    """Start the command; give it with the address it prints."""
    process = Forked(folder, ("view", *args), {**os.environ, "PYTHONUNBUFFERED": "1"})
    try:
        line = process.stdout.readline()
        assert " at http://" in line, line
        assert process.stdout.readline() == "Press Ctrl-C to stop.\n"
        yield process, line.split(" at ")[1].strip()
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_it_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    """The page is there until the signal; then the command ends with 0 and no traceback."""
    finish(tmp_path)
    with shown(tmp_path) as (process, address):
        with urllib.request.urlopen(address) as page:
            assert page.url == f"{address}run/run/"
        process.send_signal(number)
        said, errors = process.communicate()
    assert process.returncode == 0
    assert said == "Stopped.\n"
    assert errors == ""


def test_a_taken_port_is_passed_over_unless_it_was_asked_for(tmp_path: Path) -> None:
    """Two viewers can stand side by side; a port that was named is that port or an error."""
    finish(tmp_path)
    with shown(tmp_path) as (_, one), shown(tmp_path) as (_, two):
        assert one != two
        port = one.rstrip("/").rpartition(":")[2]
        told = cli(tmp_path, "view", "--port", port, code=1).stderr
        assert f"Port {port} of 127.0.0.1 is taken." in told


def test_other_machines_are_kept_out(tmp_path: Path) -> None:
    """An address that others can reach needs --allow-remote, which comes with a warning."""
    finish(tmp_path)
    told = cli(tmp_path, "view", "--host", "0.0.0.0", code=2).stderr
    assert "others could read the run" in told
    with shown(tmp_path, "--host", "0.0.0.0", "--allow-remote", "--port", "0") as (process, _):
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate()
    assert "There is no password" in errors


def test_a_name_can_be_added_for_remote_readers(tmp_path: Path) -> None:
    """Every --host-name is answered to, another name is not; without leave it is an error."""
    finish(tmp_path)
    told = cli(tmp_path, "view", "--host-name", "a.example", code=2).stderr
    assert "--allow-remote" in told
    names = ("--host-name", "a.example", "--host-name", "B.example")
    remote = ("--host", "0.0.0.0", "--allow-remote", "--port", "0", *names)
    with shown(tmp_path, *remote) as (_, address):
        port = int(address.rstrip("/").rpartition(":")[2])
        for name, status in (("a.example", 200), ("b.example", 200), ("c.example", 403)):
            line = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            line.request("GET", "/run/run/", headers={"Host": name})
            assert line.getresponse().status == status, name
            line.close()
        own = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        own.request("GET", "/run/run/", headers={"Host": socket.gethostname()})
        assert own.getresponse().status == 200
        own.close()


def test_words_for_what_is_not_there(tmp_path: Path) -> None:
    """A target that does not exist is an error with a hint."""
    told = cli(tmp_path, "view", "nothing", code=5).stderr
    assert "There is no file or folder nothing." in told
    assert "a folder that holds runs" in told


def test_a_run_that_has_not_started_yet_can_be_waited_for(tmp_path: Path) -> None:
    """With a config and no run the server starts, and says that there is nothing yet."""
    (tmp_path / "rocketeval.yaml").write_text("benchmark: {path: b}\njudge: {model: m}\n")
    with shown(tmp_path) as (_, address), urllib.request.urlopen(address) as page:
        assert page.status == 200
    assert not (tmp_path / "runs").exists()


def test_only_loopback_can_be_bound_without_leave() -> None:
    """The library refuses what the command refuses."""
    for host in ("0.0.0.0", "::", "example.org", "192.168.0.1"):
        with pytest.raises(ConfigError, match="not this machine's own address"):
            bind(host, None, allow_remote=False)
    with bind("localhost", 0, allow_remote=False) as bound:
        assert bound.getsockname()[0] == "127.0.0.1"


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may take any port")
def test_a_port_that_is_not_ours_is_an_error() -> None:
    """A privileged port gives words."""
    with pytest.raises(RocketEvalError, match="Cannot listen on port 1"):
        bind("127.0.0.1", 1, allow_remote=False)


def test_the_first_free_port_is_found() -> None:
    """A taken one is passed over."""
    one, two = (bind("127.0.0.1", None, allow_remote=False) for _ in range(2))
    with one, two:
        assert one.getsockname()[1] != two.getsockname()[1]
