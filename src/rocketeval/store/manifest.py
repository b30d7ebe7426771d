"""The records in manifest.json and plan.json; facts of later versions are zero, empty or None."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import ClassVar, Literal

from rocketeval.config import PriceConfig
from rocketeval.prices import PricedUsage
from rocketeval.records import JudgeFingerprint, Usage
from rocketeval.store.codec import LAST, OPTIONAL
from rocketeval.text import count_of

TokensKnown = Literal["exact", "sampled", "estimated"]
"""How a plan counted its tokens, best first: all prompts, a sample, or none."""

MOST_PROMPTS = 4000
"""Prompts to tokenize; for a larger run, evenly spaced whole queries with about this many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimatedGrading:
    """The estimated grading of unwritten checklists, each with the items of a typical one."""

    checklists: int
    responses: int
    items_per_checklist: int
    bytes_per_item: int
    based_on: str
    """The origin of the typical checklist."""
    items: int
    requests: int
    prompt_tokens: int
    computed_tokens: int
    cost: float | None
    """Without any reuse; None without a price."""
    cost_with_reuse: float | None
    """With a perfect prefix cache; None without a price for cached tokens."""
    seconds: float | None
    """None if the judge's rate is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The estimate of a run before it starts."""

    FILE: ClassVar[str] = "plan"
    COMMAND: ClassVar[str] = "plan"
    SCHEMA: ClassVar[int] = 1

    created: str = field(default="", metadata=OPTIONAL)
    """Time of saving; empty before."""
    made_for: str
    """Hash of every judgment the run needs: its judge, queries, responses and checklists."""
    judge: str
    judge_digest: str | None
    """The judge's fingerprint; None if it was neither contacted nor recorded before."""
    in_flight: int | None
    """Responses in flight at once; None if the judge was not contacted."""
    queries: int
    candidates: int
    responses: int
    checklists_to_write: int
    without_checklist: int
    """Queries that will get no checklist."""
    responses_waiting: int
    """Responses whose checklist is not written yet: their cost is only in `estimated`."""
    tasks: int
    """Judgments the run needs; responses with the same text share one."""
    finished: int
    """Of these, already in the run."""
    from_cache: int
    """Of these, reused from the cache."""
    to_judge: int
    """Of these, left to judge."""
    items: int
    """Items to ask; the judge writes one token for each, unless the method lets it write."""
    requests: int
    """Requests the engine will send for them."""
    prompt_tokens: int
    computed_tokens: int
    """The minimum of these that any engine has to compute, with a perfect prefix cache."""
    tokens_known: TokensKnown
    prompts_counted: int
    """Prompts that were tokenized."""
    cost: float | None
    """Of judging without any reuse; None without a price."""
    cost_with_reuse: float | None
    """Of judging with a perfect prefix cache; None without a price for cached tokens."""
    author_cost: float | None
    """Upper bound of the cost of writing the checklists; None without a price."""
    currency: str
    price: PriceConfig | None = None
    """The price of the judge's tokens when the plan was made; None without a price."""
    author_price: PriceConfig | None = None
    items_per_second: float | None
    rate_from: str | None
    """The origin of `items_per_second`."""
    seconds: float | None
    """Of judging; None if the judge's rate is unknown."""
    estimated: EstimatedGrading | None = field(default=None, metadata=OPTIONAL)
    """Additional grading for checklists not written yet; None if it cannot be estimated."""
    notes: tuple[str, ...] = field(default=(), metadata=OPTIONAL)
    """Material and references that items use but that are missing."""


@dataclass(frozen=True, slots=True)
class BillColumn:
    """The use of a grading, planned or billed; None where unknown."""

    requests: int | None
    prompt_tokens: int | None
    computed_tokens: int | None
    completion_tokens: int | None
    cost: float | None
    seconds: float | None


@dataclass(frozen=True, slots=True)
class Bill:
    """The planned and the actual use of a grading."""

    plan: BillColumn
    bill: BillColumn
    tokens_known: TokensKnown
    times_least: float | None
    """Computed tokens as a multiple of the minimum."""
    currency: str
    repriced: bool = False
    """Whether the price changed since the plan, so that the plan's cost is left out."""


@dataclass(frozen=True, kw_only=True)
class StageFacts:
    """The manifest's facts of any stage."""

    finished: str = field(default="", metadata=OPTIONAL)
    """Time at which the stage ended."""
    seconds: float | None = field(default=None, metadata=LAST)

    @property
    def paid(self) -> PricedUsage:
        """Usage and cost of the models that the stage asked."""
        return PricedUsage()


