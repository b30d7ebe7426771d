"""Files of plain data with a header and a digest, read without running what a file brings along.

A sealed file is an `.npz`: `header` is JSON that names a schema and its version, `digest` is a hash
of all other arrays. The hash finds damage. It is no signature: whoever can write the file can
change what it says.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from rocketeval._version import __version__
from rocketeval.errors import ArtifactError
from rocketeval.hashing import combine, content_hash
from rocketeval.scoring import npz

Arrays = Mapping[str, NDArray[Any]]

FOREIGN = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What code meets in a file whose digest fits and whose content makes no sense."""


@dataclass(frozen=True)
class Schema:
    """One kind of sealed file."""

    name: str
    version: int
    """Raised when a file could not be read by an older release any more."""
    thing: str
    """What it holds, for people."""
    needed: tuple[str, ...] = ()
    """Arrays that every such file has beside header and digest."""
    if_unreadable: str = ""
    """What to do when there is no such file."""

    @property
    def fit_again(self) -> str:
        """What to do about a file that cannot be used."""
        return f"Fit and save the {self.thing} again, or take an undamaged copy of the file."

    def seal(self, header: Mapping[str, Any], arrays: Arrays) -> bytes:
        """Return the bytes of a file; TypeError or ValueError when JSON cannot hold the header.

        The header gets the schema, its version and the versions of what made the file.
        """
        whole = {
            "schema": self.name,
            "version": self.version,
            "versions": {
                "rocketeval": __version__,
                "numpy": np.__version__,
                "scikit-learn": version("scikit-learn"),
            },
            **header,
        }
        text = json.dumps(whole, sort_keys=True, allow_nan=False).encode()
        sealed = {**arrays, "header": np.frombuffer(text, np.uint8)}
        return npz.pack({**sealed, "digest": digest(sealed)})

    def unseal(self, path: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return header and arrays of the file at `path`, with header and digest among the arrays.

        ArtifactError or one of `FOREIGN` when it cannot be used.
        """
        arrays = npz.unpack(self._read(path))
        header = self._header(arrays, path)
        claimed = arrays["digest"].tobytes()
        covered = {name: array for name, array in arrays.items() if name != "digest"}
        if claimed != digest(covered).tobytes():
            raise ArtifactError(
                f"{path} is damaged: its digest does not match.", hint=self.fit_again
            )
        return header, arrays

    def foreign(self, path: Path, error: Exception) -> ArtifactError:
        """Return what to tell people about a file in which code met one of `FOREIGN`."""
        return ArtifactError(f"{path} is not a saved {self.thing}: {error}.", hint=self.fit_again)

    def _read(self, path: Path) -> bytes:
        try:
            size = path.stat().st_size
            if size > npz.LARGEST:
                most = f"no more than {npz.LARGEST:,} are read"
                raise ValueError(f"it has {size:,} bytes, and {most}")
            return path.read_bytes()
        except OSError as error:
            raise ArtifactError(
                f"Cannot read the saved {self.thing} {path}: {error.strerror}.",
                hint=self.if_unreadable,
            ) from None

    def _header(self, arrays: Arrays, path: Path) -> dict[str, Any]:
        """Return the header, if it is one that this release can read."""
        absent = sorted({"header", "digest", *self.needed} - arrays.keys())
        if absent:
            raise ValueError(f"it has no {absent[0]}")
        header = orjson.loads(arrays["header"].tobytes())
        if not isinstance(header, dict) or header.get("schema") != self.name:
            raise ValueError(f"its header does not say {self.name!r}")
        if header.get("version") != self.version:
            made_by = header.get("versions", {}).get("rocketeval", "another release")
            raise ArtifactError(
                f"{path} is in version {header.get('version')} of the format, written by "
                f"RocketEval {made_by}; this is {__version__}, which reads version {self.version}.",
                hint="Use the release that wrote it or a newer one, "
                f"or fit the {self.thing} again.",
            )
        return header


def digest(arrays: Arrays) -> NDArray[np.uint8]:
    """Return a hash of every array: its name, type, shape and values."""
    parts = []
    for name, array in sorted(arrays.items()):
        stored = array.astype(array.dtype.newbyteorder("<"), order="C", copy=False)
        parts.append(content_hash(name, stored.dtype.str, list(stored.shape)))
        parts.append(combine(stored.tobytes()))
    return np.frombuffer(combine(*parts), np.uint8)
