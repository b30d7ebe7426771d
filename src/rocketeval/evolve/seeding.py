"""What evolution begins with: packaged perspectives by name, or files of one's own."""

from __future__ import annotations

from collections.abc import Sequence

from rocketeval.evolve.forms import in_forms
from rocketeval.evolve.perspective import Form, Perspective, Pool
from rocketeval.evolve.pool_file import read_pool
from rocketeval.packaged import PackagedFiles

_SEEDS = PackagedFiles("rocketeval.evolve", "seeds")


def packaged_seeds() -> list[str]:
    """Return the names of the pools that come with the package.

    >>> packaged_seeds()
    ['guidelines', 'presets', 'prompts']
    """
    return _SEEDS.names()


def seed_pool(names_or_paths: Sequence[str], forms: tuple[Form, ...]) -> Pool:
    """Return the named pools as one, their questions about responses in the wanted forms.

    With two forms the second is a twin whose parent is the first. Of what several of them ask, the
    first stays.

    >>> len(seed_pool(["prompts"], (Form.CHOICE, Form.GRADED)))
    10
    """
    listed: list[Perspective] = []
    for name in names_or_paths:
        unknown = "evolve.seeds: there are no packaged perspectives"
        listed += _SEEDS.read(name, read_pool, unknown=unknown)
    pool, _ = Pool().add(in_forms(listed, forms))
    return pool
