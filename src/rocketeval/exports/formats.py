"""Export formats, what each can hold, and safe file names for candidates."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rocketeval.errors import ExportError
from rocketeval.hashing import content_hash
from rocketeval.text import did_you_mean

WHATS: Mapping[str, str] = {
    "ranking": "one row a candidate: rank, rating, mean score, intervals, group",
    "scores": "one row a response",
    "judgments": "one row an answer, with its item's text",
    "audit": "the figures of the audit, with intervals",
    "wins": "who wins against whom",
    "groups": "one row a candidate and group of items, such as a sub-dimension",
    "group_scores": "one row a response and group of items",
}
"""What a run holds that has the form of a table."""


@dataclass(frozen=True, slots=True)
class Format:
    """A form that results can be written in."""

    name: str
    tells: str
    """What it is, in a line."""
    ending: str | None
    """How its files end; None where it is a folder of files."""
    whats: tuple[str, ...] = ()
    """What it can hold, the default first; empty where the format itself says."""
    binary: bool = False
    """Whether it makes no sense on a terminal."""

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder of files."""
        return self.ending is None


_TABLES = ("ranking", "scores", "judgments", "audit", "wins", "groups", "group_scores")
_ROWS = ("scores", "judgments", "ranking", "audit", "wins", "groups", "group_scores")
_SHOWN = ("ranking", "audit", "wins", "groups")

FORMATS: Mapping[str, Format] = {
    format_.name: format_
    for format_ in (
        Format("csv", "a table for spreadsheets, safe from formulas", ".csv", _TABLES),
        Format("markdown", "a table for a README or an issue", ".md", _SHOWN),
        Format("latex", "a table for a paper (booktabs)", ".tex", _SHOWN),
        Format("jsonl", "one JSON object a row", ".jsonl", _ROWS),
        Format("parquet", "columns for pandas, polars, DuckDB", ".parquet", _ROWS, binary=True),
        Format("matches", "battles as arenas keep them, one JSON object a pair", ".jsonl"),
        Format("rocketeval", "the files of the paper's own scripts", None),
        Format("wildbench", "WildBench's score files", None),
    )
}
"""Every format by name."""

_BY_ENDING = {
    form.ending: form.name for form in FORMATS.values() if form.ending and form.name != "matches"
}


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """What to export, checked."""

    form: Format
    what: str
    """One of `WHATS`, or the format's own name where it leaves no choice."""
    raw: bool = False
    """Leave text that a spreadsheet would compute as it is (csv)."""
    bom: bool = False
    """Begin with a byte order mark, by which Excel knows UTF-8 (csv)."""


def make_request(
    to: str | None,
    what: str | None = None,
    path: Path | None = None,
    *,
    raw: bool = False,
    bom: bool = False,
) -> ExportRequest:
    """Return the request; ExportError names what does not fit together.

    >>> make_request(None, path=Path("ranking.md")).form.name
    'markdown'
    >>> make_request("parquet").what
    'scores'
    """
    form = _find(to, path)
    if (raw or bom) and form.name != "csv":
        option = "--raw" if raw else "--bom"
        raise ExportError(f"{option} is for csv only, not for {form.name}.", hint="Leave it out.")
    return ExportRequest(form, _choose(form, what), raw, bom)


def _find(to: str | None, path: Path | None) -> Format:
    if to is None:
        to = _BY_ENDING.get(path.suffix.lower()) if path else None
        if to is None:
            raise ExportError("Which format?", hint=f"Give --to with one of: {', '.join(FORMATS)}.")
    if to not in FORMATS:
        raise ExportError(f"There is no format {to!r}.", hint=did_you_mean(to, list(FORMATS)))
    return FORMATS[to]


def _choose(form: Format, what: str | None) -> str:
    if what is None:
        return form.whats[0] if form.whats else form.name
    if what in form.whats or what == form.name:
        return what
    if what not in WHATS:
        raise ExportError(f"A run has no {what!r}.", hint=did_you_mean(what, list(WHATS)))
    others = ", ".join(name for name, each in FORMATS.items() if what in each.whats)
    own = f"{form.name} holds: {', '.join(form.whats)}. " if form.whats else ""
    raise ExportError(
        f"The format {form.name} cannot hold {what}.", hint=f"{own}{what.capitalize()}: {others}."
    )


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
