"""Every record that travels through a run, in the order the walk meets them.

All are frozen: a stage takes records and returns new ones, never edits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Literal

from rocketeval.hashing import content_hash
from rocketeval.precision import same_precision

__all__ = [
    "Answer",
    "Basis",
    "Checklist",
    "Failure",
    "Gold",
    "GradingTask",
    "Interval",
    "JudgeFingerprint",
    "Judgment",
    "Label",
    "Query",
    "Rating",
    "Response",
    "Status",
    "Turn",
    "Usage",
    "Vote",
    "Winner",
]


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a conversation."""

    role: str
    """Who speaks: `user`, `assistant` or `system`."""
    content: str
    """What is said."""


@dataclass(frozen=True, slots=True)
class Query:
    """What every candidate is asked.

    >>> Query(id="capital", text="What is the capital of France?").content_hash.hex()[:8]
    '12c8d1c7'
    """

    id: str
    """Unique name within the benchmark."""
    text: str
    """The current user message."""
    history: tuple[Turn, ...] = ()
    """The conversation before it, the same for every candidate."""
    reference: str | None = None
    """A reference response, shown to the author only."""
    category: str | None = None
    """The kind of query, shown in the report."""
    cluster: str | None = None
    """Queries of one cluster depend on each other, such as the turns of one conversation: they are
    resampled together and never parted by cross-validation. Its own cluster when absent."""

    @property
    def content_hash(self) -> bytes:
        """Hash of what a judge sees of this query (not its id)."""
        return content_hash("query", self.text, _plain(self.history))


@dataclass(frozen=True, slots=True)
class Response:
    """What one candidate said to one query."""

    query_id: str
    """The query it answers."""
    candidate: str
    """The model (or prompt, or version) under test."""
    text: str
    """The response itself: untrusted text."""
    history: tuple[Turn, ...] | None = None
    """The conversation this candidate really had; overrides the query's history."""

    @property
    def content_hash(self) -> bytes:
        """Hash of what a judge sees of this response (not who wrote it)."""
        own = None if self.history is None else _plain(self.history)
        return content_hash("response", self.text, own)


@dataclass(frozen=True, slots=True)
class Checklist:
    """The yes/no items that decide how good a response to one query is."""

    query_id: str
    """The query it belongs to."""
    items: tuple[str, ...]
    """Yes/no questions; yes is always the better answer."""
    author: str = "imported"
    """Who wrote it."""
    groups: tuple[str, ...] | None = None
    """What each item belongs to, such as a sub-dimension; None without groups."""
    about: str | None = None
    """What the items are about, such as the definition of a dimension; for a judge who sees all of
    them at once."""

    @property
    def content_hash(self) -> bytes:
        """Hash of the items in their order, and of their groups and what they are about, if any."""
        grouped = () if self.groups is None else (list(self.groups),)
        told = () if self.about is None else ({"about": self.about},)
        return content_hash("checklist", list(self.items), *grouped, *told)


@dataclass(frozen=True, slots=True)
class Label:
    """A gold score given to one response by a labeler."""

    query_id: str
    candidate: str
    value: float
    """The score, on the label scale (usually 1-10)."""
    labeler: str = "human"
    """Who gave it: a person or a strong LLM."""


Winner = Literal["a", "b", "tie"]


@dataclass(frozen=True, slots=True)
class Vote:
    """A gold preference between two candidates on one query."""

    query_id: str
    candidate_a: str
    candidate_b: str
    winner: Winner
    voter: str = "human"
    """Who voted."""


@dataclass(frozen=True, slots=True)
class Rating:
    """A reference rating of a candidate from elsewhere, such as an arena Elo."""

    candidate: str
    value: float


