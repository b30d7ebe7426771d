"""The command line, as a user runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def cli(folder: Path, *args: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run the command in `folder`; the exit code must be `code`, and nothing a traceback."""
    command = [sys.executable, "-m", "rocketeval.cli.main", *args]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done
