"""Install a wheel into new environments and run the README's quickstart there.

    python .ci/wheel.py WHEEL [--python PYTHON ...] [--linked]

Every interpreter gets an environment of its own with the wheel and what it requires, installed by
uv if that is here and by pip otherwise. `--linked` links the requirements from the running
environment instead, which takes seconds and no network: a package that the wheel does not declare
is missing there, too. The commands, the ranking and the Python block are those of README.md. The
CPU time contains the compilation of everything that is imported for the first time.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from importlib.metadata import Distribution, distribution
from pathlib import Path

ROOT = Path(__file__).parents[1]
MOST_PACKAGES = 40
"""Maximum number of packages in a plain installation, RocketEval included."""
NAMES = "import importlib.metadata as m; print(*sorted({d.name for d in m.distributions()}))"
SITE = "import sysconfig; print(sysconfig.get_path('purelib'))"


def output(command: list[str], folder: Path | None = None) -> str:
    """Run a command and return what it prints; exit with its output if it fails."""
    # A path from outside would hide what the wheel lacks.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)} exited with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def block(containing: str) -> str:
    """Return the README's first fenced block with this text."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.findall(r"^```[^\n]*\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return next(code for code in found if containing in code)


def environment(folder: Path, base: str) -> str:
    """Create an environment without packages, and return its interpreter."""
    output([base, "-m", "venv", "--without-pip", str(folder)])
    return str(folder / "bin" / "python")


def install(python: str, wheel: Path) -> None:
    """Install the wheel and its requirements."""
    uv = shutil.which("uv")
    installer = [uv, "pip"] if uv else [sys.executable, "-m", "pip"]
    where = ["install", "--python", python] if uv else ["--python", python, "install"]
    output([*installer, *where, "--quiet", str(wheel)])


def link(python: str, wheel: Path) -> None:
    """Install the wheel, and link what it requires from the running environment."""
    pip = [sys.executable, "-m", "pip", "--python", python]
    output([*pip, "install", "--quiet", "--no-deps", "--no-index", str(wheel)])
    own, site = Path(sysconfig.get_path("purelib")), Path(output([python, "-c", SITE]).strip())
    (own_metadata,) = site.glob("rocketeval-*.dist-info")
    for found in required(Distribution.at(own_metadata)):
        for top in {path.parts[0] for path in found.files or () if path.parts[0] != ".."}:
            if not (site / top).exists() and (own / top).exists():
                (site / top).symlink_to(own / top)


def required(package: Distribution) -> list[Distribution]:
    """Return all packages that a package requires without extras, directly or not."""
    from packaging.requirements import Requirement

    found: dict[str, Distribution] = {}
    waiting = [package]
    while waiting:
        for line in waiting.pop().requires or ():
            wanted = Requirement(line)
            marked = wanted.marker is None or wanted.marker.evaluate({"extra": ""})
            if marked and wanted.name not in found:
                found[wanted.name] = distribution(wanted.name)
                waiting.append(found[wanted.name])
    return list(found.values())


def quickstart(python: str, folder: Path) -> None:
    """Run the README's first commands and its Python block; exit if the ranking differs."""
    program = str(Path(python).parent / "rocketeval")
    shown = ""
    for line in block("init demo --recorded").splitlines():
        name, *args = line.split()
        if name == "rocketeval" and args[0] != "view":
            shown += output([program, *args], folder)
    # What follows the table is wrapped at the width of the terminal.
    expected = block("Ranking over").partition("Trust")[0].splitlines()
    missing = [line for line in expected if line.strip() not in shown]
    if missing:
        sys.exit(f"The quickstart does not print what the README shows:\n{missing}\n{shown}")
    if not list(folder.glob("demo/runs/*/report.html")):
        sys.exit("The quickstart wrote no report.")
    code = block("rocketeval.evaluate(rows")
    if "v1" not in output([python, "-W", "error", "-c", code], folder):
        sys.exit("The README's Python block prints no ranking.")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--python", action="append")
    parser.add_argument("--linked", action="store_true")
    args = parser.parse_args()
    for base in args.python or [sys.executable]:
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            python = environment(folder / "env", base)
            (link if args.linked else install)(python, args.wheel.resolve())
            names = output([python, "-c", NAMES]).split()
            size = sum(p.stat().st_size for p in (folder / "env").rglob("*") if p.is_file())
            if len(names) > MOST_PACKAGES:
                sys.exit(f"{len(names)} packages, more than {MOST_PACKAGES}: {' '.join(names)}")
            before, began = os.times(), time.perf_counter()
            quickstart(python, folder)
            after, ended = os.times(), time.perf_counter()
            cpu = sum(after[2:4]) - sum(before[2:4])
            print(
                f"{output([python, '-V']).strip()}: {len(names)} packages, {size / 1e6:.0f} MB; "
                f"quickstart {cpu:.1f} s CPU, {ended - began:.1f} s"
            )


if __name__ == "__main__":
    main()
