"""What a reader is told about an evaluator: the shape of evaluator.json, and of the report's block.

`web/src/contract.ts` has the same names.
"""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict


class DescribedInterval(TypedDict):
    """A figure with its interval; an end is None where it is unknown."""

    value: float
    low: float | None
    high: float | None


class DescribedPerspective(TypedDict):
    """A question that the judge answers."""

    id: str
    text: str
    kind: str
    """`Kind`: what it is about."""
    origin: str
    """`Origin`: how it came into the pool."""
    parents: list[str]
    """Ids of those it was made from; the evaluator need not use them itself."""
    round: int
    types: list[str]
    form: str
    """`Form`: how it is answered."""
    importance: float | None
    """Its share in the surrogate's decisions, among those of its kind."""
    stability: float | None


class DescribedTrait(TypedDict):
    """What tells an expert's queries from others."""

    perspective: str
    """Id of a perspective about queries."""
    apart: float
    """From the mean of all to the expert's centroid, in the router's weighted space."""
    share: float | None
    """Share of the expert's queries that have the trait; None where the trait weighs nothing."""
    usual: float | None
    """The same over all experts."""


class DescribedExpert(TypedDict):
    """One expert: which queries it judges, and what it looks at."""

    index: int
    size: int | None
    """Cases in training that it is the nearest expert of; None when that is not kept."""
    attention: list[float]
    """One a perspective about responses, in order; they sum to one, or all are zero."""
    traits: list[DescribedTrait]
    """Those that lie farthest from the mean, farthest first."""


class DescribedWeight(TypedDict):
    """How much a trait counts when a query is sent to an expert."""

    perspective: str
    weight: float


class DescribedFigure(TypedDict):
    """What one arm reached in validation."""

    name: str
    value: DescribedInterval | None
    note: str
    own: bool
    """Whether it is the evaluator itself; the others are what it must be seen beside."""


class DescribedConfidence(TypedDict):
    """What is right among the cases that an evaluator is so sure of."""

    threshold: float
    coverage: float
    """Share of the cases with at least this confidence."""
    accuracy: DescribedInterval | None
    cases: int


class DescribedProvenance(TypedDict):
    """Where an evaluator comes from."""

    created: str
    benchmark: str
    cases: int | None
    """Those with gold that it learned from."""
    rounds: int | None
    judge: str
    """The model whose answers it learned to weigh."""


class Histogram(TypedDict):
    """Counts between edges, of which there is one more."""

    edges: list[float]
    counts: list[int]


class DescribedRun(TypedDict):
    """What an evaluator did in the run it is applied to."""

    cases: int
    by_expert: list[int]
    confidence: Histogram
    threshold: float | None
    """Cases below it should go to a person; None when none is recommended."""
    to_person: int


class Described(TypedDict):
    """An evaluator in words and figures."""

    decides: Literal["pairs", "responses"]
    """Who wins between two responses, or the score of one."""
    asking: str
    """`Asking`: whether the judge saw two responses at once, or one at a time."""
    perspectives: list[DescribedPerspective]
    """What is asked about responses first, in the order of columns; then about queries."""
    ancestors: list[DescribedPerspective]
    """Those that perspectives above were made from and that it does not use."""
    experts: list[DescribedExpert]
    router: list[DescribedWeight]
    """The heaviest first."""
    measure: str
    """What the figures measure."""
    unit: Literal["share", "number"]
    figures: list[DescribedFigure]
    confidence: list[DescribedConfidence]
    """The lowest threshold first."""
    cost: list[tuple[str, str]]
    provenance: DescribedProvenance
    run: NotRequired[DescribedRun]
    """Added by whoever applies it to a run."""
