"""The generic format: a folder of JSON-lines files.

    queries.jsonl      id, text [, history, reference, category, cluster, system, context, tags]
    responses.jsonl    query_id, candidate, text [, history, context]
        responses/*.jsonl  the same, one file per candidate, named after the candidate
    checklists.jsonl   query_id, items              (optional)
    labels.jsonl       query_id, candidate, value [, labeler]               (optional)
    votes.jsonl        query_id, candidate_a, candidate_b, winner [, voter] (optional)
    ratings.jsonl      candidate, value             (optional)

A labeler or voter may also be called rater or annotator, as in tables. Every file may be gzipped.
`history` is a list of {role, content}, `context` a list of passages.
Items are texts or objects. Further fields of a query are kept as metadata.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import asdict
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rocketeval.benchmarks.columns import COLUMN_NAMES
from rocketeval.benchmarks.reading import (
    Row,
    files_in,
    find,
    need,
    need_folder,
    read_rows,
    visible,
)
from rocketeval.benchmarks.row_files import data_files, is_notes, row_format, stem_of
from rocketeval.config import BenchmarkConfig, NoOptions, parse_options
from rocketeval.errors import BenchmarkError
from rocketeval.records import Checklist, Label, Query, Rating, Response, Vote, Winner
from rocketeval.store.files import write_jsonl
from rocketeval.text import join_words

if TYPE_CHECKING:
    from rocketeval.benchmarks.base import Benchmark

LABELERS = tuple(COLUMN_NAMES["labeler"])
"""Fields that name who gave a label; the first that has a value counts."""
FIELDS = {
    "queries": (
        *("id", "text", "history", "reference", "category", "cluster", "system", "context"),
        "tags",
    ),
    "responses": ("query_id", "candidate", "text", "history", "context"),
    "checklists": ("query_id", "items", "author", "about"),
    "labels": ("query_id", "candidate", "value", *LABELERS),
    "votes": ("query_id", "candidate_a", "candidate_b", "winner", "voter", *LABELERS),
    "ratings": ("candidate", "value"),
}
"""Fields of each file; others may be anything, and are kept with a query as its metadata."""
QUERY_FIELDS = frozenset(FIELDS["queries"])
LIKE = 0.8
"""Similarity above which an unknown field counts as a misspelled known one."""


@cache
def _misspelled(name: str, known: tuple[str, ...]) -> str | None:
    """Return the field that a name almost spells; None if it is another word.

    >>> _misspelled("categori", FIELDS["queries"]), _misspelled("notes", FIELDS["queries"])
    ('category', None)
    """
    close = difflib.get_close_matches(name.casefold(), known, n=1, cutoff=LIKE)
    return close[0] if close else None


class OddFields:
    """Counts of unused fields whose names almost spell a known one."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str, str]] = Counter()

    def look_at(self, row: Row, kind: str, known: tuple[str, ...]) -> None:
        """Count the misspelled fields of a row; `kind` names such rows in the sentence."""
        for name in row.values:
            if name not in known and (meant := _misspelled(name, known)) is not None:
                self._counts[kind, name, meant] += 1

    def sentences(self) -> Iterator[str]:
        """Yield a sentence about each field."""
        for (kind, name, meant), rows in self._counts.items():
            yield (
                f"{kind} with a field {name!r}, which is not used: {rows:,}. "
                f"Did you mean {meant!r}?"
            )