@dataclass(frozen=True, kw_only=True)
class InputSummary:
    """Counts and content hashes of the inputs."""

    FILE: ClassVar[str] = "summary"
    COMMAND: ClassVar[str] = "run"
    SCHEMA: ClassVar[int] = 1

    queries: int = 0
    queries_hash: str = ""
    responses: int = 0
    candidates: int = 0
    empty_responses: int = 0
    response_characters: int = 0
    responses_hash: str = ""
    labels: int = 0
    labels_hash: str = ""
    votes: int = 0
    votes_hash: str = ""
    ratings: int = 0
    ratings_hash: str = ""
    neutralizing: str = field(default="", compare=False, metadata=LAST)
    """Hash of the rules that neutralize untrusted text; empty in runs of earlier versions."""
    changed_by_rules: int = field(default=0, compare=False, metadata=LAST)
    """Responses that these rules show differently than the first rules."""

    @property
    def all_responses(self) -> int:
        """Number of responses if every candidate answered every query."""
        return self.queries * self.candidates

    @property
    def absent_responses(self) -> int:
        """Number of responses missing from the full grid of queries and candidates."""
        return max(0, self.all_responses - self.responses)


@dataclass(frozen=True, kw_only=True)
class LoadFacts(InputSummary, StageFacts):
    """Facts of the load stage."""

    left_out_by_config: Mapping[str, int] = field(default_factory=dict)
    """By kind of record."""
    notes: tuple[str, ...] = field(default=(), metadata=OPTIONAL)
    """Unusual but accepted properties of the benchmark, as sentences."""


@dataclass(frozen=True, slots=True)
class RefusalCounts:
    """How many of an author's lists were refused at first, and why."""

    lists: int
    refused_at_first: int
    refusals: int
    mistakes: Mapping[str, int]
    """The most frequent first."""
    untold: int
    """Lists paid for by an earlier version, which did not record refusals."""


@dataclass(frozen=True, slots=True)
class SubDimensionCounts:
    """The origin and fate of a sub-dimension's questions."""

    dimension: str
    sub_dimension: str
    seeds: int
    diversified: int
    elaborated: int
    dropped: Mapping[str, int]
    """By reason."""
    kept: int


@dataclass(frozen=True, slots=True)
class Composition:
    """How a checklist that all queries share was composed."""

    counts: tuple[SubDimensionCounts, ...]
    steps: int
    reused_steps: int
    failed_steps: Mapping[str, str]
    """Reason by the step's name."""


@dataclass(frozen=True, kw_only=True)
class ChecklistFacts(StageFacts):
    """Facts of the checklist stage."""

    composition: Composition | None = field(default=None, metadata=OPTIONAL)
    refusals: RefusalCounts | None = field(default=None, metadata=OPTIONAL)
    unknown: Mapping[str, str | None] | None = field(default=None, metadata=OPTIONAL)
    """Ids in a checklist file that match no query, with the nearest query; not all of them."""
    unknown_count: int | None = field(default=None, metadata=OPTIONAL)
    """None in manifests of earlier versions, which name all of them."""
    checklists: int = 0
    items: int = 0
    reused: int = 0
    failures: Mapping[str, str] = field(default_factory=dict)
    """Reason by query."""
    unwritten: int = 0
    usage: PricedUsage = field(default=PricedUsage())
    usage_of_run: PricedUsage | None = field(default=None, metadata=OPTIONAL)
    notes: tuple[str, ...] = field(default=(), metadata=OPTIONAL)
    """Unusual but accepted properties of the checklists, as sentences."""
    not_used: tuple[str, ...] | None = field(default=None, metadata=OPTIONAL)
    """Sections of the config that an evaluator does not use."""

    @property
    def paid(self) -> PricedUsage:
        """Usage and cost of the author, including those of earlier calls."""
        return self.usage_of_run or self.usage


@dataclass(frozen=True, slots=True)
class RayFacts:
    """Facts of grading on a Ray cluster."""

    on: str
    asked: int
    asked_again: int
    duplicates: int
    torn: int


@dataclass(frozen=True, kw_only=True)
class EvaluatorFacts:
    """The evaluator that a run is judged with."""

    file: str
    hash: str
    task: str
    asking: str
    about_responses: int
    about_queries: int
    experts: int


@dataclass(frozen=True, kw_only=True)
class DecisionFacts(EvaluatorFacts):
    """The decisions of an evaluator."""

    decided: int
    undecided: int
    to_person: int
    """Decisions with a confidence below the threshold."""
    threshold: float | None
    clipped: int
    """Values outside the scale of scores."""
    learned_from_known: bool


