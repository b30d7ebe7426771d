"""A release is consistent: one version everywhere, and a wheel that works where it is installed."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from rocketeval import __version__
from support.needs import need

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_version_is_the_same_everywhere() -> None:
    """The newest section of the changelog and the citation have the package's version and date."""
    heading = re.search(r"^## (\S+) \((\S+)\)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert heading is not None
    assert heading.groups() == (__version__, str(citation["date-released"]))
    assert citation["version"] == __version__
    assert citation["license"] == PROJECT["license"]


@pytest.mark.parametrize(("workflow", "job"), [("ci", "wheel"), ("release", "try")])
def test_workflows_try_every_supported_python(workflow: str, job: str) -> None:
    """The matrix of a workflow has the versions that the package's classifiers name."""
    content = yaml.safe_load((ROOT / f".github/workflows/{workflow}.yml").read_text())
    prefix = "Programming Language :: Python :: "
    named = [text.removeprefix(prefix) for text in PROJECT["classifiers"] if prefix in text]
    assert content["jobs"][job]["strategy"]["matrix"]["python"] == named
    assert PROJECT["requires-python"] == f">={named[0]}"


def test_actions_are_pinned_to_commits() -> None:
    """No workflow runs an action of another repository that its owner can replace."""
    for path in (ROOT / ".github" / "workflows").iterdir():
        for action in re.findall(r"uses: (\S+)", path.read_text()):
            assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action), f"{path.name}: {action}"


def test_installed_wheel_runs_the_quickstart(tmp_path: Path) -> None:
    """The wheel and the packages that it declares, and nothing else, print the README's ranking."""
    need("hatchling", "hatchling builds the wheel: pip install hatchling")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, check=True, capture_output=True, cwd=ROOT)
    (wheel,) = tmp_path.iterdir()
    command = [sys.executable, str(ROOT / ".ci" / "wheel.py"), str(wheel), "--linked"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