class JsonlBenchmark:
    """A folder in the generic format."""

    def __init__(self, folder: Path, read_elsewhere: Collection[Path | None] = ()) -> None:
        """Open a folder; `read_elsewhere` are files in it that the config uses otherwise."""
        self.folder = need_folder(folder)
        self.where = ""
        self._elsewhere = {path.absolute() for path in read_elsewhere if path is not None}
        self._odd = OddFields()
        self._unlabeled: dict[str, int] = {}

    @classmethod
    def create(cls, config: BenchmarkConfig) -> JsonlBenchmark:
        """Return a reader of the folder `config.path`."""
        parse_options(config.options, NoOptions, "benchmark.options")
        return cls(config.path, (config.collected, config.queries))

    def queries(self) -> Iterator[Query]:
        """Yield the rows of queries.jsonl."""
        for row in self._rows(need(self.folder, "queries.jsonl")):
            yield Query(
                id=row.name("id"),
                text=row.text("text"),
                history=row.turns("history") if row.values.get("history") else (),
                reference=row.text("reference", None),
                category=row.text("category", None),
                cluster=row.text("cluster", None),
                system=row.text("system", None),
                context=row.passages("context"),
                tags=row.texts("tags") if row.values.get("tags") is not None else (),
                metadata=row.further(QUERY_FIELDS),
            )

    def responses(self) -> Iterator[Response]:
        """Yield the rows of responses.jsonl, or of every file in responses/."""
        for path, file_name in self._response_files().items():
            for row in response_rows(path, self._rows(path)):
                yield Response(
                    query_id=row.name("query_id"),
                    candidate=row.name("candidate", *file_name),
                    text=row.text("text"),
                    history=None if row.values.get("history") is None else row.turns("history"),
                    context=row.passages("context"),
                )

    def checklists(self) -> Iterator[Checklist]:
        """Yield the rows of checklists.jsonl."""
        for row in self._optional("checklists.jsonl"):
            author = row.text("author", "imported")
            yield Checklist.from_items(
                row.name("query_id"), row.items("items"), author, row.text("about", None)
            )

    def labels(self) -> Iterator[Label]:
        """Yield the rows of labels.jsonl."""
        self._unlabeled["labels.jsonl"] = 0
        for row in self._optional("labels.jsonl"):
            label = read_label(row)
            if label is None:
                self._unlabeled["labels.jsonl"] += 1
            else:
                yield label

    def votes(self) -> Iterator[Vote]:
        """Yield the rows of votes.jsonl."""
        self._unlabeled["votes.jsonl"] = 0
        for row in self._optional("votes.jsonl"):
            vote = read_vote(row)
            if vote is None:
                self._unlabeled["votes.jsonl"] += 1
            else:
                yield vote

    def ratings(self) -> Iterator[Rating]:
        """Yield the rows of ratings.jsonl."""
        for row in self._optional("ratings.jsonl"):
            yield Rating(row.name("candidate"), row.number("value"))

    def _optional(self, name: str) -> Iterator[Row]:
        path = find(self.folder, name)
        return self._rows(path) if path else iter(())

    def _rows(self, path: Path) -> Iterator[Row]:
        kind = path.name.partition(".")[0] if path.parent == self.folder else "responses"
        known = FIELDS.get(kind, ())
        for row in read_rows(path):
            self.where = row.where
            self._odd.look_at(row, kind, known)
            yield row

    def odd_fields(self) -> Iterator[str]:
        """Yield a sentence about null labels, misspelled fields, and files that are not read."""
        for name, count in self._unlabeled.items():
            yield from not_labeled_yet(count, name)
        yield from self._odd.sentences()
        unread = list(self._unread())
        if unread:
            yield f"files of the benchmark that are not read: {join_words(unread, most=10)}"

    def _unread(self) -> Iterator[str]:
        """Yield each file that is not read, with the name that may be meant.

        Not named are notes such as README.md, YAML (configs and checklists), and folders, except
        one whose name is almost that of a file.
        """
        read = {find(self.folder, f"{kind}.jsonl") for kind in FIELDS}
        for path in visible(self.folder.iterdir()):
            if path in read or path.absolute() in self._elsewhere or path.name == "responses":
                continue
            meant = _misspelled(path.name if path.is_dir() else stem_of(path), tuple(FIELDS))
            guess = f" (did you mean {meant}.jsonl?)" if meant else ""
            if row_format(path) == "yaml":
                named = meant not in (None, "checklists")
            else:
                named = meant is not None or not (path.is_dir() or is_notes(path))
            if named:
                yield f"{path.name}{guess}"
        folder = self.folder / "responses"
        if folder.is_dir():
            responses = files_in(folder, ".jsonl")
            for path in visible(folder.iterdir()):
                if path not in responses and not is_notes(path):
                    yield f"responses/{path.name}"

    def _response_files(self) -> dict[Path, tuple[str, ...]]:
        """Return every response file, with the candidate that its name gives, if any."""
        folder = self.folder / "responses"
        if not folder.is_dir():
            return {need(self.folder, "responses.jsonl", "responses/<candidate>.jsonl"): ()}
        both = find(self.folder, "responses.jsonl")
        if both is not None:
            raise BenchmarkError(
                f"{self.folder} has both a folder responses and a file {both.name}.",
                hint="Keep one of them.",
            )
        return {path: (name,) for path, name in response_files(folder).items()}


