"""Many keys at once: hex text as files have it, and the 16 bytes that are looked up."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rocketeval.errors import StoreError

Keys = NDArray[np.uint64]
"""Shape (keys, 2): a key's first and last eight bytes as numbers that sort as the bytes do."""

_HEX_LETTERS = 32


def hex_to_bytes(column: pa.ChunkedArray | pa.Array) -> bytes:
    """Return the 16 bytes of every key or hash of a column of hex text, one after the other."""
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if not len(column):
        return b""
    try:
        text = column.cast(pa.binary()).cast(pa.binary(_HEX_LETTERS))
        start = text.offset * _HEX_LETTERS
        letters = text.buffers()[1].to_pybytes()[start : start + len(text) * _HEX_LETTERS]
        found = bytes.fromhex(letters.decode("ascii"))
    except (pa.ArrowInvalid, ValueError):
        found = b""
    if column.null_count or len(found) != len(column) * _HEX_LETTERS // 2:
        raise StoreError(
            "A key in the run is damaged: it is not of 32 hexadecimal digits.",
            hint="The file was changed or cut short: take it from a copy of the run.",
        )
    return found


def to_keys(packed: bytes) -> Keys:
    """Return keys that lie one after the other as pairs of numbers.

    >>> to_keys(bytes(7) + b"\\1" + bytes(7) + b"\\2").tolist()
    [[1, 2]]
    """
    return np.frombuffer(packed, ">u8").reshape(-1, 2).astype(np.uint64)


def hex_column(packed: bytes, known: NDArray[np.bool_]) -> pa.StringArray:
    """Return keys that lie one after the other as a column of hex text, null where none is known.

    >>> hex_column(bytes(16), np.array([False, True])).to_pylist()
    [None, '00000000000000000000000000000000']
    """
    ends = np.cumsum(known, dtype=np.int64) * _HEX_LETTERS
    offsets = np.concatenate([[0], ends]).astype(np.int32)
    valid = None if known.all() else pa.array(known).buffers()[1]
    return pa.StringArray.from_buffers(
        len(known), pa.py_buffer(offsets), pa.py_buffer(packed.hex().encode()), valid
    )
