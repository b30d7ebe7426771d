"""YAML files that come with the package, each known by its name, beside those of the user."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TypeVar

from rocketeval.errors import ConfigError
from rocketeval.registry import nearest

ENDINGS = (".yaml", ".yml")
"""What tells a file of the user's from the name of a packaged one."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PackagedFiles:
    """The YAML files in one folder of a package."""

    package: str
    folder: str

    def names(self) -> list[str]:
        """Return what they are called, without the ending."""
        entries = (resources.files(self.package) / self.folder).iterdir()
        return sorted(
            entry.name.removesuffix(".yaml") for entry in entries if entry.name.endswith(".yaml")
        )

    def read(self, name_or_path: str, read: Callable[[Path], T], *, unknown: str) -> T:
        """Return what `read` makes of a packaged file, or of the user's own by its path.

        ConfigError, which begins with `unknown`, for a name that there is not.
        """
        if name_or_path.endswith(ENDINGS):
            return read(Path(name_or_path))
        known = self.names()
        if name_or_path not in known:
            raise ConfigError(
                f"{unknown} {name_or_path!r}.",
                hint=f"{nearest(name_or_path, known)} Or give the path of your own, which ends in "
                ".yaml.",
            )
        with resources.as_file(resources.files(self.package) / self.folder) as folder:
            return read(folder / f"{name_or_path}.yaml")
