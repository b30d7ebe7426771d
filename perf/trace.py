"""The files and functions of the package that one command executes, and its deepest call stack.

    python perf/trace.py [grade|run ...]

The quickstart is written to a temporary folder and judged by the scripted engine. Each command runs
in a separate process under `sys.setprofile`, with all its threads.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

SCRIPTED = "judge: {engine: scripted, model: scripted}\n"


def main() -> None:
    """Print one row per command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("verbs", nargs="*", default=["run --only grade", "run"])
    parser.add_argument("--traced", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.traced:
        traced(given.traced)
        return
    print(f"{'command':<18}{'files':>8}{'functions':>12}{'deepest stack':>16}")
    for verb in given.verbs:
        with tempfile.TemporaryDirectory() as folder:
            config = quickstart(Path(folder))
            command = [sys.executable, __file__, "--traced", *verb.split()]
            command += [str(config), "--quiet"]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            found = json.loads(done.stdout.splitlines()[-1])
            print(f"{verb:<18}{found['files']:>8,}{found['functions']:>12,}{found['depth']:>16,}")


def quickstart(folder: Path) -> Path:
    """Write the packaged example, judged by the scripted engine."""
    command = [sys.executable, "-m", "rocketeval.cli.main", "init", str(folder / "demo"), "--model"]
    subprocess.run([*command, "m"], check=True, capture_output=True)
    config = folder / "demo" / "rocketeval.yaml"
    lines = config.read_text().splitlines(keepends=True)
    start = next(place for place, line in enumerate(lines) if line.startswith("judge:"))
    after = (place for place in range(start + 1, len(lines)) if lines[place][:1] not in (" ", "#"))
    end = next(after, len(lines))
    config.write_text("".join([*lines[:start], SCRIPTED, *lines[end:]]))
    return config


def traced(args: list[str]) -> None:
    """Run the command in this process and print the executed functions as JSON."""
    from rocketeval.cli import main as entry

    package = str(Path(entry.__file__).parents[1])
    functions: set[tuple[str, str]] = set()
    deepest = 0

    def profile(frame: FrameType, event: str, _: Any) -> None:
        nonlocal deepest
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(package):
            return
        if code.co_name in ("<module>", "<lambda>", "<genexpr>", "<listcomp>", "<dictcomp>"):
            return
        depth, above = 0, frame
        while above is not None:
            if above.f_code.co_name == "<module>" and above.f_code.co_filename.startswith(package):
                return  # Code that runs during an import is not part of the command.
            depth += above.f_code.co_filename.startswith(package)
            above = above.f_back  # type: ignore[assignment]
        functions.add((code.co_filename, code.co_qualname))
        deepest = max(deepest, depth)

    sys.argv = ["rocketeval", *args]
    watch: Callable[..., None] = profile
    threading.setprofile(watch)
    sys.setprofile(watch)
    try:
        entry.main()
    except SystemExit as end:
        if end.code not in (0, None):
            raise
    finally:
        sys.setprofile(None)
    files = {file for file, _ in functions}
    print(json.dumps({"files": len(files), "functions": len(functions), "depth": deepest}))


if __name__ == "__main__":
    main()
