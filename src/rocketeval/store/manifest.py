"""The records of a run's own bookkeeping: manifest.json and plan.json.

A fact that an earlier version did not write is read as zero or nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import ClassVar, Literal

from rocketeval.config import PriceConfig
from rocketeval.prices import PricedUsage
from rocketeval.records import JudgeFingerprint
from rocketeval.store.codec import LAST, OPTIONAL

TokensKnown = Literal["exact", "sampled", "estimated"]
"""How well a plan knows its tokens, the best first: all prompts counted, some, or none."""


MOST_PROMPTS = 4000
"""Prompts that are tokenised; of a larger run, whole queries, evenly spaced, with about so many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimatedGrading:
    """What judging takes whose checklists are not written yet; every figure is a guess.

    It is made as if each of them had the items of a typical checklist.
    """

    checklists: int
    responses: int
    items_per_checklist: int
    bytes_per_item: int
    based_on: str
    """Where the typical checklist comes from."""
    items: int
    requests: int
    prompt_tokens: int
    computed_tokens: int
    cost: float | None
    """Without any reuse; None without a price."""
    cost_with_reuse: float | None
    """With a perfect prefix cache; None without a price for cached tokens."""
    seconds: float | None
    """None when it is not known how fast the judge is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The size of a run before it starts."""

    FILE: ClassVar[str] = "plan"
    COMMAND: ClassVar[str] = "plan"
    SCHEMA: ClassVar[int] = 1

    created: str = field(default="", metadata=OPTIONAL)
    """When it was saved; empty before."""
    made_for: str
    """Hash of every judgment the run needs: of its judge, queries, responses and checklists."""
    judge: str
    judge_digest: str | None
    """The judge's fingerprint; None when it was not contacted and is not known from before."""
    in_flight: int | None
    """Responses in flight at once; None when the judge was not contacted."""
    queries: int
    candidates: int
    responses: int
    checklists_to_write: int
    without_checklist: int
    """Queries that no author will give a checklist."""
    responses_waiting: int
    """Responses whose checklist is not written yet: what they will cost is not known, and in no
    figure but those of `estimated`."""
    tasks: int
    """Judgments the run needs; responses with the same text share one."""
    finished: int
    """Of these, in the run already."""
    from_cache: int
    """Of these, paid for by another run."""
    to_judge: int
    """Of these, left."""
    items: int
    """Items to ask; each makes the judge write one token, unless the method lets it write."""
    requests: int
    """Calls the engine will make for them."""
    prompt_tokens: int
    computed_tokens: int
    """The least that any engine has to compute of them, with a perfect prefix cache."""
    tokens_known: TokensKnown
    prompts_counted: int
    """Prompts that were looked at token by token."""
    cost: float | None
    """Of judging without any reuse; None without a price."""
    cost_with_reuse: float | None
    """Of judging with a perfect prefix cache; None without a price for cached tokens."""
    author_cost: float | None
    """The most that writing the checklists can cost; None without a price."""
    currency: str
    price: PriceConfig | None = None
    """What the judge's tokens cost when the plan was made; None without a price."""
    author_price: PriceConfig | None = None
    items_per_second: float | None
    rate_from: str | None
    """Who says how fast the judge is."""
    seconds: float | None
    """Of judging; None when it is not known how fast the judge is."""
    estimated: EstimatedGrading | None = field(default=None, metadata=OPTIONAL)
    """What comes on top for checklists that are still to be written; None where there are none, or
    where nobody can guess how long they will be."""


@dataclass(frozen=True, slots=True)
class BillColumn:
    """What judging takes, as planned or as billed; None where nobody told."""

    requests: int | None
    prompt_tokens: int | None
    computed_tokens: int | None
    completion_tokens: int | None
    cost: float | None
    seconds: float | None


@dataclass(frozen=True, slots=True)
class Bill:
    """What a grading was planned to use, and what it used."""

    plan: BillColumn
    bill: BillColumn
    tokens_known: TokensKnown
    times_least: float | None
    """Computed tokens as a multiple of the least possible."""
    currency: str
    repriced: bool = False
    """Whether the plan was made at another price; its cost is left out then."""


@dataclass(frozen=True, kw_only=True)
class StageFacts:
    """What the manifest says of any stage."""

    finished: str = field(default="", metadata=OPTIONAL)
    """When it ended."""
    seconds: float | None = field(default=None, metadata=LAST)

    @property
    def paid(self) -> PricedUsage:
        """What the models that the stage asked have cost."""
        return PricedUsage()


@dataclass(frozen=True, kw_only=True)
class InputSummary:
    """How much the inputs hold, and content hashes of all of it."""

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

    @property
    def all_responses(self) -> int:
        """How many responses there were if every candidate answered every query."""
        return self.queries * self.candidates

    @property
    def absent_responses(self) -> int:
        """How many responses the benchmark lacks, of one for each query and candidate.

        >>> InputSummary(queries=3, candidates=2, responses=5).absent_responses
        1
        """
        return max(0, self.all_responses - self.responses)


@dataclass(frozen=True, kw_only=True)
class LoadFacts(InputSummary, StageFacts):
    """What the load stage found in the benchmark."""

    left_out_by_config: Mapping[str, int] = field(default_factory=dict)
    """By kind of record."""
    notes: tuple[str, ...] = field(default=(), metadata=OPTIONAL)
    """What is odd in the benchmark and was not refused, in words."""


@dataclass(frozen=True, slots=True)
class RefusalCounts:
    """How many of an author's lists were refused at first, and why."""

    lists: int
    refused_at_first: int
    refusals: int
    mistakes: Mapping[str, int]
    """The most frequent first."""
    untold: int
    """Lists paid for by an earlier version, which did not keep what was refused."""


