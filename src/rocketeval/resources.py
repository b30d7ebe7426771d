"""YAML files, packaged or the user's, explanations of the errors in them, and repeated keys."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, TextIO, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from rocketeval.errors import ConfigError
from rocketeval.registry import nearest
from rocketeval.settings import problem_in

ENDINGS = (".yaml", ".yml")
"""Suffixes that distinguish a user's file from the name of a packaged one."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PackagedFiles:
    """The YAML files in one folder of a package."""

    package: str
    folder: str

    def names(self) -> list[str]:
        """Return their names without the suffix."""
        entries = (resources.files(self.package) / self.folder).iterdir()
        return sorted(
            entry.name.removesuffix(".yaml") for entry in entries if entry.name.endswith(".yaml")
        )

    def read(self, name_or_path: str, read: Callable[[Path], T], *, unknown: str) -> T:
        """Return `read` of a packaged file by name, or of a user's file by path.

        Raise ConfigError, with a message that begins with `unknown`, for an unknown name.
        """
        if name_or_path.endswith(ENDINGS):
            return read(Path(name_or_path))
        known = self.names()
        if name_or_path not in known:
            raise ConfigError(
                f"{unknown} {name_or_path!r}.",
                hint=f"{nearest(name_or_path, known)} Or give the path of your own .yaml file.",
            )
        with resources.as_file(resources.files(self.package) / self.folder) as folder:
            return read(folder / f"{name_or_path}.yaml")


def is_run(folder: Path) -> bool:
    """Return whether a folder is a run directory."""
    return all((folder / name).is_file() for name in ("run.yaml", "manifest.json"))


def read_yaml(path: Path, what: str, *, hint: str) -> Any:
    """Return the content of a user's YAML file; raise ConfigError about `what` if unreadable."""
    try:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as stream:
            found = load_yaml(stream.read())
    except IsADirectoryError:
        inside = [path / name for name in ("rocketeval.yaml", "run.yaml")]
        meant = next((f"Did you mean {name}?" for name in inside if name.is_file()), hint)
        file = what if what.endswith("file") else f"{what} file"
        raise ConfigError(f"{path} is a folder, not a {file}.", hint=meant) from None
    except OSError as error:
        raise ConfigError(f"Cannot read the {what} {path}: {error.strerror}.", hint=hint) from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not text in UTF-8.", hint="Save it as UTF-8.") from None
    except RecursionError:
        raise ConfigError(f"{path} is nested too deeply.", hint=hint) from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        raise ConfigError(
            f"{path} is not valid YAML: {_yaml_problem(error)}.",
            hint="Check that line and the one before it: indentation, quotes, colons.",
        ) from None
    problem = problem_in(found)
    if problem is not None:
        raise ConfigError(f"{path} cannot be used: {problem}.", hint=hint)
    return found


def top_keys(path: Path) -> Iterator[str] | None:
    """Yield the keys of a YAML file with a mapping, read as far as needed; None for a list.

    Raises YAMLError or ValueError where the text is not YAML.
    """
    with path.open(encoding="utf-8") as file:
        found = _top_events(file)
        first = next(found, None)
        if isinstance(first, yaml.SequenceStartEvent):
            return None
    return _keys(path) if isinstance(first, yaml.MappingStartEvent) else iter(())


