"""The public surface is exactly what it says, documented, and cheap to import."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import rocketeval
from rocketeval import errors


def test_every_public_name_exists_and_is_documented() -> None:
    """`__all__` is what can be imported, and each name says what it is."""
    for name in rocketeval.__all__:
        value = getattr(rocketeval, name)
        if name != "__version__":
            assert inspect.getdoc(value), f"{name} has no docstring"
    assert set(rocketeval._HOME) == set(rocketeval.__all__) - {"__version__"}


def test_unknown_names_fail_as_usual() -> None:
    """A typo is an AttributeError, not an import of something odd."""
    with pytest.raises(AttributeError, match="no attribute 'evaluate'"):
        _ = rocketeval.evaluate


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
def test_nothing_heavy_is_loaded_before_its_time(start: str, left_alone: tuple[str, ...]) -> None:
    """Importing and asking for help leave the heavy libraries alone."""
    code = f"{start}\nimport sys; print([n for n in {left_alone} if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]", done.stdout + done.stderr


def test_the_error_tree_in_the_docstring_is_the_real_one() -> None:
    """Every error is drawn under its parent, and nothing is drawn that does not exist."""
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
