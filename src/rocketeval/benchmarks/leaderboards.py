"""Files of public leaderboards: AlpacaEval, Arena-Hard (both schemas) and WildBench.

AlpacaEval   model_outputs.json (instruction, output, generator) and annotations.json (two
             outputs and a preference), alone or in folders
Arena-Hard   question.jsonl, model_answer/<model>.jsonl and model_judgment/<judge>/<model>.jsonl;
             the schema of 2025 has uid and messages instead of question_id and choices
WildBench    result files (session_id, chat_history, output, generator), score files
             (session_id, model_test, score) and the dataset (session_id, conversation_input)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cached_property, partial
from pathlib import Path

from rocketeval.benchmarks.columns import holds, unread_columns
from rocketeval.benchmarks.data import (
    DataBenchmark,
    DataOptions,
    Example,
    Kept,
    Skipped,
    content_id,
)
from rocketeval.benchmarks.messages import (
    RowError,
    content_text,
    is_messages,
    label_in_column,
    mapped,
    read_turns,
    split_turns,
)
from rocketeval.benchmarks.reading import Row, as_number, as_question, shown_value
from rocketeval.benchmarks.row_files import BadRow, Rows, Sample, data_files, rows_of, stem_of
from rocketeval.errors import BenchmarkError
from rocketeval.items import ParsedItem
from rocketeval.records import Query, Response, Turn, Vote, Winner
from rocketeval.text import count_of, join_words

ALPACA_FIELDS = ("instruction", "dataset", "output", "output_1", "output_2", "generator",
                 "generator_1", "generator_2", "preference", "annotator")  # fmt: skip
NO_QUESTION = "the question is not in question.jsonl"
CHOICES = "an answer has several choices: only the first is judged"
TURNS = "an answer has several turns: only the first is judged"
OUTPUTS = "a result has several outputs: only the first is judged"


def _every_row(reader: DataBenchmark) -> Rows:
    for path in data_files(reader.path):
        yield from reader.rows(path)


class AlpacaEvalOutputs(DataBenchmark):
    """Outputs and annotations of AlpacaEval."""

    kind = "alpaca_eval"

    @classmethod
    def recognize(cls, sample: Sample) -> str | None:
        """Look for instruction, output and generator, or two outputs and a preference."""
        if sample.has("instruction", "output_1", "output_2", "generator_1", "preference"):
            return "AlpacaEval annotations"
        # A table reads what AlpacaEval has no place for.
        if holds("label", sample.rows) or holds("checklist", sample.rows):
            return None
        if any(row.values.get("input") for row in sample.rows):
            return None
        return "AlpacaEval outputs" if sample.has("instruction", "output", "generator") else None

    def mapping(self) -> Mapping[str, str]:
        """Return where the parts come from."""
        said = {
            "query": "instruction",
            "response": "output (or output_1 and output_2)",
            "candidate": "generator: " + join_words(self.summary.candidates, most=8),
            "id": "a hash of the instruction",
            "category": "dataset",
        }
        if self.summary.votes:
            said["vote"] = f"preference ({count_of(len(self.summary.votes), 'vote', 'votes')})"
        return {**said, **unread_columns(Sample(self.path).rows, *ALPACA_FIELDS)}

    def examples(self) -> Iterator[Kept]:
        """Yield an example per output or annotation."""
        seen: set[tuple[str, str]] = set()
        for row in _every_row(self):
            kept = row if isinstance(row, BadRow) else mapped(row, _alpaca)
            if isinstance(kept, Example) and not kept.votes and len(kept.responses) == 1:
                cell = (kept.responses[0].candidate, kept.query.id)
                if cell in seen:
                    kept = Skipped(kept.where, "the instruction occurs twice; the first is used")
                seen.add(cell)
            yield kept


def _alpaca(row: Row) -> Kept:
    text = row.name("instruction")
    query = Query(content_id(text), text, category=row.text("dataset", None))
    if "output_1" not in row.values:
        if row.values.get("output") is None:
            return Skipped(row.where, "no output")
        return Example(
            row.where, query, (Response(query.id, row.name("generator"), row.text("output")),)
        )
    names = [row.name("generator_1"), row.name("generator_2")]
    texts = [row.text("output_1", ""), row.text("output_2", "")]
    if names[0] == names[1]:
        return Skipped(row.where, "an output is compared with itself")
    responses = tuple(
        Response(query.id, name, each) for name, each in zip(names, texts, strict=True)
    )
    preference = row.values.get("preference")
    if preference is None:
        return Example(row.where, query, responses, notes=("the preference is null: no vote",))
    number = as_number(preference, "the field 'preference'")
    if not 1 <= number <= 2:
        raise RowError("the preference is not between 1 and 2", shown_value(preference))
    winner: Winner = "tie" if number == 1.5 else ("a" if number < 1.5 else "b")
    voter = row.text("annotator", "annotator")
    return Example(
        row.where, query, responses, votes=(Vote(query.id, names[0], names[1], winner, voter),)
    )


class ArenaHardOptions(DataOptions):
    """Settings of Arena-Hard."""

    baseline: str | None = None
    """Model that every other was compared with in model_judgment, such as gpt-4-0314; needed to
    read those judgments as votes."""


class ArenaHardAnswers(DataBenchmark):
    """Questions, answers and judgments of Arena-Hard."""

    kind = "arena_hard"
    options_type = ArenaHardOptions
    options: ArenaHardOptions

    @classmethod
    def recognize(cls, sample: Sample) -> str | None:
        """Look for a question with messages as turns, or for answers with messages."""
        path = next((each for each in sample.files if each.name.startswith("question.json")), None)
        first = next((r for r in rows_of(path) if isinstance(r, Row)), None) if path else None
        rows = [first] if first else sample.rows
        for values in (row.values for row in rows[:1]):
            turns = values.get("turns")
            asks = "prompt" in values and not holds("response", rows[:1])
            if "uid" in values and (asks or "ans_id" in values):
                return "Arena-Hard (schema of 2025)"
            choices = values.get("choices")
            if isinstance(choices, list) and choices and "answer_id" in values:
                turns = choices[0].get("turns") if isinstance(choices[0], dict) else None
            if isinstance(turns, list) and turns and isinstance(turns[0], dict):
                return "Arena-Hard (first schema)"
        return None

    @cached_property
    def _files(self) -> dict[str, list[Path]]:
        """Files by what they hold."""
        kinds: dict[str, list[Path]] = {"question": [], "answer": [], "judgment": [], "other": []}
        for path in data_files(self.path):
            first = next((row for row in rows_of(path) if isinstance(row, Row)), None)
            fields = set(first.values) if first else set()
            if "games" in fields:
                kinds["judgment"].append(path)
            elif fields & {"choices", "messages"}:
                kinds["answer"].append(path)
            else:
                is_question = bool(fields & {"turns", "prompt"})
                kinds["question" if is_question else "other"].append(path)
        if not kinds["answer"]:
            raise BenchmarkError(
                f"{self.path} has no answers of Arena-Hard (model_answer/<model>.jsonl).",
                hint="Give the folder that holds question.jsonl and model_answer.",
            )
        return kinds

    @cached_property
    def _questions(self) -> dict[str, Query]:
        found: dict[str, Query] = {}
        for path in self._files["question"]:
            for row in self.rows(path):
                if isinstance(row, BadRow):
                    raise BenchmarkError(f"{row.where}: {row.kind}: {row.detail}", hint=row.hint)
                query = _arena_question(row)
                if found.setdefault(query.id, query) != query:
                    raise BenchmarkError(
                        f"{row.where}: two different questions have the id {query.id!r}.",
                        hint="Keep the questions of one release.",
                    )
        return found

    def mapping(self) -> Mapping[str, str]:
        """Return where the parts come from."""
        questions = count_of(len(self._questions), "question", "questions")
        said = {
            "query": f"question.jsonl ({questions})" if self._questions else "the user message",
            "response": "the answer's message",
            "candidate": "model: " + join_words(self.summary.candidates, most=8),
            "id": "question_id or uid",
            "category": "cluster, else category",
        }
        if self._files["judgment"]:
            said["vote"] = (
                f"games against {self.options.baseline}"
                if self.options.baseline
                else "not read: set `baseline` to the model of the other side"
            )
        return said

    def settings(self) -> Mapping[str, object]:
        """Return the baseline."""
        return {"baseline": self.options.baseline} if self.options.baseline else {}

    def examples(self) -> Iterator[Kept]:
        """Yield an example per answer, then per judgment."""
        # A mistake in them is no mistake of an answer.
        _ = self._questions
        for path in self._files["answer"]:
            for row in self.rows(path):
                yield row if isinstance(row, BadRow) else mapped(row, self._answer)
        for path in self._files["judgment"]:
            for row in self.rows(path):
                yield row if isinstance(row, BadRow) else mapped(row, self._judgment)
        for path in self._files["other"]:
            for row in self.rows(path):
                other = Skipped(row.where, "not a question, answer or judgment of Arena-Hard")
                yield row if isinstance(row, BadRow) else other

    def _answer(self, row: Row) -> Kept:
        name = _question_id(row)
        if is_messages(row.values.get("messages")):
            split = split_turns(*read_turns(row.values["messages"], "messages"))
            own = Query(name, split.query, split.history)
            query, text, notes = self._questions.get(name, own), split.response, split.notes
            candidate = row.name("model")
        else:
            if name not in self._questions:
                raise RowError(NO_QUESTION, name, "Put question.jsonl next to model_answer.")
            query, hidden = self._questions[name], set[str]()
            text, candidate = _first_turn(row, hidden), row.name("model_id")
            notes = tuple(sorted(hidden))
        if text is None:
            return Skipped(row.where, "no answer")
        return Example(row.where, query, (Response(name, candidate, text),), notes=notes)

    def _judgment(self, row: Row) -> Kept:
        name, baseline = _question_id(row), self.options.baseline
        if baseline is None:
            return Skipped(row.where, "a judgment, and no `baseline` is set")
        if name not in self._questions:
            raise RowError(NO_QUESTION, name)
        model, judge = row.name("model"), row.text("judge", "judge")
        games = row.get("games", list)
        votes = []
        for place, game in enumerate(games):
            winner = _game(game.get("score") if isinstance(game, dict) else None)
            if winner is not None:
                pair = (baseline, model) if place == 0 else (model, baseline)
                votes.append(Vote(name, pair[0], pair[1], winner, f"{judge}, game {place + 1}"))
        if not votes:
            return Skipped(row.where, "a judgment without a verdict")
        return Example(row.where, self._questions[name], votes=tuple(votes))


def _question_id(row: Row) -> str:
    return row.name("uid") if "uid" in row.values else row.name("question_id")


def _arena_question(row: Row) -> Query:
    category = row.text("cluster", None) or row.text("category", None)
    if "prompt" in row.values:
        return Query(_question_id(row), row.name("prompt"), category=category)
    turns = row.get("turns", list)
    texts = [content_text(each, set()) for each in turns]
    if not texts:
        raise BenchmarkError(f"{row.where}: the question has no turns.")
    return Query(_question_id(row), texts[0], category=category)


def _first_turn(row: Row, notes: set[str]) -> str | None:
    choices = row.get("choices", list)
    turns = choices[0].get("turns") if choices and isinstance(choices[0], dict) else None
    if not isinstance(turns, list) or not turns:
        raise RowError("the answer has no turns", shown_value(choices))
    notes |= {CHOICES} if len(choices) > 1 else set()
    notes |= {TURNS} if len(turns) > 1 else set()
    return content_text(turns[0], notes) or None


def _game(score: object) -> Winner | None:
    """Return the winner of a verdict such as A>>B."""
    if not isinstance(score, str) or not {"A", "B"} <= set(score):
        return None
    if "=" in score:
        return "tie"
    first = score.strip("[] ")[0]
    return "a" if first == "A" else "b"


class WildBenchResults(DataBenchmark):
    """Result and score files of WildBench."""

    kind = "wildbench"

    @classmethod
    def recognize(cls, sample: Sample) -> str | None:
        """Look for sessions with outputs, or with scores of a model."""
        # WildBench lists the outputs of a session; a table has a text.
        lists = sample.rows and isinstance(sample.rows[0].values.get("output"), list)
        if lists and sample.has("session_id", "generator"):
            return "WildBench results"
        return "WildBench scores" if sample.has("session_id", "model_test", "score") else None

    @cached_property
    def _sessions(self) -> dict[str, Query]:
        """Queries of the dataset's rows, if a file has them."""
        found: dict[str, Query] = {}
        for row in _every_row(self):
            if isinstance(row, Row) and "conversation_input" in row.values:
                # `examples` reads the row again, and names its mistake.
                with suppress(RowError, BenchmarkError):
                    query = _from_conversation(row)
                    found[query.id] = query
        return found

    def mapping(self) -> Mapping[str, str]:
        """Return where the parts come from."""
        said = {
            "query": "conversation_input" if self._sessions else "chat_history",
            "response": "output (first), or model_output",
            "candidate": "generator or model_test: " + join_words(self.summary.candidates, most=8),
            "id": "session_id",
        }
        if self.summary.checklists:
            said["checklist"] = "checklist"
        if self.summary.labels:
            said["label"] = "score, as reference data"
        return said

    def examples(self) -> Iterator[Kept]:
        """Yield an example per session, result or score."""
        asked: dict[str, Query] = dict(self._sessions)
        for path in sorted(data_files(self.path), key=_scores_last):
            for row in self.rows(path):
                if isinstance(row, BadRow):
                    yield row
                    continue
                kept = mapped(row, partial(_wildbench, asked=asked, stem=stem_of(path)))
                if isinstance(kept, Example):
                    asked.setdefault(kept.query.id, kept.query)
                yield kept


