"""What a report shows, as Python hands it to the page; `web/src/contract.ts` has the same names.

A report is a head (small, always there) and blocks (opened when they are needed). No figure is
computed after this point.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypedDict

from rocketeval.records import Interval, Status

Unit = Literal["number", "share", "rating", "score"]
Mood = Literal["good", "fair", "poor", "unknown"]
State = Literal["finished", "going", "paused", "damaged"]
Weights = Literal["equal", "learned", "none"]

ANSWER_STEPS = 60_000
"""An answer in the block of answers is its probability times this, rounded."""
NO_ANSWER = 65_535
"""A missing answer there."""

STATUS_TEXT: Mapping[str, str] = {
    Status.TRUNCATED: "the server told only one of yes and no, the other is estimated closely",
    Status.UNBOUNDED: "the server told only one of yes and no, too little to estimate the other",
    Status.HIDDEN: "the server told nothing about yes and no",
    Status.LOW_MASS: "the judge wanted to say something other than yes or no",
    Status.NO_LOGPROBS: "the server sent no probabilities",
    Status.THINKING: "the judge began to think aloud instead of answering",
    Status.UNSOUND: "the server sent numbers that cannot be probabilities",
    Status.UNREADABLE: "the judge wrote a text without an answer in it",
    Status.ERROR: "the call failed",
}
"""Every status but ok, in words a reader of the report understands."""

GRADE_STATUS_TEXT: Mapping[str, str] = {
    **STATUS_TEXT,
    Status.TRUNCATED: "the server told only some of the grades, the rest is estimated closely",
    Status.UNBOUNDED: "the server told only some of the grades, too little to estimate the rest",
    Status.HIDDEN: "the server told nothing about the grades",
    Status.LOW_MASS: "the judge wanted to say something other than a grade",
}
"""The same where the judge is asked for a grade."""

PROBABILITY, GRADE = "Probability of yes", "Grade, from worst (0) to best (1)"
"""What answers can be, as headings."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One line of the leaderboard."""

    name: str
    rank: int | None = None
    """None: not ranked, because it has no score at all."""
    rank_low: int | None = None
    """Best rank it may hold."""
    rank_high: int | None = None
    """Worst rank it may hold."""
    group: int | None = None
    """Neighbours with the same group cannot be told apart."""
    beats_next: bool | None = None
    """Clearly better than the next row; None for the last and the unranked."""
    rating: Interval | None = None
    score: Interval | None = None
    queries: int = 0
    """Queries it has a score for."""
    missing: int = 0
    """Queries it should have a score for and has not."""
    label: float | None = None
    """Mean human or labeler's label."""
    reference: float | None = None
    """A reference rating such as Elo."""
    quantiles: tuple[float, ...] | None = None
    """5, 25, 50, 75 and 95 % of its scores; None without any."""


@dataclass(frozen=True, slots=True)
class CategoryMeans:
    """Mean scores on the queries of one category."""

    name: str
    queries: int
    means: tuple[float | None, ...]
    """One a candidate, in the head's order."""


@dataclass(frozen=True, slots=True)
class GroupMeans:
    """Mean answers to the items of one group, such as a sub-dimension."""

    name: str
    dimension: str | None
    """What stands before the colon in its name; None without one."""
    whole: bool
    """Whether it is a dimension with all its groups."""
    queries: int
    means: tuple[Interval | None, ...]
    """One a candidate, of the first in the head's order."""
    missing: tuple[int, ...]
    """Answers that are missing, as many."""


@dataclass(frozen=True, slots=True)
class FigureBaseline:
    """What a figure must be seen beside."""

    name: str
    value: float
    kind: Literal["floor", "ceiling"]
    """A trivial rule, or people among themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustNumber:
    """One of the three numbers on the first screen that say how far to trust the judge."""

    title: str
    value: Interval | None
    """None when it could not be measured; `verdict` says why."""
    unit: Unit = "share"
    mood: Mood
    verdict: str
    beside: tuple[FigureBaseline, ...] = ()
    range: tuple[float, float] = (0.0, 1.0)
    """Of the scale it is drawn on."""
    how: str
    """What it is, for a stranger."""


@dataclass(frozen=True, slots=True)
class ReportFigure:
    """One audit figure, or the baseline it must beat."""

    name: str
    value: Interval | None
    """None when it could not be computed; `note` says why."""
    note: str = ""
    unit: Unit = "number"
    baseline: bool = False
    """True for what a trivial rule achieves."""


@dataclass(frozen=True, slots=True)
class FigureRow:
    """One line of a table of audit figures."""

    name: str
    cells: tuple[Interval | None, ...]
    """One per column."""
    note: str = ""


@dataclass(frozen=True, slots=True)
class FigureTable:
    """Audit figures side by side, such as agreement by category."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[FigureRow, ...]
    unit: Unit = "number"
    note: str = ""


