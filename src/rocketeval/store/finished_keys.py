"""The keys of finished judgments: a set of 16-byte keys that takes 14 bytes per key.

The newest keys are in a Python set (about 98 bytes each). Beyond half a million they move into
sorted arrays: 256 arrays by the first byte of the key, each in 256 parts by the second byte, so
that only the other 14 bytes are stored. Whole keys are compared; nothing depends on a hash.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableSet
from mmap import mmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocketeval.errors import StoreError

KEY = 16
NEWEST = 1 << 19
"""Keys in the Python set before they move into arrays."""
_REST, _REST_AND_SECOND = f"S{KEY - 2}", f"S{KEY - 1}"
_SECOND = np.arange(257)

Texts = NDArray[np.bytes_]
"""Fixed-width byte strings in order; numpy ignores only trailing zeros, which pad all alike."""


class FinishedKeys(MutableSet[bytes]):
    """A set of keys of 16 bytes."""

    def __init__(self, keys: Iterable[bytes] = (), newest: int = NEWEST) -> None:
        self._most = newest
        self._newest: set[bytes] = set()
        self._arrays: list[Texts] = [np.zeros(0, _REST)] * 256
        self._starts = np.zeros((256, 257), np.int32)
        """Where each part of an array begins; the last number is the array's length."""
        self._settled = 0
        self.update(keys)

    def __contains__(self, key: object) -> bool:
        if key in self._newest or not self._settled or not isinstance(key, bytes):
            return key in self._newest
        return len(key) == KEY and self._place(key) is not None

    def __iter__(self) -> Iterator[bytes]:
        yield from self._newest
        for first in range(256):
            for rest in self._whole(first).tolist():
                yield bytes([first]) + rest.ljust(KEY - 1, b"\0")

    def __len__(self) -> int:
        return len(self._newest) + self._settled

    def add(self, key: bytes) -> None:
        """Add a key."""
        if len(key) != KEY:
            raise StoreError(
                f"A key in the run is damaged: it has {len(key)} bytes instead of {KEY}.",
                hint="A file was changed or truncated: restore it from a copy of the run.",
            )
        if key not in self:
            self._newest.add(key)
            if len(self._newest) >= self._most:
                self._settle()

    def update(self, keys: Iterable[bytes]) -> None:
        """Add several keys."""
        for key in keys:
            self.add(key)

    def discard(self, key: bytes) -> None:
        """Remove a key, if it is there."""
        self._newest.discard(key)
        place = self._place(key) if self._settled and len(key) == KEY else None
        if place is not None:
            self._arrays[key[0]] = np.delete(self._arrays[key[0]], place)
            self._starts[key[0], key[1] + 1 :] -= 1
            self._settled -= 1

    def _place(self, key: bytes) -> int | None:
        """Return where a key is in the array of its first byte; None if it is not there."""
        start, end = self._starts[key[0], key[1] : key[1] + 2].tolist()
        # Elements of an array come without trailing zeros.
        part, rest = self._arrays[key[0]][start:end], key[2:].rstrip(b"\0")
        place = int(part.searchsorted(rest))
        return start + place if place < len(part) and part[place] == rest else None

    def _settle(self) -> None:
        """Move the newest keys into the arrays, one array at a time."""
        packed = np.frombuffer(b"".join(self._newest), np.uint8).reshape(-1, KEY)
        self._newest = set()
        packed = packed[np.argsort(packed[:, 0], kind="stable")]
        bounds = np.searchsorted(packed[:, 0], _SECOND)
        for first in range(256):
            own = np.ascontiguousarray(packed[bounds[first] : bounds[first + 1], 1:])
            fresh = np.sort(own.view(_REST_AND_SECOND).ravel())
            before = self._whole(first)
            self._keep(first, np.insert(before, before.searchsorted(fresh), fresh))
        self._settled = int(self._starts[:, -1].sum())

    def _whole(self, first: int) -> Texts:
        """Return the keys with this first byte, without it."""
        rest = self._arrays[first]
        whole = np.empty((len(rest), KEY - 1), np.uint8)
        whole[:, 0] = np.repeat(_SECOND[:256], np.diff(self._starts[first]))
        whole[:, 1:] = _letters(rest)
        return whole.view(_REST_AND_SECOND).ravel()

    def _keep(self, first: int, whole: Texts) -> None:
        letters = _letters(whole)
        self._starts[first] = np.searchsorted(letters[:, 0], _SECOND)
        self._arrays[first] = _pages(letters[:, 1:]).view(_REST).ravel()


def _pages(rows: NDArray[Any]) -> NDArray[Any]:
    """Return a copy in memory pages of its own.

    Otherwise, arrays that are replaced by slightly larger ones leave holes in the heap.
    """
    copy = np.frombuffer(mmap(-1, max(1, rows.size)), np.uint8, rows.size).reshape(rows.shape)
    copy[:] = rows
    return copy


def _letters(texts: Texts) -> NDArray[Any]:
    """Return texts as rows of bytes."""
    return texts.view(np.uint8).reshape(len(texts), texts.dtype.itemsize)
