"""Result records of an evolution (evolution.json) and of an evaluator (evaluator.json).

Also computes the cost of a verdict, and whether an evaluator is better than simpler baselines.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal

from rocketeval.config import PriceConfig
from rocketeval.evolve.ask import shown
from rocketeval.evolve.cases import Case
from rocketeval.evolve.history import OutOfFoldFigure, Round, Spent
from rocketeval.evolve.perspective import QUERIES, Asking, Perspective, question_set_of
from rocketeval.evolve.predictions import ConfidenceRow
from rocketeval.evolve.validate import COMMONEST, RHO_WITHIN, SINGLE_PROMPTS, WITH, Validation
from rocketeval.prices import money
from rocketeval.records import Interval, Usage
from rocketeval.store.codec import OPTIONAL
from rocketeval.store.run import RunStore


@dataclass(frozen=True, slots=True)
class CaseCost:
    """The cost of the verdict on one case."""

    calls: float
    prompt_tokens: float | None
    """Measured on the held-out cases; None if the judge reported no usage."""
    money: float | None
    """None without a price."""


@dataclass(frozen=True, slots=True)
class EvaluatorCost:
    """The cost of an evaluator, compared with a single prompt."""

    case: Literal["pair", "response"]
    about_responses: int
    """Questions per response, or per pair."""
    about_queries: int
    """Questions per query."""
    alone: CaseCost
    """Cost of a case that shares its query and responses with no other case."""
    here: CaseCost
    """Mean over the benchmark's cases; answers that cases share are requested once."""
    single: CaseCost
    """Cost of a single question instead of all, for a case that shares nothing."""
    currency: str


@dataclass(frozen=True, slots=True)
class QuestionSetUsage:
    """Token usage of a question set, including usage paid by earlier runs."""

    usage: Usage
    questions: int
    """Number of questions; one request may hold several."""


def measured_use(
    store: RunStore, folder: str, question_sets: Iterable[str]
) -> dict[str, QuestionSetUsage]:
    """Return the usage of each question set; each is a run inside the run."""
    inside = {name: store.inside(folder, name) for name in question_sets}
    return {name: QuestionSetUsage(one.ledger_usage(), _asked(one)) for name, one in inside.items()}


