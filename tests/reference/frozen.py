"""The frozen results of the reference runs, and how to compare new results with them."""

from __future__ import annotations

import json
import lzma
import math
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import scipy.linalg  # noqa: F401  (loads kernels that `arithmetic` reports)
from threadpoolctl import threadpool_info

FROZEN = Path(__file__).parent / "frozen"
DECLARED: tuple[tuple[str, str], ...] = ()
"""Intended changes of wording: old text, new text. Everything else must be unchanged."""
MOST_SHOWN = 20
"""Maximum number of differences to show."""
MADE_ON = FROZEN / "made_on.json"
"""The libraries behind the frozen numbers; others may round the last bit of a sum differently."""
_NOTHING = object()


def arithmetic() -> dict[str, str]:
    """Return the libraries and kernels that determine the last bit of a number."""
    libraries = {name: version(name) for name in ("numpy", "scipy", "scikit-learn", "pyarrow")}
    kernels = {each.get("architecture", "") for each in threadpool_info()}
    found = np.show_config(mode="dicts")["SIMD Extensions"]["found"]
    return {**libraries, "kernels": " ".join(sorted(kernels - {""})), "vectors": " ".join(found)}


def is_exact() -> bool:
    """Return whether every bit must agree, because libraries and kernels are the same."""
    made_on: dict[str, str] = json.loads(MADE_ON.read_text())
    return made_on == arithmetic()


def path_of(name: str) -> Path:
    """Return the path of a frozen run."""
    return FROZEN / f"{name}.json.xz"


def freeze(name: str, seen: Mapping[str, Any]) -> None:
    """Write the results of a run; equal results give equal bytes."""
    FROZEN.mkdir(exist_ok=True)
    MADE_ON.write_text(json.dumps(arithmetic(), indent=2) + "\n")
    path_of(name).write_bytes(lzma.compress(canonical(seen).encode(), preset=9))


def load(name: str) -> dict[str, Any]:
    """Return the frozen results of a run, in today's wording."""
    text = lzma.decompress(path_of(name).read_bytes()).decode()
    found: dict[str, Any] = json.loads(text, object_hook=_without_schema)
    return dict(reworded(found))


def _without_schema(found: dict[str, Any]) -> dict[str, Any]:
    return {name: each for name, each in found.items() if each != "<schema>"}


def canonical(content: Any) -> str:
    """Return canonical JSON: sorted names, nothing rounded."""
    return json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def reworded(content: Any, declared: tuple[tuple[str, str], ...] = DECLARED) -> Any:
    """Return content with every declared change of wording, also in keys."""
    if isinstance(content, dict):
        return {
            reworded(name, declared): reworded(each, declared) for name, each in content.items()
        }
    if isinstance(content, list):
        return [reworded(each, declared) for each in content]
    return _reworded_text(content, declared) if isinstance(content, str) else content


@lru_cache(maxsize=100_000)
def _reworded_text(text: str, declared: tuple[tuple[str, str], ...]) -> str:
    for old, new in declared:
        text = text.replace(old, new)
    return text


def differences(frozen: Any, found: Any, place: str = "", *, exact: bool = True) -> Iterator[str]:
    """Yield the path of every difference with both values; 1 and 1.0 differ too.

    Unless `exact`, numbers may differ by one part in a billion.
    """
    if isinstance(frozen, dict) and isinstance(found, dict):
        for name in sorted(frozen.keys() | found.keys()):
            one, other = frozen.get(name, _NOTHING), found.get(name, _NOTHING)
            yield from differences(one, other, f"{place}[{name!r}]", exact=exact)
    elif isinstance(frozen, list) and isinstance(found, list) and len(frozen) == len(found):
        for number, (one, other) in enumerate(zip(frozen, found, strict=True)):
            yield from differences(one, other, f"{place}[{number}]", exact=exact)
    elif isinstance(frozen, list) and isinstance(found, list):
        start = next(
            (
                number
                for number, (one, other) in enumerate(zip(frozen, found, strict=False))
                if canonical(one) != canonical(other)
            ),
            min(len(frozen), len(found)),
        )
        yield f"{place}: {len(frozen)} entries, now {len(found)}; the first that differs:"
        one, other = (each[start] if start < len(each) else _NOTHING for each in (frozen, found))
        yield from differences(one, other, f"{place}[{start}]", exact=exact)
    elif _text(frozen) != _text(found) and (exact or not _close(frozen, found)):
        yield f"{place}\n    frozen: {_shown(frozen)}\n    now:    {_shown(found)}"


def message_of(found: list[str]) -> str:
    """Return the first differences as a message."""
    more = len(found) - MOST_SHOWN
    return "\n".join([f"{len(found)} differences", *found[:MOST_SHOWN]]) + (
        f"\n... and {more} more" if more > 0 else ""
    )


def _close(one: Any, other: Any) -> bool:
    numbers = isinstance(one, float) and isinstance(other, float)
    return numbers and math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)


def _text(value: Any) -> str:
    return "(nothing)" if value is _NOTHING else canonical(value)


def _shown(value: Any) -> str:
    text = _text(value)
    return text if len(text) < 300 else f"{text[:300]}... ({len(text)} characters)"
