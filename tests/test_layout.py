"""Limits on the structure of the package: module sizes, imports, records between packages."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from structure import Structure, measure

from rocketeval.cli.main import VERBS

SOURCE = Path(__file__).parents[1] / "src" / "rocketeval"
MOST_MODULES = 307
MOST_IN_A_FOLDER = 33
MOST_LINES = 500
MOST_LONE = 0.06
"""Maximum share of modules whose only importer is in another folder."""
MOST_FOR_HELP = 60
"""Maximum number of own modules that `rocketeval VERB --help` loads."""


@pytest.fixture(scope="module")
def structure() -> Structure:
    """The measured structure of the package."""
    return measure(SOURCE)


def test_number_and_size_of_modules(structure: Structure) -> None:
    """The number of modules, their length and the size of folders are limited."""
    assert len(structure.files) <= MOST_MODULES
    assert max(structure.folders.values()) <= MOST_IN_A_FOLDER
    assert {module.name for module in structure.files if module.lines > MOST_LINES} == set()


def test_modules_are_close_to_their_importers(structure: Structure) -> None:
    """Few modules have a single importer in another folder, and there is no import cycle."""
    assert len(structure.lone) <= MOST_LONE * len(structure.files), structure.lone
    assert structure.cycle() == []


def test_packages_exchange_records(structure: Structure) -> None:
    """No function used by another package takes or returns an untyped dict."""
    assert structure.loose_signatures() == []


def test_class_names_are_unique(structure: Structure) -> None:
    """No two modules define a class of the same name."""
    names = Counter(
        node.name
        for module in structure.modules
        for node in module.tree.body
        if isinstance(node, ast.ClassDef)
    )
    assert [name for name, count in names.items() if count > 1] == []


COUNT = """
import sys
sys.argv = ["rocketeval", {verb!r}, "--help"]
from rocketeval.cli.main import main
try: main()
except SystemExit as end: assert not end.code
heavy = ("numpy", "pyarrow", "pydantic", "scipy", "sklearn", "aiohttp", "rich", "yaml")
print([name for name in heavy if name in sys.modules])
print(sum(name.partition(".")[0] == "rocketeval" for name in sys.modules))
"""


@pytest.mark.parametrize("verb", VERBS)
def test_help_loads_few_modules(verb: str) -> None:
    """A verb's help loads no feature and no heavy library."""
    command = [sys.executable, "-c", COUNT.format(verb=verb)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    heavy, modules = done.stdout.splitlines()[-2:]
    assert heavy == "[]"
    assert int(modules) <= MOST_FOR_HELP
