"""Settings of the dimension author."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator

from rocketeval.checklists.dimension_steps import Kind
from rocketeval.config import Section

STEPS: tuple[Kind, ...] = ("diversify", "elaborate", "filter")


class DimensionOptions(Section):
    """Settings of the dimension author."""

    file: str
    """summarization, dialogue, or the path of your own dimension file (.yaml)."""
    dimensions: tuple[str, ...] | None = None
    """The dimensions to ask about; all of the file when absent."""
    steps: tuple[Kind, ...] = STEPS
    """diversify, elaborate, filter, or some of them; none: the seeds alone, without an LLM."""
    templates: dict[Kind, Path] = Field(default_factory=dict)
    """Your own prompts by step, relative to where the command is run; the packaged when absent."""
    on_failure: Literal["stop", "skip"] = "stop"
    """stop: a step that fails leaves the run without a checklist; skip: it goes on without it."""

    @field_validator("steps")
    @classmethod
    def _in_order(cls, steps: tuple[Kind, ...]) -> tuple[Kind, ...]:
        if len(set(steps)) < len(steps):
            raise ValueError("a step stands here twice.")
        if "filter" in steps[:-1]:
            raise ValueError("filter comes last: it looks at what the other steps brought.")
        return steps

    @field_validator("dimensions")
    @classmethod
    def _some(cls, names: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if names is not None and not names:
            raise ValueError("this names no dimension; leave it out to take all.")
        return names
