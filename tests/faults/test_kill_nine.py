"""A killed run loses nothing: a real process, a real signal, real files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "studies" / "robustness" / "kill_nine.py"


def test_two_kills_lose_nothing_and_change_no_byte() -> None:
    """After two SIGKILLs every judgment is there once, and scores are byte-identical."""
    command = [sys.executable, str(SCRIPT), "--kills", "2", "--delay", "0.05", "--seed", "7"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "killed 2 times; 60 of 60 judgments, none twice" in done.stdout


def test_a_race_killed_twice_ends_the_same() -> None:
    """After two SIGKILLs a run that stops early makes the same decision, byte for byte."""
    command = [sys.executable, str(SCRIPT), "--until", "best", "--kills", "2", "--delay", "0.02"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "killed 2 times" in done.stdout
