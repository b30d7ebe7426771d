"""End-to-end tests of `rocketeval view`: URL, Ctrl-C and errors."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from rocketeval.errors import ConfigError, RocketEvalError
from rocketeval.view.server import bind
from support.command import cli
from support.forked import Forked
from support.viewing import finish


@contextmanager
def shown(folder: Path, *args: str) -> Iterator[tuple[Forked, str]]:
    """Start the command and yield it with the URL it prints."""
    process = Forked(folder, ("view", *args), {**os.environ, "PYTHONUNBUFFERED": "1"})
    try:
        line = process.stdout.readline()
        assert " at http://" in line, line
        assert process.stdout.readline() == "Press Ctrl-C to stop.\n"
        yield process, line.split(" at ")[1].strip()
    finally:
        process.kill()
        process.communicate()


def base(address: str) -> str:
    """Return the address without its token."""
    return address.partition("?")[0]


def opened(address: str) -> Any:
    """Open an address like a browser, which keeps cookies."""
    return urllib.request.build_opener(urllib.request.HTTPCookieProcessor()).open(address)


def test_the_address_has_a_token(tmp_path: Path) -> None:
    """Without the token, or with another one, nothing is served; two servers have two tokens."""
    finish(tmp_path)
    with shown(tmp_path) as (_, one), shown(tmp_path) as (_, two):
        assert one.partition("?")[2] != two.partition("?")[2]
        others = (base(one), f"{base(one)}?token=guess", f"{base(one)}?{two.partition('?')[2]}")
        for other in others:
            for path in ("", "runs.json", "run/run/files/run.yaml"):
                with pytest.raises(urllib.error.HTTPError) as caught:
                    urllib.request.urlopen(other.replace("?", f"{path}?"))
                assert caught.value.code == 403
                caught.value.close()
        with opened(one) as page:
            assert "set-cookie" not in page.headers
            assert b"token=" not in page.read()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_ctrl_c_stops_the_server_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    """The page is served until the signal; then the exit code is 0, without a traceback."""
    finish(tmp_path)
    with shown(tmp_path) as (process, address):
        with opened(address) as page:
            assert page.url == f"{base(address)}run/run/"
        process.send_signal(number)
        output, errors = process.communicate()
    assert process.returncode == 0
    assert output == "Stopped.\n"
    assert errors == ""


def test_taken_port_is_skipped_unless_given(tmp_path: Path) -> None:
    """Two viewers use different ports; a given port that is taken is an error."""
    finish(tmp_path)
    with shown(tmp_path) as (_, one), shown(tmp_path) as (_, two):
        assert one != two
        port = base(one).rstrip("/").rpartition(":")[2]
        stderr = cli(tmp_path, "view", "--port", port, code=1).stderr
        assert f"Port {port} of 127.0.0.1 is taken" in stderr


def test_remote_access_needs_a_flag(tmp_path: Path) -> None:
    """An address that others can reach needs --allow-remote, which prints a warning."""
    finish(tmp_path)
    stderr = cli(tmp_path, "view", "--host", "0.0.0.0", code=2).stderr
    assert "--allow-remote" in stderr
    with shown(tmp_path, "--host", "0.0.0.0", "--allow-remote", "--port", "0") as (process, _):
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate()
    assert "no password" in errors


def test_host_names_for_remote_readers(tmp_path: Path) -> None:
    """Every --host-name is accepted, other names are not; it needs --allow-remote."""
    finish(tmp_path)
    stderr = cli(tmp_path, "view", "--host-name", "a.example", code=2).stderr
    assert "--allow-remote" in stderr
    names = ("--host-name", "a.example", "--host-name", "B.example")
    remote = ("--host", "0.0.0.0", "--allow-remote", "--port", "0", *names)
    with shown(tmp_path, *remote) as (_, address):
        port = int(base(address).rstrip("/").rpartition(":")[2])
        token = address.partition("?")[2]
        for name, status in (("a.example", 200), ("b.example", 200), ("c.example", 403)):
            line = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            line.request("GET", f"/run/run/?{token}", headers={"Host": name})
            assert line.getresponse().status == (302 if status == 200 else status), name
            line.close()
        own = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        own.request("GET", f"/run/run/?{token}", headers={"Host": socket.gethostname()})
        assert own.getresponse().status == 302
        own.close()


def test_missing_target_is_an_error(tmp_path: Path) -> None:
    """A target that does not exist is an error with a hint."""
    stderr = cli(tmp_path, "view", "nothing", code=5).stderr
    assert "nothing does not exist" in stderr
    assert "a folder of runs" in stderr


def test_viewer_can_start_before_the_run(tmp_path: Path) -> None:
    """With a config but no run, the server starts and creates no folder."""
    (tmp_path / "rocketeval.yaml").write_text("benchmark: {path: b}\njudge: {model: m}\n")
    with shown(tmp_path) as (_, address), opened(address) as page:
        assert page.status == 200
    assert not (tmp_path / "runs").exists()


def test_only_loopback_can_be_bound_by_default() -> None:
    """`bind` refuses other addresses without `allow_remote`."""
    for host in ("0.0.0.0", "::", "example.org", "192.168.0.1"):
        with pytest.raises(ConfigError, match="other machines"):
            bind(host, None, allow_remote=False)
    with bind("localhost", 0, allow_remote=False) as bound:
        assert bound.getsockname()[0] == "127.0.0.1"


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may take any port")
def test_privileged_port_is_an_error() -> None:
    """A port without permission is an error with a message."""
    with pytest.raises(RocketEvalError, match="Cannot listen on port 1"):
        bind("127.0.0.1", 1, allow_remote=False)


def test_first_free_port_is_used() -> None:
    """A taken port is skipped."""
    one, two = (bind("127.0.0.1", None, allow_remote=False) for _ in range(2))
    with one, two:
        assert one.getsockname()[1] != two.getsockname()[1]
