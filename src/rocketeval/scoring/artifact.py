"""A fitted scorer as one file of plain data: reading it runs no code that the file brings along.

The file is an `.npz`: `header` is JSON (schema, settings, judge, checklists, versions, time),
`fitted_on` the keys of the judgments learned from, `state.*` what the scorer learned, `digest` a
hash of all of these. The hash finds damage. It is no signature: whoever can write the file can
change its scores.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from rocketeval._version import __version__
from rocketeval.config import ScorerConfig, parse_options
from rocketeval.errors import ArtifactError, ConfigError
from rocketeval.hashing import combine, content_hash
from rocketeval.records import JudgeFingerprint
from rocketeval.registry import nearest
from rocketeval.scoring import npz
from rocketeval.scoring.base import SCORERS, Saveable, Scorer, State
from rocketeval.scoring.provenance import KEY_BYTES, Provenance
from rocketeval.store.files import write_bytes

SCHEMA = "rocketeval.scorer"
VERSION = 1
"""Raised when a file could not be read by an older release any more."""

_STATE = "state."
_FOREIGN = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What code meets in a file whose digest fits and whose content makes no sense."""
_FIT_AGAIN = "Fit and save the scorer again, or take an undamaged copy of the file."


@dataclass(frozen=True)
class Loaded:
    """A scorer that was read from a file."""

    scorer: Scorer
    config: ScorerConfig
    """The settings it was fitted with."""
    provenance: Provenance


def save_scorer(
    scorer: Scorer, config: ScorerConfig, path: Path, *, provenance: Provenance
) -> None:
    """Write a fitted scorer to `path`, whole or not at all; the same fit gives the same bytes."""
    if not isinstance(scorer, Saveable) or not isinstance(scorer, SCORERS.get(config.kind)):
        raise ArtifactError(
            f"A {type(scorer).__name__} cannot be saved as a scorer of kind {config.kind!r}.",
            hint="Save the scorer with its own config; its class needs `state` and `restore`.",
        )
    state = scorer.state()
    header = {
        "schema": SCHEMA,
        "version": VERSION,
        "config": config.model_dump(mode="json", exclude={"fitted"}),
        "judge": asdict(provenance.judge),
        "checklists": dict(provenance.checklists),
        "created": provenance.created,
        "versions": {
            "rocketeval": __version__,
            "numpy": np.__version__,
            "scikit-learn": version("scikit-learn"),
        },
        "arrays": sorted(state.arrays),
        "state": dict(state.header),
    }
    arrays = {_STATE + name: array for name, array in state.arrays.items()}
    arrays["fitted_on"] = provenance.fitted_on
    try:
        text = json.dumps(header, sort_keys=True, allow_nan=False).encode()
        arrays["header"] = np.frombuffer(text, np.uint8)
        content = npz.pack({**arrays, "digest": _digest(arrays)})
    except (TypeError, ValueError) as error:
        raise ArtifactError(f"The {config.kind} scorer cannot be saved: {error}.") from None
    write_bytes(path, content)


def load_scorer(path: Path) -> Loaded:
    """Return the scorer saved at `path`; ArtifactError says why it cannot be used."""
    try:
        arrays = npz.unpack(_read(path))
        header = _header(arrays, path)
        _check_digest(arrays, path)
        return _loaded(header, arrays)
    except ConfigError as error:
        raise ArtifactError(f"{path} cannot be used: {error.message}", hint=error.hint) from None
    except _FOREIGN as error:
        raise ArtifactError(f"{path} is not a saved scorer: {error}.", hint=_FIT_AGAIN) from None


def _read(path: Path) -> bytes:
    try:
        size = path.stat().st_size
        if size > npz.LARGEST:
            raise ValueError(f"it has {size:,} bytes, and no more than {npz.LARGEST:,} are read")
        return path.read_bytes()
    except OSError as error:
        raise ArtifactError(
            f"Cannot read the saved scorer {path}: {error.strerror}.",
            hint="Check `scorer.fitted`, or leave it out to fit a scorer now.",
        ) from None


def _header(arrays: Mapping[str, NDArray[Any]], path: Path) -> dict[str, Any]:
    """Return the header, if it is one that this release can read."""
    absent = sorted({"header", "digest", "fitted_on"} - arrays.keys())
    if absent:
        raise ValueError(f"it has no {absent[0]}")
    header = orjson.loads(arrays["header"].tobytes())
    if not isinstance(header, dict) or header.get("schema") != SCHEMA:
        raise ValueError(f"its header does not say {SCHEMA!r}")
    if header.get("version") != VERSION:
        made_by = header.get("versions", {}).get("rocketeval", "another release")
        raise ArtifactError(
            f"{path} is in version {header.get('version')} of the format, written by RocketEval "
            f"{made_by}; this is {__version__}, which reads version {VERSION}.",
            hint="Use the release that wrote it or a newer one, or fit the scorer again.",
        )
    return header


def _check_digest(arrays: Mapping[str, NDArray[Any]], path: Path) -> None:
    claimed = arrays["digest"].tobytes()
    covered = {name: array for name, array in arrays.items() if name != "digest"}
    if claimed != _digest(covered).tobytes():
        raise ArtifactError(f"{path} is damaged: its digest does not match.", hint=_FIT_AGAIN)


def _digest(arrays: Mapping[str, NDArray[Any]]) -> NDArray[np.uint8]:
    """Return a hash of every array: its name, type, shape and values."""
    parts = []
    for name, array in sorted(arrays.items()):
        stored = array.astype(array.dtype.newbyteorder("<"), order="C", copy=False)
        parts.append(content_hash(name, stored.dtype.str, list(stored.shape)))
        parts.append(combine(stored.tobytes()))
    return np.frombuffer(combine(*parts), np.uint8)


def _loaded(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Loaded:
    expected = {"header", "digest", "fitted_on", *(_STATE + name for name in header["arrays"])}
    if arrays.keys() != expected:
        raise ValueError(f"its arrays are not those it lists: {sorted(arrays.keys() ^ expected)}")
    keys = arrays["fitted_on"]
    if keys.dtype != np.uint8 or keys.shape[1:] != (KEY_BYTES,):
        raise ValueError("the keys of what it was fitted to cannot be read")
    config = parse_options(header["config"], ScorerConfig, "its config")
    if config.kind not in SCORERS.names():
        raise ArtifactError(
            f"The saved scorer is of kind {config.kind!r}, which is not installed.",
            hint=f"Install the plugin that brings it. {nearest(config.kind, SCORERS.names())}",
        )
    kind = SCORERS.get(config.kind)
    if not issubclass(kind, Saveable):
        raise ValueError(f"scorers of kind {config.kind!r} cannot be read from a file")
    state = State(header["state"], {name: arrays[_STATE + name] for name in header["arrays"]})
    checklists = {str(query): str(digest) for query, digest in header["checklists"].items()}
    judge = JudgeFingerprint(**header["judge"])
    provenance = Provenance(judge, keys, checklists, header["created"])
    return Loaded(kind.restore(config, state), config, provenance)
