"""What evolution begins with: packaged perspectives by name, or files of one's own."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from rocketeval.errors import ConfigError
from rocketeval.evolve.forms import in_forms
from rocketeval.evolve.perspective import Form, Perspective, Pool
from rocketeval.evolve.pool_file import read_pool
from rocketeval.registry import nearest

ENDINGS = (".yaml", ".yml")
"""What tells a file of the user's from the name of a packaged one."""


def packaged_seeds() -> list[str]:
    """Return the names of the pools that come with the package.

    >>> packaged_seeds()
    ['guidelines', 'presets', 'prompts']
    """
    folder = resources.files("rocketeval.evolve") / "seeds"
    return sorted(
        entry.name.removesuffix(".yaml")
        for entry in folder.iterdir()
        if entry.name.endswith(".yaml")
    )


def seed_pool(names_or_paths: Sequence[str], forms: tuple[Form, ...]) -> Pool:
    """Return the named pools as one, their questions about responses in the wanted forms.

    With two forms the second is a twin whose parent is the first. Of what several of them ask, the
    first stays.

    >>> len(seed_pool(["prompts"], (Form.CHOICE, Form.GRADED)))
    10
    """
    listed: list[Perspective] = []
    for name in names_or_paths:
        listed += _seeds(name)
    pool, _ = Pool().add(in_forms(listed, forms))
    return pool


def _seeds(name: str) -> Pool:
    if name.endswith(ENDINGS):
        return read_pool(Path(name))
    known = packaged_seeds()
    if name not in known:
        raise ConfigError(
            f"evolve.seeds: there are no packaged perspectives {name!r}.",
            hint=f"{nearest(name, known)} Or give the path of your own, which ends in .yaml.",
        )
    with resources.as_file(resources.files("rocketeval.evolve") / "seeds") as folder:
        return read_pool(folder / f"{name}.yaml")
