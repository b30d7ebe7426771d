"""The generic format: a folder of JSON-lines files.

    queries.jsonl      id, text [, history, reference, category, cluster, system, context, tags]
    responses.jsonl    query_id, candidate, text [, history, context]
        responses/*.jsonl  the same, one file per candidate, named after the candidate
    checklists.jsonl   query_id, items              (optional)
    labels.jsonl       query_id, candidate, value [, labeler]               (optional)
    votes.jsonl        query_id, candidate_a, candidate_b, winner [, voter] (optional)
    ratings.jsonl      candidate, value             (optional)

Every file may be gzipped. `history` is a list of {role, content}, `context` a list of passages.
Items are texts or objects. Further fields of a query are kept as metadata.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rocketeval.benchmarks.reading import Row, files_in, find, need, need_folder, read_rows
from rocketeval.config import BenchmarkConfig, NoOptions, parse_options
from rocketeval.errors import BenchmarkError
from rocketeval.records import Checklist, Label, Query, Rating, Response, Vote, Winner
from rocketeval.store.files import write_jsonl

if TYPE_CHECKING:
    from rocketeval.benchmarks.base import Benchmark

FIELDS = {
    "queries": (
        *("id", "text", "history", "reference", "category", "cluster", "system", "context"),
        "tags",
    ),
    "responses": ("query_id", "candidate", "text", "history", "context"),
    "checklists": ("query_id", "items", "author", "about"),
    "labels": ("query_id", "candidate", "value", "labeler"),
    "votes": ("query_id", "candidate_a", "candidate_b", "winner", "voter"),
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


class JsonlBenchmark:
    """A folder in the generic format."""

    def __init__(self, folder: Path) -> None:
        self.folder = need_folder(folder)
        self.where = ""
        self._odd: dict[tuple[str, str, str], int] = {}
        self._unlabeled: dict[str, int] = {}

    @classmethod
    def create(cls, config: BenchmarkConfig) -> JsonlBenchmark:
        """Return a reader of the folder `config.path`."""
        parse_options(config.options, NoOptions, "benchmark.options")
        return cls(config.path)

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
            empty = True
            for row in self._rows(path):
                empty = False
                yield Response(
                    query_id=row.name("query_id"),
                    candidate=row.name("candidate", *file_name),
                    text=row.text("text"),
                    history=None if row.values.get("history") is None else row.turns("history"),
                    context=row.passages("context"),
                )
            if empty:
                raise BenchmarkError(
                    f"{path} has no responses.", hint="Add some, or remove the file."
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
            for name in row.values:
                if name not in known and (meant := _misspelled(name, known)) is not None:
                    place = (kind, name, meant)
                    self._odd[place] = self._odd.get(place, 0) + 1
            yield row

    def odd_fields(self) -> Iterator[str]:
        """Yield a sentence about each field that looks misspelled, and about null labels."""
        for name, count in self._unlabeled.items():
            yield from not_labeled_yet(count, name)
        for (kind, name, meant), rows in self._odd.items():
            yield (
                f"{kind} with a field {name!r}, which is not used: {rows:,}. "
                f"Did you mean {meant!r}?"
            )

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
        found = files_in(folder, ".jsonl")
        _refuse_unsupported_files(folder)
        if not found:
            raise BenchmarkError(f"There is no .jsonl file in {folder}.")
        return {path: (name,) for path, name in found.items()}


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


def _refuse_unsupported_files(folder: Path) -> None:
    for path in sorted(folder.iterdir()):
        if path.suffix in (".json", ".csv", ".tsv", ".txt", ".parquet"):
            raise BenchmarkError(
                f"{path} is not read: responses must be JSON lines.",
                hint="Save it as <candidate>.jsonl, one response per line, or move it elsewhere.",
            )


WINNERS: dict[str, Winner] = {"a": "a", "b": "b", "tie": "tie"}


def read_label(row: Row) -> Label | None:
    """Return the label of a row; None if its value is null: not labeled yet."""
    query_id, candidate = row.name("query_id"), row.name("candidate")
    if row.values.get("value", "") is None:
        return None
    return Label(query_id, candidate, row.number("value"), row.text("labeler", "human"))


def read_vote(row: Row) -> Vote | None:
    """Return the vote of a row; None if its winner is null: not voted yet."""
    query_id = row.name("query_id")
    candidates = row.name("candidate_a"), row.name("candidate_b")
    if row.values.get("winner", "") is None:
        return None
    return Vote(query_id, *candidates, read_winner(row, WINNERS), row.text("voter", "human"))


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
