"""The base of config sections: frozen, no unknown keys, and every number within bounds.

A number out of bounds is an error when the config is read, before anything is paid. The types below
bound the numbers that would otherwise crash, hang or fill the memory.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PureWindowsPath
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationInfo,
    field_validator,
    model_validator,
)

from rocketeval.goal import parse_goal
from rocketeval.text import HIDDEN, with_secrets

MOST = 1e12
"""Bound of every number in a config, positive or negative."""
MOST_NODES = 100_000
"""Values that a config may hold, each alias counted as often as it is used."""
DEEPEST = 64
"""Levels of nesting that a config may have."""
LONGEST_TEXT = 10_000_000
"""Characters that all texts of a config may have together."""
LOADED_HERE = ("llamacpp", "vllm")
"""Engines that load the model into this process: it stays loaded, and cannot change."""
FILE_TYPES = (".yaml", ".yml", ".csv", ".json")

Seed = Annotated[int, Field(ge=0, le=2**32 - 1)]
"""A seed that every random number generator accepts."""
Seconds = Annotated[float, Field(ge=0, le=30 * 86_400.0, allow_inf_nan=False)]
"""A duration of up to a month."""
Price = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
"""A price per million tokens."""
Margin = Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]
"""A difference between two scores."""
Folds = Annotated[int, Field(ge=2, le=1000)]
"""A number of cross-validation folds."""
Few = Annotated[int, Field(ge=0, le=10_000)]
"""A number of things that a person or an LLM deals with one by one."""
Some = Annotated[int, Field(ge=1, le=10_000)]
"""The same, at least one."""
Many = Annotated[int, Field(ge=1, le=1_000_000)]
"""A number of things that are processed together."""


class Section(BaseModel):
    """A part of the config: frozen, no unknown keys, no absurd numbers."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, hide_input_in_errors=True, use_attribute_docstrings=True
    )

    @model_validator(mode="after")
    def _numbers_are_bounded(self) -> Self:
        for name in type(self).model_fields:
            for value in _numbers(getattr(self, name)):
                if not math.isfinite(value) or abs(value) > MOST:
                    raise ValueError(f"{name} must be a number between -{MOST:g} and {MOST:g}.")
        return self


def _numbers(value: object) -> Iterator[float]:
    if isinstance(value, bool):
        return
    if isinstance(value, int | float):
        # A large integer has no finite float.
        yield math.inf if isinstance(value, int) and abs(value) > MOST else float(value)
    elif isinstance(value, list | tuple):
        for own in value:
            yield from _numbers(own)


class ModelSection(Section):
    """A section with a model, which may be a file or folder relative to the config file."""

    engine: str
    model: str
    _folder: Path | None = PrivateAttr(default=None)
    """The config's folder, for an engine that loads models."""

    @model_validator(mode="after")
    def _keeps_folder(self, info: ValidationInfo) -> Self:
        if self.engine in LOADED_HERE and info.context:
            self._folder = info.context
        return self

    @property
    def local_model(self) -> Path:
        """The model's file or folder: next to the config file, else in the current folder.

        `model` itself stays as it was written, because it is part of a judge's identity.
        """
        here = Path(self.model).expanduser()
        ours = self._folder / here if self._folder else here
        return ours if _exists(ours) else here


class NoOptions(Section):
    """The options of an implementation that has none."""


def problem_in(raw: object) -> str | None:
    """Return what makes a config unusable before it is validated; None if nothing does.

    Aliases of YAML can refer to themselves, or repeat each other into billions of values.

    >>> loop = []
    >>> loop.append(loop)
    >>> problem_in({"a": loop})
    'a value contains itself'
    >>> problem_in({"a": 2**70})
    'the number 1180591620717411303424 is too large'
    """
    nodes = characters = 0
    stack: list[tuple[object, tuple[int, ...]]] = [(raw, ())]
    while stack:
        value, inside = stack.pop()
        nodes += 1
        if nodes > MOST_NODES:
            return f"it has more than {MOST_NODES:,} values; aliases count as often as they occur"
        if isinstance(value, str):
            characters += len(value)
            if characters > LONGEST_TEXT:
                return f"its texts have more than {LONGEST_TEXT:,} characters"
            if not is_encodable(value):
                return f"{ascii(value)[:80]} is not valid Unicode text"
        elif isinstance(value, int) and not -(2**63) <= value < 2**63:
            return f"the number {str(value)[:40]} is too large"
        elif isinstance(value, Mapping | list | tuple):
            if id(value) in inside:
                return "a value contains itself"
            if len(inside) >= DEEPEST:
                return f"it is nested more than {DEEPEST} levels deep"
            within = (*inside, id(value))
            own = [*value, *value.values()] if isinstance(value, Mapping) else value
            stack.extend((each, within) for each in own)
        elif isinstance(value, bytes | set):
            return f"a value of the type {type(value).__name__} cannot be used"
    return None


IN_A_VARIABLE = "Put the key into a variable, and its name here."
KEY = re.compile(
    r"(hf|gsk|sk|xai|ghp|pplx|r8)_[A-Za-z0-9]{16,}$"
    r"|(?=.*[a-z])(?=.*[A-Z])(?=.*[0-9])[A-Za-z0-9]{20,}$|[0-9a-f]{32,}$"
)
"""What providers issue as keys, as far as it could be the name of a variable."""


