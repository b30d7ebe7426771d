"""The public API: documented, complete and cheap to import."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import rocketeval
from rocketeval import errors

ROOT = Path(__file__).parents[1]
PUBLIC = ROOT / "docs" / "reference" / "public.md"


def test_every_public_name_exists_and_is_documented() -> None:
    """Every name in `__all__` can be imported and has a docstring."""
    for name in rocketeval.__all__:
        value = getattr(rocketeval, name)
        if name != "__version__":
            assert inspect.getdoc(value), f"{name} has no docstring"
    assert set(rocketeval._HOME) == set(rocketeval.__all__) - {"__version__"}


def test_unknown_names_fail_as_usual() -> None:
    """An unknown name is an AttributeError."""
    with pytest.raises(AttributeError, match="no attribute 'evaluated'"):
        _ = rocketeval.evaluated


def test_documented_names_are_exported() -> None:
    """Each name in public.md exists, is documented, and is in its module's `__all__`."""
    for module_name, names in public_names().items():
        module = import_module(module_name)
        for name in names:
            value = getattr(module, name)
            if inspect.isclass(value) or inspect.isfunction(value):
                assert inspect.getdoc(value), f"{module_name}.{name}"
        assert names <= set(module.__all__), module_name
        for name in module.__all__:
            assert hasattr(module, name), f"{module_name}.{name}"


def test_documents_import_public_names_only() -> None:
    """README and docs import only public names."""
    offered = {name: set(import_module(name).__all__) for name in public_names()}
    shown = [
        (page.name, found[1], name.split(" as ")[0].strip(" ()"))
        for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
        for found in re.finditer(r"^from (rocketeval[\w.]*) import (.+)$", page.read_text(), re.M)
        for name in found[2].split(",")
    ]
    assert shown
    for page, module_name, name in shown:
        assert name in offered.get(module_name, set()), f"{page}: {module_name}.{name}"


def public_names() -> dict[str, set[str]]:
    """Return the names of each module that docs/reference/public.md lists."""
    rows = re.findall(r"^\| `(rocketeval[\w.]*)` \| (.*) \|$", PUBLIC.read_text(), re.M)
    return {module: set(re.findall(r"`([A-Za-z_]+)`", names)) for module, names in rows}


HELP = """
import sys; sys.argv = {words}
from rocketeval.cli.main import main
try: main()
except SystemExit: pass
"""
HEAVIEST = ("scipy", "sklearn", "pandas", "ray")
HEAVY = (*HEAVIEST, "numpy", "pyarrow", "pydantic", "aiohttp", "rich", "yaml")


@pytest.mark.parametrize(
    ("start", "left_alone"),
    [
        ("import rocketeval", HEAVY),
        (HELP.format(words=["rocketeval", "--help"]), HEAVY),
        (HELP.format(words=["rocketeval", "run", "--help"]), HEAVIEST),
    ],
)
def test_heavy_libraries_are_not_loaded_early(start: str, left_alone: tuple[str, ...]) -> None:
    """Importing the package and showing help do not load heavy libraries."""
    code = f"{start}\nimport sys; print([n for n in {left_alone} if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]", done.stdout + done.stderr


def test_error_hierarchy_in_the_docstring_is_complete() -> None:
    """The docstring lists exactly the existing errors."""
    assert errors.__doc__ is not None
    drawn = [
        line.lstrip("│├└─ ").split()[0]
        for line in errors.__doc__.splitlines()
        if line == "RocketEvalError" or line.lstrip().startswith(("├", "│", "└"))
    ]
    real = [
        name
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, Exception)
    ]
    assert sorted(drawn) == sorted(real)
