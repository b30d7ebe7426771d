"""File names for candidates: nobody's name leads out of a folder, and no two share a file."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from rocketeval.hashing import content_hash

MOST_BYTES = 120
_MARKS = frozenset("._-+@= ")
_RESERVED = {"con", "prn", "aux", "nul"} | {f"{w}{n}" for w in ("com", "lpt") for n in range(1, 10)}


def file_stems(names: Iterable[str]) -> dict[str, str]:
    """Return a file name without ending for each name, the same for the same names.

    A plain name is its own file name; of `organisation/name` the last part is, as both RocketEval
    and WildBench have it. Whatever else cannot be a file name everywhere, or is one already, gets
    look-alikes and a hash of the whole name.

    >>> file_stems(["gpt-4", "google/gemma-2b-it"])
    {'google/gemma-2b-it': 'gemma-2b-it', 'gpt-4': 'gpt-4'}
    >>> file_stems(["../../etc/pass wd?"])
    {'../../etc/pass wd?': 'pass wd_-29c64fba'}
    """
    stems: dict[str, str] = {}
    taken: set[str] = set()
    # Plain names first: they keep their own, whoever else would like it.
    for name in sorted(names, key=lambda name: ("/" in name, name)):
        last = name.rpartition("/")[2]
        wishes = [last] if _is_plain(last) else []
        wishes += [_made(name, last, digits) for digits in (8, 16, 32)]
        stem = next(wish for wish in wishes if _folded(wish) not in taken)
        taken.add(_folded(stem))
        stems[name] = stem
    return dict(sorted(stems.items()))


def _is_plain(name: str) -> bool:
    return (
        0 < len(name.encode()) <= MOST_BYTES
        and name == unicodedata.normalize("NFC", name)
        and all(mark.isalnum() or mark in _MARKS for mark in name)
        and name[0] not in ". -"
        and name[-1] not in ". "
        and name.partition(".")[0].lower() not in _RESERVED
    )


def _made(name: str, last: str, digits: int) -> str:
    kept = "".join(mark if mark.isalnum() or mark in _MARKS else "_" for mark in last)
    whole = unicodedata.normalize("NFC", kept).strip(". -").encode()
    stem = whole[: MOST_BYTES - 40].decode(errors="ignore").rstrip(". ")
    if not stem or stem.partition(".")[0].lower() in _RESERVED:
        stem = f"candidate_{stem}".rstrip("_")
    return f"{stem}-{content_hash('file name', name).hex()[:digits]}"


def _folded(stem: str) -> str:
    """Return what a file system that ignores case would see."""
    return unicodedata.normalize("NFKC", stem).casefold()
