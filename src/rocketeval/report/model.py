"""The data contract between Python and the report page, mirrored in `web/src/contract.ts`.

A report consists of a head (small, always present) and blocks (loaded on demand). The page computes
no statistics.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NotRequired, TypedDict

from rocketeval.records import Interval, Status
from rocketeval.report.slices import SliceField, SliceMeans

Unit = Literal["number", "share", "rating", "score"]
Mood = Literal["good", "fair", "poor", "unknown"]
State = Literal["finished", "going", "paused", "damaged"]
Weights = Literal["equal", "learned", "none"]

ANSWER_STEPS = 60_000
"""The answers block stores a probability times this, rounded."""
NO_ANSWER = 65_535
"""Code for an unanswered item in the answers block."""

STATUS_TEXT: Mapping[str, str] = {
    Status.TRUNCATED: "the server returned a probability for only one of yes and no; the other "
    "is a tight estimate",
    Status.SAMPLED: "the judge wrote several answers; the share of yes is an estimate",
    Status.UNBOUNDED: "the server returned a probability for only one of yes and no; the other "
    "cannot be estimated",
    Status.HIDDEN: "the server returned no probability for yes or no",
    Status.LOW_MASS: "the judge gave most probability to tokens other than yes and no",
    Status.NO_LOGPROBS: "the server returned no probabilities",
    Status.THINKING: "the judge started to think aloud instead of answering",
    Status.UNSOUND: "the server returned invalid probabilities",
    Status.UNREADABLE: "the judge wrote text without an answer",
    Status.CHECK_FAILED: "the code check raised an error or could not decide",
    Status.ERROR: "the request failed",
}
"""Explanation of every status except ok, for readers of the report."""

GRADE_STATUS_TEXT: Mapping[str, str] = {
    **STATUS_TEXT,
    Status.TRUNCATED: "the server returned probabilities for only some grades; the others are "
    "tight estimates",
    Status.SAMPLED: "the judge wrote several grades; their mean is an estimate",
    Status.UNBOUNDED: "the server returned probabilities for only some grades; the others cannot "
    "be estimated",
    Status.HIDDEN: "the server returned no probability for any grade",
    Status.LOW_MASS: "the judge gave most probability to tokens other than grades",
}
"""The same for judges that give grades."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One row of the leaderboard."""

    name: str
    rank: int | None = None
    """None if the candidate has no score."""
    rank_low: int | None = None
    """Best rank in its interval."""
    rank_high: int | None = None
    """Worst rank in its interval."""
    group: int | None = None
    """Candidates of one group are tied with the first one in it."""
    beats_next: bool | None = None
    """Significantly better than the next row; None for the last and for unranked rows."""
    rating: Interval | None = None
    score: Interval | None = None
    queries: int = 0
    """Number of queries with a score."""
    missing: int = 0
    """Number of queries without a score."""
    label: float | None = None
    """Mean label."""
    reference: float | None = None
    """Reference rating, such as Elo."""
    quantiles: tuple[float, ...] | None = None
    """5%, 25%, 50%, 75% and 95% quantiles of its scores; None without scores."""


@dataclass(frozen=True, slots=True)
class GroupMeans:
    """Mean answers to the items of one group, such as a sub-dimension."""

    name: str
    dimension: str | None
    """The part of its name before the colon; None without a colon."""
    whole: bool
    """Whether it is a whole dimension, with all its groups."""
    queries: int
    means: tuple[Interval | None, ...]
    """One per candidate, for the first candidates of the head."""
    missing: tuple[int, ...]
    """Number of unanswered items, one per candidate."""


@dataclass(frozen=True, slots=True)
class FigureBaseline:
    """A value to compare a figure with."""

    name: str
    value: float
    kind: Literal["floor", "people", "bound"]
    """A baseline, human-human agreement, or the best possible prediction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustNumber:
    """One of the three trust figures on the first screen."""

    title: str
    value: Interval | None
    """None if not measured; `verdict` gives the reason."""
    unit: Unit = "share"
    mood: Mood
    verdict: str
    beside: tuple[FigureBaseline, ...] = ()
    range: tuple[float, float] = (0.0, 1.0)
    """Ends of the scale it is drawn on."""
    how: str
    """Definition for readers new to it."""
    question: Literal["judge", "order", "missing"] = "judge"
    """What it answers: is the judge right, is the order certain, is anything missing."""


@dataclass(frozen=True, slots=True)
class ReportFigure:
    """One audit figure or one of its baselines."""

    name: str
    value: Interval | None
    """None if it could not be computed; `note` gives the reason."""
    note: str = ""
    unit: Unit = "number"
    baseline: bool = False
    """Whether it is a baseline."""


@dataclass(frozen=True, slots=True)
class FigureRow:
    """One row of a table of audit figures."""

    name: str
    cells: tuple[Interval | None, ...]
    """One per column."""
    note: str = ""


@dataclass(frozen=True, slots=True)
class FigureTable:
    """A table of audit figures, such as agreement by category."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[FigureRow, ...]
    unit: Unit = "number"
    note: str = ""


