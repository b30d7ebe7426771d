"""What a grading method is called, asks for and can be set to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from rocketeval.config import MethodConfig, NoOptions, RunConfig, Section, parse_options
from rocketeval.criteria import CriterionConfig
from rocketeval.grading.methods.base import Method

YES_NO = ("Yes", "No")
DIGITS = tuple("9876543210")
LIKERT = tuple("54321")
FIXED = (
    "Is the response helpful to the person who asked?",
    "Does the response stay on what was asked?",
    "Is everything the response states accurate?",
    "Does the response go into the depth that the query calls for?",
    "Does the response show creativity where the query leaves room for it?",
    "Does the response give enough detail?",
)
"""One question for each dimension that MT-Bench names to its judge."""


class FixedOptions(Section):
    """Settings of the method fixed."""

    items: Annotated[tuple[str, ...], Field(min_length=1)] = FIXED
    """The questions asked about every response."""


class WritingOptions(Section):
    """Settings of methods that let the judge write."""

    max_tokens: Annotated[int, Field(ge=1)] = 400
    """Tokens it may write about one response."""


class CriterionOptions(Section):
    """Settings of methods that grade one criterion."""

    criterion: str | CriterionConfig
    """A known criterion's name (`rocketeval criteria` lists them), or one of your own."""


Items = Callable[[Any], Sequence[str]]
Build = Callable[[RunConfig, Any], Method]


@dataclass(frozen=True)
class Kind:
    """A method as the config names it."""

    told: str
    """What it does, for people."""
    build: Build
    options: type[Section] = NoOptions
    labels: tuple[str, ...] = YES_NO
    """Words the judge answers with, best first."""
    grades: bool = False
    """Whether its answers are places on a scale though it asks for no label: a written score, or
    how likely a response is."""
    items: Items | None = None
    """What is asked about every response; None when the author's checklists are."""
    reference: bool = False
    """Whether the query's reference response is shown with it."""
    template: str | None = "grade"
    """The packaged template that the user's own takes the place of; None without any."""

    @property
    def yes_no(self) -> bool:
        """Whether half way between the worst and the best answer lies between no and yes."""
        return self.labels == YES_NO and not self.grades

    def method(self, config: RunConfig) -> Method:
        """Return the method, ready to be used."""
        return self.build(config, self.read_options(config))

    def read_options(self, config: RunConfig) -> Section:
        """Return the method's own settings."""
        return self.parse(config.method)

    def parse(self, method: MethodConfig) -> Section:
        """Return a method's own settings; two that mean the same are equal, however written."""
        where = f"method.options of {method.kind!r}"
        return parse_options(method.options, self.options, where)
