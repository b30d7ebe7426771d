"""YAML files: those that come with the package, each known by its name, and those of the user."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

import yaml

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


def read_yaml(path: Path, what: str, *, hint: str) -> Any:
    """Return what a YAML file of the user holds; ConfigError names `what` cannot be read."""
    try:
        return yaml.load(path.read_text(encoding="utf-8"), _Loader)
    except OSError as error:
        raise ConfigError(f"Cannot read the {what} {path}: {error.strerror}.", hint=hint) from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not text in UTF-8.", hint="Save it as UTF-8.") from None
    except RecursionError:
        raise ConfigError(f"{path} is nested too deeply.", hint=hint) from None
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(
            f"{path} is not valid YAML: {_yaml_problem(error)}.",
            hint="Check that line and the one before it: indentation, quotes, colons.",
        ) from None


class _Loader(yaml.SafeLoader):
    """Refuses a key that stands twice, where YAML would silently take the last."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in seen:
                raise yaml.MarkedYAMLError(
                    problem=f"{key.value!r} is set twice", problem_mark=key.start_mark
                )
            seen.add(str(key.value))
        return node


def _yaml_problem(error: Exception) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return f"{error.problem}, in line {error.problem_mark.line + 1}"
    return str(error)
