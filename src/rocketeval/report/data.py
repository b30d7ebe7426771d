"""What a report shows, as the pipeline hands it over: no figure is computed after this point."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from rocketeval.records import Interval, Status, Turn

Unit = Literal["number", "share"]

SIZES = frozenset(
    {
        "queries",
        "candidates",
        "responses",
        "checklists",
        "items",
        "judgments",
        "answers",
        "labels",
        "votes",
        "ok",
        "empty responses",
    }
)
"""Counts that only say how big the run was; every other count names a loss and is shown loudly."""

STATUS_TEXT: Mapping[str, str] = {
    Status.TRUNCATED: "yes or no hidden, bounds narrow",
    Status.UNBOUNDED: "yes or no hidden, bounds too wide",
    Status.HIDDEN: "yes and no hidden",
    Status.LOW_MASS: "too little mass on yes and no",
    Status.NO_LOGPROBS: "no log-probabilities",
    Status.THINKING: "the judge began to think",
    Status.UNSOUND: "no real log-probabilities",
    Status.UNREADABLE: "no answer in what the judge wrote",
    Status.ERROR: "call failed",
}
"""Every status but ok, in words a reader of the report understands."""

PROBABILITY, GRADE = "Probability of yes", "Grade, from worst (0) to best (1)"
"""What answers can be, as headings."""


@dataclass(frozen=True, slots=True)
class ReportAnswer:
    """One item's answer."""

    p_yes: float | None
    """None when the answer is missing; `status` says why."""
    low: float | None
    """Proven lower bound of `p_yes`."""
    high: float | None
    """Proven upper bound of `p_yes`."""
    status: str
    """A value of `records.Status`."""


@dataclass(frozen=True, slots=True)
class ReportResponse:
    """One candidate's response to a query, judged."""

    candidate: str
    text: str
    """The response itself: untrusted text."""
    history: tuple[Turn, ...] | None
    """The conversation this candidate really had; None means the query's."""
    score: float | None
    """On the report's scale; None when no score could be given."""
    answers: tuple[ReportAnswer, ...]
    """In checklist order; empty when the response was not judged."""
    neutralised: int = 0
    """Forged delimiters or special tokens disarmed before the judge saw it."""


@dataclass(frozen=True, slots=True)
class ReportItem:
    """What one item adds to its query's scores."""

    weight: float
    learned: bool
    """Whether a scorer learned the weight; otherwise it is the same for all items."""
    mean: float | None
    """Mean probability of yes; None without answers."""
    spread: float | None
    """Standard deviation over the responses."""
    correlation: float | None
    """With the scores; None where either does not vary."""
    dead: str | None
    """Why it tells nobody apart; None if it does."""


@dataclass(frozen=True, slots=True)
class ReportQuery:
    """One query with its checklist and every response to it."""

    id: str
    text: str
    history: tuple[Turn, ...]
    reference: str | None
    category: str | None
    items: tuple[str, ...]
    """Empty when the query has no checklist."""
    responses: tuple[ReportResponse, ...]
    figures: tuple[ReportItem, ...] = ()
    """One per item, over all responses; empty when they were not computed."""


@dataclass(frozen=True, slots=True)
class ReportRow:
    """One line of the leaderboard."""

    candidate: str
    rank: int
    rank_low: int
    """Best rank the candidate may hold."""
    rank_high: int
    """Worst rank the candidate may hold."""
    group: str | int
    """Neighbours with the same group cannot be told apart."""
    rating: Interval | None
    mean_score: Interval | None
    queries: int
    """Queries the candidate should have a score for."""
    missing: int
    """How many of them have none."""


@dataclass(frozen=True, slots=True)
class ReportWins:
    """Who wins against whom."""

    candidates: tuple[str, ...]
    """Best first."""
    shares: tuple[tuple[float | None, ...], ...]
    """Row's share of wins over column; None where two never meet, and on the diagonal."""
    left_out: int = 0
    """Candidates further down the ranking."""


@dataclass(frozen=True, slots=True)
class ReportLoss:
    """One item that costs a candidate points its neighbours get."""

    query_id: str
    item: int
    """Its number in the checklist, from 1."""
    text: str
    p_yes: float
    neighbours_p_yes: float
    points: float
    """On the query's score."""


@dataclass(frozen=True, slots=True)
class ReportExplained:
    """Where one candidate loses against its neighbours in the ranking."""

    candidate: str
    place: int
    """Row of the leaderboard, from 1."""
    points: Interval | None
    """Lost a query; negative if it gains; None when nothing could be compared."""
    losses: tuple[ReportLoss, ...]
    """Largest first."""


@dataclass(frozen=True, slots=True)
class ReportFigure:
    """One audit figure, or the baseline it must beat."""

    name: str
    value: Interval | None
    """None when it could not be computed; `note` says why."""
    note: str = ""
    unit: Unit = "number"
    """`share` shows 0.594 as 59.4 %."""
    baseline: bool = False
    """True for what a trivial rule achieves."""


@dataclass(frozen=True, slots=True)
class ReportTableRow:
    """One line of a table of audit figures."""

    name: str
    cells: tuple[Interval | None, ...]
    """One per column."""
    note: str = ""


@dataclass(frozen=True, slots=True)
class ReportTable:
    """Audit figures side by side, such as agreement by category."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[ReportTableRow, ...]
    unit: Unit = "number"
    note: str = ""


@dataclass(frozen=True, slots=True)
class ReportData:
    """Everything one report shows."""

    run_name: str
    judge: str
    judge_details: Mapping[str, str]
    """The judge's fingerprint, field by field."""
    author: str
    """Who wrote the checklists."""
    rows: tuple[ReportRow, ...]
    """Best first."""
    scale: tuple[float, float]
    """Lowest and highest possible score."""
    queries: tuple[ReportQuery, ...]
    """Those shown in the drill-down."""
    queries_omitted: int = 0
    """Queries left out of the drill-down to keep the file small."""
    separation: tuple[str, ...] = ()
    """Which candidates cannot be told apart, in sentences."""
    wins: ReportWins | None = None
    """None when there are too many candidates."""
    explained: tuple[ReportExplained, ...] = ()
    """By place in the ranking; empty when nothing was explained."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """How much there was, and how much of it is missing; see `SIZES`."""
    agreement: tuple[ReportFigure, ...] = ()
    """Audit figures, each beside its baselines."""
    agreement_tables: tuple[ReportTable, ...] = ()
    """Audit figures by category, level and tie margin."""
    advice: tuple[str, ...] = ()
    """What the audit means, in sentences."""
    answers: str = PROBABILITY
    """What answers are, as a heading."""
    methods: tuple[str, ...] = ()
    """Footnotes: how intervals, ratings and groups were made."""
    cost: Mapping[str, str] = field(default_factory=dict)
    """Tokens, requests, seconds, money: already worded."""
    created_with: str = "RocketEval"