@dataclass(frozen=True, slots=True)
class QuestionCounts:
    """The questions that an evaluator asks the judge."""

    all: int
    decided: int
    per_decision: float | None


@dataclass(frozen=True, kw_only=True)
class ContinuityFacts:
    """Whether the judge stayed the same: what its replies name, and items that were asked again."""

    model: str = ""
    """Model name in the replies; empty if they name none."""
    fingerprints: tuple[str, ...] = ()
    """The first system fingerprints in the replies, in order of appearance."""
    checks: int = 0
    """Passed checks of the run."""
    items: int = 0
    """Items that the run asked again."""
    largest_difference: float | None = None
    """Largest difference of two answers to one item, in log-odds; None without a check."""
    usage: Usage = field(default=Usage())
    """Of the items asked again."""
    unchecked: int = field(default=0, metadata=OPTIONAL)
    """Judgments since the last passed check, if the next one is due."""
    set_aside: int = field(default=0, metadata=OPTIONAL)
    """Judgments of interrupted commands by another judge: judged again."""

    def after(self, earlier: ContinuityFacts) -> ContinuityFacts:
        """Return the facts of a run: those of earlier commands, then those of this one."""
        largest = self.largest_difference, earlier.largest_difference
        known = [one for one in largest if one is not None]
        return ContinuityFacts(
            model=self.model or earlier.model,
            fingerprints=tuple(dict.fromkeys([*earlier.fingerprints, *self.fingerprints])),
            checks=earlier.checks + self.checks,
            items=earlier.items + self.items,
            largest_difference=max(known, default=None),
            usage=earlier.usage + self.usage,
            unchecked=self.unchecked,
            set_aside=earlier.set_aside + self.set_aside,
        )

    @property
    def in_words(self) -> str:
        """The result in one sentence, for the terminal and the report."""
        again = f"{count_of(self.items, 'item', 'items')} asked again"
        found = f"every reply names the model {self.model}; no item was asked again"
        if self.largest_difference is not None:
            largest = f"{self.largest_difference:.2g} in log-odds"
            found = f"unchanged: {again}, largest difference {largest}"
        if self.set_aside:
            found += f"; {self.set_aside:,} judgments of another judge set aside and made again"
        due = f"; the next command will check the last {self.unchecked:,} judgments (due)"
        return found + (due if self.unchecked else "")


@dataclass(frozen=True, kw_only=True)
class GradeFacts(StageFacts):
    """Facts of the grade stage."""

    tasks: int = 0
    """Judgments the run needs."""
    finished_earlier: int = 0
    from_cache: int = 0
    precision_unknown: int = field(default=0, metadata=OPTIONAL)
    """Of those from the cache, made before a judge's precision was recorded."""
    judged: int = 0
    failed: int = 0
    unfinished: int = 0
    responses_unfinished: int | None = field(default=None, metadata=OPTIONAL)
    """Identical responses counted one by one; None in manifests of earlier versions."""
    not_needed: int = field(default=0, metadata=OPTIONAL)
    """Responses that `until` was decided without, or that a cascade did not draw."""
    graded_ahead: int = field(default=0, metadata=OPTIONAL)
    """Judgments made while `until` waited for others, and not used."""
    responses_without_checklist: int = 0
    responses_without_opponent: int | None = field(default=None, metadata=OPTIONAL)
    """For an evaluator that decides pairs."""
    usage: PricedUsage = field(default=PricedUsage())
    """Of the last call."""
    retries: Mapping[str, int] | None = field(default=None, metadata=OPTIONAL)
    """Requests resent by the last call, by reason; None without any."""
    usage_of_ledger: PricedUsage | None = field(default=None, metadata=OPTIONAL)
    """Of all judgments in the run."""
    overhead: PricedUsage = field(default=PricedUsage(), metadata=OPTIONAL)
    """Part of `usage`: probes of the judge, and items asked again."""
    overhead_of_run: PricedUsage = field(default=PricedUsage(), metadata=OPTIONAL)
    """The same of all calls; not in `usage_of_ledger`."""
    unjudged_of_run: PricedUsage = field(default=PricedUsage(), metadata=OPTIONAL)
    """Of requests for responses that the same call did not judge; not in `usage_of_ledger`."""
    bill: Bill | None = None
    """None unless a plan was made for exactly this grading."""
    continuity: ContinuityFacts | None = field(default=None, metadata=OPTIONAL)
    """None if the engine's replies name no model and no item was asked again."""
    asked_as: str | None = field(default="", metadata=OPTIONAL)
    """Hash of the judge's settings in the config; None if the engine is not from the config."""
    rejected: int = field(default=0, metadata=OPTIONAL)
    """Responses that the judge's server rejects, such as those that are too long."""
    rejected_named: tuple[str, ...] = field(default=(), metadata=OPTIONAL)
    """The first of them, with reasons."""
    ray: RayFacts | None = field(default=None, metadata=OPTIONAL)
    evaluator: EvaluatorFacts | None = field(default=None, metadata=OPTIONAL)
    questions: QuestionCounts | None = field(default=None, metadata=OPTIONAL)
    sheets: Mapping[str, GradeFacts] | None = field(default=None, metadata=OPTIONAL)
    """Facts of each question set of an evaluator, by name."""

    @property
    def paid(self) -> PricedUsage:
        """Usage and cost of the run so far, including those of earlier calls."""
        known = self.usage_of_ledger
        return known + self.overhead_of_run + self.unjudged_of_run if known else self.usage