def variable_name(value: str) -> str:
    """Return the name of an environment variable; ValueError for others, and for a key."""
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", value):
        raise ValueError(f"this is not the name of an environment variable. {IN_A_VARIABLE}")
    if KEY.match(value):
        raise ValueError(f"this looks like a key. {IN_A_VARIABLE}")
    return value


def without_password(url: str) -> str:
    """Return a URL; ValueError if it contains a user name or password."""
    if "@" in url.partition("//")[2].partition("/")[0]:
        raise ValueError("it contains a user name or password, which belong in the environment.")
    return url


def is_encodable(text: str) -> bool:
    """Return whether a text is valid Unicode; names of files need not be.

    >>> is_encodable("\\udcff"), is_encodable("fine")
    (False, True)
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_plain_folder(name: str) -> bool:
    """Return whether `name` is one visible folder on every system: no separator, drive or leading
    dot."""
    visible = name == name.strip() and name.isprintable() and not name.startswith(".")
    return bool(name) and visible and PureWindowsPath(name).name == name


def _without_null(name: str) -> None:
    if "\0" in name:
        raise ValueError("a path cannot contain a null character.")


def _from_config(path: Path, info: ValidationInfo) -> Path:
    """Resolve a path against the config's folder, which is the validation context."""
    _without_null(str(path))
    return info.context / path if info.context else path


def file_or_name(name: str, info: ValidationInfo) -> str:
    """Resolve a file against the config's folder; leave the name of something packaged."""
    _without_null(name)
    return str(info.context / name) if info.context and name.endswith(FILE_TYPES) else name


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # Such as a name that is too long.
        return False


def _with_paths(options: dict[str, object], info: ValidationInfo, *names: str) -> dict[str, object]:
    """Return options whose paths of these names are resolved against the config's folder.

    A path that exists only in the current folder stays: earlier versions looked there.
    """
    found: dict[str, object] = {}
    for name in names:
        path = options.get(name)
        if info.context and isinstance(path, str | Path):
            _without_null(str(path))
            ours = info.context / path
            found[name] = str(path if _exists(Path(path)) and not _exists(ours) else ours)
    return {**options, **found}


def _engine_options(options: dict[str, object], info: ValidationInfo) -> dict[str, object]:
    return _with_paths(options, info, "file") if info.data.get("engine") == "recorded" else options


def _method_options(options: dict[str, object], info: ValidationInfo) -> dict[str, object]:
    return _with_paths(options, info, "run") if info.data.get("kind") == "analysis" else options


def _author_options(options: dict[str, object], info: ValidationInfo) -> dict[str, object]:
    file, templates = options.get("file"), options.get("templates")
    if isinstance(file, str):
        options = {**options, "file": file_or_name(file, info)}
    if info.data.get("kind") == "dimension" and isinstance(templates, dict):
        options = {**options, "templates": _with_paths(templates, info, *templates)}
    return options


def _folder_or_uri(folder: str, info: ValidationInfo) -> str:
    _without_null(folder)
    return str(info.context / folder) if info.context and "://" not in folder else folder


ConfigPath = Annotated[Path, AfterValidator(_from_config)]
"""A path that is relative to the config file."""
ConfigFile = Annotated[str, AfterValidator(file_or_name)]
"""A file relative to the config file, or the name of something packaged."""
ConfigFolder = Annotated[str, AfterValidator(_folder_or_uri)]
"""A folder relative to the config file, or a URI."""


EngineSettings = Annotated[dict[str, object], AfterValidator(_engine_options)]
"""Settings of an engine; the paths in them are relative to the config file, as in the next two."""
MethodSettings = Annotated[dict[str, object], AfterValidator(_method_options)]
AuthorSettings = Annotated[dict[str, object], AfterValidator(_author_options)]


class UntilConfig(Section):
    """When to stop grading early; see docs/howto/stopping.md."""

    goal: str
    """best, top:K, beats:CANDIDATE, within:DELTA (or DELTAsd) or interval:WIDTH."""
    level: Annotated[float, Field(ge=0.5, le=0.999)] = 0.95
    """One minus the probability of a false decision, over all looks and comparisons."""
    futility: Annotated[float, Field(ge=0, le=0.5)] = 0.1
    """Stop as a near tie if nothing undecided has at least this chance of being decided; 0 goes on
    to the last query."""
    seed: Seed = 0
    """Seed of the order in which queries are graded."""

    @model_validator(mode="before")
    @classmethod
    def _goal_alone(cls, given: Any) -> Any:
        return {"goal": given} if isinstance(given, str) else given

    @field_validator("goal")
    @classmethod
    def _is_a_goal(cls, goal: str) -> str:
        parse_goal(goal)
        return goal.strip()


def redacted(value: Any) -> Any:
    """Return settings in which secrets in `extra_body` and `options` of engines are hidden.

    >>> redacted({"judge": {"api_key_env": "KEY", "extra_body": {"api_key": "sk-1", "n": 1}}})
    {'judge': {'api_key_env': 'KEY', 'extra_body': {'api_key': '***', 'n': 1}}}
    """
    if isinstance(value, list | tuple):
        return [redacted(own) for own in value]
    if not isinstance(value, Mapping):
        return value
    sent = {"extra_body", "options"} if "extra_body" in value else frozenset[str]()
    return {
        name: with_secrets(own, lambda _: HIDDEN) if name in sent else redacted(own)
        for name, own in value.items()
    }
