"""A new user's way from a CSV file to a first ranking: the commands, what they print, the time.

    python studies/data_in/new_user.py --judge MODEL --base-url URL [--limit N] [--record]

Writes a CSV with 3 prompt versions x 30 questions, types two commands, and prints their output and
the seconds of each (elapsed, and of the CPU). With `--fake`, the judge is the test suite's server,
so that everything but the judging is measured. With `--record`, the output goes to
`studies/recorded/data_in_new_user.txt`.
"""

from __future__ import annotations

import argparse
import csv
import os
import random
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).parent
FAKE = HERE.parents[1] / "tests" / "fakes" / "openai_server.py"
RECORD = HERE.parent / "recorded" / "data_in_new_user.txt"
PLACES = """
Australia Brazil Canada Denmark Egypt France Ghana Hungary India Japan Kenya Laos Mexico Nepal Oman
Peru Qatar Romania Spain Turkey Uganda Vietnam Yemen Zambia Austria Belgium Chile Ecuador Finland
Greece
"""


def write_csv(path: Path) -> None:
    """Write 30 questions, each answered by three prompt versions."""
    choose = random.Random(0)
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["id", "question", "prompt_version", "output"])
        number = 0
        for place in PLACES.split():
            for version, words in (("short", 2), ("full", 12), ("chatty", 40)):
                number += 1
                text = " ".join(choose.choices(["It", "is", "the", "city", "of", place], k=words))
                writer.writerow([number, f"What is the capital of {place}?", version, text])


def typed(command: list[str], folder: Path) -> Iterator[str]:
    """Run a command as a user would; yield it, its output and its seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.monotonic()
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    yield f"$ {' '.join(command)}"
    yield done.stdout.rstrip()
    elapsed = time.monotonic() - started
    yield f"[exit code {done.returncode}; {elapsed:.0f} s, {cpu:.1f} s of CPU]\n"


def walk(judge: str, base_url: str, limit: int | None) -> Iterator[str]:
    """Yield what a new user types and sees."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        write_csv(folder / "answers.csv")
        yield from typed(["rocketeval", "import", "answers.csv"], folder)
        some = [] if limit is None else ["--limit", str(limit)]
        source = ["--judge", judge, "--base-url", base_url, "--checklist", "general"]
        yield from typed(["rocketeval", "run", "answers.csv", *source, *some], folder)


def main() -> None:
    """Walk, and record the output."""
    sys.path.insert(0, str(HERE.parent))
    from loopback import free_port, listens

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--judge", default="fake-judge")
    parser.add_argument("--base-url")
    parser.add_argument("--fake", action="store_true")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    port = free_port()
    server = None
    if given.fake:
        server = subprocess.Popen(
            [sys.executable, str(FAKE), "--port", str(port), "--log", os.devnull],
            stdout=subprocess.DEVNULL,
        )
        while not listens(port):
            time.sleep(0.2)
    try:
        lines = []
        url = given.base_url or f"http://127.0.0.1:{port}/v1"
        for line in walk(given.judge, url, given.limit):
            print(line, flush=True)
            lines.append(line.replace(f":{port}/", ":8000/"))
    finally:
        if server is not None:
            server.terminate()
            server.wait()
    if given.record:
        RECORD.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