def _asked(inner: RunStore) -> int:
    """Return the number of questions asked about everything that was judged."""
    items: dict[str, set[str]] = {}
    for checklist in (*inner.inputs.checklists().values(), *inner.inputs.earlier_checklists()):
        items.setdefault(checklist.query_id, set()).update(checklist.items)
    judged = {
        (query_id, candidate)
        for table in inner.judgments(["query_id", "candidate"])
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
    """Return the calls, tokens and money that a verdict with these perspectives takes."""
    pairs = len(next(iter(cases)).candidates) == 2
    sides = 2 if pairs and asking == "each" else 1
    texts = shown(cases, asking) / len(cases)
    queries = len({case.query_id for case in cases}) / len(cases)
    of_queries = sum(question_set_of(each, asking) is QUERIES for each in perspectives)

    def load(asked: Iterable[Perspective], per_case: float, per_query: float) -> CaseCost:
        total = CaseCost(0.0, 0.0, 0.0 if price else None)
        for each in asked:
            question_set = question_set_of(each, asking)
            times = per_query if question_set is QUERIES else per_case
            total = _plus(total, times, used.get(question_set.name, _NOTHING), price)
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
    """Add a question asked `times` times, at the mean cost of such questions."""
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
    """Size of one side of the split."""

    cases: int
    queries: int


@dataclass(frozen=True, slots=True)
class ArmFigures:
    """Results of one method on the held-out cases."""

    name: str
    figures: Mapping[str, Interval]
    gain: Interval
    """Its accuracy (for labels, rank correlation) minus that of the evaluator without experts."""
    lead: Interval
    """The accuracy (or rank correlation) of the full evaluator minus its own."""


@dataclass(frozen=True)
class HeldOutFigures:
    """Results of all methods on the held-out cases, each predicted out-of-fold."""

    measure: str
    """The metric of `gain`: accuracy or rho."""
    cases: int
    queries: int
    """Independent queries: those with the same text or of one cluster count once."""
    experts: tuple[int, ...]
    """Number of experts that each fold chose."""
    overall: str
    """The question that the single-prompt arms ask."""
    arms: tuple[ArmFigures, ...]


@dataclass(frozen=True)
class NotedFigures(HeldOutFigures):
    """Held-out figures as stored in an evaluator file, with the verdict as a sentence."""

    worth: str = ""


@dataclass(frozen=True, slots=True)
class EvaluatorVerdict:
    """Whether an evaluator is usable according to the held-out cases, and why."""

    usable: bool
    """Whether it is significantly better than a judge that ignores the responses, for labels also
    among responses to the same query, and not significantly worse than a single prompt."""
    words: str

    def noting(self, caveats: Iterable[str]) -> EvaluatorVerdict:
        """Return the verdict with these sentences after its words."""
        return EvaluatorVerdict(self.usable, " ".join([self.words, *caveats]))


@dataclass(frozen=True, slots=True)
class VerdictConfidence:
    """Accuracy of verdicts by confidence; only for pairs."""

    rows: tuple[ConfidenceRow, ...]
    target: float | None
    """Target accuracy of the verdicts it decides itself; None if no threshold reaches one."""
    threshold: float | None
    """Cases with lower confidence go to a person."""
    to_person: tuple[str, ...]
    """The held-out cases below the threshold, least confident first."""


@dataclass(frozen=True, slots=True)
class DescribedPerspective:
    """One perspective: a question that the judge answers."""

    id: str
    text: str
    kind: str
    """A `PerspectiveKind`: response or query."""
    origin: str
    """A `PerspectiveOrigin`: how it came into the pool."""
    parents: tuple[str, ...]
    """Ids of the perspectives it was made from; the evaluator may not use those itself."""
    round: int
    types: tuple[str, ...]
    form: str
    """An `AnswerFormat`: how it is answered."""
    importance: float | None = None
    """Its share in the surrogate model's decisions, among perspectives of its kind."""
    stability: float | None = None


@dataclass(frozen=True, slots=True)
class DescribedTrait:
    """A trait that distinguishes an expert's queries from the others."""

    perspective: str
    """Id of a perspective about queries."""
    apart: float
    """Distance from the overall mean to the expert's centroid, in the router's weighted space."""
    share: float | None
    """Share of the expert's queries with the trait; None if the trait has zero weight."""
    usual: float | None
    """Share of all queries with the trait."""


@dataclass(frozen=True, slots=True)
class DescribedExpert:
    """One expert: the queries it judges and the perspectives it weighs."""

    index: int
    size: int | None
    """Number of training cases that are routed to it; None if unknown."""
    attention: tuple[float, ...]
    """One weight per perspective about responses, in order; they sum to one or are all zero."""
    traits: tuple[DescribedTrait, ...]
    """The traits farthest from the mean, farthest first."""


@dataclass(frozen=True, slots=True)
class DescribedWeight:
    """The weight of a trait when the router picks an expert."""

    perspective: str
    weight: float


@dataclass(frozen=True, slots=True)
class DescribedFigure:
    """Validation result of one arm."""

    name: str
    value: Interval | None
    note: str
    own: bool
    """Whether the arm is the evaluator itself rather than a baseline."""


@dataclass(frozen=True, slots=True)
class DescribedConfidence:
    """Accuracy of the verdicts at or above a confidence threshold."""

    threshold: float
    coverage: float
    """Share of the cases with at least this confidence."""
    accuracy: Interval | None
    cases: int


@dataclass(frozen=True, slots=True)
class DescribedProvenance:
    """Provenance of an evaluator."""

    created: str
    benchmark: str
    cases: int | None
    """Number of cases with reference data that it learned from."""
    rounds: int | None
    judge: str
    """The judge model whose answers it learned to weigh."""


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts per bin; there is one more edge than counts."""

    edges: tuple[float, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DescribedRun:
    """Counts of an evaluator's decisions in the run it is applied to."""

    cases: int
    by_expert: tuple[int, ...]
    confidence: Histogram
    threshold: float | None
    """Cases below it should go to a person; None if no threshold is recommended."""
    to_person: int


@dataclass(frozen=True)
class Described:
    """Description of an evaluator for readers of evaluator.json and the report."""

    decides: Literal["pairs", "responses"]
    """Whether it picks the winner of two responses or scores one response."""
    asking: str
    """An `Asking`: whether the judge saw two responses at once, or one at a time."""
    perspectives: tuple[DescribedPerspective, ...]
    """Perspectives about responses in column order, then those about queries."""
    ancestors: tuple[DescribedPerspective, ...]
    """Perspectives that those above were made from and that the evaluator does not use."""
    experts: tuple[DescribedExpert, ...]
    router: tuple[DescribedWeight, ...]
    """Routing weights, largest first."""
    measure: str
    """Name of the metric in `figures`."""
    unit: Literal["share", "number"]
    figures: tuple[DescribedFigure, ...]
    confidence: tuple[DescribedConfidence, ...]
    """Lowest threshold first."""
    cost: tuple[tuple[str, str], ...]
    provenance: DescribedProvenance


@dataclass(frozen=True)
class EvaluatorInRun(Described):
    """The evaluator that judged a run, with counts of its decisions."""

    FILE: ClassVar[str] = "evaluator"
    COMMAND: ClassVar[str] = "run --only score"
    SCHEMA: ClassVar[int] = 1

    run: DescribedRun | None = None


@dataclass(frozen=True)
class PoolFacts:
    """Counts of the perspectives in a pool."""

    size: int
    people: int
    """Number that people added."""
    new_people: int
    """Number that people added since the last command."""
    people_before_figures: int
    """Number that people had added when this run first showed held-out figures."""
    waiting: int
    """Number added too late for this command; the next one uses them."""
    elsewhere: int
    """Entries that name a round this run has not done; they count as added by people."""
    by_origin: Mapping[str, int]
    used: int
    """Number of perspectives that the evaluator uses, of both kinds."""
    refused: tuple[str, ...]
    """Perspectives from the guidelines that were rejected, each with its reason."""
    of_other_rounds: int = field(default=0, metadata=OPTIONAL)
    """Number of seeds that rounds of another run proposed; see `proposed_elsewhere`."""


@dataclass(frozen=True)
class Evolution:
    """The result of an evolution."""

    FILE: ClassVar[str] = "evolve/evolution"
    COMMAND: ClassVar[str] = "evolve"
    SCHEMA: ClassVar[int] = 1

    created: str
    benchmark: str
    gold: str
    asking: str
    judge: str
    optimizer: str | None
    """Model of the optimizer; None without one."""
    seen: SplitPart
    held_out: SplitPart
    pool: PoolFacts
    beginning: OutOfFoldFigure
    """Result on the seen cases before the first round."""
    rounds: tuple[Round, ...]
    best_round: int
    """The round whose pool the evaluator uses; 0 for the initial pool."""
    stopped: str
    """Reason why no further round started."""
    figures: HeldOutFigures
    worth: EvaluatorVerdict
    evaluator: Described
    confidence: VerdictConfidence | None
    cost: EvaluatorCost
    spent: Spent
    failed: int
    """Number of prompts the judge could not answer; the next command retries them."""
    missing: int
    """Number of missing answers to the evaluator's perspectives, over all cases."""
    path: Path
    """The evaluator file."""
    pool_path: Path


def figures_of(validation: Validation, overall: str) -> HeldOutFigures:
    """Return a validation as a printable record."""
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
    """Return whether an evaluator beats a constant verdict, and compare it with one prompt."""
    arms = {arm.name: arm for arm in figures.arms}
    constant = arms.get(COMMONEST)
    over = arms[WITH].figures[figures.measure] if constant is None else constant.lead
    against = "chance" if constant is None else f"the baseline '{COMMONEST}'"
    if _sign(over) != 1:
        by = "" if constant is None else _by(figures, over)
        return EvaluatorVerdict(False, f"{_COMPARED[_sign(over)]} {against}{by}.")
    within = arms[WITH].figures.get(RHO_WITHIN)
    if within is None:
        return _compared_with_prompt(figures, arms)
    if _sign(within) != 1:
        words = f"{_COMPARED[_sign(within)]} chance {_AMONG}{_by(figures, within)}."
        return EvaluatorVerdict(False, words)
    said = f"Significantly better than chance {_AMONG}{_by(figures, within)}."
    return _compared_with_prompt(figures, arms).noting([said])


def _compared_with_prompt(
    figures: HeldOutFigures, arms: Mapping[str, ArmFigures]
) -> EvaluatorVerdict:
    asked = [arms[name] for name in SINGLE_PROMPTS if name in arms]
    if not asked:
        return EvaluatorVerdict(
            True, "Significantly better than chance; it was not compared with a single prompt."
        )
    # A form of the single prompt that is better decides first, then one that is not worse.
    closest = min(asked, key=lambda arm: (_sign(arm.lead) or 0, arm.lead.value))
    sign = _sign(closest.lead)
    cheaper = "the" if sign == 1 else "the cheaper"
    found = f"{_COMPARED[sign]} {cheaper} {closest.name}{_by(figures, closest.lead)}."
    return EvaluatorVerdict(sign != -1, f"{found} Use that instead." if sign == -1 else found)


_AMONG = "at ranking responses to the same query"
_COMPARED = {
    1: "Significantly better than",
    0: "No significant difference from",
    -1: "Significantly worse than",
    None: "Undecided, too few queries or too little variation to compare it with",
}


def _sign(interval: Interval) -> int | None:
    """Return 1 above zero, -1 below, 0 if the interval includes zero; None if it is unknown."""
    if not (math.isfinite(interval.low) and math.isfinite(interval.high)):
        return None
    return (interval.low > 0.0) - (interval.high < 0.0)


def _by(figures: HeldOutFigures, lead: Interval) -> str:
    """Return the lead with its interval; empty if it is unknown."""
    if _sign(lead) is None:
        return ""
    scale, unit, digits = (100.0, " points", 1) if figures.measure == "accuracy" else (1.0, "", 2)
    value, low, high = (f"{scale * end:+z.{digits}f}" for end in (lead.value, lead.low, lead.high))
    return f": {value}{unit} ({low} to {high})"
