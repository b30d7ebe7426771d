"""A release is consistent: one version everywhere, and a wheel that works where it is installed."""

from __future__ import annotations

import email
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from runpy import run_path

import pytest
import yaml
from integrations.check_container import copy_into, read_containerfile, serve_command

from rocketeval import __version__
from rocketeval.cli.serve import command as serve
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


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of the working tree."""
    need("hatchling", "hatchling builds the wheel: pip install hatchling")
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, check=True, capture_output=True, cwd=ROOT)
    (built,) = folder.iterdir()
    return built


def link_targets(text: str) -> list[str]:
    """Return where the links and pictures of a Markdown text lead."""
    inline = re.findall(r"\]\(([^)\s]+)", text)
    defined = re.findall(r"^ *\[[^\]]+\]:\s*(\S+)", text, re.MULTILINE)
    return [*inline, *defined, *re.findall(r"(?:href|src)=[\"']?([^\"'\s>]+)", text)]


def test_built_description_has_no_relative_link(wheel: Path) -> None:
    """A package index shows the README without the repository: every link is absolute."""
    with zipfile.ZipFile(wheel) as opened:
        (name,) = (name for name in opened.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = email.message_from_bytes(opened.read(name))
    text = metadata.get_payload()
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert [target for target in link_targets(text) if not target.startswith("https://")] == []
    assert "https://arxiv.org/abs/2503.05142" in link_targets(text)
    assert "pip install rocketeval " in text
    assert "pip install ." not in text


def test_description_links_into_a_known_repository() -> None:
    """With a repository's address, each link of the README leads to the released file there."""
    need("hatchling", "hatchling runs the hook: pip install hatchling")
    description = run_path(str(ROOT / "hatch_build.py"))["description"]
    readme = (ROOT / "README.md").read_text()
    made = link_targets(description(readme, "9.8.7", "https://host/us/rocketeval/"))
    roots = [f"https://host/us/rocketeval/{kind}/v9.8.7/" for kind in ("blob", "raw")]
    relative = [target for target in link_targets(readme) if not target.startswith("https://")]
    assert [t.removeprefix(roots[0]).removeprefix(roots[1]) for t in made] == link_targets(readme)
    assert sum(t.startswith(tuple(roots)) for t in made) == len(relative) > 30
    assert roots[1] + "docs/images/overview-light.png" in made


def test_container_copies_what_the_build_needs(wheel: Path, tmp_path: Path) -> None:
    """The files that the Containerfile copies, and nothing else, build the same wheel."""
    for step in read_containerfile((ROOT / "Containerfile").read_text()):
        if step.name == "COPY":
            copy_into(ROOT, step.words, tmp_path / "image")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    done = subprocess.run(build, capture_output=True, text=True, cwd=tmp_path / "image")
    assert done.returncode == 0, done.stdout + done.stderr
    contents = []
    for path in (wheel, tmp_path / wheel.name):
        with zipfile.ZipFile(path) as opened:
            contents.append({name: opened.read(name) for name in opened.namelist()})
    assert contents[0] == contents[1]


def test_container_comment_names_options_of_serve() -> None:
    """The `docker run` of the Containerfile's comment is a command that `serve` accepts."""
    name, *words = serve_command((ROOT / "Containerfile").read_text())
    given = serve.make_context(name, words).params
    assert (given["host"], given["token_env"]) == ("0.0.0.0", "TOKEN")


def test_installed_wheel_runs_the_quickstart(wheel: Path) -> None:
    """The wheel and the packages that it declares, and nothing else, print the README's ranking."""
    command = [sys.executable, str(ROOT / ".ci" / "wheel.py"), str(wheel), "--linked"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