@dataclass(frozen=True, slots=True)
class Gold:
    """What people, strong LLMs and arenas say about the same responses and candidates."""

    labels: Sequence[Label] = ()
    votes: Sequence[Vote] = ()
    ratings: Sequence[Rating] = ()
    clusters: Mapping[str, str] = field(default_factory=dict)
    """The cluster of queries that depend on others, by query id."""

    def cluster(self, query_id: str) -> str:
        """Return the cluster of a query, which is its own id if it has none."""
        return self.clusters.get(query_id, query_id)


class Status(StrEnum):
    """Why an answer has, or has not, a probability."""

    OK = "ok"
    """Both yes and no were listed."""
    TRUNCATED = "truncated"
    """The engine hid yes or no; the answer is the middle of a proven, narrow interval."""
    UNBOUNDED = "unbounded"
    """The engine hid yes or no, and the proven interval is too wide to use."""
    HIDDEN = "hidden"
    """Neither yes nor no was among the tokens the engine listed."""
    LOW_MASS = "low_mass"
    """The judge put too little probability on yes and no together."""
    NO_LOGPROBS = "no_logprobs"
    """The engine answered without log-probabilities."""
    THINKING = "thinking"
    """The judge began to think instead of answering."""
    UNSOUND = "unsound"
    """What the engine sent cannot be log-probabilities."""
    UNREADABLE = "unreadable"
    """The judge wrote a text that holds no answer."""
    ERROR = "error"
    """The call failed for good."""


NO_ANSWER = frozenset({Status.NO_LOGPROBS, Status.THINKING, Status.UNSOUND, Status.ERROR})
"""Statuses that say nothing about the item: once the engine is mended, it is worth asking again."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A judge's answer to one item."""

    status: Status
    p_yes: float | None = None
    """`p(Yes) / (p(Yes) + p(No))`; None unless the status is ok or truncated.

    Where a judge is asked for a grade, not for yes or no: its place from worst (0) to best (1)."""
    p_low: float | None = None
    """Proven lower bound of `p_yes` given what the engine listed."""
    p_high: float | None = None
    """Proven upper bound of `p_yes`."""
    mass: float | None = None
    """`p(Yes) + p(No)` among the tokens the engine listed."""
    logp_yes: float | None = None
    """Log of the summed yes variants; None when hidden."""
    logp_no: float | None = None
    """Log of the summed no variants; None when hidden."""
    text: str | None = None
    """What the judge wrote, or the grade it finds likeliest; None for yes and no."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What one judgment or one written text cost."""

    requests: int = 0
    """Calls made, retries included."""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    """Prompt tokens the engine says it took from its prefix cache."""
    completion_tokens: int = 0
    seconds: float = 0.0
    """Wall time from first call to last answer."""

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.requests + other.requests,
            self.prompt_tokens + other.prompt_tokens,
            self.cached_tokens + other.cached_tokens,
            self.completion_tokens + other.completion_tokens,
            self.seconds + other.seconds,
        )

    def __sub__(self, other: Usage) -> Usage:
        return Usage(
            self.requests - other.requests,
            self.prompt_tokens - other.prompt_tokens,
            self.cached_tokens - other.cached_tokens,
            self.completion_tokens - other.completion_tokens,
            self.seconds - other.seconds,
        )


@dataclass(frozen=True, slots=True)
class GradingTask:
    """The unit of work: one response with its whole checklist, rendered for a judge."""

    key: bytes
    """Identity of the judgment this task will become."""
    query_id: str
    candidate: str
    prefix: str
    """Everything the items share: instruction, history, query, response."""
    suffixes: tuple[str, ...]
    """One short ending per item, in checklist order; a single one where all items are asked at
    once."""
    neutralised: int = 0
    """How many forged delimiters or special tokens were disarmed in the untrusted text."""
    items: int | None = None
    """How many answers it will have; one per suffix when absent."""


