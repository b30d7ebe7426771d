"""What an evolution found: everything that is printed, and kept as evolution.json.

What a reader is told about an evaluator: the shape of evaluator.json, and of the report's block.
What a verdict costs: calls and prompt tokens, for a case that comes alone and on a benchmark.
Whether an evaluator is worth using, in words: is it better than what is simpler?
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from rocketeval.config import PriceConfig
from rocketeval.evolve.ask import shown
from rocketeval.evolve.cases import Case
from rocketeval.evolve.history import OutOfFoldFigure, Round, Spent
from rocketeval.evolve.perspective import QUERIES, Asking, Perspective, question_set_of
from rocketeval.evolve.predictions import ConfidenceRow
from rocketeval.evolve.validate import COMMONEST, SINGLE_PROMPTS, WITH, Validation
from rocketeval.prices import money
from rocketeval.records import Interval, Usage
from rocketeval.store.run import RunStore


@dataclass(frozen=True, slots=True)
class CaseCost:
    """What the verdict on one case takes."""

    calls: float
    prompt_tokens: float | None
    """As measured on the held-out cases; None where the judge did not tell."""
    money: float | None
    """None without a price."""


@dataclass(frozen=True, slots=True)
class EvaluatorCost:
    """What an evaluator costs, beside one prompt."""

    case: Literal["pair", "response"]
    about_responses: int
    """Questions asked of each response, or of each pair."""
    about_queries: int
    """Questions asked of each query."""
    alone: CaseCost
    """A case that shares its query and responses with no other."""
    here: CaseCost
    """Mean over the benchmark's cases: what they share is asked once."""
    single: CaseCost
    """One question instead of all, of a case that comes alone."""
    currency: str


@dataclass(frozen=True, slots=True)
class QuestionSetUsage:
    """What the questions of a sheet used, whoever paid."""

    usage: Usage
    questions: int
    """A request may hold many: all that are asked about a response."""


def measured_use(
    store: RunStore, folder: str, sheets: Iterable[str]
) -> dict[str, QuestionSetUsage]:
    """Return what each sheet's questions used; the sheets are runs inside the run."""
    inside = {name: store.inside(folder, name) for name in sheets}
    return {name: QuestionSetUsage(one.ledger_usage(), _asked(one)) for name, one in inside.items()}


def _asked(sheet: RunStore) -> int:
    """Return how many questions were asked: each item of a query once, of all that was judged."""
    items: dict[str, set[str]] = {}
    for checklist in (*sheet.inputs.checklists().values(), *sheet.inputs.earlier_checklists()):
        items.setdefault(checklist.query_id, set()).update(checklist.items)
    judged = {
        (query_id, candidate)
        for table in sheet.judgments(["query_id", "candidate"])
        for query_id, candidate in zip(
            table["query_id"].to_pylist(), table["candidate"].to_pylist(), strict=True
        )
    }
    return sum(len(items.get(query_id, ())) for query_id, _ in judged)


def count_cost(
    perspectives: Collection[Perspective],
    overall: Perspective,
    cases: Collection[Case],
    asking: Asking,
    used: Mapping[str, QuestionSetUsage],
    price: PriceConfig | None,
) -> EvaluatorCost:
    """Return calls, tokens and money of a verdict with these perspectives."""
    pairs = len(next(iter(cases)).candidates) == 2
    sides = 2 if pairs and asking == "each" else 1
    texts = shown(cases, asking) / len(cases)
    queries = len({case.query_id for case in cases}) / len(cases)
    of_queries = sum(question_set_of(each, asking) is QUERIES for each in perspectives)

    def load(asked: Iterable[Perspective], per_case: float, per_query: float) -> CaseCost:
        total = CaseCost(0.0, 0.0, 0.0 if price else None)
        for each in asked:
            sheet = question_set_of(each, asking)
            times = per_query if sheet is QUERIES else per_case
            total = _plus(total, times, used.get(sheet.name, _NOTHING), price)
        return total

    return EvaluatorCost(
        "pair" if pairs else "response",
        len(perspectives) - of_queries,
        of_queries,
        load(perspectives, sides, 1.0),
        load(perspectives, texts, queries),
        load([overall], sides, 0.0),
        price.currency if price else "",
    )


_NOTHING = QuestionSetUsage(Usage(), 0)


def _plus(
    total: CaseCost, times: float, used: QuestionSetUsage, price: PriceConfig | None
) -> CaseCost:
    """Add a question that is asked so many times, at what such questions used on average."""
    tokens = spent = None
    if used.questions and used.usage.prompt_tokens:
        tokens = times * used.usage.prompt_tokens / used.questions
        spent = None if price is None else times * money(used.usage, price) / used.questions
    return CaseCost(
        total.calls + times, _sum(total.prompt_tokens, tokens), _sum(total.money, spent)
    )


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other


