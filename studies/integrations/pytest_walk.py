"""The pytest plugin on an example project: first run, second run, regression, offline.

    python studies/integrations/pytest_walk.py > studies/integrations/recorded/pytest_walk.txt

The judge is the program in word_judge.py, so that the outcome is known; requests are counted by
that server, including those that identify the judge. With pytest-xdist installed, the last run uses
two processes.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from word_judge import MODEL, WordServer, serving

HERE = Path(__file__).parent
PROJECT = HERE / "pytest_project"
OPTIONS = ["-p", "no:rocketeval", "-p", "rocketeval.gate.pytest_plugin", "-q", "--color=no"]
OPTIONS += ["-p", "no:cacheprovider"]


def run(folder: Path, server: WordServer, title: str, *more: str, version: str = "1") -> int:
    """Run the project's tests and print what a user sees; return the exit code."""
    before, began = server.count, time.perf_counter()
    command = [sys.executable, "-m", "pytest", *OPTIONS, "--rocketeval-judge", MODEL]
    command += ["--rocketeval-base-url", server.base_url, *more]
    environment = {**os.environ, "BOT_VERSION": version}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    seconds = time.perf_counter() - began
    print(f"## {title}")
    print(f"$ pytest {' '.join(more)}".rstrip())
    print(re.sub(r"(in )\d+\.\d+s", r"\1...s", done.stdout).strip())
    print(f"-> exit code {done.returncode}, {server.count - before} HTTP requests, {seconds:.1f} s")
    print()
    return done.returncode


def main() -> None:
    """Print the walk."""
    with TemporaryDirectory() as home, serving() as server:
        folder = Path(home) / "project"
        shutil.copytree(PROJECT, folder)
        (folder / "pytest.ini").write_text("[pytest]\n")
        run(folder, server, "First run: accept the baseline", "--rocketeval-update-baseline")
        run(folder, server, "Second run: nothing is asked")
        run(folder, server, "A regression", "--tb=short", version="2")
        run(folder, server, "Offline, from the recorded answers", "--rocketeval-offline")
        if find_spec("xdist"):
            (folder / ".rocketeval" / "answers.jsonl").unlink()
            run(folder, server, "Two processes, no recorded answers", "-n", "2")
            run(folder, server, "Two processes, offline", "-n", "2", "--rocketeval-offline")


if __name__ == "__main__":
    main()
