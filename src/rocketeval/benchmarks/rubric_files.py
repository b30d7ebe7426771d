"""Rubric benchmarks as they are published: HealthBench, BiGGen Bench, WritingBench, InFoBench.

Each is a file of queries with their rubrics, JSON lines or a JSON array, gzipped or not. Responses
are read from `options.responses`: a file or folder in the generic format (see `jsonl`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field

from rocketeval.benchmarks.jsonl import response_files, response_rows
from rocketeval.benchmarks.reading import Row, as_question, read_rows, visible
from rocketeval.config import BenchmarkConfig, Section, parse_options
from rocketeval.errors import BenchmarkError
from rocketeval.items import Checklist, ItemDetail, ItemKind, ParsedItem, valid_item
from rocketeval.records import Label, Query, Rating, Response, Turn, Vote

ASSUMED = "(assumed)"
"""Candidate of responses that exist only for a plan."""
ENDINGS = (".jsonl", ".json")
_FILLER = "The response says something about the question that was asked. "


class RubricFileOptions(Section):
    """Options of rubric benchmarks."""

    responses: Path | None = None
    """A JSON Lines file of responses, or a folder with one per candidate, in the generic format,
    relative to the benchmark's folder."""
    assume: Annotated[int, Field(gt=0)] | None = None
    """Plan with one assumed response of this many characters per query; such a benchmark cannot be
    run."""


class BigGenOptions(RubricFileOptions):
    """Options of the kind biggen."""

    items: tuple[Literal["score_rubric", "atomic_checklist"], ...] = (
        "score_rubric",
        "atomic_checklist",
    )
    """Which items to use: the five-level rubric, the yes/no checklist, or both."""