@dataclass(frozen=True, slots=True)
class CurveBin:
    """One bin of a curve: answers or responses with similar values."""

    x: float
    y: Interval
    n: int


@dataclass(frozen=True, slots=True)
class ReportCurve:
    """A calibration curve: scores against reference data."""

    title: str
    x_label: str
    y_label: str
    diagonal: bool
    """Whether perfect calibration means y = x."""
    bins: tuple[CurveBin, ...]
    how: str


@dataclass(frozen=True, slots=True)
class StageCost:
    """Time and cost of one stage."""

    stage: str
    seconds: float | None
    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None
    currency: str = ""


@dataclass(frozen=True, slots=True)
class MissingNote:
    """A count of missing or unusual data."""

    what: str
    count: int
    of: int | None = None
    """The total that `count` is part of; None if not meaningful."""
    lost: bool = True
    """False for unusual data that was still used."""


@dataclass(frozen=True, slots=True)
class LostItem:
    """An item on which a candidate loses points to its neighbors in the ranking."""

    query: int
    """Index into the queries block, from 0."""
    item: int
    """Number in the checklist, from 1."""
    text: str
    p_yes: float
    neighbours_p_yes: float
    points: float
    """Points lost on the query's score."""


@dataclass(frozen=True, slots=True)
class Explained:
    """The items on which a candidate loses to its neighbors in the ranking."""

    candidate: int
    """Index into the candidates of the head."""
    points: Interval | None
    """Points lost per query; negative for a gain; None without a comparison."""
    losses: tuple[LostItem, ...]


@dataclass(frozen=True, slots=True)
class RunFile:
    """A file of the run directory."""

    name: str
    what: str


@dataclass(frozen=True, slots=True)
class LiveProgress:
    """Progress of a run."""

    state: Literal["finished", "going", "paused"]
    stage: str
    """Current stage; empty when finished."""
    done: int
    """Number of judged responses."""
    total: int
    """Number of responses to judge."""
    rate: float | None = None
    """Responses judged per second; None if not yet known."""
    seconds_left: float | None = None
    version: str = ""
    """Changes whenever the page should reload."""
    asks_judge: bool = False
    """Whether the page's server may ask the judge again; only in heads."""


