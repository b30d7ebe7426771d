"""Run the steps of the Containerfile in a virtual environment, where no container can be built.

    python studies/integrations/check_container.py [--without-extra]

Copies what COPY names into an empty folder, runs the pip command of RUN in a new environment, and
starts the entry point. `--without-extra` installs without llama.cpp.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[2]


def main() -> None:
    """Run the steps; any failure ends the script."""
    text = (ROOT / "Containerfile").read_text()
    with TemporaryDirectory() as home:
        folder = Path(home) / "context"
        folder.mkdir()
        for line in re.findall(r"^COPY (.+)$", text, re.MULTILINE):
            *sources, target = line.split()
            for source in sources:
                given, to = ROOT / source, folder / target
                if given.is_dir():
                    shutil.copytree(given, to, ignore=shutil.ignore_patterns("__pycache__"))
                else:
                    shutil.copy(given, to / source if to.is_dir() else to)
        venv.create(Path(home) / "env", with_pip=True)
        binaries = Path(home) / "env" / "bin"
        (install,) = re.findall(r"^RUN python -m (pip install .+)$", text, re.MULTILINE)
        if "--without-extra" in sys.argv:
            install = install.replace("[llamacpp]", "")
        command = [str(binaries / "python"), "-m", *shlex.split(install)]
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        (entry,) = re.findall(r'^ENTRYPOINT \["(.+)"\]$', text, re.MULTILINE)
        for words in (["--version"], ["serve", "--help"]):
            done = subprocess.run(
                [str(binaries / entry), *words],
                cwd=home,
                check=True,
                capture_output=True,
                text=True,
                env={"PATH": str(binaries)},
            )
            print(done.stdout.splitlines()[0])


if __name__ == "__main__":
    main()