class RubricFile(ABC):
    """A file of queries with their rubrics."""

    name: ClassVar[str]
    options_type: ClassVar[type[RubricFileOptions]] = RubricFileOptions

    def __init__(self, path: Path, options: RubricFileOptions) -> None:
        self.file = _rubric_file(path)
        self.options = options
        self.where = ""

    @classmethod
    def create(cls, config: BenchmarkConfig) -> Self:
        """Return a reader of the file `config.path`, or of the only such file in that folder."""
        return cls(
            config.path, parse_options(config.options, cls.options_type, "benchmark.options")
        )

    @abstractmethod
    def query(self, row: Row) -> Query:
        """Return the query of a row."""

    @abstractmethod
    def items(self, row: Row) -> Sequence[ParsedItem]:
        """Return the items of a row."""

    def queries(self) -> Iterator[Query]:
        """Yield the query of every row."""
        yield from map(self.query, self._rows())

    def checklists(self) -> Iterator[Checklist]:
        """Yield the checklist of every row that has items."""
        for row in self._rows():
            items = self.items(row)
            for number, item in enumerate(items, 1):
                try:
                    valid_item(item)
                except ValueError as error:
                    raise BenchmarkError(f"{row.where}, item {number}: {error}") from None
            if items:
                yield Checklist.from_items(self.query(row).id, items, self.name)

    def responses(self) -> Iterator[Response]:
        """Yield the responses in `options.responses`, or one assumed response per query."""
        if self.options.assume is not None:
            size = self.options.assume
            text = (_FILLER * (size // len(_FILLER) + 1))[:size]
            for query in self.queries():
                # The id makes every response different, as real ones are.
                yield Response(query.id, ASSUMED, f"{query.id}: {text}"[:size])
            return
        if self.options.responses is None:
            raise BenchmarkError(
                f"A benchmark of kind {self.name} has no responses of its own.",
                hint="Name a file or folder of responses in benchmark.options.responses; to plan "
                "without any, set benchmark.options.assume to their usual number of characters.",
            )
        yield from self._read_responses(self.file.parent / self.options.responses)

    def labels(self) -> Iterator[Label]:
        """Yield nothing: these files have no labels."""
        return iter(())

    def votes(self) -> Iterator[Vote]:
        """Yield nothing: these files have no votes."""
        return iter(())

    def ratings(self) -> Iterator[Rating]:
        """Yield nothing: these files have no ratings."""
        return iter(())

    def _read_responses(self, path: Path) -> Iterator[Response]:
        if not path.exists():
            raise BenchmarkError(
                f"There is no file or folder of responses {path}.",
                hint="benchmark.options.responses is relative to the benchmark's folder.",
            )
        files = response_files(path) if path.is_dir() else {path: None}
        for file, stem in files.items():
            for row in response_rows(file, read_rows(file)):
                self.where = row.where
                yield Response(
                    query_id=row.name("query_id"),
                    candidate=row.name("candidate", *(() if stem is None else (stem,))),
                    text=row.text("text"),
                    history=None if row.values.get("history") is None else row.turns("history"),
                    context=row.passages("context"),
                )

    def _rows(self) -> Iterator[Row]:
        for row in read_rows(self.file):
            self.where = row.where
            yield row


def _rubric_file(path: Path) -> Path:
    """Return the file at `path`, or the only rubric file in that folder."""
    if path.is_file():
        return path
    if not path.is_dir():
        raise BenchmarkError(
            f"There is no rubric file {path}.",
            hint="Check `benchmark.path`: a file, or its folder.",
        )
    found = [
        file
        for file in visible(path.iterdir())
        if file.is_file() and file.name.removesuffix(".gz").endswith(ENDINGS)
    ]
    if len(found) != 1:
        names = ", ".join(file.name for file in found[:5]) or "none"
        raise BenchmarkError(
            f"{path} must have exactly one .jsonl or .json file, but has {len(found)} ({names}).",
            hint="Set `benchmark.path` to the file itself.",
        )
    return found[0]


class HealthBench(RubricFile):
    """HealthBench: conversations with criteria of -10 to 10 points (scorer kind points)."""

    name = "healthbench"

    def query(self, row: Row) -> Query:
        """Return the last user message, with the conversation before it."""
        turns = row.turns("prompt")
        asked = [place for place, turn in enumerate(turns) if turn.role == "user"]
        if not asked or asked[-1] != len(turns) - 1:
            raise BenchmarkError(f"{row.where}: the prompt does not end with a user message.")
        tags = row.texts("example_tags") if row.values.get("example_tags") else ()
        ideal = row.values.get("ideal_completions_data")
        completion = ideal.get("ideal_completion") if isinstance(ideal, Mapping) else None
        return Query(
            id=row.name("prompt_id"),
            text=turns[-1].content,
            history=tuple(Turn(turn.role, turn.content) for turn in turns[:-1]),
            reference=completion if isinstance(completion, str) else None,
            category=_after("theme:", tags),
            tags=tags,
        )

    def items(self, row: Row) -> Sequence[ParsedItem]:
        """Return one item per criterion: its points are its weight, its axis is its group."""
        found = []
        for part in _parts(row, "rubrics"):
            tags = part.texts("tags") if part.values.get("tags") else ()
            detail = ItemDetail(weight=part.number("points"), tags=tags)
            found.append(
                ParsedItem(as_question(part.name("criterion")), detail, _after("axis:", tags))
            )
        return found


def _after(start: str, tags: Sequence[str]) -> str | None:
    """Return the first tag that starts with `start`, without it; None if there is none."""
    return next((tag.removeprefix(start) for tag in tags if tag.startswith(start)), None)


def _parts(row: Row, name: str) -> Iterator[Row]:
    """Yield the objects of a list, each with its place for messages."""
    parts: list[Any] = row.get(name, list)
    for number, part in enumerate(parts, 1):
        if not isinstance(part, Mapping):
            raise BenchmarkError(f"{row.where}: entry {number} of {name!r} is not an object.")
        yield Row(part, f"{row.where}, entry {number} of {name!r}")


class BigGenBench(RubricFile):
    """BiGGen Bench: a five-level rubric, a reference and atomic yes/no questions per instance."""

    name = "biggen"
    options_type = BigGenOptions

    def query(self, row: Row) -> Query:
        """Return the input, with its system prompt and reference."""
        return Query(
            id=self._id(row),
            text=row.text("input"),
            reference=row.text("reference_answer", None),
            category=row.text("capability", None),
            system=row.text("system_prompt", None) or None,
            tags=(row.text("task", "") or "no task",),
            metadata=row.further(_BIGGEN_FIELDS),
        )

    def _id(self, row: Row) -> str:
        if row.values.get("id") is not None:
            return row.name("id")
        return "_".join(row.name(part) for part in ("capability", "task", "instance_idx"))

    def items(self, row: Row) -> Sequence[ParsedItem]:
        """Return the rubric as a scale that shows the reference, and the atomic questions."""
        assert isinstance(self.options, BigGenOptions)
        system = ("system",) if row.text("system_prompt", None) else ()
        found = []
        if "score_rubric" in self.options.items:
            rubric = Row(row.get("score_rubric", dict), f"{row.where}, 'score_rubric'")
            levels = tuple(rubric.name(f"score{level}_description") for level in range(1, 6))
            uses = (*system, "reference") if row.values.get("reference_answer") else system
            detail = ItemDetail(kind=ItemKind.SCALE, levels=levels, uses=uses)
            found.append(ParsedItem(rubric.name("criteria"), detail, "score_rubric"))
        if "atomic_checklist" in self.options.items and row.values.get("atomic_checklist"):
            questions = row.texts("atomic_checklist")
            plain = ItemDetail(uses=system)
            found += [
                ParsedItem(as_question(text), plain, "atomic_checklist") for text in questions
            ]
        return found


_BIGGEN_FIELDS = frozenset(
    {
        "id",
        "capability",
        "task",
        "input",
        "reference_answer",
        "system_prompt",
        "score_rubric",
        "atomic_checklist",
    }
)


class WritingBench(RubricFile):
    """WritingBench: five criteria per query, each with five bands of grades."""

    name = "writingbench"
    bands = ("1-2", "3-4", "5-6", "7-8", "9-10")

    def query(self, row: Row) -> Query:
        """Return the writing task."""
        tags = [row.text(name, "") for name in ("domain1", "domain2", "lang")]
        return Query(
            id=row.name("index"),
            text=row.text("query"),
            category=row.text("domain1", None),
            tags=tuple(tag for tag in tags if tag),
        )

    def items(self, row: Row) -> Sequence[ParsedItem]:
        """Return one scale per criterion."""
        found = []
        for part in _parts(row, "checklist"):
            levels = tuple(part.name(band) for band in self.bands)
            name = part.name("name")
            text = f"{name}: {part.name('criteria_description')}"
            found.append(ParsedItem(text, ItemDetail(kind=ItemKind.SCALE, levels=levels), name))
        return found


class InFoBench(RubricFile):
    """InFoBench: an instruction, decomposed into yes/no questions."""

    name = "infobench"

    def query(self, row: Row) -> Query:
        """Return the instruction with its input."""
        given = row.text("input", "") or ""
        instruction = row.text("instruction")
        return Query(
            id=row.name("id"),
            text=f"{instruction}\n\n{given}" if given.strip() else instruction,
            category=row.text("category", None),
            tags=tuple(filter(None, [row.text("subset", None)])),
        )

    def items(self, row: Row) -> Sequence[ParsedItem]:
        """Return the questions, tagged with their labels."""
        questions = row.texts("decomposed_questions")
        labels: list[Any] = row.get("question_label", list, [])
        tags = [tuple(map(str, own)) if isinstance(own, list) else () for own in labels]
        tags += [()] * (len(questions) - len(tags))
        pairs = zip(questions, tags, strict=False)
        return [ParsedItem(as_question(text), ItemDetail(tags=own)) for text, own in pairs]