@dataclass(frozen=True, slots=True)
class SubDimensionCounts:
    """Where the questions of a sub-dimension came from, and what became of them."""

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
    """What the checklist stage did."""

    composition: Composition | None = field(default=None, metadata=OPTIONAL)
    refusals: RefusalCounts | None = field(default=None, metadata=OPTIONAL)
    unknown: Mapping[str, str | None] | None = field(default=None, metadata=OPTIONAL)
    """Ids in a checklist file that are no queries, with the nearest query; not all of them."""
    unknown_count: int | None = field(default=None, metadata=OPTIONAL)
    """None in manifests of earlier versions, which name all of them."""
    checklists: int = 0
    items: int = 0
    reused: int = 0
    failures: Mapping[str, str] = field(default_factory=dict)
    """Reason by query."""
    unwritten: int = 0
    usage: PricedUsage = field(default=PricedUsage())
    notes: tuple[str, ...] = field(default=(), metadata=OPTIONAL)
    """What is odd in the checklists and was not refused, in words."""
    not_used: tuple[str, ...] | None = field(default=None, metadata=OPTIONAL)
    """Sections of the config that an evaluator has no use for."""

    @property
    def paid(self) -> PricedUsage:
        """What the author has cost."""
        return self.usage


@dataclass(frozen=True, slots=True)
class RayFacts:
    """What a Ray cluster did."""

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
    """What an evaluator decided."""

    decided: int
    undecided: int
    to_person: int
    """Decisions with a confidence below the threshold."""
    threshold: float | None
    clipped: int
    """Values outside of the scale of scores."""
    learned_from_known: bool


@dataclass(frozen=True, slots=True)
class QuestionCounts:
    """What an evaluator asks the judge."""

    all: int
    decided: int
    per_decision: float | None


@dataclass(frozen=True, kw_only=True)
class GradeFacts(StageFacts):
    """What the grade stage did."""

    tasks: int = 0
    """Judgments the run needs."""
    finished_earlier: int = 0
    from_cache: int = 0
    precision_unknown: int = field(default=0, metadata=OPTIONAL)
    """Of those from the cache, how many were made before a judge's precision was recorded."""
    judged: int = 0
    failed: int = 0
    unfinished: int = 0
    responses_unfinished: int | None = field(default=None, metadata=OPTIONAL)
    """Equal responses counted one by one; None in manifests of earlier versions."""
    responses_without_checklist: int = 0
    responses_without_opponent: int | None = field(default=None, metadata=OPTIONAL)
    """Of an evaluator that decides pairs."""
    usage: PricedUsage = field(default=PricedUsage())
    """Of the last call."""
    retries: Mapping[str, int] | None = field(default=None, metadata=OPTIONAL)
    """Requests sent again by the last call, by what happened to them; None without any."""
    usage_of_ledger: PricedUsage | None = field(default=None, metadata=OPTIONAL)
    """Of all judgments in the run."""
    bill: Bill | None = None
    """None unless a plan was made for exactly this grading."""
    asked_as: str | None = field(default="", metadata=OPTIONAL)
    """Hash of all that the config says about the judge; None if it was not made from the config."""
    rejected: int = field(default=0, metadata=OPTIONAL)
    """Responses that the judge's server will not answer, such as those that are too long."""
    rejected_named: tuple[str, ...] = field(default=(), metadata=OPTIONAL)
    """The first of them, and why."""
    ray: RayFacts | None = field(default=None, metadata=OPTIONAL)
    evaluator: EvaluatorFacts | None = field(default=None, metadata=OPTIONAL)
    questions: QuestionCounts | None = field(default=None, metadata=OPTIONAL)
    sheets: Mapping[str, GradeFacts] | None = field(default=None, metadata=OPTIONAL)
    """Of each question set of an evaluator, by its name."""

    @property
    def paid(self) -> PricedUsage:
        """What all judgments of the run have cost, also those of an earlier call."""
        return self.usage_of_ledger or self.usage


@dataclass(frozen=True, kw_only=True)
class LearnedFacts:
    """What a scorer learned from; all None for one that does not learn."""

    labels: int | None = field(default=None, metadata=OPTIONAL)
    votes: int | None = field(default=None, metadata=OPTIONAL)
    fitted: tuple[str, ...] | None = field(default=None, metadata=OPTIONAL)
    """Candidates whose gold was learned from."""
    held_out: tuple[str, ...] | None = field(default=None, metadata=OPTIONAL)
    queries_by_mean: int | None = field(default=None, metadata=OPTIONAL)
    """Queries with too little to learn from."""
    queries_by_mean_in_a_fold: int | None = field(default=None, metadata=OPTIONAL)
    reasons: Mapping[str, int] | None = field(default=None, metadata=OPTIONAL)
    """The most frequent reasons to score a query by its mean."""


@dataclass(frozen=True, kw_only=True)
class ScoreFacts(StageFacts):
    """What the score stage did."""

    scores: int = 0
    without_score: int = 0
    answers: int = 0
    missing_answers: int = 0
    statuses: Mapping[str, int] = field(default_factory=dict)
    """How many answers have each status."""
    scorer: str = ""
    basis: Mapping[str, int] = field(default_factory=dict)
    learned: LearnedFacts = field(default=LearnedFacts())
    evaluator: DecisionFacts | None = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True, kw_only=True)
class EvolveFacts(StageFacts):
    """What the evolve stage did."""

    rounds: int = 0
    path: str = ""


@dataclass(frozen=True, kw_only=True)
class Stages:
    """What each stage did; a stage that was not run has the facts of its kind's defaults."""

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
        """Return the facts of the stages that were run, by name."""
        return {
            stage.name: facts
            for stage in fields(self)
            if (facts := getattr(self, stage.name)) != stage.default
        }


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """Who made a run from what, and how."""

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
