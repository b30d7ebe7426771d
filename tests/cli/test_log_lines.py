"""Log lines during a run."""

from __future__ import annotations

import io
import logging
import re
from pathlib import Path

import pytest
from rich.console import Console

from rocketeval.cli.progress import BarObserver, LineObserver
from rocketeval.cli.run_with_signals import log_shown
from rocketeval.observer import Observer
from support.make import make_config

LOG = logging.getLogger("rocketeval.batch")


def test_log_is_shown_during_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A record is one line on stderr, without control characters, only during the run."""
    LOG.info("too early")
    with log_shown(LineObserver(make_config(tmp_path))):
        LOG.info("batch %s submitted\x1b[2J", "b1")
        LOG.debug("too much")
    LOG.info("too late")
    shown = capsys.readouterr().err
    assert re.fullmatch(r"\d\d:\d\d:\d\d batch b1 submitted\ufffd\[2J\n", shown)
    assert not logging.getLogger("rocketeval").handlers


def test_log_lines_are_above_the_bar(tmp_path: Path) -> None:
    """In a terminal, brackets in a log line are not markup."""
    screen = io.StringIO()
    bar = BarObserver(make_config(tmp_path), Console(file=screen, force_terminal=True, width=80))
    bar.stage_began("grade", 10)
    with log_shown(bar):
        LOG.info("batch [b1] submitted")
    bar.closed()
    assert "batch [b1] submitted" in screen.getvalue()


def test_quiet_observer_shows_no_log(capsys: pytest.CaptureFixture[str]) -> None:
    """The base observer shows no log lines."""
    with log_shown(Observer()):
        LOG.info("batch submitted")
    assert capsys.readouterr().err == ""