def _keys(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8") as file:
        depth, is_key = 0, True
        for event in _top_events(file):
            if isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            elif depth == 1 and is_key and isinstance(event, yaml.ScalarEvent):
                yield event.value
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
            elif depth == 1:
                is_key = not is_key


def _top_events(file: TextIO) -> Iterator[Any]:
    """Yield the events of a YAML text from its first node on."""
    events = yaml.parse(file, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return (one for one in events if isinstance(one, yaml.NodeEvent | yaml.CollectionEndEvent))


def load_yaml(text: str) -> Any:
    """Return the content of a YAML text; raise YAMLError also for a key that is set twice.

    Text that is nested more than 100 levels deep is a RecursionError.

    >>> load_yaml("judge: {model: small}")
    {'judge': {'model': 'small'}}
    """
    fast = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        # Deeply nested text would crash the fast loader.
        _check_depth(text, fast)
        return _without_duplicates(text, fast)
    except (yaml.YAMLError, ValueError, OverflowError):
        # This one explains mistakes better, at a tenth of the speed.
        return _without_duplicates(text, yaml.SafeLoader)


_DEEPEST = 100


def _check_depth(text: str, loader: Any) -> None:
    depth = 0
    for event in yaml.parse(text, loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > _DEEPEST:
                raise RecursionError
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _without_duplicates(text: str, loader: Any) -> Any:
    """Load a text; reject keys that are set twice, where YAML silently uses the last."""
    loading = loader(text)
    try:
        root = loading.get_single_node()
        pending, visited = [root], set[int]()
        while pending:
            node = pending.pop()
            if id(node) in visited or not isinstance(node, yaml.CollectionNode):
                continue
            visited.add(id(node))
            if isinstance(node, yaml.MappingNode):
                _reject_duplicates(node)
                pending.extend(part for pair in reversed(node.value) for part in pair)
            else:
                pending.extend(reversed(node.value))
        return None if root is None else loading.construct_document(root)
    finally:
        loading.dispose()


class RepeatedKeyError(ValueError):
    """A JSON object has a key twice."""


def load_json(text: str | bytes) -> Any:
    """Return the content of a JSON text; raise RepeatedKeyError for a key that is set twice.

    >>> load_json('{"a": 1, "b": 2}')
    {'a': 1, 'b': 2}
    """
    return json.loads(text, object_pairs_hook=_unique_keys)


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        twice = next(name for name, count in counts.items() if count > 1)
        raise RepeatedKeyError(f"an object has the key {twice!r} twice")
    return found


def repeated_key(content: bytes) -> str | None:
    """Return a few words about a key that an object has twice in valid JSON; None without one.

    >>> repeated_key(b'{"output": "A", "output": "B"}')
    "an object has the key 'output' twice"
    """
    try:
        load_json(content)
    except RepeatedKeyError as error:
        return str(error)
    except (ValueError, RecursionError):
        # Limits of this parser alone, such as the digits of a number.
        return None
    return None


def _reject_duplicates(node: yaml.MappingNode) -> None:
    seen: set[str] = set()
    for key, _ in node.value:
        if isinstance(key, yaml.ScalarNode) and key.value in seen:
            raise yaml.MarkedYAMLError(
                problem=f"{key.value!r} is set twice", problem_mark=key.start_mark
            )
        seen.add(str(key.value))


def _yaml_problem(error: Exception) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return f"{error.problem}, in line {error.problem_mark.line + 1}"
    return str(error)


_PROBLEMS = {
    "missing": "this setting is required.",
    "extra_forbidden": "there is no such setting.",
    "model_type": "this must be a mapping of settings.",
    "dict_type": "this must be a mapping of settings.",
    "tuple_type": "this must be a list.",
    "list_type": "this must be a list.",
    "invalid_key": "the name of a setting must be text.",
    "string_type": "this must be text.",
    "int_type": "this must be a whole number",
    "int_parsing": "this must be a whole number",
    "int_parsing_size": "this must be a whole number",
    "int_from_float": "this must be a whole number",
    "float_type": "this must be a number",
    "float_parsing": "this must be a number",
    "finite_number": "this must be a finite number",
    "path_type": "this must be a path, as text.",
    "bool_type": "this must be true or false",
    "bool_parsing": "this must be true or false",
}
_LIMITS = {
    "greater_than": ("gt", "greater than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "at most"),
}
"""Name and wording of a limit, by the kind of mistake."""
_BRANCH = re.compile(r"str|int|float|bool|constrained-\w+|[\w-]+\[.*\]")
"""What pydantic adds to the place of a mistake if a setting may have several types."""
_SECRET = "Keys are read from the environment: name the variable that holds it in `api_key_env`."


def first_mistake(error: ValidationError, whole: str) -> str:
    """Return the place and problem of the first mistake; `whole` names what is validated."""
    first = error.errors(include_url=False)[0]
    return f"{'.'.join(map(str, first['loc'])) or whole}: {first['msg']}"


def explain_mistakes(error: ValidationError, section: type[BaseModel], raw: object) -> str:
    """Return one line per mistake in a `section`: the setting, the problem, and valid values.

    `raw` is what the user wrote.
    """
    lines = []
    for path, mistake in _by_setting(error, raw):
        problem = _problem(mistake["type"], mistake["msg"], mistake.get("ctx", {}))
        if path[-1:] == ["[key]"]:
            path, problem = path[:-1], problem.replace("this must", "its name must")
        if not problem.endswith("."):
            # Repeat only values that should be numbers or booleans: they cannot be secrets.
            problem += f", not {_short(mistake['input'])}."
        if mistake["type"] == "extra_forbidden":
            valid = list(_section_at(section, path[:-1]).model_fields)
            advice = nearest(path[-1], valid) if valid else "There are none here."
            secret = path[-1] in ("api_key", "key", "token") and "api_key_env" in valid
            problem += f" {_SECRET if secret else advice}"
        lines.append(f"  {'.'.join(path)}: {problem}")
    return "\n".join(lines)


def _by_setting(error: ValidationError, raw: object) -> list[tuple[list[str], Any]]:
    """Return the mistakes with their settings as the user wrote them.

    If a setting may have several types, only the mistakes in the one that was meant count.
    """
    found: dict[tuple[str, ...], dict[str, list[tuple[list[str], Any]]]] = {}
    for mistake in error.errors(include_url=False):
        path, branch = _without_branch(mistake["loc"], raw)
        details: Any = mistake
        if mistake["type"] == "missing" and isinstance(mistake["loc"][-1], int):
            # A list that is too short has a mistake for each missing item.
            needed, path = mistake["loc"][-1] + 1, path[:-1]
            had = len(mistake["input"])
            details = {**mistake, "type": "items", "msg": f"this needs {needed} items, not {had}."}
        place = tuple(path) if branch is None else branch[0]
        own = found.setdefault(place, {}).setdefault(branch[1] if branch else "", [])
        own[:] = [one for one in own if one[0] != path or one[1]["type"] != "items"]
        own.append((path, details))
    return [one for place, branches in found.items() for one in _meant(place, branches)]


def _meant(
    place: tuple[str, ...], branches: Mapping[str, list[tuple[list[str], Any]]]
) -> list[tuple[list[str], Any]]:
    """Return the mistakes of the type that was meant; one for all types if none was."""
    words = []
    for own in branches.values():
        problem = _PROBLEMS.get(own[0][1]["type"], "")
        if len(branches) == 1 or tuple(own[0][0]) != place or "this must be" not in problem:
            return own
        words.append(problem.removeprefix("this must be ").removesuffix("."))
    return [(list(place), {"type": "types", "msg": f"this must be {' or '.join(words)}."})]


def _without_branch(
    loc: tuple[int | str, ...], raw: object
) -> tuple[list[str], tuple[tuple[str, ...], str] | None]:
    """Return the path of a mistake in what the user wrote, and pydantic's branch with its place."""
    path: list[str] = []
    branch = None
    for part in loc:
        value: Any = None
        if isinstance(raw, Mapping):
            value = raw.get(part)
        elif isinstance(raw, list | tuple) and isinstance(part, int) and part < len(raw):
            value = raw[part]
        if value is None and isinstance(part, str) and _BRANCH.fullmatch(part):
            branch = branch or (tuple(path), part)
            continue
        path.append(str(part))
        raw = value
    return path, branch


def _problem(kind: str, message: str, context: Mapping[str, Any]) -> str:
    """Return the problem, with a full stop unless the caller appends the value."""
    if kind in _PROBLEMS:
        return _PROBLEMS[kind]
    if kind in _LIMITS:
        name, words = _LIMITS[kind]
        return f"this must be {words} {context[name]:g}"
    if kind == "too_short":
        return f"at least {_items(context['min_length'])} needed, not {context['actual_length']}."
    if kind == "too_long":
        return f"at most {_items(context['max_length'])} allowed, not {context['actual_length']}."
    problem = message.removeprefix("Value error, ").replace("Input should be", "this must be")
    return problem if problem.endswith(".") else f"{problem}."


def _items(count: int) -> str:
    return "1 item is" if count == 1 else f"{count} items are"


def _short(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 40 else f"{shown[:40]}..."


def _section_at(section: type[BaseModel], path: list[str]) -> type[BaseModel]:
    for part in path:
        # A part that is not a setting is a user's key, such as a model name.
        field = section.model_fields.get(part)
        annotation = field.annotation if field else None
        choices = [annotation, *getattr(annotation, "__args__", ())]
        sections = (c for c in choices if isinstance(c, type) and issubclass(c, BaseModel))
        section = next(sections, section)
    return section
