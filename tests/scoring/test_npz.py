"""Arrays in a file: only plain data, unchanged after a round trip."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from io import BytesIO
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from rocketeval.scoring import npz


def zipped(members: Mapping[str, bytes], how: int = zipfile.ZIP_STORED) -> bytes:
    """Return a zip of the given members."""
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", how) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def member(array: NDArray[Any]) -> bytes:
    """Return an array as a .npy file."""
    buffer = BytesIO()
    np.lib.format.write_array(buffer, array, (1, 0))
    return buffer.getvalue()


def test_zip_bomb_is_refused_unopened() -> None:
    """Compressed members are refused by their entry, without unpacking."""
    bomb = zipped({"header.npy": member(np.zeros(10**7, np.uint8))}, zipfile.ZIP_DEFLATED)
    assert len(bomb) < 20_000
    with pytest.raises(ValueError, match=r"'header\.npy' is compressed"):
        npz.unpack(bomb)


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        (
            b"'<f8', 'fortran_order': False, 'shape': (99999999999,)",
            "does not have its declared size",
        ),
        (b"'<f8', 'fortran_order': False, 'shape': (-8,)", "not contain plain numbers"),
        (b"'<f8', 'fortran_order': True, 'shape': (8,)", "not contain plain numbers"),
        (b"'<f8', 'fortran_order': False, 'shape': (4 * 2,)", "not contain plain numbers"),
        (b"'|O8', 'fortran_order': False, 'shape': (8,)", "not contain plain numbers"),
        (b"'<f8', 'fortran_order': False, 'shape': ((8,)", "not contain plain numbers"),
        (b"'<U0', 'fortran_order': False, 'shape': (8,)", "not contain plain numbers"),
        (b"'<f7', 'fortran_order': False, 'shape': (8,)", "not contain plain numbers"),
        (b"'<U999999999', 'fortran_order': False, 'shape': (8,)", "plain numbers|declared size"),
    ],
)
def test_wrong_declared_shape_is_refused(claim: bytes, words: str) -> None:
    """Huge shapes, objects and columns are refused before memory is allocated."""
    honest = member(np.zeros(8))
    declared = b"'<f8', 'fortran_order': False, 'shape': (8,)"
    assert npz.unpack(zipped({"a.npy": honest}))["a"].tolist() == [0.0] * 8
    with pytest.raises(ValueError, match=words):
        npz.unpack(zipped({"a.npy": honest.replace(declared, claim)}))


@pytest.mark.parametrize("name", ["../a.npy", "/a.npy", "a/b.npy", "a", ".npy", "a b.npy", "ä.npy"])
def test_names_must_be_plain(name: str) -> None:
    """No folders, no empty names, only arrays."""
    with pytest.raises(ValueError, match="not the plain name of an array"):
        npz.unpack(zipped({name: member(np.zeros(1))}))


def test_duplicate_names_are_refused() -> None:
    """Which one counts would be ambiguous."""
    content = zipped({"a.npy": member(np.zeros(1)), "b.npy": member(np.ones(1))})
    with pytest.raises(ValueError, match="the same name"):
        npz.unpack(content.replace(b"b.npy", b"a.npy"))


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((2, 0, 3)),
        np.array(1.5),
        np.array(["ä", "", "long name"]),
        np.array([b"x\0y"]),
        np.arange(6, dtype=">i4").reshape(2, 3),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.array([np.nan, -0.0, np.inf, 5e-324]),
        np.array([True, False]),
        np.float32([0.1]),
    ],
    ids=lambda array: f"{array.dtype}{array.shape}",
)
def test_arrays_round_trip(array: NDArray[Any]) -> None:
    """Empty, single, text, other byte orders and layouts: same values, own memory."""
    found = npz.unpack(npz.pack({"a": array}))["a"]
    assert found.shape == array.shape
    assert found.dtype == array.dtype.newbyteorder("=")
    assert found.astype(array.dtype).tobytes() == array.tobytes()
    assert found.flags.writeable
