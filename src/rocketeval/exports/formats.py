"""Which formats there are, what each can hold, and which one a request means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rocketeval.errors import ExportError
from rocketeval.names import did_you_mean

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
class Request:
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
) -> Request:
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
    return Request(form, _choose(form, what), raw, bom)


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
