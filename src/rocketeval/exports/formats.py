"""Export formats, the tables each supports, and safe file names for candidates."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rocketeval.errors import ExportError
from rocketeval.hashing import content_hash
from rocketeval.text import did_you_mean

WHATS: Mapping[str, str] = {
    "ranking": "one row per candidate: rank, rating, mean score, intervals, group",
    "scores": "one row per response",
    "judgments": "one row per answer, with the text of the item",
    "audit": "audit figures with intervals",
    "wins": "win rates of all pairs of candidates",
    "groups": "one row per candidate and item group, such as a sub-dimension",
    "group_scores": "one row per response and item group",
}
"""The tables that can be exported."""


@dataclass(frozen=True, slots=True)
class Format:
    """An export format."""

    name: str
    tells: str
    """One-line description."""
    ending: str | None
    """File name extension; None for a folder format."""
    whats: tuple[str, ...] = ()
    """Supported tables, default first; empty if the format has fixed content."""
    binary: bool = False
    """Whether the output is not text."""

    @property
    def is_folder(self) -> bool:
        """Whether it writes a folder of files."""
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
        Format("jsonl", "one JSON object per row", ".jsonl", _ROWS),
        Format("parquet", "columns for pandas, polars, DuckDB", ".parquet", _ROWS, binary=True),
        Format("matches", "battles in arena format, one JSON object per pair", ".jsonl"),
        Format("rocketeval", "files for the RocketEval paper's scripts", None),
        Format("wildbench", "WildBench score files", None),
        Format("inspect", "a copy of the run's Inspect logs, with its scores", None),
        Format("promptfoo", "a Python assertion with the scores of known outputs", ".py"),
        Format("langfuse", "scores for create_score, one JSON object per observation", ".jsonl"),
        Format("otel", "gen_ai.evaluation.result events, one JSON object per span", ".jsonl"),
        Format("mlflow", "feedback for log_feedback, one JSON object per response", ".jsonl"),
        Format("openai_grader", "the checklists as graders of the OpenAI API", ".json"),
    )
}
"""Every format by name."""

WRITTEN_BACK = ("promptfoo", "langfuse", "otel", "mlflow", "openai_grader")
"""Formats for the tools that the data came from; `inspect` is a folder."""
_BY_ENDING = {form.ending: form.name for form in FORMATS.values() if form.ending and form.whats}


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """A validated export request."""

    form: Format
    what: str
    """One of `WHATS`, or the format's name if its content is fixed."""
    raw: bool = False
    """Do not escape text that a spreadsheet would run as a formula (csv)."""
    bom: bool = False
    """Start with a byte order mark, so that Excel detects UTF-8 (csv)."""


def make_request(
    to: str | None,
    what: str | None = None,
    path: Path | None = None,
    *,
    raw: bool = False,
    bom: bool = False,
) -> ExportRequest:
    """Validate the options and return the request; raise ExportError if they conflict.

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
            raise ExportError(
                "No format given.", hint=f"Add --to with one of: {', '.join(FORMATS)}."
            )
    if to not in FORMATS:
        raise ExportError(f"There is no format {to!r}.", hint=did_you_mean(to, list(FORMATS)))
    return FORMATS[to]


def _choose(form: Format, what: str | None) -> str:
    if what is None:
        return form.whats[0] if form.whats else form.name
    if what in form.whats or what == form.name:
        return what
    if what not in WHATS:
        raise ExportError(f"There is no table {what!r}.", hint=did_you_mean(what, list(WHATS)))
    others = ", ".join(name for name, each in FORMATS.items() if what in each.whats)
    own = f"{form.name} supports {', '.join(form.whats)}. " if form.whats else ""
    raise ExportError(
        f"The format {form.name} does not support {what}.",
        hint=f"{own}Formats for {what}: {others}.",
    )


MOST_BYTES = 120
_MARKS = frozenset("._-+@= ")
_RESERVED = {"con", "prn", "aux", "nul"} | {f"{w}{n}" for w in ("com", "lpt") for n in range(1, 10)}


def file_stems(names: Iterable[str]) -> dict[str, str]:
    """Return a deterministic file name without extension for each name.

    A plain name is its own file name; `organization/name` uses the last part, as RocketEval and
    WildBench do. A name that is not portable or already taken gets replacement characters and a
    hash of the whole name.

    >>> file_stems(["gpt-4", "google/gemma-2b-it"])
    {'google/gemma-2b-it': 'gemma-2b-it', 'gpt-4': 'gpt-4'}
    >>> file_stems(["../../etc/pass wd?"])
    {'../../etc/pass wd?': 'pass wd_-29c64fba'}
    """
    stems: dict[str, str] = {}
    taken: set[str] = set()
    # Plain names first, so that they keep their file names.
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
    """Return the form that a case-insensitive file system compares."""
    return unicodedata.normalize("NFKC", stem).casefold()
