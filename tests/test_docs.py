"""The documents are correct: code runs, settings exist, links are valid."""

from __future__ import annotations

import re
from pathlib import Path
from runpy import run_path

import pytest
import yaml
from build_gallery import RUNS

from rocketeval.config import parse_config
from support.forked import run_script
from support.in_process import cli

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("studies/*/*.md")])


def blocks(language: str) -> list[tuple[str, str]]:
    """Return every fenced block of a language, with its page."""
    pattern = re.compile(rf"^```{language}\n(.*?)^```", re.MULTILINE | re.DOTALL)
    return [(page.name, code) for page in PAGES for code in pattern.findall(page.read_text())]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which `rocketeval init demo` was run, judged by the scripted engine."""
    folder = tmp_path_factory.mktemp("docs")
    cli(folder, "init", "demo", "--model", "m")
    config = folder / "demo" / "rocketeval.yaml"
    config.write_text(config.read_text().replace("model: m", "model: m\n  engine: scripted"))
    return folder


@pytest.mark.parametrize(("page", "code"), blocks("python"))
def test_python_in_the_documents_runs(page: str, code: str, demo: Path) -> None:
    """Every Python block runs unchanged, next to the quickstart's folder."""
    script = demo / "block.py"
    script.write_text(code)
    done = run_script(script, folder=demo)
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.mark.parametrize(("page", "code"), blocks("yaml"))
def test_settings_in_the_documents_exist(page: str, code: str) -> None:
    """Every YAML block is a valid part of a config."""
    parse_config({"benchmark": {"path": "x"}, "judge": {"model": "m"}, **yaml.safe_load(code)})


@pytest.mark.parametrize("name", ["config.md", "cli.md", "python.md"])
def test_reference_is_up_to_date(name: str) -> None:
    """Each generated page equals the output of docs/generate.py."""
    pages = run_path(str(ROOT / "docs" / "generate.py"))["PAGES"]
    assert (ROOT / "docs" / "reference" / name).read_text() == pages[name]()


def test_claims_are_up_to_date() -> None:
    """docs/evidence/claims.md equals what studies/claims.py makes of the recorded studies."""
    made = run_path(str(ROOT / "studies" / "claims.py"))["page"]()
    assert (ROOT / "docs" / "evidence" / "claims.md").read_text() == made


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_are_valid(page: Path) -> None:
    """Every relative link names a file or a report of the gallery, every anchor a heading."""
    for target in re.findall(r"\]\((?!https?://)([^)]+)\)", page.read_text()):
        path, _, anchor = target.partition("#")
        linked = page if not path else (page.parent / path)
        if linked.parent == ROOT / "docs" / "gallery":
            assert linked.stem in RUNS, f"{page.name} links to {target}, which nothing makes"
            continue
        assert linked.exists(), f"{page.name} links to {target}"
        if anchor:
            headings = re.findall(r"^#+ (.+)$", linked.read_text(), re.MULTILINE)
            slugs = {re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in headings}
            assert anchor in slugs, f"{page.name} links to {target}"