@dataclass(frozen=True, slots=True)
class CurveBin:
    """Answers or responses with about the same score."""

    x: float
    y: Interval
    n: int


@dataclass(frozen=True, slots=True)
class ReportCurve:
    """What gold says of low, middling and high scores."""

    title: str
    x_label: str
    y_label: str
    diagonal: bool
    """Whether a perfectly calibrated judge would lie at y = x."""
    bins: tuple[CurveBin, ...]
    how: str


@dataclass(frozen=True, slots=True)
class StageCost:
    """What one stage took."""

    stage: str
    seconds: float | None
    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None
    currency: str = ""


@dataclass(frozen=True, slots=True)
class MissingNote:
    """Something that is missing, or unusual."""

    what: str
    count: int
    of: int | None = None
    """Out of how many; None where that says nothing."""
    lost: bool = True
    """False for what is unusual but was still used."""


@dataclass(frozen=True, slots=True)
class LostItem:
    """One item that costs a candidate points its neighbours get."""

    query: int
    """Its place in the queries block, from 0."""
    item: int
    """Its number in the checklist, from 1."""
    text: str
    p_yes: float
    neighbours_p_yes: float
    points: float
    """On the query's score."""


@dataclass(frozen=True, slots=True)
class Explained:
    """Where one candidate loses against its neighbours in the ranking."""

    candidate: int
    """Its place in the head."""
    points: Interval | None
    """Lost a query; negative if it gains; None when nothing could be compared."""
    losses: tuple[LostItem, ...]


@dataclass(frozen=True, slots=True)
class RunFile:
    """A file of the run's folder."""

    name: str
    what: str


@dataclass(frozen=True, slots=True)
class LiveProgress:
    """How far a run is."""

    state: Literal["finished", "going", "paused"]
    stage: str
    """The stage it is in; empty when it is finished."""
    done: int
    """Responses that are judged."""
    total: int
    """Responses that can be."""
    rate: float | None = None
    """Responses judged a second; None before it is known."""
    seconds_left: float | None = None
    version: str = ""
    """Changes whenever the page should be loaded again."""


@dataclass(frozen=True, slots=True)
class ReportHead:
    """Everything the first screen shows, and what the others need to be drawn."""

    run: str
    benchmark: str
    created: str
    finished: str
    made_with: str
    provisional: str
    """Why these figures are not final; empty when they are."""
    conclusion: str
    """Who is ahead, and how surely, in a sentence or two; empty while that can change."""
    islands: int
    """More than 1: so many sets of candidates share no query and must not be compared."""
    weights: Weights
    """How the scorer weighs the items of a checklist; "none" where it has no weight per item."""
    learned_from: str
    """What the scorer learned from: "labels", "votes" or nothing."""
    judge: str
    judge_details: tuple[tuple[str, str], ...]
    author: str
    method: str
    scorer: str
    scale: tuple[float, float]
    answers_are: str
    """What an answer is, as a heading."""
    yes_no: bool
    level: float
    tie_margin: float
    sizes: tuple[tuple[str, int], ...]
    losses: tuple[MissingNote, ...]
    nothing_lost: tuple[str, ...]
    """What was looked for and not found missing."""
    candidates: tuple[Candidate, ...]
    """Ranked ones first, best first; then those without any score."""
    separation: tuple[str, ...] = ()
    trust: tuple[TrustNumber, ...] = ()
    advice: tuple[str, ...] = ()
    figures: tuple[ReportFigure, ...] = ()
    tables: tuple[FigureTable, ...] = ()
    calibration: tuple[ReportCurve, ...] = ()
    costs: tuple[StageCost, ...] = ()
    cost_notes: tuple[tuple[str, str], ...] = ()
    wins: tuple[tuple[float | None, ...], ...] = ()
    """Share of shared queries the row wins, of the first candidates."""
    explained: tuple[Explained, ...] = ()
    notes: tuple[str, ...] = ()
    """How the figures were made."""
    files: tuple[RunFile, ...] = ()
    """Those that hold the rows behind the figures."""
    categories: tuple[CategoryMeans, ...] = ()
    """The largest ones."""
    groups: tuple[GroupMeans, ...] = ()
    """A dimension as a whole before its parts; empty where checklists have no groups."""
    groups_left_out: int = 0
    """Groups that are too many for the page."""
    evaluator: str = ""
    """The evolved evaluator that judged, in a sentence or two; empty without one."""
    files_at: str = ""
    """Where they lie, seen from the page."""
    live: LiveProgress | None = None
    index_at: str | None = None
    """How to leave for the list of runs; None in report.html."""
    blocks: Literal["embedded", "served"] = "served"