@dataclass(frozen=True, slots=True)
class Judgment:
    """One response, all its items answered."""

    key: bytes
    """(judge fingerprint, query hash, response hash, checklist hash), hashed."""
    query_id: str
    candidate: str
    answers: tuple[Answer, ...]
    """In checklist order."""
    usage: Usage = field(default_factory=Usage)
    neutralised: int = 0
    """Forged delimiters or special tokens disarmed in this task's prompt."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A task that could not be finished; the next run tries it again."""

    key: bytes
    """Identity of the judgment it would have become."""
    query_id: str
    candidate: str
    reason: str
    """What went wrong, and at which item."""
    answers: tuple[Answer, ...]
    """What was answered before it failed, so that it is not paid for twice."""
    rejected: bool = False
    """True when asking again will not help. Known while grading; run files do not keep it."""


@dataclass(frozen=True, slots=True)
class JudgeFingerprint:
    """Everything that can change a probability; two judgments compare only if it is equal."""

    engine: str
    """Engine name in the registry."""
    model: str
    endpoint: str
    """Endpoint kind, such as `chat`."""
    version: str
    """The serving engine's own version, or `unknown`."""
    logprobs: str
    """Logprob mode, such as `top20`."""
    template: str
    """Hash of the grading template and of how its answers are read."""
    readout: str
    """Hash of the yes/no variants and the readout's limits."""
    precision: str = ""
    """How exactly the judge computes: as its server says, or as it was measured. Empty where
    `version` says it already, and in runs from before it was recorded."""
    measured: str = field(default="", compare=False)
    """What the judge listed after fixed questions, by which it is known again (`precision`)."""

    @property
    def digest(self) -> bytes:
        """16 bytes that stand for the whole fingerprint."""
        computed = (self.precision,) if self.precision else ()
        return content_hash(
            "judge",
            self.engine,
            self.model,
            self.endpoint,
            self.version,
            self.logprobs,
            self.template,
            self.readout,
            *computed,
        )

    @property
    def before_precision(self) -> JudgeFingerprint:
        """The fingerprint this judge had before precision was recorded."""
        return replace(self, precision="", measured="")

    @property
    def parts(self) -> dict[str, str]:
        """Its parts and its digest by name, for people; what is empty or only measured is not."""
        named = {part.name: str(getattr(self, part.name)) for part in fields(self) if part.compare}
        told = {name: value for name, value in named.items() if value or name != "precision"}
        return {**told, "digest": self.digest.hex()}

    def changes(self, other: JudgeFingerprint) -> dict[str, tuple[str, str]]:
        """Return each part in which `other` is another judge, as it is here and there.

        Two precisions are one where one of them is not known, or where both were measured and
        agree within the noise.
        """
        found = {
            part.name: (getattr(self, part.name), getattr(other, part.name))
            for part in fields(self)
            if part.compare and getattr(self, part.name) != getattr(other, part.name)
        }
        if "precision" in found and self._may_compute_as(other):
            del found["precision"]
        return found

    def known_as(self, known: Iterable[JudgeFingerprint]) -> JudgeFingerprint:
        """Return the first of the `known` judges that is this one, or else this one."""
        return next((one for one in known if not one.changes(self)), self)

    def _may_compute_as(self, other: JudgeFingerprint) -> bool:
        if not self.precision or not other.precision:
            return True
        both_measured = self.measured and other.measured
        return bool(both_measured) and same_precision(self.measured, other.measured)


class Basis(StrEnum):
    """What a score rests on: whether gold of the same response had a part in it."""

    UNSUPERVISED = "unsupervised"
    """The answers alone; no gold was learned from."""
    UNSEEN = "unseen"
    """A scorer that learned from other responses than this one."""
    OUT_OF_FOLD = "out_of_fold"
    """This response's gold was learned from, but not by the fit that scored it."""
    FITTED = "fitted"
    """The fit that scored it learned from its gold: worth nothing as evidence."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A figure with the interval that says how sure it is."""

    value: float
    low: float
    high: float


def _plain(turns: Sequence[Turn]) -> list[list[str]]:
    return [[turn.role, turn.content] for turn in turns]