@dataclass(frozen=True, slots=True)
class SplitPart:
    """How much of the gold lies on one side of the split."""

    cases: int
    queries: int


@dataclass(frozen=True, slots=True)
class ArmFigures:
    """One way to judge, on the held-out cases."""

    name: str
    figures: Mapping[str, Interval]
    gain: Interval
    """Its accuracy, of labels its rank correlation, less that without experts."""
    lead: Interval
    """That of the evaluator less its own."""


@dataclass(frozen=True)
class HeldOutFigures:
    """Ways to judge, side by side on held-out cases, each by a fit that never saw its query."""

    measure: str
    """accuracy, or rho: what `gain` is of."""
    cases: int
    queries: int
    experts: tuple[int, ...]
    """How many experts each fold chose."""
    overall: str
    """The question of the arms of a single prompt."""
    arms: tuple[ArmFigures, ...]


@dataclass(frozen=True)
class NotedFigures(HeldOutFigures):
    """The same as an evaluator's file keeps them, with their verdict in words."""

    worth: str = ""


@dataclass(frozen=True, slots=True)
class EvaluatorVerdict:
    """What the held-out cases say for or against an evaluator."""

    usable: bool
    """Whether it is told apart from judging without looking."""
    words: str


@dataclass(frozen=True, slots=True)
class VerdictConfidence:
    """How far to trust a verdict that is sure; only of pairs."""

    rows: tuple[ConfidenceRow, ...]
    target: float | None
    """Share that shall be right of what it decides alone; None when no threshold reaches any."""
    threshold: float | None
    """Cases with less confidence go to a person."""
    to_person: tuple[str, ...]
    """The held-out cases below it, the least sure first."""


@dataclass(frozen=True, slots=True)
class DescribedPerspective:
    """A question that the judge answers."""

    id: str
    text: str
    kind: str
    """`Kind`: what it is about."""
    origin: str
    """`Origin`: how it came into the pool."""
    parents: tuple[str, ...]
    """Ids of those it was made from; the evaluator need not use them itself."""
    round: int
    types: tuple[str, ...]
    form: str
    """`Form`: how it is answered."""
    importance: float | None = None
    """Its share in the surrogate's decisions, among those of its kind."""
    stability: float | None = None


@dataclass(frozen=True, slots=True)
class DescribedTrait:
    """What tells an expert's queries from others."""

    perspective: str
    """Id of a perspective about queries."""
    apart: float
    """From the mean of all to the expert's centroid, in the router's weighted space."""
    share: float | None
    """Share of the expert's queries that have the trait; None where the trait weighs nothing."""
    usual: float | None
    """The same over all experts."""


@dataclass(frozen=True, slots=True)
class DescribedExpert:
    """One expert: which queries it judges, and what it looks at."""

    index: int
    size: int | None
    """Cases in training that it is the nearest expert of; None when that is not kept."""
    attention: tuple[float, ...]
    """One a perspective about responses, in order; they sum to one, or all are zero."""
    traits: tuple[DescribedTrait, ...]
    """Those that lie farthest from the mean, farthest first."""


@dataclass(frozen=True, slots=True)
class DescribedWeight:
    """How much a trait counts when a query is sent to an expert."""

    perspective: str
    weight: float


@dataclass(frozen=True, slots=True)
class DescribedFigure:
    """What one arm reached in validation."""

    name: str
    value: Interval | None
    note: str
    own: bool
    """Whether it is the evaluator itself; the others are what it must be seen beside."""


@dataclass(frozen=True, slots=True)
class DescribedConfidence:
    """What is right among the cases that an evaluator is so sure of."""

    threshold: float
    coverage: float
    """Share of the cases with at least this confidence."""
    accuracy: Interval | None
    cases: int


