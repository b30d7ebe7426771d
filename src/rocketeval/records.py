"""The records of a run, in the order in which the stages use them.

All are frozen: a stage takes records and returns new ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from pathlib import PurePath
from typing import Literal

from rocketeval.hashing import content_hash
from rocketeval.items import AnswerLabels, CheckCall, Checklist
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
    "PendingCheck",
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
    """Speaker: `user`, `assistant` or `system`."""
    content: str
    """Text of the message."""


@dataclass(frozen=True, slots=True)
class Query:
    """A prompt that every candidate answers.

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
    """A reference response, shown to the author, and to the judge for items that use it."""
    category: str | None = None
    """The kind of query, shown in the report."""
    cluster: str | None = None
    """Queries of one cluster depend on each other, such as the turns of one conversation: they are
    resampled together and never parted by cross-validation. Its own cluster when absent."""
    system: str | None = None
    """The system prompt of the candidates, shown to the judge for items that use it."""
    context: tuple[str, ...] | None = None
    """Passages given to the candidates, shown to the judge for items that use them."""
    tags: tuple[str, ...] = ()
    """Free words; like `metadata` no part of any identity."""
    metadata: Mapping[str, object] = field(default_factory=dict)
    """Further fields of the query in its file, as JSON values."""

    @property
    def content_hash(self) -> bytes:
        """Hash of what a judge sees of this query for any item (not its id)."""
        return content_hash("query", self.text, _plain(self.history))

    def material_hash(self, uses: Sequence[str]) -> bytes:
        """Hash of the material that items use: some of `system`, `context` and `reference`."""
        shown = {name: getattr(self, name) for name in uses}
        return content_hash("material", {name: shown[name] for name in sorted(shown)})


@dataclass(frozen=True, slots=True)
class Response:
    """One candidate's response to one query."""

    query_id: str
    """The query it answers."""
    candidate: str
    """The model (or prompt, or version) under test."""
    text: str
    """The response itself: untrusted text."""
    history: tuple[Turn, ...] | None = None
    """The candidate's own conversation; overrides the query's history."""
    context: tuple[str, ...] | None = None
    """Passages given to this candidate; overrides the query's context."""

    @property
    def content_hash(self) -> bytes:
        """Hash of what a judge sees of this response for any item (not who wrote it)."""
        own = None if self.history is None else _plain(self.history)
        return content_hash("response", self.text, own)

    @property
    def hash_with_context(self) -> bytes:
        """Hash of what a judge sees of it if an item uses the context."""
        if self.context is None:
            return self.content_hash
        return content_hash("in context", self.content_hash.hex(), self.context)


@dataclass(frozen=True, slots=True)
class Label:
    """A labeler's reference score of one response."""

    query_id: str
    candidate: str
    value: float
    """The score, on the label scale (usually 1-10)."""
    labeler: str = "human"
    """The labeler: a person or a strong LLM."""


Winner = Literal["a", "b", "tie"]


@dataclass(frozen=True, slots=True)
class Vote:
    """A voter's preference between two candidates on one query."""

    query_id: str
    candidate_a: str
    candidate_b: str
    winner: Winner
    voter: str = "human"
    """Name of the voter."""


@dataclass(frozen=True, slots=True)
class Rating:
    """A candidate's reference rating from another source, such as an arena Elo."""

    candidate: str
    value: float


@dataclass(frozen=True, slots=True)
class Gold:
    """Reference data: labels, votes and ratings from people, strong LLMs or arenas."""

    labels: Sequence[Label] = ()
    votes: Sequence[Vote] = ()
    ratings: Sequence[Rating] = ()
    clusters: Mapping[str, str] = field(default_factory=dict)
    """The cluster of queries that depend on others, by query id."""

    def cluster(self, query_id: str) -> str:
        """Return the cluster of a query, which is its own id if it has none."""
        return self.clusters.get(query_id, query_id)


