"""Registries of implementations: built in, or installed as plugins."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Iterable
from functools import lru_cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Generic, TypeVar

from rocketeval.errors import ConfigError

T = TypeVar("T")


def nearest(name: str, known: list[str]) -> str:
    """Return a hint that names the closest valid choice and lists all of them."""
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    choices = f"Valid: {', '.join(sorted(known))}."
    return f"Did you mean {close[0]!r}? {choices}" if close else choices


class Registry(Generic[T]):
    """A mapping of names to classes, which are imported on use.

    Plugins use the entry point group `rocketeval.<seam>s`; a name that is already taken is an
    error.
    """

    def __init__(self, seam: str, builtin: dict[str, str]) -> None:
        self.seam = seam
        self._builtin = builtin

    def names(self) -> list[str]:
        """Return every available name."""
        return sorted({*self._builtin, *self._installed()})

    def has_plugin(self, name: str) -> bool:
        """Return whether a plugin provides `name`."""
        return name not in self._builtin

    def get(self, name: str) -> type[T]:
        """Import and return the class behind `name`."""
        installed = self._installed()
        if name in installed and name in self._builtin:
            raise ConfigError(
                f"A plugin registers the {self.seam} {name!r}, which is built in.",
                hint=f"Rename or uninstall it: {installed[name].value}.",
            )
        if name in self._builtin:
            module, _, attribute = self._builtin[name].partition(":")
            return getattr(import_module(module), attribute)  # type: ignore[no-any-return]
        if name in installed:
            return self._load(installed[name])
        setting = "engine" if self.seam == "engine" else f"{self.seam}.kind"
        raise ConfigError(
            f"There is no {self.seam} {name!r}.",
            hint=f"Check `{setting}` in the config. {nearest(name, self.names())}",
        )

    def _load(self, point: EntryPoint) -> type[T]:
        try:
            return point.load()  # type: ignore[no-any-return]
        except (ImportError, AttributeError) as error:
            raise ConfigError(
                f"The plugin {point.value} cannot be imported for the {self.seam} "
                f"{point.name!r}: {error}.",
                hint="Install its dependencies, or uninstall it.",
            ) from error

    def _installed(self) -> dict[str, EntryPoint]:
        found: dict[str, EntryPoint] = {}
        for point in _points(entry_points, f"rocketeval.{self.seam}s", tuple(sys.path)):
            if point.name in found and found[point.name].value != point.value:
                raise ConfigError(
                    f"Two plugins register the {self.seam} {point.name!r}: "
                    f"{found[point.name].value} and {point.value}.",
                    hint="Uninstall one of them.",
                )
            found[point.name] = point
        return found


@lru_cache(maxsize=64)
def _points(
    look: Callable[..., Iterable[EntryPoint]], group: str, path: tuple[str, ...]
) -> tuple[EntryPoint, ...]:
    """Return the entry points of a group, cached: a hundred packages take about 10 ms."""
    return tuple(look(group=group))
