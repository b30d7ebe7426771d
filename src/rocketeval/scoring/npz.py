"""Arrays as one `.npz` file that anybody can open and nobody can hide anything in.

Only plain numbers and strings, never pickled objects. Members are stored uncompressed, so that a
small file cannot unfold into a large one, and everything else that could differ between two
machines is fixed: the same arrays give the same bytes.
"""

from __future__ import annotations

import re
import struct
import zipfile
from collections.abc import Mapping
from io import BytesIO
from math import prod
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

LARGEST = 4 << 30
"""Bytes of the largest file that is read."""

_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_PLAIN_KINDS = "biufUS"
_NPY = re.compile(
    rb"\x93NUMPY\x01\x00..\{'descr': '(?P<dtype>[<|][biufUS]\d{1,9})', 'fortran_order': False, "
    rb"'shape': \((?P<shape>[\d, ]{0,200})\), \} *\n",
    re.DOTALL,
)
_ENDING = ".npy"
_BROKEN = (zipfile.BadZipFile, EOFError, OSError, RuntimeError, TypeError, struct.error)
_LONG_AGO = (1980, 1, 1, 0, 0, 0)
_ENCRYPTED = 0x1


def pack(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Return the arrays as the bytes of an `.npz` file; ValueError says which cannot be written."""
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(arrays):
            if not _PLAIN_NAME.fullmatch(name):
                raise ValueError(f"{name!r} is not a plain name for an array")
            member = BytesIO()
            npy.write_array(member, _canonical(name, arrays[name]), (1, 0), allow_pickle=False)
            archive.writestr(_entry(name), member.getvalue())
    return buffer.getvalue()


def unpack(content: bytes) -> dict[str, NDArray[Any]]:
    """Return the arrays in the bytes of an `.npz` file; ValueError says what is wrong with it."""
    try:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            names = [_checked_name(entry) for entry in archive.infolist()]
            if len(set(names)) < len(names):
                raise ValueError("two arrays have the same name")
            if sum(entry.file_size for entry in archive.infolist()) > len(content):
                raise ValueError("its parts claim to be larger than the whole")
            return {name: _read_array(name, archive.read(name + _ENDING)) for name in names}
    except _BROKEN as error:
        raise ValueError(f"it is cut off, damaged or no .npz file at all ({error})") from None


def _canonical(name: str, array: NDArray[Any]) -> NDArray[Any]:
    if not _is_plain(array.dtype):
        raise ValueError(f"the array {name!r} holds {array.dtype}, not plain numbers or strings")
    return np.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C")


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name + _ENDING, date_time=_LONG_AGO)
    entry.create_system = 3
    entry.external_attr = 0o644 << 16
    return entry


def _checked_name(entry: zipfile.ZipInfo) -> str:
    name = entry.filename.removesuffix(_ENDING)
    if name == entry.filename or not _PLAIN_NAME.fullmatch(name):
        raise ValueError(f"{entry.filename!r} is not the plain name of an array")
    if entry.compress_type != zipfile.ZIP_STORED or entry.file_size != entry.compress_size:
        raise ValueError(f"{entry.filename!r} is compressed, which a scorer's file never is")
    if entry.flag_bits & _ENCRYPTED:
        raise ValueError(f"{entry.filename!r} is encrypted")
    return name


def _read_array(name: str, member: bytes) -> NDArray[Any]:
    """Return one array, having held its claims against the bytes that are there.

    numpy's own reader would take memory for any shape that is claimed, and unpickle if told to.
    """
    found = _NPY.match(member)
    if found is None:
        raise ValueError(f"the array {name!r} is not plain numbers or strings in rows")
    dtype = np.dtype(found["dtype"].decode())
    shape = tuple(int(size) for size in found["shape"].split(b",") if size.strip())
    values = member[found.end() :]
    if not _is_plain(dtype) or prod(shape) * dtype.itemsize != len(values):
        raise ValueError(f"the array {name!r} is not as large as it claims")
    array: NDArray[Any] = np.ndarray(shape, dtype, buffer=values)
    return array.astype(dtype.newbyteorder("="))


def _is_plain(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in _PLAIN_KINDS and dtype.itemsize > 0 and dtype.subdtype is None