@dataclass(frozen=True, slots=True)
class DescribedProvenance:
    """Where an evaluator comes from."""

    created: str
    benchmark: str
    cases: int | None
    """Those with gold that it learned from."""
    rounds: int | None
    judge: str
    """The model whose answers it learned to weigh."""


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts between edges, of which there is one more."""

    edges: tuple[float, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DescribedRun:
    """What an evaluator did in the run it is applied to."""

    cases: int
    by_expert: tuple[int, ...]
    confidence: Histogram
    threshold: float | None
    """Cases below it should go to a person; None when none is recommended."""
    to_person: int


@dataclass(frozen=True)
class Described:
    """An evaluator in words and figures."""

    decides: Literal["pairs", "responses"]
    """Who wins between two responses, or the score of one."""
    asking: str
    """`Asking`: whether the judge saw two responses at once, or one at a time."""
    perspectives: tuple[DescribedPerspective, ...]
    """What is asked about responses first, in the order of columns; then about queries."""
    ancestors: tuple[DescribedPerspective, ...]
    """Those that perspectives above were made from and that it does not use."""
    experts: tuple[DescribedExpert, ...]
    router: tuple[DescribedWeight, ...]
    """The heaviest first."""
    measure: str
    """What the figures measure."""
    unit: Literal["share", "number"]
    figures: tuple[DescribedFigure, ...]
    confidence: tuple[DescribedConfidence, ...]
    """The lowest threshold first."""
    cost: tuple[tuple[str, str], ...]
    provenance: DescribedProvenance


@dataclass(frozen=True)
class EvaluatorInRun(Described):
    """The evaluator that judged a run, and what it did there."""

    FILE: ClassVar[str] = "evaluator"
    COMMAND: ClassVar[str] = "run --only score"
    SCHEMA: ClassVar[int] = 1

    run: DescribedRun | None = None


@dataclass(frozen=True)
class PoolFacts:
    """The pool of perspectives in numbers."""

    size: int
    people: int
    """What people added."""
    new_people: int
    """What they added since the last command."""
    people_before_figures: int
    """What they had added when held-out figures of this run were first there to be seen."""
    waiting: int
    """What they added too late for this command; the next one asks it."""
    elsewhere: int
    """Entries that name a round which this run has not done: they count as added by people."""
    by_origin: Mapping[str, int]
    used: int
    """Perspectives of the evaluator, of both kinds."""
    refused: tuple[str, ...]
    """What the guidelines brought and was not taken."""


@dataclass(frozen=True)
class Evolution:
    """What an evolution found."""

    FILE: ClassVar[str] = "evolve/evolution"
    COMMAND: ClassVar[str] = "evolve"
    SCHEMA: ClassVar[int] = 1

    created: str
    benchmark: str
    gold: str
    asking: str
    judge: str
    optimizer: str | None
    """Its model; None when nothing is proposed."""
    seen: SplitPart
    held_out: SplitPart
    pool: PoolFacts
    beginning: OutOfFoldFigure
    """On the seen cases before the first round."""
    rounds: tuple[Round, ...]
    best_round: int
    """The round whose pool the evaluator has; 0 for the beginning."""
    stopped: str
    """Why no further round was begun."""
    figures: HeldOutFigures
    worth: EvaluatorVerdict
    evaluator: Described
    confidence: VerdictConfidence | None
    cost: EvaluatorCost
    spent: Spent
    failed: int
    """Prompts that the judge could not answer; another command tries them again."""
    missing: int
    """Answers that are not there, of the evaluator's perspectives on all cases."""
    path: Path
    """The evaluator."""
    pool_path: Path


def figures_of(validation: Validation, overall: str) -> HeldOutFigures:
    """Return a validation as it is printed."""
    return HeldOutFigures(
        validation.measure,
        len(validation.gold),
        len(set(validation.query_ids)),
        validation.experts,
        overall,
        tuple(
            ArmFigures(arm.name, arm.figures, arm.gain, arm.lead)
            for arm in validation.arms.values()
        ),
    )


def evaluator_verdict(figures: HeldOutFigures) -> EvaluatorVerdict:
    """Return whether it is better than no judge at all, and than one prompt."""
    arms = {arm.name: arm for arm in figures.arms}
    if COMMONEST in arms and not _is_above(arms[COMMONEST].lead):
        return EvaluatorVerdict(
            False, f"Not told apart from {COMMONEST}{_by(figures, arms[COMMONEST])}."
        )
    if COMMONEST not in arms and not _is_above(arms[WITH].figures[figures.measure]):
        return EvaluatorVerdict(False, "Not told apart from chance.")
    asked = [arms[name] for name in SINGLE_PROMPTS if name in arms]
    if not asked:
        return EvaluatorVerdict(
            True, "Better than chance; it was not held against a single prompt."
        )
    closest = min(asked, key=lambda arm: arm.lead.value)
    found = "Better than the" if _is_above(closest.lead) else "Not told apart from the cheaper"
    return EvaluatorVerdict(True, f"{found} {closest.name}{_by(figures, closest)}.")


def _is_above(interval: Interval) -> bool:
    """Whether the whole interval is above zero; an unknown one is not."""
    return math.isfinite(interval.low) and interval.low > 0.0


def _by(figures: HeldOutFigures, arm: ArmFigures) -> str:
    lead = arm.lead
    if not all(map(math.isfinite, (lead.value, lead.low, lead.high))):
        return " (too few queries to say by how much)"
    scale, unit, digits = (100.0, " points", 1) if figures.measure == "accuracy" else (1.0, "", 2)
    value, low, high = (f"{scale * end:+z.{digits}f}" for end in (lead.value, lead.low, lead.high))
    return f": {value}{unit} ({low} to {high})"