@dataclass(frozen=True, kw_only=True)
class LearnedFacts:
    """The data that a scorer learned from; all None for one that does not learn."""

    labels: int | None = field(default=None, metadata=OPTIONAL)
    votes: int | None = field(default=None, metadata=OPTIONAL)
    fitted: tuple[str, ...] | None = field(default=None, metadata=OPTIONAL)
    """Candidates whose reference data the scorer learned from."""
    held_out: tuple[str, ...] | None = field(default=None, metadata=OPTIONAL)
    queries_by_mean: int | None = field(default=None, metadata=OPTIONAL)
    """Queries with too little data to learn from."""
    queries_by_mean_in_a_fold: int | None = field(default=None, metadata=OPTIONAL)
    reasons: Mapping[str, int] | None = field(default=None, metadata=OPTIONAL)
    """The most frequent reasons to score a query by its mean."""


@dataclass(frozen=True, kw_only=True)
class ScoreFacts(StageFacts):
    """Facts of the score stage; `made_with` is a hash of the scorer's settings."""

    scores: int = 0
    without_score: int = 0
    answers: int = 0
    missing_answers: int = 0
    statuses: Mapping[str, int] = field(default_factory=dict)
    """Number of answers with each status."""
    scorer: str = ""
    basis: Mapping[str, int] = field(default_factory=dict)
    learned: LearnedFacts = field(default=LearnedFacts())
    evaluator: DecisionFacts | None = field(default=None, metadata=OPTIONAL)
    not_applicable: int = field(default=0, metadata=OPTIONAL)
    """Answers that are more likely "not applicable" than not."""
    made_with: str = field(default="", metadata=OPTIONAL)


@dataclass(frozen=True, kw_only=True)
class EvolveFacts(StageFacts):
    """Facts of the evolve stage."""

    rounds: int = 0
    path: str = ""


@dataclass(frozen=True, kw_only=True)
class Stages:
    """Facts of each stage; a stage that has not run has its defaults."""

    load: LoadFacts = field(default=LoadFacts(), metadata=OPTIONAL)
    checklist: ChecklistFacts = field(default=ChecklistFacts(), metadata=OPTIONAL)
    grade: GradeFacts = field(default=GradeFacts(), metadata=OPTIONAL)
    score: ScoreFacts = field(default=ScoreFacts(), metadata=OPTIONAL)
    rank: StageFacts = field(default=StageFacts(), metadata=OPTIONAL)
    audit: StageFacts = field(default=StageFacts(), metadata=OPTIONAL)
    explain: StageFacts = field(default=StageFacts(), metadata=OPTIONAL)
    report: StageFacts = field(default=StageFacts(), metadata=OPTIONAL)
    evolve: EvolveFacts = field(default=EvolveFacts(), metadata=OPTIONAL)

    def made(self) -> dict[str, StageFacts]:
        """Return the facts of the stages that have run, by name."""
        return {
            stage.name: facts
            for stage in fields(self)
            if (facts := getattr(self, stage.name)) != stage.default
        }


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """The provenance of a run."""

    FILE: ClassVar[str] = "manifest"
    COMMAND: ClassVar[str] = "run"
    SCHEMA: ClassVar[int] = 1

    run_id: str = field(default="", metadata=OPTIONAL)
    created: str = field(default="", metadata=OPTIONAL)
    versions: Mapping[str, str] = field(default_factory=dict)
    stages: Stages = field(default=Stages(), metadata=OPTIONAL)
    judge: JudgeFingerprint | None = field(default=None, metadata=OPTIONAL)
    """None before grading."""
    judge_digest: str = field(default="", metadata=OPTIONAL)
    checksums: Mapping[str, str] | None = field(default=None, metadata=OPTIONAL)
    """By folder: hash of all its checksums after the last stage; None in earlier versions."""
