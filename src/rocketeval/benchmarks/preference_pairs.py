"""Preference pairs: rows with two responses and which of them is better."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from rocketeval.benchmarks.cells import (
    NO_VALUE,
    OPEN_AND_SAVE,
    as_text,
    cell_value,
    is_missing,
    snake,
)
from rocketeval.benchmarks.columns import COLUMN_NAMES, columns_of, unread_columns
from rocketeval.benchmarks.data import DataBenchmark, Example, Kept, Skipped
from rocketeval.benchmarks.messages import (
    RowError,
    is_messages,
    join_turns,
    mapped,
    read_turns,
    split_turns,
    system_text,
)
from rocketeval.benchmarks.reading import Row, shown_value
from rocketeval.benchmarks.row_files import BadRow, Sample, data_files
from rocketeval.benchmarks.table import NO_RESPONSE, text_or_none
from rocketeval.errors import BenchmarkError
from rocketeval.hashing import content_hash
from rocketeval.records import Query, Response, Turn, Vote, Winner

WINNERS: dict[str, Winner] = {
    **dict.fromkeys(("a", "model_a", "response_a", "chosen", "left", "1"), "a"),
    **dict.fromkeys(("b", "model_b", "response_b", "rejected", "right", "2"), "b"),
    **dict.fromkeys(("tie", "both", "same", "tie (bothbad)", "both_bad", "both_good"), "tie"),
}  # type: ignore[assignment,unused-ignore]
CHOSEN, RESPONSES = ("chosen", "rejected"), ("response_a", "response_b")
"""Names of the columns with both responses."""
FOUND = {
    CHOSEN: "preference pairs (chosen and rejected)",
    RESPONSES: "preference pairs (two responses and a winner)",
}
WINNER = {"winner", "preference"}
"""Names of the column with the better response."""
NO_MODEL, ONE_MODEL = "a model has no name", "both models have the same name"
OTHER_PROMPT = "the prompt is not among the turns of the responses: only the prompt is shown"
TURN = re.compile(r"\n\n(Human|Assistant): ?")
"""Turns of a transcript, as in hh-rlhf."""


class PreferencePairs(DataBenchmark):
    """Rows with two responses and which is better: two candidates and a vote."""

    kind = "preference_pairs"

    @classmethod
    def recognize(cls, sample: Sample) -> str | None:
        """Look for chosen and rejected, or two responses and a winner."""
        pair = _pair_in({snake(each) for each in columns_of(sample.rows)})
        return FOUND.get(pair) if pair else None

    @cached_property
    def _names(self) -> dict[str, str]:
        """The actual column of each known name."""
        sample = Sample(self.path)
        return {snake(each): each for each in columns_of(sample.rows)}

    @cached_property
    def _pair(self) -> tuple[str, str]:
        """The known names of both responses."""
        pair = _pair_in(self._names)
        if pair is None:
            raise BenchmarkError(
                f"{self.path} lacks columns of preference pairs.",
                hint="Needed: `chosen` and `rejected`, or `response_a`, `response_b` and `winner`.",
            )
        return pair

    @cached_property
    def _used(self) -> tuple[str, ...]:
        """The columns that hold something known."""
        names = self._names
        chosen = self._pair == CHOSEN
        known = [names.get(each) for each in (*self._pair, "category", *_models(names, chosen))]
        known += [self._prompt, self._system, self._voter, None if chosen else self._winners]
        return tuple(filter(None, known))

    def mapping(self) -> Mapping[str, str]:
        """Return where the parts come from."""
        names = self._names
        first, second = self._pair
        chosen = self._pair == CHOSEN
        models = [names[each] for each in _models(names, chosen) if each in names]
        known = {"category": names.get("category"), "system": self._system, "voter": self._voter}
        return {
            "query": f"column {self._prompt!r}" if self._prompt else "the turns both share",
            "response": f"columns {names[first]!r} and {names[second]!r}",
            "candidate": f"columns {', '.join(map(repr, models))}"
            if models
            else f"{first!r} and {second!r}",
            "vote": "the chosen response wins" if chosen else f"column {self._winners!r}",
            "id": "a hash of the query and both responses",
            **{part: f"column {column!r}" for part, column in known.items() if column},
            **unread_columns(Sample(self.path).rows, *self._used),
        }

    @property
    def _prompt(self) -> str | None:
        return self._column("prompt", "question", "instruction", "input", "query")

    @property
    def _voter(self) -> str | None:
        return self._column("voter", "judge", *COLUMN_NAMES["labeler"])

    @property
    def _system(self) -> str | None:
        return self._column(*COLUMN_NAMES["system"])

    def _column(self, *names: str) -> str | None:
        return next((self._names[name] for name in names if name in self._names), None)

    def examples(self) -> Iterator[Kept]:
        """Yield an example with two responses and a vote per row."""
        for path in data_files(self.path):
            for row in self.rows(path):
                yield row if isinstance(row, BadRow) else mapped(row, self._example)

    def _example(self, row: Row) -> Kept:
        names = self._names
        first, second = self._pair
        chosen = self._pair == CHOSEN
        for column in sorted(row.uncomputed.intersection(self._used)):
            raise RowError(NO_VALUE, f"column {column!r}", OPEN_AND_SAVE)
        replies = [_last_reply(row, names.get(part, part)) for part in (first, second)]
        before, after = (reply.before for reply in replies)
        texts, shared = [reply.text for reply in replies], before or after
        if not all(text.strip() for text in texts):
            return Skipped(row.where, NO_RESPONSE)
        turns, notes = self._asked(row, shared)
        hidden = {note for reply in replies for note in reply.notes}
        notes = tuple(dict.fromkeys((*notes, *sorted(hidden))))
        if before and after and before != after:
            notes = (*notes, f"the turns before the responses differ: those of {first!r} are shown")
        if texts[0] == texts[1]:
            return Skipped(row.where, "both responses are the same text")
        models = [self._model(row, each) for each in _models(names, chosen)]
        if not all(models) or models[0] == models[1]:
            if names.keys() & {*_models(names, chosen)}:
                why = ONE_MODEL if all(models) else NO_MODEL
                notes = (*notes, f"{why}: the candidates are called {first!r} and {second!r}")
            models = [first, second]
        split = split_turns(turns, notes)
        name = content_hash("pair", list(join_turns(turns)), *texts).hex()[:12]
        query = Query(
            name, split.query, split.history, category=text_or_none(row, names.get("category"))
        )
        winner: Winner = "a" if chosen else self._winner(row, models)
        responses = tuple(
            Response(name, model, text) for model, text in zip(models, texts, strict=True)
        )
        by = row.values.get(self._voter) if self._voter else None
        voter = "human" if is_missing(by) else str(by)
        vote = Vote(name, models[0], models[1], winner, voter)
        return Example(row.where, query, responses, votes=(vote,), notes=split.notes)

    def _model(self, row: Row, part: str) -> str:
        value = row.values.get(self._names.get(part, part))
        return "" if value is None else str(value).strip()

    def _asked(
        self, row: Row, shared: tuple[Turn, ...] | None
    ) -> tuple[tuple[Turn, ...], tuple[str, ...]]:
        """Return the turns up to the query, and notes: the prompt, or the conversation it is in."""
        turns, notes = self._prompted(row)
        if turns is None and not shared:
            raise RowError("the row has no prompt", "", "Add a column `prompt`.")
        if turns is None or (shared and all(turn in shared for turn in turns)):
            turns = shared or ()
        elif shared and shared[0].role == "assistant":
            turns = (*turns, *shared)
        elif shared and len(shared) > len(turns):
            notes = (*notes, OTHER_PROMPT)
        system = system_text(row.values.get(self._system)) if self._system else ""
        if system.strip() and all(turn.role != "system" for turn in turns):
            turns = (Turn("system", system), *turns)
        return turns, notes

    def _prompted(self, row: Row) -> tuple[tuple[Turn, ...] | None, tuple[str, ...]]:
        if self._prompt is None:
            return None, ()
        cell = row.values.get(self._prompt)
        value = cell_value(cell)
        if is_messages(value):
            return read_turns(value, self._prompt)
        if cell is None or not as_text(cell).strip():
            raise RowError("the prompt is empty", f"column {self._prompt!r}")
        return (Turn("user", as_text(cell)),), ()

    @property
    def _winners(self) -> str:
        return self._names.get("winner") or self._names["preference"]

    def _winner(self, row: Row, models: Sequence[str]) -> Winner:
        column = self._winners
        word = str(row.values.get(column)).strip().removesuffix(".0")
        if word in models:
            return "a" if word == models[0] else "b"
        if word.lower() not in WINNERS:
            raise RowError(
                "the winner is not a known word",
                shown_value(row.values.get(column)),
                f"Valid: {', '.join(WINNERS)}, or the name of a candidate.",
            )
        return WINNERS[word.lower()]


def _pair_in(names: Collection[str]) -> tuple[str, str] | None:
    """Return the columns of both responses; None if these are no preference pairs."""
    if {*CHOSEN}.issubset(names):
        return CHOSEN
    both = {*RESPONSES}.issubset(names) and not WINNER.isdisjoint(names)
    return RESPONSES if both else None


def _models(names: Mapping[str, str], chosen: bool) -> tuple[str, str]:
    if not chosen:
        return "model_a", "model_b"
    return (
        ("chosen_model", "rejected_model")
        if "chosen_model" in names
        else ("chosen_name", "rejected_name")
    )


@dataclass(frozen=True, slots=True)
class _Reply:
    """The last reply in a cell."""

    text: str
    before: tuple[Turn, ...] | None = None
    """The turns before it; None if the cell holds no conversation."""
    notes: tuple[str, ...] = ()


def _last_reply(row: Row, column: str) -> _Reply:
    cell = row.values.get(column)
    value = cell_value(cell)
    if column not in row.values:
        raise RowError(f"the field {column!r} is missing")
    if value is None:
        return _Reply("")
    text = as_text(cell)
    notes: tuple[str, ...] = ()
    if is_messages(value):
        turns, notes = read_turns(value, column)
    elif text.startswith("\n\nHuman:"):
        pieces = TURN.split(text)[1:]
        turns = tuple(
            Turn("user" if role == "Human" else "assistant", said)
            for role, said in zip(pieces[::2], pieces[1::2], strict=True)
        )
    else:
        return _Reply(text)
    if turns[-1].role != "assistant":
        raise RowError(
            f"the conversation in {column!r} does not end with the assistant's turn",
            f"its last turn: {turns[-1].role}",
            "Remove the turns after the response, or the row.",
        )
    return _Reply(turns[-1].content, turns[:-1] or None, notes)
