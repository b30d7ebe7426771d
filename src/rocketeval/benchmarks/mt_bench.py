"""MT-Bench in FastChat's file layout, with human votes. Each turn is a separate query.

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
import io
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated

from pydantic import Field

from rocketeval.benchmarks.jsonl import further_answers, read_winner
from rocketeval.benchmarks.reading import (
    UNREADABLE,
    Row,
    cannot_read,
    need,
    need_folder,
    open_bytes,
    read_rows,
    visible,
)
from rocketeval.config import BenchmarkConfig, Section, parse_options
from rocketeval.errors import BenchmarkError
from rocketeval.records import Checklist, Label, Query, Rating, Response, Turn, Vote, Winner

WINNERS: dict[str, Winner] = {
    "model_a": "a",
    "model_b": "b",
    "tie": "tie",
    "tie (inconsistent)": "tie",
}
NOT_PARSED = -1
"""FastChat's score for a judgment it could not read."""


class MTBenchOptions(Section):
    """Paths of MT-Bench's files."""

    questions: str = "question.jsonl"
    answers: str = "model_answer/*.jsonl"
    references: str | None = "reference_answer/gpt-4.jsonl"
    votes: str | None = None
    scores: str | None = None
    checklists: str | None = None
    ratings: str | None = None
    ratings_column: str = "rating"
    turns: Annotated[tuple[Annotated[int, Field(ge=1)], ...], Field(min_length=1)] = (1, 2)