@dataclass(frozen=True, slots=True)
class ReportHead:
    """All data of the first screen, and data shared by the other screens."""

    run: str
    benchmark: str
    created: str
    finished: str
    made_with: str
    provisional: str
    """Reason why the figures are not final; empty if they are final."""
    conclusion: str
    """The result of the ranking in one or two sentences; empty while provisional."""
    islands: int
    """Number of candidate sets that share no query; sets must not be compared."""
    weights: Weights
    """How the scorer weights items; "none" if it has no weights per item."""
    learned_from: str
    """Reference data the scorer learned from: "labels", "votes" or empty."""
    judge: str
    judge_details: tuple[tuple[str, str], ...]
    author: str
    method: str
    scorer: str
    score_is: str
    """A score in a few words."""
    scale: tuple[float, float]
    answers_are: str
    """Heading for answers."""
    yes_no: bool
    level: float
    rank_intervals: str
    """What the rank intervals promise, in one sentence."""
    tie_margin: float
    sizes: tuple[tuple[str, int], ...]
    losses: tuple[MissingNote, ...]
    nothing_lost: tuple[str, ...]
    """Checks that found nothing missing."""
    candidates: tuple[Candidate, ...]
    """Ranked candidates, best first; then candidates without a score."""
    answer_kinds: tuple[tuple[str, int], ...] = ()
    """Answers per kind of item; empty if all are yes/no questions."""
    groups_are: str = ""
    """What the mean of an item group is."""
    separation: tuple[str, ...] = ()
    trust: tuple[TrustNumber, ...] = ()
    advice: tuple[str, ...] = ()
    figures: tuple[ReportFigure, ...] = ()
    tables: tuple[FigureTable, ...] = ()
    calibration: tuple[ReportCurve, ...] = ()
    costs: tuple[StageCost, ...] = ()
    cost_notes: tuple[tuple[str, str], ...] = ()
    wins: tuple[tuple[float | None, ...], ...] = ()
    """Share of common queries that the row wins, for the first candidates."""
    explained: tuple[Explained, ...] = ()
    notes: tuple[str, ...] = ()
    """Sentences on how the figures were computed."""
    files: tuple[RunFile, ...] = ()
    """Files with the data behind the figures."""
    slices: tuple[SliceMeans, ...] = ()
    """The largest slices of each field of the queries."""
    slice_notes: tuple[str, ...] = ()
    """How many slices each field has, and what the intervals promise; one sentence per field."""
    groups: tuple[GroupMeans, ...] = ()
    """Each whole dimension precedes its groups; empty if checklists have no groups."""
    groups_left_out: int = 0
    """Number of groups left out of the page."""
    evaluator: str = ""
    """Description of the evolved evaluator that judged; empty without one."""
    files_at: str = ""
    """Path prefix of the files, relative to the page."""
    live: LiveProgress | None = None
    index_at: str | None = None
    """Link to the list of runs; None in report.html."""
    blocks: Literal["embedded", "served", "folder"] = "served"
    labeler: str = ""
    """Name of the person whose labels the server collects; empty if it collects none."""


class QueriesBlock(TypedDict):
    """All queries, as columns."""

    id: list[str]
    slices: list[SliceField]
    snippet: list[str]
    mean: list[float | None]
    spread: list[float | None]
    missing: list[int]
    items: list[int]
    detail: list[int]
    """Detail level of each query."""


class ItemFigure(TypedDict):
    """Figures of one item over all responses to its query."""

    weight: float
    learned: bool
    mean: float | None
    spread: float | None
    correlation: float | None
    influence: float | None
    verdict: str
    why: str
    check: NotRequired[bool]


class ItemsBlock(TypedDict):
    """The items of one query."""

    texts: list[str]
    groups: list[str] | None
    figures: list[ItemFigure]


class CellsBlock(TypedDict):
    """Scores and answers of one query that is not in the large blocks."""

    scores: list[float | None]
    answers: list[list[float | None]]


Turns = list[tuple[str, str]]
"""Roles and contents."""
Passages = list[tuple[int, list[str]]]
"""Candidates with a context of their own, and its passages."""
ResponseTexts = tuple[list[str | None], list[tuple[int, Turns]], Passages]
"""`texts`, `histories` and `contexts` of a query's responses."""

OddAnswer = tuple[int, int, float | None, float | None, str]
"""Candidate, item, bounds, and the explanation."""


RubricAnswer = tuple[int, int, str, float | None]
"""Candidate, item, the answer in words, and the probability of "not applicable"."""


class RubricBlock(TypedDict):
    """What a query's answers mean if not all items are plain yes/no questions."""

    levels: list[list[str]]
    answers: list[RubricAnswer]


class QueryBlock(TypedDict):
    """All data of one query."""

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
    rubric: NotRequired[RubricBlock]
    context: NotRequired[list[str]]
    contexts: NotRequired[Passages]


class LabelsBlock(TypedDict):
    """Labeled responses with a score, as columns."""

    query: list[int]
    candidate: list[int]
    score: list[float]
    label: list[float]
    left_out: int


class PairsBlock(TypedDict):
    """Pairwise comparisons of the top candidates, as columns."""

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
    """One candidate of a run in the list of runs."""

    name: str
    rating: Interval | None
    score: Interval | None


@dataclass(frozen=True, slots=True)
class RunLine:
    """One run in the list of runs."""

    name: str
    at: str
    """Link to its page, relative to the list."""
    benchmark: str = ""
    created: str = ""
    state: State = "paused"
    why: str = ""
    """Reason why a run cannot be shown."""
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
    series: str = ""
    """Equal if judge, method, scorer, queries and candidates are: only such runs are joined."""
    ranking: tuple[RankedLine, ...] = ()
    """Best first."""


@dataclass(frozen=True, slots=True)
class RunsHead:
    """The list of runs."""

    folder: str
    made_with: str
    version: str
    runs: tuple[RunLine, ...]
