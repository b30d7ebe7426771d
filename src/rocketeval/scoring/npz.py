"""Sealed files of plain arrays with a header and a digest; reading runs no code from the file.

A file is an `.npz` of plain numbers and strings, never pickled objects. Members are uncompressed,
so that a small file cannot expand into a large one and the same arrays give the same bytes.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from io import BytesIO
from math import prod
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
import orjson
from numpy.lib import format as npy
from numpy.typing import NDArray

from rocketeval._version import __version__
from rocketeval.errors import ArtifactError
from rocketeval.hashing import combine, content_hash
from rocketeval.store.files import write_bytes

Arrays = Mapping[str, NDArray[Any]]

LARGEST = 4 << 30
"""Maximum size of a file to read, in bytes."""
FOREIGN = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""Errors from a file with a valid digest but invalid content."""

_NAME = re.compile(r"([A-Za-z0-9_][A-Za-z0-9_.-]{0,99})\.npy")
_PLAIN_KINDS = "biufUS"
_BROKEN = (zipfile.BadZipFile, EOFError, MemoryError, OSError, RuntimeError, TypeError)


def pack(arrays: Arrays) -> bytes:
    """Return the arrays as the bytes of an `.npz` file; raise ValueError for a bad array."""
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(arrays):
            entry, array = zipfile.ZipInfo(f"{name}.npy"), arrays[name]
            if not _NAME.fullmatch(entry.filename):
                raise ValueError(f"{name!r} is not a plain name for an array")
            if not _is_plain(array.dtype):
                held = f"holds {array.dtype}, not plain numbers or strings"
                raise ValueError(f"the array {name!r} {held}")
            entry.create_system, entry.external_attr = 3, 0o644 << 16
            member, stored = BytesIO(), np.asarray(array, array.dtype.newbyteorder("<"), order="C")
            npy.write_array(member, stored, (1, 0), allow_pickle=False)
            archive.writestr(entry, member.getvalue())
    return buffer.getvalue()


def unpack(content: bytes) -> dict[str, NDArray[Any]]:
    """Return the arrays in the bytes of an `.npz` file; raise ValueError if it is invalid."""
    try:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            _check_sizes(archive, len(content))
        with np.load(BytesIO(content), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except _BROKEN as error:
        raise ValueError(f"it is truncated, damaged or not an .npz file ({error})") from None
    return {name: array.astype(array.dtype.newbyteorder("=")) for name, array in arrays.items()}


def _check_sizes(archive: zipfile.ZipFile, size: int) -> None:
    """Raise ValueError unless every member is a plain array of the size it declares.

    numpy would allocate memory for any declared shape.
    """
    entries = archive.infolist()
    for entry in entries:
        name = entry.filename
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is not the plain name of an array")
        if entry.compress_type != zipfile.ZIP_STORED or entry.file_size != entry.compress_size:
            raise ValueError(f"{name!r} is compressed, which saved scorers never are")
    if len({entry.filename for entry in entries}) < len(entries):
        raise ValueError("two arrays have the same name")
    if sum(entry.file_size for entry in entries) > size:
        raise ValueError("its members declare more bytes than the file has")
    for entry in entries:
        named = f"the array {entry.filename.removesuffix('.npy')!r}"
        with archive.open(entry) as member:
            try:
                known = npy.read_magic(member) == (1, 0)
                shape, by_columns, dtype = npy.read_array_header_1_0(member)
            except (SyntaxError, ValueError, TokenError):
                known = False
            if not known or by_columns or not _is_plain(dtype) or min(shape, default=0) < 0:
                raise ValueError(f"{named} does not contain plain numbers or strings in row order")
            if member.tell() + prod(shape) * dtype.itemsize != entry.file_size:
                raise ValueError(f"{named} does not have its declared size")


def _is_plain(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in _PLAIN_KINDS and dtype.itemsize > 0 and dtype.subdtype is None


@dataclass(frozen=True)
class Schema:
    """One kind of sealed file."""

    name: str
    version: int
    """Increased if older releases could not read the file."""
    thing: str
    """Name of the content, for messages."""
    needed: tuple[str, ...] = ()
    """Required arrays besides header and digest."""
    if_unreadable: str = ""
    """Hint if the file cannot be read."""

    @property
    def fit_again(self) -> str:
        """Return the hint for a file that cannot be used."""
        return f"Fit and save the {self.thing} again, or use an undamaged copy of the file."

    def seal(self, header: Mapping[str, object], arrays: Arrays) -> bytes:
        """Return the bytes of a file; raise TypeError or ValueError if the header is not JSON.

        The schema, its version and the library versions are added to the header.
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
        return pack({**sealed, "digest": digest(sealed)})

    def save(
        self, path: Path, header: Mapping[str, object], arrays: Arrays, name: str = ""
    ) -> None:
        """Write a file atomically; the same content gives the same bytes."""
        try:
            content = self.seal(header, arrays)
        except (TypeError, ValueError) as error:
            raise ArtifactError(f"The {name}{self.thing} cannot be saved: {error}.") from None
        write_bytes(path, content)

    def unseal(self, path: Path) -> tuple[dict[str, object], dict[str, NDArray[Any]]]:
        """Read the header and arrays (including header and digest) of the file at `path`.

        Raise ArtifactError or one of `FOREIGN` if it cannot be used.
        """
        arrays = unpack(self._read(path))
        header = self._header(arrays, path)
        claimed = arrays["digest"].tobytes()
        covered = {name: array for name, array in arrays.items() if name != "digest"}
        if claimed != digest(covered).tobytes():
            raise ArtifactError(
                f"{path} is damaged: its digest does not match.", hint=self.fit_again
            )
        return header, arrays

    def foreign(self, path: Path, error: Exception) -> ArtifactError:
        """Return the user-facing error for a file that raised one of `FOREIGN`."""
        return ArtifactError(f"{path} is not a saved {self.thing}: {error}.", hint=self.fit_again)

    def _read(self, path: Path) -> bytes:
        try:
            size = path.stat().st_size
            if size > LARGEST:
                raise ValueError(f"it has {size:,} bytes; the maximum is {LARGEST:,}")
            return path.read_bytes()
        except OSError as error:
            raise ArtifactError(
                f"Cannot read the saved {self.thing} {path}: {error.strerror}.",
                hint=self.if_unreadable,
            ) from None

    def _header(self, arrays: Arrays, path: Path) -> dict[str, Any]:
        """Return the header; raise an error if this release cannot read it."""
        absent = sorted({"header", "digest", *self.needed} - arrays.keys())
        if absent:
            raise ValueError(f"it has no {absent[0]}")
        header = orjson.loads(arrays["header"].tobytes())
        if not isinstance(header, dict) or header.get("schema") != self.name:
            raise ValueError(f"its header does not name the schema {self.name!r}")
        if header.get("version") != self.version:
            made_by = header.get("versions", {}).get("rocketeval", "another release")
            raise ArtifactError(
                f"{path} has format version {header.get('version')}, written by "
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
