"""The directory layout of the RocketEval paper's scripts, in both of its variants.

    query.jsonl or queries.jsonl   session_id, conversation_input, checklist, references
    response/<candidate>.jsonl     session_id, output
    checklist/checklist.jsonl      session_id, checklist          (or in the query rows)
    score/<labeler>/<candidate>.json or .jsonl   session_id, model_test, score [, judge]

Judge scores are stored in the same place as labels; the scripts and our export mark them with the
field `judge`. Such a row is not a label, unless the user names its folder.

Options: `labeler`, the folder under score/ whose rows are all labels (required if there are
several); `ratings`, a JSON array with `name` and `rating` (the files under config/rankings).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from rocketeval.benchmarks.jsonl import further_answers, response_files, response_rows
from rocketeval.benchmarks.reading import Row, files_in, find, need, need_folder, read_rows, visible
from rocketeval.config import BenchmarkConfig, Section, parse_options
from rocketeval.errors import BenchmarkError
from rocketeval.records import Checklist, Label, Query, Rating, Response, Vote

JUDGED = "scores of judges (labels only if options.labeler names one)"
"""Description of the ignored scores."""


class RocketEvalOptions(Section):
    """Choices that the layout does not determine."""

    labeler: str | None = None
    ratings: str | None = None


class RocketEvalBenchmark:
    """A dataset folder in the paper's layout."""

    def __init__(self, folder: Path, options: RocketEvalOptions) -> None:
        self.folder = need_folder(folder)
        self.options = options
        self._further = 0

    @classmethod
    def create(cls, config: BenchmarkConfig) -> RocketEvalBenchmark:
        """Return a reader of the folder `config.path`."""
        return cls(
            config.path, parse_options(config.options, RocketEvalOptions, "benchmark.options")
        )

    def queries(self) -> Iterator[Query]:
        """Yield one query per session; the last message is the query, the rest its history."""
        for row in self._query_rows():
            conversation = row.turns("conversation_input")
            if not conversation or conversation[-1].role == "assistant":
                raise BenchmarkError(
                    f"{row.where}: conversation_input must end with a message to answer."
                )
            references = row.get("references", dict, {})
            yield Query(
                id=row.name("session_id"),
                text=conversation[-1].content,
                history=conversation[:-1],
                reference=next((str(text) for text in references.values() if text), None),
                category=row.text("primary_tag", None),
            )

    def responses(self) -> Iterator[Response]:
        """Yield the first output of every row of every candidate's file."""
        self._further = 0
        for path, candidate in response_files(need(self.folder, "response")).items():
            for row in response_rows(path, read_rows(path)):
                outputs = row.texts("output")
                self._further += len(outputs) > 1
                if not outputs:
                    raise BenchmarkError(f"{row.where}: output is empty.")
                yield Response(row.name("session_id"), candidate, outputs[0])

    def checklists(self) -> Iterator[Checklist]:
        """Yield checklist/checklist.jsonl, or the checklists inside the query rows."""
        path = find(self.folder, "checklist/checklist.jsonl")
        rows = read_rows(path) if path else self._query_rows()
        for row in rows:
            items = row.texts("checklist") if row.values.get("checklist") else ()
            if items:
                yield Checklist(row.name("session_id"), items)

    def labels(self) -> Iterator[Label]:
        """Yield the labeler's scores; organization prefixes of candidate names are removed."""
        folder = self._label_folder()
        if folder is None:
            return
        for row, name in _score_rows(folder):
            if self.options.labeler is None and _is_judged(row):
                continue
            candidate = row.name("model_test", name).rpartition("/")[2]
            yield Label(row.name("session_id"), candidate, row.number("score"), folder.name)

    def left_out(self) -> Mapping[str, int]:
        """Return the number of scores that are not labels because a judge gave them."""
        if self.options.labeler is not None:
            return {}
        rows = (row for folder in self._score_folders() for row, _ in _score_rows(folder))
        judged = sum(map(_is_judged, rows))
        return {JUDGED: judged} if judged else {}

    def odd_fields(self) -> Iterator[str]:
        """Yield a sentence about outputs that are not judged, once the responses were read."""
        yield from further_answers(self._further, "`output`")

    def votes(self) -> Iterator[Vote]:
        """Yield nothing: the layout has no votes."""
        return iter(())

    def ratings(self) -> Iterator[Rating]:
        """Yield the reference ratings named by the `ratings` option."""
        if self.options.ratings is None:
            return
        for row in read_rows(need(self.folder, self.options.ratings)):
            if row.values.get("rating") is not None:
                yield Rating(row.name("name"), row.number("rating"))

    def _query_rows(self) -> Iterator[Row]:
        return read_rows(need(self.folder, "query.jsonl", "queries.jsonl"))

    def _label_folder(self) -> Path | None:
        scores = self.folder / "score"
        if self.options.labeler is not None:
            return need(scores, self.options.labeler)
        found = [folder for folder in self._score_folders() if not _is_of_a_judge(folder)]
        if len(found) > 1:
            raise BenchmarkError(
                f"{scores} has scores by several labelers.",
                hint="Set benchmark.options.labeler to one of: "
                + ", ".join(path.name for path in found),
            )
        return found[0] if found else None

    def _score_folders(self) -> list[Path]:
        return visible(path for path in (self.folder / "score").glob("*") if path.is_dir())


def _score_rows(folder: Path) -> Iterator[tuple[Row, str]]:
    """Yield the rows of a folder under score/, each with the name of its file."""
    for path, name in files_in(folder, ".json", ".jsonl").items():
        for row in read_rows(path):
            yield row, name


def _is_judged(row: Row) -> bool:
    return row.values.get("judge") is not None


def _is_of_a_judge(folder: Path) -> bool:
    """Return whether a folder has scores but no label."""
    judged = False
    for row, _ in _score_rows(folder):
        if not _is_judged(row):
            return False
        judged = True
    return judged