class Status(StrEnum):
    """Status of an answer: ok, or the reason why it has no exact probability."""

    OK = "ok"
    """Both yes and no were listed."""
    TRUNCATED = "truncated"
    """The engine hid yes or no; the answer is the middle of a proven, narrow interval."""
    SAMPLED = "sampled"
    """Estimated from written answers; the bounds are a 95% confidence interval."""
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
    CHECK_FAILED = "check_failed"
    """A code check raised an error, or could not decide."""
    ERROR = "error"
    """The request failed permanently, or a code check exceeded its limits."""


NO_ANSWER = frozenset({Status.NO_LOGPROBS, Status.THINKING, Status.UNSOUND, Status.ERROR})
"""Statuses of problems of an engine or a limit; after a change, the item can be asked again."""


ASKED_AGAIN: Mapping[Status, str] = {
    Status.NO_LOGPROBS: "sent no log-probabilities",
    Status.UNSOUND: "sent values that are not log-probabilities",
}
"""Statuses of faults of the moment, with what the server did. Such a reply is never an answer: the
item is asked again, and no judgment contains it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A judge's answer to one item."""

    status: Status
    p_yes: float | None = None
    """`p(Yes) / (p(Yes) + p(No))`; None unless the status is ok, truncated or sampled.

    For grades instead of yes or no: the position from worst (0) to best (1)."""
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
    """The judge's text, its most likely grade, or why a check failed; None for yes and no."""
    p_na: float | None = None
    """Probability of "not applicable" among the item's labels; None if that is no answer. Then
    `p_yes` is the value given that the item applies."""
    na_low: float | None = None
    """Proven lower bound of `p_na`."""
    na_high: float | None = None
    """Proven upper bound of `p_na`."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Usage of one judgment or one written text."""

    requests: int = 0
    """Number of requests, including retries."""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    """Prompt tokens that the engine reports as cached."""
    completion_tokens: int = 0
    seconds: float = 0.0
    """Wall time from the first request to the last answer."""

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

    def without_negatives(self) -> Usage:
        """Return the usage with zero instead of every negative count."""
        return Usage(
            max(0, self.requests),
            max(0, self.prompt_tokens),
            max(0, self.cached_tokens),
            max(0, self.completion_tokens),
            max(0.0, self.seconds),
        )


@dataclass(frozen=True, slots=True)
class PendingCheck:
    """A code check of one response, to be run."""

    call: CheckCall
    response: str
    reference: str | None = None


@dataclass(frozen=True, slots=True)
class GradingTask:
    """The unit of work: one response with its whole checklist, rendered for a judge."""

    key: bytes
    """Identity of the judgment this task will become."""
    query_id: str
    candidate: str
    prefix: str
    """The text common to all items: instruction, history, query, response."""
    suffixes: tuple[str, ...]
    """One short ending per item, in checklist order; a single one if all items are asked in one
    prompt."""
    neutralised: int = 0
    """Number of forged delimiters or special tokens neutralized in the untrusted text."""
    items: int | None = None
    """Number of answers; default: one per suffix."""
    labels: tuple[AnswerLabels | None, ...] | None = None
    """Labels of each item that differ from the judge's own; None if no item has any."""
    checks: Mapping[int, PendingCheck] = field(default_factory=dict)
    """Items that code decides, by position; their suffixes are empty and never asked."""
    cold: bool = False
    """Whether to ask without the server's prefix cache, if its state changes the answers."""

    def left(self, known: Iterable[int] = ()) -> list[int]:
        """Return the positions to ask the judge, in the order that shares the longest prefixes."""
        done = {*known, *self.checks}
        places = range(len(self.suffixes))
        waiting = [place for place in places if place not in done] if done else list(places)
        if self.labels is None:
            return waiting
        return sorted(waiting, key=lambda place: (self.suffixes[place], place))

    def labels_of(self, place: int) -> AnswerLabels | None:
        """Return the labels of an item; None if they are the judge's own."""
        return None if self.labels is None else self.labels[place]


