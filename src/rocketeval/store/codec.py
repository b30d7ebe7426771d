"""Conversion of records to JSON and back, for every finding in a run directory.

A record is a dataclass of plain values, tuples, mappings, enums and other records. JSON has no NaN
and no infinity, so both are written as null; null for a required number is read as NaN.
A field marked OPTIONAL is left out while it has its default.
"""

from __future__ import annotations

import math
import types
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, TypeVar, Union, get_args, get_origin
from typing import get_type_hints as resolve_hints

from pydantic import BaseModel

from rocketeval.errors import StoreError

SCHEMA = "schema"
"""The key of a file's schema version."""
OPTIONAL: Mapping[str, bool] = {"optional": True}
"""Metadata of a field that JSON leaves out while it has its default."""
LAST: Mapping[str, bool] = {"optional": True, "last": True}
"""Like OPTIONAL, and the field is written after those of subclasses."""


class Finding(Protocol):
    """A dataclass that a stage writes to `<FILE>.json` in the run.

    If it has a class variable ROOT, the field of that name is the whole file, without a schema.
    """

    FILE: ClassVar[str]
    COMMAND: ClassVar[str]
    """The command after `rocketeval` that creates it."""
    SCHEMA: ClassVar[int]
    """Increased whenever older files can no longer be read unchanged."""
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


FindingT = TypeVar("FindingT", bound=Finding)
T = TypeVar("T")


def encode(value: Any) -> Any:
    """Return records as JSON values; NaN and infinity become None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if is_dataclass(value) and not isinstance(value, type):
        return {
            each.name: encode(getattr(value, each.name))
            for each in _in_order(type(value))
            if not each.metadata.get("optional") or getattr(value, each.name) != each.default
        }
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, Mapping):
        return {str(name): encode(own) for name, own in value.items()}
    if isinstance(value, list | tuple):
        return [encode(own) for own in value]
    return str(value) if isinstance(value, Path) else value


@cache
def _in_order(kind: Any) -> tuple[Field[Any], ...]:
    return tuple(sorted(fields(kind), key=lambda each: bool(each.metadata.get("last"))))


def encode_finding(finding: Finding) -> dict[str, object]:
    """Return the content of the finding's file."""
    root = getattr(finding, "ROOT", None)
    found: dict[str, object] = encode(getattr(finding, root) if root else finding)
    return found if root else {SCHEMA: finding.SCHEMA, **found}


def decode_finding(kind: type[FindingT], found: object, path: Path) -> FindingT:
    """Return the finding in a file; StoreError if the file has another schema version."""
    if not isinstance(found, Mapping):
        raise _unreadable(kind, path, "it is not a JSON object")
    root = getattr(kind, "ROOT", None)
    if root:
        found = {root: found}
    version = found.get(SCHEMA, kind.SCHEMA)
    if isinstance(version, int) and version > kind.SCHEMA:
        raise StoreError(
            f"{path} was written by a newer version of RocketEval: it has schema {version}, this "
            f"version reads {kind.SCHEMA}.",
            hint=f"Update RocketEval (`pip install -U rocketeval`){_instead(kind)}.",
        )
    if version != kind.SCHEMA:
        raise _unreadable(kind, path, f"it has schema {version}, this version reads {kind.SCHEMA}")
    try:
        return decode(kind, found)
    except (KeyError, TypeError, ValueError) as error:
        raise _unreadable(kind, path, f"{type(error).__name__}: {error}") from None


def _unreadable(kind: type[Finding], path: Path, why: str) -> StoreError:
    return StoreError(
        f"{path} was written by another version of RocketEval, or is damaged ({why}).",
        hint=("Move it away, then run" if kind.COMMAND == "run" else "Run")
        + f" `rocketeval {kind.COMMAND}` again.",
    )


def _instead(kind: type[Finding]) -> str:
    """Return the alternative to an update for a file of a newer version."""
    if kind.COMMAND == "run":
        return ", or give this run another `name`: judgments in the cache are reused"
    return f", or run `rocketeval {kind.COMMAND}` to create it again"


def decode(kind: type[T], found: object) -> T:
    """Return JSON as a value of `kind`; KeyError, TypeError or ValueError if it does not fit.

    >>> from rocketeval.records import Interval
    >>> decode(Interval, {"value": 1.5, "low": None, "high": 2})
    Interval(value=1.5, low=nan, high=2.0)
    """
    value: T = _decode(kind, found)
    return value


def _decode(kind: Any, found: Any) -> Any:
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return _decode_union(inner, found)
    if origin is Literal:
        if found not in inner:
            raise ValueError(f"{found!r} is not one of {inner}")
        return found
    if origin is tuple:
        if inner == (float, ...):
            return tuple(math.nan if value is None else float(value) for value in found)
        of = inner[:1] * len(found) if inner[-1] is Ellipsis else inner
        return tuple(_decode(each, value) for each, value in zip(of, found, strict=True))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {_decode_key(inner[0], key): _decode(inner[1], own) for key, own in found.items()}
    if origin is not None:
        return [_decode(inner[0], value) for value in found]
    return _decode_plain(kind, found)


def _decode_plain(kind: Any, found: Any) -> Any:
    if kind is float:
        return math.nan if found is None else float(found)
    if kind is Any or kind is object:
        return found
    if is_dataclass(kind):
        return _decode_record(kind, found)
    if issubclass(kind, BaseModel):
        return kind.model_validate(found)
    if issubclass(kind, Enum | Path):
        return kind(found)
    if not isinstance(found, kind) or (kind is int and isinstance(found, bool)):
        raise TypeError(f"{found!r} is not of type {kind.__name__}")
    return found


def _decode_union(kinds: tuple[Any, ...], found: Any) -> Any:
    if found is None and type(None) in kinds:
        return None
    problem: Exception = TypeError(f"{found!r} is not one of {kinds}")
    for kind in kinds:
        if kind is not type(None):
            try:
                return _decode(kind, found)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                problem = error
    raise problem


def _decode_key(kind: Any, key: str) -> Any:
    return key if kind is str else kind(key)


def _decode_record(kind: Any, found: Any) -> Any:
    if not isinstance(found, Mapping):
        raise TypeError(f"{found!r} is not of type {kind.__name__}")
    values = {}
    for each, hint in _fields(kind):
        if each.name in found:
            values[each.name] = _decode(hint, found[each.name])
        elif each.default is MISSING and each.default_factory is MISSING:
            raise KeyError(f"{kind.__name__}.{each.name}")
    return kind(**values)


@cache
def _fields(kind: type) -> tuple[tuple[Field[Any], Any], ...]:
    hints = resolve_hints(kind)
    return tuple((each, hints[each.name]) for each in fields(kind) if each.init)