class MTBench:
    """MT-Bench questions, answers, votes and scores."""

    def __init__(self, folder: Path, options: MTBenchOptions) -> None:
        self.folder = need_folder(folder)
        self.options = options
        self._further = 0

    @classmethod
    def create(cls, config: BenchmarkConfig) -> MTBench:
        """Return a reader of the folder `config.path`."""
        return cls(config.path, parse_options(config.options, MTBenchOptions, "benchmark.options"))

    def queries(self) -> Iterator[Query]:
        """Yield a query for every selected turn of every question."""
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
                    cluster=str(number) if len(self.options.turns) > 1 else None,
                )

    def responses(self) -> Iterator[Response]:
        """Yield a response for every selected turn, with the candidate's own earlier turns."""
        self._further = 0
        for path in self._answer_files():
            for row in read_rows(path):
                choices = row.values.get("choices")
                self._further += isinstance(choices, list) and len(choices) > 1
                yield from self._turns_of(row)

    def checklists(self) -> Iterator[Checklist]:
        """Yield imported checklists of the selected turns."""
        for row in self._file(self.options.checklists):
            query_id = row.name("query_id")
            question, _, turn = query_id.rpartition("-")
            if not (question and turn.isdecimal()):
                raise BenchmarkError(
                    f"{row.where}: the query_id {query_id!r} names no turn.",
                    hint="Write `<question_id>-<turn>`, such as 81-1.",
                )
            if int(turn) in self.options.turns:
                yield Checklist(query_id, row.texts("checklist"))

    def labels(self) -> Iterator[Label]:
        """Yield single-answer scores, except those FastChat could not parse."""
        for row in self._wanted(self.options.scores):
            if _is_parsed(row):
                yield Label(_query_id(row), row.name("model"), row.number("score"), _labeler(row))

    def left_out(self) -> Mapping[str, int]:
        """Return the number of scores and votes that are not used, by reason."""
        found: Counter[str] = Counter()
        for what, name in (("scores", self.options.scores), ("votes", self.options.votes)):
            for row in self._file(name):
                if not self._is_wanted(row):
                    found[f"{what} of turns that options.turns does not name"] += 1
                elif what == "scores" and not _is_parsed(row):
                    found["scores that are null or -1 (not parsed)"] += 1
        return found

    def odd_fields(self) -> Iterator[str]:
        """Yield a sentence about answers that are not judged, once the responses were read."""
        yield from further_answers(self._further, "`choices`")

    def votes(self) -> Iterator[Vote]:
        """Yield human votes."""
        for row in self._wanted(self.options.votes):
            yield Vote(
                _query_id(row),
                row.name("model_a"),
                row.name("model_b"),
                read_winner(row, WINNERS),
                row.text("judge", "human"),
            )

    def ratings(self) -> Iterator[Rating]:
        """Yield the ratings column of a CSV, except empty cells."""
        if self.options.ratings is None:
            return
        column = self.options.ratings_column
        for row in _read_csv(need(self.folder, self.options.ratings), "model", column):
            if row.text(column):
                yield Rating(row.name("model"), row.number(column))

    def _turns_of(self, row: Row) -> Iterator[Response]:
        candidate = row.name("model_id" if "model_id" in row.values else "model")
        number = row.name("question_id")
        question = self._questions.get(number)
        if question is None:
            raise BenchmarkError(f"{row.where}: there is no question {number}.")
        asked, answers = question[1], _answers(row)
        for turn in self.options.turns:
            if turn > len(answers) or turn > len(asked):
                continue
            earlier = [
                part
                for before in range(turn - 1)
                for part in (Turn("user", asked[before]), Turn("assistant", answers[before]))
            ]
            yield Response(f"{number}-{turn}", candidate, answers[turn - 1], tuple(earlier) or None)

    @cached_property
    def _questions(self) -> dict[str, tuple[str | None, tuple[str, ...], tuple[str, ...]]]:
        found: dict[str, tuple[str | None, tuple[str, ...], tuple[str, ...]]] = {}
        for row in read_rows(need(self.folder, self.options.questions)):
            reference = row.texts("reference") if row.values.get("reference") else ()
            number = row.name("question_id")
            if number in found:
                raise BenchmarkError(f"{row.where}: question {number} already exists.")
            found[number] = (row.text("category", None), row.texts("turns"), reference)
        return found

    @cached_property
    def _references(self) -> dict[str, tuple[str, ...]]:
        name = self.options.references
        if name is None or not (self.folder / name).exists():
            return {}
        return {row.text("question_id"): _answers(row) for row in self._file(name)}

    def _answer_files(self) -> list[Path]:
        pattern = self.options.answers
        # `glob` raises its own error for an empty or absolute pattern.
        try:
            paths = visible(self.folder.glob(pattern))
        except (NotImplementedError, ValueError):
            paths = []
        if not paths:
            raise BenchmarkError(
                f"No file matches {pattern!r} in {self.folder}.",
                hint="Check benchmark.options.answers: a pattern relative to benchmark.path.",
            )
        return paths

    def _file(self, name: str | None) -> Iterator[Row]:
        return read_rows(need(self.folder, name)) if name else iter(())

    def _wanted(self, name: str | None) -> Iterator[Row]:
        return filter(self._is_wanted, self._file(name))

    def _is_wanted(self, row: Row) -> bool:
        return int(row.number("turn")) in self.options.turns


def _read_csv(path: Path, *columns: str) -> Iterator[Row]:
    """Yield the rows of a CSV file with the required `columns`; missing cells are empty."""
    try:
        with open_bytes(path) as stream:
            lines = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
            reader = csv.DictReader(lines, restval="")
            names = list(reader.fieldnames or ())
            for column in columns:
                if column not in names:
                    raise BenchmarkError(
                        f"{path.name} has no column {column!r}.",
                        hint=f"It has: {', '.join(names)}.",
                    )
            for values in reader:
                yield Row(values, f"{path.name}:{reader.line_num}")
    except UNREADABLE as error:
        raise cannot_read(path, error) from None


def _is_parsed(row: Row) -> bool:
    return row.values.get("score") is not None and row.number("score") != NOT_PARSED


def _query_id(row: Row) -> str:
    return f"{row.name('question_id')}-{int(row.number('turn'))}"


def _labeler(row: Row) -> str:
    judge = row.values.get("judge")
    named = Row({"judge": judge[0]}, row.where) if isinstance(judge, list) and judge else row
    return named.text("judge", "unknown")


def _answers(row: Row) -> tuple[str, ...]:
    if "turns" in row.values:
        return row.texts("turns")
    choices = row.get("choices", list)
    if not choices or not isinstance(choices[0], dict):
        raise BenchmarkError(f"{row.where}: `choices` has no answer.")
    return Row(choices[0], row.where).texts("turns")
