"""Every candidate gets a separate file inside the folder, whatever its name."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketeval.exports.formats import file_stems

NASTY = [
    "..", ".", "/", "//", "a/..", "..\\x", "CON", "nul.txt", "a\0b", "\n", " ", ".hidden", "-rf",
    "x" * 500, "\U0001f600" * 90, "trailing.", "e\u0301", "\u00e9", "C:\\x", "~", "a:b",
]  # fmt: skip


def check(names: list[str], folder: Path) -> None:
    """Check that stems are distinct regardless of case and stay inside the folder."""
    stems = file_stems(names)
    assert set(stems) == set(names)
    assert len({stem.casefold() for stem in stems.values()}) == len(stems)
    for stem in stems.values():
        path = folder / f"{stem}.jsonl"
        assert path.parent == folder
        assert path.resolve().parent == folder.resolve()
        assert len(path.name.encode()) < 200
        assert not stem.startswith((".", "-"))
        path.touch()
    assert len(list(folder.iterdir())) == len(stems)


def test_unportable_names(tmp_path: Path) -> None:
    """Names that a file system would misread become valid file names."""
    check(NASTY, tmp_path)


@given(st.lists(st.text(st.characters(codec="utf-8")), max_size=8, unique=True))
def test_any_names(names: list[str]) -> None:
    """No two names share a file, and no file name has a separator."""
    stems = file_stems(names)
    assert len({stem.casefold() for stem in stems.values()}) == len(names)
    for stem in stems.values():
        assert stem
        assert not set(stem) & set('/\\:*?"<>|\0\n')


@pytest.mark.parametrize("order", [1, -1])
def test_file_names_do_not_depend_on_order(order: int) -> None:
    """A plain name keeps its plain file name."""
    names = ["b/x", "x", "X", "a/x"][::order]
    stems = file_stems(names)
    assert stems["X"] == "X"
    assert [stems[name].rpartition("-")[0] for name in ("x", "a/x", "b/x")] == ["x"] * 3
    assert stems == file_stems(names[::-1])