@dataclass(frozen=True, slots=True)
class Judgment:
    """The answers to all items of one response."""

    key: bytes
    """Hash of (judge fingerprint, query hash, response hash, checklist hash)."""
    query_id: str
    candidate: str
    answers: tuple[Answer, ...]
    """In checklist order."""
    usage: Usage = field(default_factory=Usage)
    neutralised: int = 0
    """Number of forged delimiters or special tokens neutralized in the prompt."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A task that could not be finished; the next run retries it."""

    key: bytes
    """Identity of the intended judgment."""
    query_id: str
    candidate: str
    reason: str
    """The error, and the item at which it occurred."""
    answers: tuple[Answer, ...]
    """Answers received before the failure, which are reused."""
    rejected: bool = False
    """True if a retry will not help. Known while grading; not stored in run files."""
    by_check: bool = False
    """True if the judge answered, but a code check exceeded its limits. Known while grading; not
    stored in run files."""


@dataclass(frozen=True, slots=True)
class JudgeFingerprint:
    """Everything that can change a probability; judgments are comparable only if it is equal."""

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
    """Hash of the grading template and of its readout."""
    readout: str
    """Hash of the yes/no variants and the readout's limits."""
    precision: str = ""
    """Numeric precision of the judge, reported by the server or measured. Empty if `version`
    implies it, and in runs of earlier versions."""
    measured: str = field(default="", compare=False)
    """Measurement by which the judge is recognized later (see `rocketeval.precision`)."""
    control_tokens: str = field(default="", metadata={"optional": True})
    """Hash of the control tokens that are neutralized for this judge only; empty for most."""

    @property
    def digest(self) -> bytes:
        """16-byte hash of the fingerprint."""
        computed = (self.precision,) if self.precision else ()
        own = ("control tokens", self.control_tokens) if self.control_tokens else ()
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
            *own,
        )

    @property
    def name(self) -> str:
        """The model's name for readers: of a file or folder, its last part."""
        return model_name(self.engine, self.model)

    @property
    def before_precision(self) -> JudgeFingerprint:
        """The fingerprint of this judge in runs without a recorded precision."""
        return replace(self, precision="", measured="")

    @property
    def parts(self) -> dict[str, str]:
        """Its parts and digest by name; without empty optional ones, and without `measured`."""
        named = {part.name: str(getattr(self, part.name)) for part in fields(self) if part.compare}
        optional = ("precision", "control_tokens")
        shown = {name: value for name, value in named.items() if value or name not in optional}
        return {**shown, "digest": self.digest.hex()}

    def changes(self, other: JudgeFingerprint) -> dict[str, tuple[str, str]]:
        """Return each part in which `other` differs, with both values.

        Two precisions count as equal if one is unknown, or if both were measured and agree within
        the noise.
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
        """Return the first of the `known` judges that equals this one, else this one."""
        return next((one for one in known if not one.changes(self)), self)

    def _may_compute_as(self, other: JudgeFingerprint) -> bool:
        if not self.precision or not other.precision:
            return True
        both_measured = self.measured and other.measured
        return bool(both_measured) and same_precision(self.measured, other.measured)


def model_name(engine: str, model: str) -> str:
    """Return a model's name for readers, without the path of a local file or folder.

    >>> model_name("llamacpp", "/home/me/judge.gguf"), model_name("vllm", "org/judge")
    ('judge.gguf', 'org/judge')
    """
    local = engine == "llamacpp" or model.startswith(("/", "./", "../", "~"))
    return PurePath(model).name if local else model


class Basis(StrEnum):
    """Relation of a score to the reference data of its response."""

    UNSUPERVISED = "unsupervised"
    """The scorer used no reference data."""
    UNSEEN = "unseen"
    """The scorer was fitted to other responses."""
    OUT_OF_FOLD = "out_of_fold"
    """The response was in the training data, but not of the fold that scored it."""
    FITTED = "fitted"
    """The response was in the training data of the fit that scored it: no evidence of quality."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A figure with its confidence interval."""

    value: float
    low: float
    high: float


def _plain(turns: Sequence[Turn]) -> list[list[str]]:
    return [[turn.role, turn.content] for turn in turns]
