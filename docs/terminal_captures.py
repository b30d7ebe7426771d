"""Capture the terminal output in docs/reference/terminal.md: the demo of `init`, in tmux.

    python docs/terminal_captures.py            print the captures
    python docs/terminal_captures.py --write    write them to docs/reference/terminal.md

Needs tmux and an installed rocketeval. The judge is scripted: it answers by a hash of the
prompt, with half a second per response, so its scores mean nothing.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

PAGE = Path(__file__).parent / "reference" / "terminal.md"
COMMAND = f"{sys.executable} -m rocketeval.cli.main"
SIZES = {80: 30, 160: 30}
JUDGE = """\
model: small-judge
  engine: scripted
  concurrency: 4
  options: {delay: 0.5}"""
PRICES = "currency: USD\nmodels:\n  small-judge: {prompt: 0.15, completion: 0.6}\n"
DURING = 4.0
"""Seconds into the run at which the screen is captured."""
PROMPT = "done>"


def main() -> None:
    """Print the captures, or write them into the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--write", action="store_true", help="put them into docs/reference/terminal.md"
    )
    write = parser.parse_args().write
    page = PAGE.read_text() if write else ""
    for width, height in SIZES.items():
        with TemporaryDirectory() as folder:
            prepare(Path(folder))
            for name, shown in capture(Path(folder), width, height):
                if write:
                    page = put(page, name, shown)
                else:
                    sys.stdout.write(f"--- {name}\n{shown}\n\n")
    if write:
        PAGE.write_text(page)


def prepare(folder: Path) -> None:
    """Create the demo in `folder`, judged by the scripted engine, with a price and a plan."""
    run(folder, "init", "demo", "--model", "small-judge")
    config = folder / "demo" / "rocketeval.yaml"
    text = config.read_text().replace("model: small-judge", JUDGE)
    config.write_text(text + "prices: prices.yaml\n")
    (folder / "demo" / "prices.yaml").write_text(PRICES)
    run(folder, "plan", "demo/rocketeval.yaml")


def run(folder: Path, *words: str) -> None:
    """Run one verb in `folder`."""
    subprocess.run([*COMMAND.split(), *words], cwd=folder, check=True, stdout=subprocess.DEVNULL)


def capture(folder: Path, width: int, height: int) -> list[tuple[str, str]]:
    """Return the screen of a terminal of that size during and after the run."""
    session = f"rocketeval-{os.getpid()}-{width}"
    shell = f"PS1='{PROMPT} ' TERM=xterm-256color exec bash --norc --noprofile"
    size = ["-x", str(width), "-y", str(height)]
    tmux("new-session", "-d", "-s", session, *size, "-c", str(folder), shell)
    try:
        tmux("send-keys", "-t", session, f"clear; {COMMAND} run demo/rocketeval.yaml", "Enter")
        wait_for(session, r"grade  ")
        time.sleep(DURING)
        during = screen(session)
        wait_for(session, rf"Next [\s\S]*\n{PROMPT}")
        return [(f"during-{width}", during), (f"after-{width}", screen(session))]
    finally:
        tmux("kill-session", "-t", session)


def wait_for(session: str, pattern: str) -> None:
    """Wait until the screen matches a pattern."""
    deadline = time.monotonic() + 120
    while not re.search(pattern, tmux("capture-pane", "-p", "-t", session)):
        if time.monotonic() > deadline:
            raise TimeoutError(tmux("capture-pane", "-p", "-t", session))
        time.sleep(0.1)


def screen(session: str) -> str:
    """Return the terminal's lines, without the prompt."""
    shown = tmux("capture-pane", "-p", "-t", session)
    lines = [line.rstrip() for line in shown.splitlines()]
    kept = [line for line in lines if PROMPT not in line and COMMAND not in line]
    return "\n".join(kept).strip("\n")


def tmux(*words: str) -> str:
    """Run tmux and return its output."""
    done = subprocess.run(["tmux", *words], check=True, capture_output=True, text=True)
    return done.stdout


def put(page: str, name: str, shown: str) -> str:
    """Return the page with one capture replaced."""
    pattern = rf"(<!-- {name} -->\n```\n).*?(^```$)"
    replaced, count = re.subn(
        pattern,
        lambda found: f"{found[1]}{shown}\n{found[2]}",
        page,
        flags=re.DOTALL | re.MULTILINE,
    )
    if count != 1:
        raise SystemExit(f"{PAGE} has no block {name}")
    return replaced


if __name__ == "__main__":
    main()
