"""The command in a pseudo-terminal: widths, encodings, colors, Ctrl-C."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from rich.cells import cell_len

from cli.test_cli import CONFIG
from support.forked import SECONDS, Forked
from support.in_process import cli
from support.make import write_benchmark

SLOW = CONFIG.replace("model: scripted", "model: scripted, concurrency: 1, options: {delay: 0.4}")
QUICK = "scripted, concurrency: 1, options: {delay: 0.1}}"
PRICES = "prices: {currency: USD, models: {scripted: {prompt: 2.5, completion: 10}}}\n"
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
COLORS = re.compile(r"\x1b\[[0-9;]*3[0-7][0-9;]*m")
HIDE, SHOW = "\x1b[?25l", "\x1b[?25h"


@dataclass(frozen=True)
class Screen:
    """Everything sent to a terminal, and the exit code."""

    raw: str
    code: int

    @property
    def lines(self) -> list[str]:
        """Every line ever drawn, without control sequences."""
        return re.split(r"[\r\n]+", ESCAPES.sub("", self.raw))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_benchmark(tmp_path / "benchmark")
    (tmp_path / "prices.yaml").write_text(PRICES.removeprefix("prices: "))
    (tmp_path / "rocketeval.yaml").write_text(SLOW + "prices: prices.yaml\n")
    return tmp_path


def in_terminal(
    folder: Path,
    *words: str,
    width: int = 80,
    environment: Mapping[str, str] | None = None,
    encoding: str = "utf-8",
    press: Callable[[str], bytes] = lambda shown: b"",
) -> Screen:
    """Run the command in a terminal of that width; `press` returns keys for the shown text."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    usual = {"TERM": "xterm-256color", "COLUMNS": "", "LANG": "C.UTF-8", "LC_ALL": ""}
    env = {**os.environ, **usual, "LC_CTYPE": "", **(environment or {})}
    env = {name: value for name, value in env.items() if value}

    # The encoding of a stream is fixed when an interpreter starts.
    start = Forked if encoding == "utf-8" else fresh_in_terminal
    process = start(folder, words, env, slave)
    os.close(slave)
    shown = b""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        if not select.select([master], [], [], 0.1)[0]:
            continue
        try:
            piece = os.read(master, 65536)
        except OSError:
            break
        if not piece:
            break
        shown += piece
        keys = press(shown.decode(encoding, "replace"))
        if keys:
            os.write(master, keys)
    code = process.wait(timeout=SECONDS)
    os.close(master)
    return Screen(shown.decode(encoding), code)


def fresh_in_terminal(
    folder: Path, words: Sequence[str], env: Mapping[str, str], terminal: int
) -> subprocess.Popen[bytes]:
    """Start a new interpreter in a terminal."""

    def own_terminal() -> None:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    command = [sys.executable, "-m", "rocketeval.cli.main", *words]
    streams = {"stdin": terminal, "stdout": terminal, "stderr": terminal}
    return subprocess.Popen(command, cwd=folder, env=env, preexec_fn=own_terminal, **streams)


@pytest.mark.parametrize("width", [80, 160])
def test_progress_and_summary_fit_the_terminal(width: int, folder: Path) -> None:
    """The bar has rate, time left, tokens and money; the summary follows; all fit the width."""
    cli(folder, "plan", "--quiet")
    screen = in_terminal(folder, "run", width=width)
    assert screen.code == 0
    assert max(map(cell_len, screen.lines)) <= width
    bars = [line for line in screen.lines if "\u2501" in line and " left" in line]
    assert re.search(r"grade  \u2501+\u2500*  [1-5]/6 +\d+%  about 0:\d\d left", bars[-1])
    last = screen.lines[screen.lines.index(bars[-1]) + 1]
    assert re.search(r"so far at \d\.\d/s, .* of .* prompt tokens, .* of .* USD planned", last)
    shown = "\n".join(screen.lines)
    for text in ("rating", "mean score", "Trust", "Cost", "Missing  nothing", "Report", "Next  "):
        assert text in shown
    assert screen.raw.rindex(SHOW) > screen.raw.rindex(HIDE)


@pytest.mark.parametrize(
    "environment",
    [
        {"PYTHONIOENCODING": "cp1252"},
        {"LC_ALL": "C"},
    ],
    ids=["cp1252", "LC_ALL=C"],
)
def test_output_is_ascii_where_necessary(environment: Mapping[str, str], folder: Path) -> None:
    """If Unicode marks cannot be shown, every byte is ASCII."""
    (folder / "rocketeval.yaml").write_text(CONFIG.replace("scripted}", QUICK))
    screen = in_terminal(folder, "run", environment=environment, encoding="ascii")
    assert screen.code == 0
    assert any("grade  ##" in line for line in screen.lines)
    assert any(line.startswith(("/ 1", "  1")) for line in screen.lines)
    assert in_terminal(folder, "audit", environment=environment, encoding="ascii").code == 0


def test_commands_and_paths_are_not_wrapped(folder: Path) -> None:
    """The next command and the report's path are each on one line."""
    config = "a-config-whose-name-is-wider-than-such-a-terminal.yaml"
    failing = CONFIG.replace("scripted}", "scripted, options: {fail_on: left explains the sun}}")
    (folder / config).write_text(failing.replace("name: demo", "name: a-run-with-a-long-name-too"))
    screen = in_terminal(folder, "run", config, width=40)
    assert screen.code == 3
    assert f"         rocketeval run {config}" in screen.lines
    assert "Report   runs/a-run-with-a-long-name-too/report.html" in screen.lines


def test_no_color_disables_colors(folder: Path) -> None:
    """NO_COLOR applies to results, progress and errors."""
    (folder / "rocketeval.yaml").write_text(CONFIG)
    plain = {"NO_COLOR": "1"}
    assert not COLORS.search(in_terminal(folder, "run", environment=plain).raw)
    assert not COLORS.search(in_terminal(folder, "run", "none.yaml", environment=plain).raw)
    assert COLORS.search(in_terminal(folder, "run", "none.yaml").raw)


def test_dumb_terminal_gets_lines(folder: Path) -> None:
    """A dumb terminal gets no bar and no escape sequence."""
    screen = in_terminal(folder, "run", environment={"TERM": "dumb"})
    assert "\x1b" not in screen.raw
    assert any(re.match(r"\d\d:\d\d:\d\d grade: \d of 6 ", line) for line in screen.lines)


def test_ctrl_c_leaves_the_terminal_clean(folder: Path) -> None:
    """The bar is removed, the cursor is restored, and the exit code is 130."""
    pressed: list[str] = []

    def press(shown: str) -> bytes:
        if pressed or not re.search(r"[1-4]/6 ", shown):
            return b""
        pressed.append(shown)
        return b"\x03"

    screen = in_terminal(folder, "run", press=press)
    assert screen.code == 130
    assert "Traceback" not in screen.raw
    assert sum("Stopping" in line for line in screen.lines) == 1
    assert screen.raw.rindex(SHOW) > screen.raw.rindex(HIDE)
    after = ESCAPES.sub("", screen.raw[screen.raw.rindex(SHOW) :])
    assert "\u2501" not in after
    assert "Run the same command again" in after.rstrip().splitlines()[-1]


def test_pipe_gets_no_escape_sequences(folder: Path) -> None:
    """A pipe gets time-stamped lines on stderr and tables on stdout."""
    done = cli(folder, "run")
    assert "\x1b" not in done.stdout + done.stderr
    assert all(re.match(r"\d\d:\d\d:\d\d \w+", line) for line in done.stderr.splitlines())
    assert re.search(r"grade: 6 of 6 responses in \d", done.stderr)
