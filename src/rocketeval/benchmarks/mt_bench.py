"""MT-Bench in FastChat's files, with human votes. Each turn is a query of its own.

A second-turn response is judged after that candidate's own first answer. Options name files
relative to the benchmark's path; all but the questions have the defaults of FastChat's layout:

    questions   question.jsonl                 question_id, category, turns [, reference]
    answers     model_answer/*.jsonl           question_id, model_id, choices  (or model, turns)
    references  reference_answer/gpt-4.jsonl   question_id, choices
    votes       (none)                         question_id, model_a, model_b, winner, judge, turn
    scores      (none)                         question_id, model, turn, score, judge
    checklists  (none)                         query_id (`<question_id>-<turn>`), checklist
    ratings     (none)                         CSV with a `model` column and `ratings_column`
    turns       [1, 2]
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from rocketeval.benchmarks.jsonl import read_winner
from rocketeval.benchmarks.reading import Row, need, read_rows
from rocketeval.config import BenchmarkConfig
from rocketeval.errors import BenchmarkError, ConfigError
from rocketeval.records import Checklist, Label, Query, Rating, Response, Turn, Vote, Winner

WINNERS: dict[str, Winner] = {
    "model_a": "a",
    "model_b": "b",
    "tie": "tie",
    "tie (inconsistent)": "tie",
}
NOT_PARSED = -1
"""FastChat's score for a judgment it could not read."""


class Options(BaseModel):
    """Where MT-Bench's files are."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    questions: str = "question.jsonl"
    answers: str = "model_answer/*.jsonl"
    references: str | None = "reference_answer/gpt-4.jsonl"
    votes: str | None = None
    scores: str | None = None
    checklists: str | None = None
    ratings: str | None = None
    ratings_column: str = "rating"
    turns: tuple[int, ...] = (1, 2)


class MTBench:
    """MT-Bench questions, answers, votes and scores."""

    def __init__(self, folder: Path, options: Options) -> None:
        self.folder = folder
        self.options = options

    @classmethod
    def create(cls, config: BenchmarkConfig) -> MTBench:
        """Return a reader of the folder `config.path`."""
        try:
            return cls(config.path, Options.model_validate(config.options))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            raise ConfigError(
                f"benchmark.options.{where}: {first['msg']}.",
                hint=f"Valid: {', '.join(Options.model_fields)}.",
            ) from None

    def queries(self) -> Iterator[Query]:
        """Yield a query for every wanted turn of every question."""
        references = self._references
        for number, (category, asked, own_reference) in self._questions.items():
            answered = own_reference or references.get(number, ())
            for turn in self.options.turns:
                if turn > len(asked):
                    continue
                yield Query(
                    id=f"{number}-{turn}",
                    text=asked[turn - 1],
                    history=tuple(Turn("user", text) for text in asked[: turn - 1]),
                    reference=answered[turn - 1] if len(answered) >= turn else None,
                    category=category,
                )

    def responses(self) -> Iterator[Response]:
        """Yield a response for every wanted turn, after the candidate's own earlier turns."""
        paths = sorted(self.folder.glob(self.options.answers))
        if not paths:
            raise BenchmarkError(f"No file matches {self.options.answers} in {self.folder}.")
        for path in paths:
            for row in read_rows(path):
                yield from self._turns_of(row)

    def checklists(self) -> Iterator[Checklist]:
        """Yield imported checklists of the wanted turns."""
        for row in self._file(self.options.checklists):
            query_id = row.text("query_id")
            if int(query_id.rpartition("-")[2]) in self.options.turns:
                yield Checklist(query_id, row.texts("checklist"))

    def labels(self) -> Iterator[Label]:
        """Yield single-answer scores; those the labeler's output did not parse to are left out."""
        for row in self._wanted(self.options.scores):
            if row.values.get("score") is None or row.number("score") == NOT_PARSED:
                continue
            judge = row.values.get("judge")
            labeler = str(judge[0] if isinstance(judge, list) else judge)
            yield Label(_query_id(row), row.text("model"), row.number("score"), labeler)

    def votes(self) -> Iterator[Vote]:
        """Yield human votes."""
        for row in self._wanted(self.options.votes):
            yield Vote(
                _query_id(row),
                row.text("model_a"),
                row.text("model_b"),
                read_winner(row, WINNERS),
                row.text("judge", "human"),
            )

    def ratings(self) -> Iterator[Rating]:
        """Yield the ratings column of a CSV; empty cells are left out."""
        if self.options.ratings is None:
            return
        column = self.options.ratings_column
        with need(self.folder, self.options.ratings).open(encoding="utf-8", newline="") as stream:
            for row in csv.DictReader(stream):
                if column not in row or "model" not in row:
                    raise BenchmarkError(
                        f"{self.options.ratings} has no column {column!r} or 'model'.",
                        hint=f"Columns: {', '.join(row)}.",
                    )
                if row[column]:
                    yield Rating(row["model"], float(row[column]))

    def _turns_of(self, row: Row) -> Iterator[Response]:
        candidate = row.text("model_id", None) or row.text("model")
        number = row.text("question_id")
        question = self._questions.get(number)
        if question is None:
            raise BenchmarkError(f"{row.where}: there is no question {number}.")
        asked, said = question[1], _answers(row)
        for turn in self.options.turns:
            if turn > len(said) or turn > len(asked):
                continue
            earlier = [
                part
                for before in range(turn - 1)
                for part in (Turn("user", asked[before]), Turn("assistant", said[before]))
            ]
            yield Response(f"{number}-{turn}", candidate, said[turn - 1], tuple(earlier) or None)

    @cached_property
    def _questions(self) -> dict[str, tuple[str | None, tuple[str, ...], tuple[str, ...]]]:
        found: dict[str, tuple[str | None, tuple[str, ...], tuple[str, ...]]] = {}
        for row in read_rows(need(self.folder, self.options.questions)):
            reference = row.texts("reference") if row.values.get("reference") else ()
            found[row.text("question_id")] = (
                row.text("category", None),
                row.texts("turns"),
                reference,
            )
        return found

    @cached_property
    def _references(self) -> dict[str, tuple[str, ...]]:
        name = self.options.references
        if name is None or not (self.folder / name).exists():
            return {}
        return {row.text("question_id"): _answers(row) for row in self._file(name)}

    def _file(self, name: str | None) -> Iterator[Row]:
        return read_rows(need(self.folder, name)) if name else iter(())

    def _wanted(self, name: str | None) -> Iterator[Row]:
        rows = self._file(name)
        return (row for row in rows if int(row.number("turn")) in self.options.turns)


def _query_id(row: Row) -> str:
    return f"{row.text('question_id')}-{int(row.number('turn'))}"


def _answers(row: Row) -> tuple[str, ...]:
    if "turns" in row.values:
        return row.texts("turns")
    choices = row.get("choices", list)
    if not choices or not isinstance(choices[0], dict):
        raise BenchmarkError(f"{row.where}: `choices` holds no answer.")
    return Row(choices[0], row.where).texts("turns")