def write_folder(benchmark: Benchmark, folder: Path) -> None:
    """Write a benchmark in the generic format; raise BenchmarkError if the folder has files.

    Responses are written one at a time; a file that would be empty is not written.
    """
    if folder.exists() and any(folder.iterdir()):
        raise BenchmarkError(
            f"{folder} already has files.", hint="Name a new folder, or empty this one."
        )
    folder.mkdir(parents=True, exist_ok=True)
    parts: dict[str, Iterable[object]] = {
        "queries": benchmark.queries(),
        "responses": benchmark.responses(),
        "checklists": benchmark.checklists(),
        "labels": benchmark.labels(),
        "votes": benchmark.votes(),
        "ratings": benchmark.ratings(),
    }
    for name, records in parts.items():
        rows = (_as_row(record) for record in records)
        first = next(rows, None)
        if first is not None:
            write_jsonl(folder / f"{name}.jsonl", chain([first], rows))


def _as_row(record: Any) -> dict[str, object]:
    """Return a record as its reader expects it: metadata as fields, items with their details."""
    row: dict[str, object] = asdict(record)
    if isinstance(record, Query):
        row |= {name: value for name, value in record.metadata.items() if name not in row}
        del row["metadata"]
    elif isinstance(record, Checklist):
        row["items"] = record.to_json()
        del row["groups"], row["details"]
    return {name: value for name, value in row.items() if value not in (None, ())}


def response_files(folder: Path) -> dict[Path, str]:
    """Return the files of responses in a folder, and the candidates that they are named after."""
    found = files_in(folder, ".jsonl")
    _refuse_unsupported_files(folder, found)
    if not found:
        raise BenchmarkError(f"There is no .jsonl file in {folder}.")
    return found


def response_rows(path: Path, rows: Iterable[Row]) -> Iterator[Row]:
    """Yield the rows of a file of responses, which must have one."""
    row = None
    for row in rows:
        yield row
    if row is None:
        raise BenchmarkError(f"{path} has no responses.", hint="Add some, or remove the file.")


def _refuse_unsupported_files(folder: Path, read: Collection[Path]) -> None:
    """Raise BenchmarkError for data in responses/ that is not read: a candidate would be absent."""
    for entry in visible(folder.iterdir()):
        if entry in read or not (entry.is_dir() or row_format(entry) or entry.suffix == ".txt"):
            continue
        for path in data_files(entry):
            hint = "Save it as <candidate>.jsonl, one response per line, or move it elsewhere."
            if entry.is_dir():
                hint = f"Move it to {folder}, and name the candidate in each row: `candidate`."
            elif row_format(path) == "jsonl":
                hint = f"Rename it to {stem_of(path)}.jsonl, or move it elsewhere."
            raise BenchmarkError(
                f"{path} is not read: responses must be JSON lines, <candidate>.jsonl.", hint=hint
            )


WINNERS: dict[str, Winner] = {"a": "a", "b": "b", "tie": "tie"}


def read_label(row: Row) -> Label | None:
    """Return the label of a row; None if its value is null: not labeled yet."""
    query_id, candidate = row.name("query_id"), row.name("candidate")
    if row.values.get("value", "") is None:
        return None
    return Label(query_id, candidate, row.number("value"), _person(row, *LABELERS))


def read_vote(row: Row) -> Vote | None:
    """Return the vote of a row; None if its winner is null: not voted yet."""
    query_id = row.name("query_id")
    candidates = row.name("candidate_a"), row.name("candidate_b")
    if row.values.get("winner", "") is None:
        return None
    return Vote(query_id, *candidates, read_winner(row, WINNERS), _person(row, "voter", *LABELERS))


def _person(row: Row, *names: str) -> str:
    """Return who gave a label or vote; "human" if no field names somebody."""
    named = next((name for name in names if row.values.get(name) is not None), names[0])
    return row.text(named, "human")


def read_winner(row: Row, words: dict[str, Winner]) -> Winner:
    """Return the winner; raise BenchmarkError for a word that is not in `words`."""
    word = row.text("winner")
    if word not in words:
        raise BenchmarkError(
            f"{row.where}: winner is {word!r}.", hint=f"Valid: {', '.join(words)}."
        )
    return words[word]


def not_labeled_yet(count: int, where: str) -> Iterator[str]:
    """Yield a sentence about rows whose value or winner is null, if there are any."""
    if count:
        yield (
            f"rows of {where} that are not labeled yet: {count:,}. Their `value` or `winner` is "
            "null: fill it in to use them."
        )


def further_answers(rows: int, field: str) -> Iterator[str]:
    """Yield a sentence about rows with several answers, if there are any."""
    if rows:
        yield (
            f"rows with several answers in {field}: {rows:,}. Only the first is judged: give the "
            "others candidate names of their own to judge them, too."
        )