class QueriesBlock(TypedDict):
    """The lines of all queries, as columns."""

    id: list[str]
    category: list[str | None]
    snippet: list[str]
    mean: list[float | None]
    spread: list[float | None]
    missing: list[int]
    items: list[int]
    detail: list[int]
    """How much of each query the blocks hold."""


class ItemFigure(TypedDict):
    """What one item of a query adds."""

    weight: float
    learned: bool
    mean: float | None
    spread: float | None
    correlation: float | None
    influence: float | None
    verdict: str
    why: str


class ItemsBlock(TypedDict):
    """The items of one query."""

    texts: list[str]
    groups: list[str] | None
    figures: list[ItemFigure]


class CellsBlock(TypedDict):
    """Scores and answers of one query that the large blocks do not hold."""

    scores: list[float | None]
    answers: list[list[float | None]]


Turns = list[tuple[str, str]]
"""Roles and contents."""
ResponseTexts = tuple[list[str | None], list[tuple[int, Turns]]]
"""`texts` and `histories` of a query's responses."""

OddAnswer = tuple[int, int, float | None, float | None, str]
"""Candidate, item, bounds, and why it is not usual."""


class QueryBlock(TypedDict):
    """Everything about one query."""

    text: str
    history: Turns
    reference: str | None
    items: list[str]
    groups: list[str] | None
    figures: list[ItemFigure]
    odd: list[OddAnswer]
    disarmed: list[tuple[int, int]]
    labels: list[tuple[int, float]]
    texts: list[str | None] | None
    histories: list[tuple[int, Turns]]
    cells: CellsBlock | None


class LabelsBlock(TypedDict):
    """Labeled responses that have a score, as columns."""

    query: list[int]
    candidate: list[int]
    score: list[float]
    label: list[float]
    left_out: int


class PairsBlock(TypedDict):
    """Comparisons of every two of the first candidates, as columns."""

    first: int
    effect: list[float | None]
    low: list[float | None]
    high: list[float | None]
    p_value: list[float | None]
    wins: list[int]
    ties: list[int]
    losses: list[int]
    verdict: list[str]
    how: str


@dataclass(frozen=True, slots=True)
class RankedLine:
    """A candidate of a run in the list of runs."""

    name: str
    rating: Interval | None
    score: Interval | None


@dataclass(frozen=True, slots=True)
class RunLine:
    """One run in the list of runs."""

    name: str
    at: str
    """Where its page lies, seen from the list."""
    benchmark: str = ""
    created: str = ""
    state: State = "paused"
    why: str = ""
    """Words for a run that cannot be shown."""
    judge: str = ""
    method: str = ""
    scorer: str = ""
    queries: int = 0
    candidates: int = 0
    done: int = 0
    total: int = 0
    seconds: float | None = None
    prompt_tokens: int = 0
    cost: float | None = None
    currency: str = ""
    trust: TrustNumber | None = None
    ranking: tuple[RankedLine, ...] = ()
    """Best first."""


@dataclass(frozen=True, slots=True)
class RunsHead:
    """The list of runs."""

    folder: str
    made_with: str
    version: str
    runs: tuple[RunLine, ...]