def _scores_last(path: Path) -> tuple[bool, str]:
    first = next((row for row in rows_of(path) if isinstance(row, Row)), None)
    return bool(first and "score" in first.values), str(path)


def _wildbench(row: Row, asked: Mapping[str, Query], stem: str) -> Kept:
    name = row.name("session_id")
    if "conversation_input" in row.values:
        given = row.values.get("checklist")
        texts = given if isinstance(given, list) else []
        items = tuple(ParsedItem(as_question(each)) for each in texts if isinstance(each, str))
        return Example(row.where, _from_conversation(row), items=items)
    if "output" in row.values:
        outputs = row.get("output", list)
        if not outputs or not isinstance(outputs[0], str):
            return Skipped(row.where, "no output")
        query = asked.get(name) or _from_history(row, name)
        candidate = _short(row.name("generator", stem))
        notes = (OUTPUTS,) if len(outputs) > 1 else ()
        return Example(row.where, query, (Response(name, candidate, outputs[0]),), notes=notes)
    if name not in asked:
        raise RowError(
            "the score's session is in no other file",
            name,
            "Score files have no queries: give a folder with the result files or the dataset, too.",
        )
    candidate = _short(row.name("model_test", stem))
    text = row.values.get("model_output")
    response = (Response(name, candidate, text),) if isinstance(text, str) else ()
    label = label_in_column(row, "score", name, candidate, row.text("judge", "wildbench"))
    if isinstance(label, BadRow):
        return Example(row.where, asked[name], response, bad_label=label)
    return Example(row.where, asked[name], response, labels=(label,))


def _short(model: str) -> str:
    return model.rpartition("/")[2]


def _from_conversation(row: Row) -> Query:
    split = split_turns(*read_turns(row.values["conversation_input"], "conversation_input"))
    name, tag = row.name("session_id"), row.text("primary_tag", None)
    return Query(name, split.query, split.history, category=tag)


def _from_history(row: Row, name: str) -> Query:
    said = row.texts("chat_history")
    if not said:
        raise RowError("chat_history is empty")
    roles = ("user", "assistant")
    # The last text is the query, so roles are counted from the end.
    turns = [Turn(roles[(len(said) - 1 - n) % 2], text) for n, text in enumerate(said)]
    return Query(name, said[-1], tuple(turns[:-1]))
