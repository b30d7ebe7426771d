"""Which steps a dimension checklist takes, and what the author is asked in each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import orjson

from rocketeval.checklists.dimension_file import Dimension, DimensionFile
from rocketeval.checklists.pool import Question
from rocketeval.checklists.steps import Step
from rocketeval.hashing import content_hash
from rocketeval.prompts.neutralise import neutralise
from rocketeval.prompts.parse import parse_checklist
from rocketeval.prompts.read_verdicts import Verdict, read_verdicts
from rocketeval.prompts.render import Template

Kind = Literal["diversify", "elaborate", "filter"]
VERDICT_TOKENS = 60
"""What one verdict is long at most, as JSON with spaces and a number of any length."""
_ABOUT = ("task", "dimension", "definition")
_PART = (*_ABOUT, "sub_dimension", "sub_definition", "least", "most")
NEEDS: Mapping[Kind, tuple[str, ...]] = {
    "diversify": (*_PART, "seeds"),
    "elaborate": (*_PART, "seed"),
    "filter": (*_ABOUT, "others", "questions"),
}
"""Placeholders of each step's template."""
NO_OTHERS = "(none)"


@dataclass(frozen=True, slots=True, kw_only=True)
class DimensionStep(Step):
    """One request about a dimension."""

    kind: Kind
    dimension: str
    sub_dimension: str | None = None
    """None for a filter, which sees the whole dimension."""
    seed: str | None = None
    """The seed that is elaborated; None for the other kinds."""


class StepMaker:
    """Makes the steps of one author for some dimensions of a file."""

    def __init__(
        self,
        file: DimensionFile,
        dimensions: Mapping[str, Dimension],
        *,
        kinds: Sequence[Kind],
        own_templates: Mapping[Kind, Path],
        author: tuple[str, Mapping[str, Any]],
        limits: tuple[int, int],
    ) -> None:
        """`author` is its model and settings, `limits` the least and the most questions a list."""
        self._file = file
        self._dimensions = dimensions
        self._kinds = kinds
        self._author = author
        self._limits = limits
        self._templates = {
            kind: Template.load(kind, own_templates.get(kind), needs=NEEDS[kind]) for kind in kinds
        }
        self.hashes = {kind: template.hash for kind, template in self._templates.items()}
        """Of the templates, by step."""

    def augmenting(self) -> list[DimensionStep]:
        """Return the steps that bring new questions; each sees seeds alone, never other work."""
        return [
            step
            for kind in self._kinds
            if kind != "filter"
            for name, told in self._dimensions.items()
            for step in self._augmenting_one(kind, name, told)
        ]

    def filtering(self, pools: Mapping[str, Sequence[Question]]) -> list[DimensionStep]:
        """Return the steps that choose among the questions of each dimension."""
        if "filter" not in self._kinds:
            return []
        return [self._filter(name, pool) for name, pool in pools.items()]

    def _augmenting_one(self, kind: Kind, name: str, told: Dimension) -> Iterator[DimensionStep]:
        least, most = self._limits
        for part, sub in told.sub_dimensions.items():
            values = {
                **self._about(name),
                "sub_dimension": part,
                "sub_definition": sub.definition,
                "least": str(least),
                "most": str(most),
            }
            if kind == "diversify":
                listed = "\n".join(f"- {seed}" for seed in sub.seeds)
                yield self._augment(kind, name, part, None, {**values, "seeds": listed})
            else:
                for seed in sub.seeds:
                    yield self._augment(kind, name, part, seed, {**values, "seed": seed})

    def _augment(
        self, kind: Kind, name: str, part: str, seed: str | None, values: Mapping[str, str]
    ) -> DimensionStep:
        asked = self._fill(kind, values)
        return DimensionStep(
            name=f"{kind} {name}: {part}" + ("" if seed is None else f" ({seed})"),
            asked=asked,
            key=self._key(asked),
            read=reads_questions(*self._limits),
            kind=kind,
            dimension=name,
            sub_dimension=part,
            seed=seed,
        )

    def _filter(self, name: str, pool: Sequence[Question]) -> DimensionStep:
        others = [
            f"- {other}: {told.definition}"
            for other, told in self._file.dimensions.items()
            if other != name
        ]
        listed = [
            f"{number}. [{question.sub_dimension}] {question.text}"
            for number, question in enumerate(pool, 1)
        ]
        asked = self._fill(
            "filter",
            {
                **self._about(name),
                "others": "\n".join(others) or NO_OTHERS,
                "questions": "\n".join(listed),
            },
        )
        return DimensionStep(
            name=f"filter {name}",
            asked=asked,
            key=self._key(asked),
            read=reads_verdicts(len(pool)),
            text_of=_as_json,
            max_tokens=(len(pool) + 1) * VERDICT_TOKENS,
            kind="filter",
            dimension=name,
        )

    def _about(self, name: str) -> dict[str, str]:
        definition = self._dimensions[name].definition
        return {"task": self._file.task, "dimension": name, "definition": definition}

    def _fill(self, kind: Kind, values: Mapping[str, str]) -> str:
        safe = {name: neutralise(text).text for name, text in values.items()}
        return self._templates[kind].fill(safe)

    def _key(self, asked: str) -> bytes:
        # What is asked holds the file, the template and, for a filter, all that was written before.
        return content_hash("authored step", *self._author, asked, *self._limits)


def reads_questions(least: int, most: int) -> Callable[[str], tuple[str, ...]]:
    """Return a reader of so many questions."""
    return lambda text: parse_checklist(text, min_items=least, max_items=most)


def reads_verdicts(count: int) -> Callable[[str], tuple[str, ...]]:
    """Return a reader of verdicts on `count` questions, each as the line a journal keeps."""
    return lambda text: tuple(
        _line(number, verdict) for number, verdict in enumerate(read_verdicts(text, count), 1)
    )


def verdicts_in(lines: Sequence[str]) -> tuple[Verdict, ...]:
    """Return the verdicts that a reader turned into lines."""
    return read_verdicts(_as_json(lines), len(lines))


def _as_json(lines: Sequence[str]) -> str:
    return f"[{','.join(lines)}]"


def _line(number: int, verdict: Verdict) -> str:
    row = {
        "question": number,
        "yes_is_better": verdict.yes_is_better,
        "fits": verdict.fits,
        "repeats": verdict.repeats,
    }
    return orjson.dumps(row).decode()
