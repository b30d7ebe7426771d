"""Files of plain arrays with a header and a digest, read without running what a file brings along.

A file is an `.npz` of plain numbers and strings, never pickled objects. Members are uncompressed:
a small file cannot unfold into a large one, and the same arrays give the same bytes anywhere.
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
"""Bytes of the largest file that is read."""
FOREIGN = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What code meets in a file whose digest fits and whose content makes no sense."""

_NAME = re.compile(r"([A-Za-z0-9_][A-Za-z0-9_.-]{0,99})\.npy")
_PLAIN_KINDS = "biufUS"
_BROKEN = (zipfile.BadZipFile, EOFError, MemoryError, OSError, RuntimeError, TypeError)


def pack(arrays: Arrays) -> bytes:
    """Return the arrays as the bytes of an `.npz` file; ValueError says which cannot be written."""
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
    """Return the arrays in the bytes of an `.npz` file; ValueError says what is wrong with it."""
    try:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            _check_sizes(archive, len(content))
        with np.load(BytesIO(content), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except _BROKEN as error:
        raise ValueError(f"it is cut off, damaged or no .npz file at all ({error})") from None
    return {name: array.astype(array.dtype.newbyteorder("=")) for name, array in arrays.items()}


def _check_sizes(archive: zipfile.ZipFile, size: int) -> None:
    """Raise ValueError unless every member is a plain array, stored as large as it claims to be.

    numpy's reader takes memory for any shape that is claimed.
    """
    entries = archive.infolist()
    for entry in entries:
        name = entry.filename
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is not the plain name of an array")
        if entry.compress_type != zipfile.ZIP_STORED or entry.file_size != entry.compress_size:
            raise ValueError(f"{name!r} is compressed, which a scorer's file never is")
    if len({entry.filename for entry in entries}) < len(entries):
        raise ValueError("two arrays have the same name")
    if sum(entry.file_size for entry in entries) > size:
        raise ValueError("its parts claim to be larger than the whole")
    for entry in entries:
        named = f"the array {entry.filename.removesuffix('.npy')!r}"
        with archive.open(entry) as member:
            try:
                known = npy.read_magic(member) == (1, 0)
                shape, by_columns, dtype = npy.read_array_header_1_0(member)
            except (SyntaxError, ValueError, TokenError):
                known = False
            if not known or by_columns or not _is_plain(dtype) or min(shape, default=0) < 0:
                raise ValueError(f"{named} is not plain numbers or strings in rows")
            if member.tell() + prod(shape) * dtype.itemsize != entry.file_size:
                raise ValueError(f"{named} is not as large as it claims")


def _is_plain(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in _PLAIN_KINDS and dtype.itemsize > 0 and dtype.subdtype is None


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

    def seal(self, header: Mapping[str, object], arrays: Arrays) -> bytes:
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
        return pack({**sealed, "digest": digest(sealed)})

    def save(
        self, path: Path, header: Mapping[str, object], arrays: Arrays, name: str = ""
    ) -> None:
        """Write a file, whole or not at all; the same content gives the same bytes."""
        try:
            content = self.seal(header, arrays)
        except (TypeError, ValueError) as error:
            raise ArtifactError(f"The {name}{self.thing} cannot be saved: {error}.") from None
        write_bytes(path, content)

    def unseal(self, path: Path) -> tuple[dict[str, object], dict[str, NDArray[Any]]]:
        """Return header and arrays of the file at `path`, with header and digest among the arrays.

        ArtifactError or one of `FOREIGN` when it cannot be used.
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
        """Return what to tell people about a file in which code met one of `FOREIGN`."""
        return ArtifactError(f"{path} is not a saved {self.thing}: {error}.", hint=self.fit_again)

    def _read(self, path: Path) -> bytes:
        try:
            size = path.stat().st_size
            if size > LARGEST:
                most = f"no more than {LARGEST:,} are read"
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
