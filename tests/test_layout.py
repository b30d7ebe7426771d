"""The house stays in order: whole chapters, one-way imports, records between packages."""

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
MOST_MODULES = 220
MOST_IN_A_FOLDER = 30
MOST_LINES = 500
MOST_LONE = 0.05
"""The share of modules with a single importer that lies in another folder."""
MOST_FOR_HELP = 60
"""Own modules that `rocketeval VERB --help` may load."""


@pytest.fixture(scope="module")
def structure() -> Structure:
    """The package as it lies on disk."""
    return measure(SOURCE)


def test_a_module_is_a_chapter(structure: Structure) -> None:
    """There are few, none is too long, and no folder holds too many."""
    assert len(structure.files) <= MOST_MODULES
    assert max(structure.folders.values()) <= MOST_IN_A_FOLDER
    assert {module.name for module in structure.files if module.lines > MOST_LINES} == set()


def test_a_module_lies_where_it_is_used(structure: Structure) -> None:
    """Hardly any has only one importer, in another folder; none import each other in a circle."""
    assert len(structure.lone) <= MOST_LONE * len(structure.files), structure.lone
    assert structure.cycle() == []


def test_packages_hand_each_other_records(structure: Structure) -> None:
    """Nothing that another package uses takes, gives or holds a dict of anything."""
    assert structure.loose_signatures() == []


def test_a_class_name_means_one_thing(structure: Structure) -> None:
    """No two modules have a class of the same name."""
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
def test_help_loads_hardly_anything(verb: str) -> None:
    """A verb's help loads its own options, and no feature or heavy library."""
    command = [sys.executable, "-c", COUNT.format(verb=verb)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    heavy, modules = done.stdout.splitlines()[-2:]
    assert heavy == "[]"
    assert int(modules) <= MOST_FOR_HELP
