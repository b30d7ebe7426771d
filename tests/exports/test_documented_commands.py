"""Every command in docs/howto/exports.md runs."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from rocketeval.exports.formats import FORMATS
from support.command import cli

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "exports.md"
FROM_TOOLS = ("inspect", "langfuse", "otel")
"""Formats that need data of their tool; tests/exports/test_write_back.py has it."""
COMMANDS = re.findall(r"`rocketeval (export [^`|]*)` \|$", PAGE.read_text(), re.MULTILINE)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The quickstart folder, judged by the scripted engine."""
    folder = tmp_path_factory.mktemp("documented")
    cli(folder, "init", "demo", "--model", "m")
    config = folder / "demo" / "rocketeval.yaml"
    config.write_text(config.read_text().replace("model: m", "model: m\n  engine: scripted"))
    cli(folder / "demo", "run", "--quiet")
    return folder / "demo"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_documented_command_runs(demo: Path, command: str) -> None:
    """It succeeds and creates the file it names."""
    words = shlex.split(command)
    if words[words.index("--to") + 1] in FROM_TOOLS:
        # Their ids are in the tool's own data, which the quickstart is not.
        refused = cli(demo, *words, code=2)
        assert "Run it on" in refused.stderr
        return
    done = cli(demo, *words)
    if "-o" in words:
        assert (demo / words[-1]).exists()
    else:
        assert "solid" in done.stdout


def test_every_format_has_a_command() -> None:
    """The table in the docs lists all formats."""
    assert {re.findall(r"--to (\w+)", command)[0] for command in COMMANDS} == set(FORMATS)
