"""The Transport base class of request forms, and prompts as tokens with a shared prefix."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

from rocketeval.engines.http import HttpClient
from rocketeval.engines.label_tokens import AnyReadout, LabelTokens
from rocketeval.engines.readout import YES_NO, called
from rocketeval.engines.replies import UsageMeter, unusable
from rocketeval.engines.server import CHAT_SETTINGS, ChatFrame, Server, Tokenizer
from rocketeval.errors import RequestRejected
from rocketeval.records import ASKED_AGAIN, Answer, Status

T = TypeVar("T")


@dataclass(frozen=True)
class ServerConnection:
    """One server, one model, and everything known about how to send requests to it."""

    http: HttpClient
    server: Server
    model: str
    readout: AnyReadout
    top_logprobs: int
    temperature: float = 0.0
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    labels: LabelTokens | None = None
    """The label tokens of the model's vocabulary; None if unknown."""
    frame: ChatFrame | None = None
    """The model's chat template; None if unknown."""
    words: tuple[str, ...] = YES_NO
    """The labels the judge answers with, best first."""

    @property
    def tokenizer(self) -> Tokenizer:
        """The server's tokenizer."""
        return Tokenizer(self.http, self.server, self.model)

    @property
    def called(self) -> str:
        """The labels as shown to people."""
        return called(self.words)

    @property
    def label_tokens(self) -> LabelTokens:
        """The label tokens, for a form that is tried only if they are known."""
        assert self.labels is not None
        return self.labels

    def framed(self, prompt: str) -> str:
        """Return a prompt in the chat template, for a form that is tried only if it is known."""
        assert self.frame is not None
        return self.frame.around(prompt)

    async def choice(
        self,
        path: str,
        body: Mapping[str, Any],
        headers: Mapping[str, str],
        meter: UsageMeter,
        read: Callable[[dict[str, Any]], T],
    ) -> T:
        """Return what `read` finds in the single choice of a completion."""

        def read_reply(reply: dict[str, Any]) -> T:
            meter.answered(reply)
            choice: dict[str, Any] = items_of(reply, "choices", 1)[0]
            return read(choice)

        return await self.http.ask(path, body, meter, read_reply, headers=headers)

    @property
    def raw_extra(self) -> dict[str, Any]:
        """The user's own request settings, without those that only chat requests support."""
        return {name: value for name, value in self.extra_body.items() if name not in CHAT_SETTINGS}


class Transport(ABC):
    """A request form: an API call that returns answers to prompts with a shared prefix."""

    name: ClassVar[str]
    several: ClassVar[bool]
    """Whether one call accepts all items of a response."""
    exact: ClassVar[bool]
    """Whether the server returns the log-probability of every label token."""
    framed: ClassVar[bool] = False
    """Whether this process applies the chat template, not the server."""
    no_frame: ClassVar[str] = "the server does not report its chat template"
    """The message if `framed` is True and the template is unknown."""
    asks_once: ClassVar[bool] = True
    """Whether the server reads each prompt once, so that its tokens are counted once."""

    def __init__(self, wire: ServerConnection) -> None:
        self.wire = wire

    def missing(self) -> str | None:
        """Return what this form needs and lacks; None if it can be tried."""
        if self.framed and self.wire.frame is None:
            return self.no_frame
        if self.exact and self.wire.labels is None:
            return f"the server does not report the {self.wire.called} tokens"
        return None

    @abstractmethod
    async def ask(
        self, prompts: Sequence[str], headers: Mapping[str, str], meter: UsageMeter
    ) -> list[Answer]:
        """Return one answer per prompt, in order. A form that is not `several` gets one prompt.

        Raises RequestRejected, EngineRefused or EngineUnavailable.
        """


def usable(answers: Sequence[Answer]) -> list[Answer]:
    """Return the answers; UnusableReply if one has no log-probabilities, or impossible ones.

    Such a reply is a fault of the moment more often than a property of the prompt.
    """
    fine = Status.OK
    for answer in answers:
        # Hashing an enum member is slow; most answers are fine.
        if answer.status is not fine and answer.status in ASKED_AGAIN:
            raise unusable(f"the server {ASKED_AGAIN[answer.status]}", str(answer.status))
    return list(answers)


def items_of(reply: Mapping[str, Any], field_name: str, count: int) -> list[Any]:
    """Return the `count` rows of a reply's list, sorted by `index` if they have one."""
    rows = reply.get(field_name)
    if not isinstance(rows, list) or len(rows) != count:
        received = len(rows) if isinstance(rows, list) else "no"
        raise unusable(f"the server sent {received} {field_name} for {count} items.", SHAPE)
    if [isinstance(row, dict) and row.get("index") for row in rows] == list(range(count)):
        return rows
    if count > 1 and all(
        isinstance(row, dict) and isinstance(row.get("index"), int) for row in rows
    ):
        rows = sorted(rows, key=lambda row: row["index"])
        if [row["index"] for row in rows] != list(range(count)):
            raise unusable(f"the server numbered its {field_name} wrongly.", SHAPE)
    return rows


@contextmanager
def expected_shape(what: str) -> Iterator[None]:
    """Turn a reply of an unexpected shape into UnusableReply."""
    try:
        yield
    except (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError) as error:
        reason = f"the server's answer is not {what} ({type(error).__name__}: {error})."
        raise unusable(reason, SHAPE) from None


SHAPE = "wrong shape"
"""Retry reason: the reply is JSON, but not what was asked for."""


@dataclass(frozen=True, slots=True)
class TokenPrompts:
    """Prompts in the chat template as tokens, so that the server neither adds nor splits any."""

    shared: list[int]
    own: list[list[int]]
    """The tokens after `shared` in each prompt: at least one."""

    @property
    def count(self) -> int:
        """Number of tokens of all prompts together."""
        return sum(len(self.shared) + len(own) for own in self.own)


async def token_prompts(wire: ServerConnection, prompts: Sequence[str]) -> TokenPrompts:
    """Return the prompts as the server's tokens; RequestRejected if one is too long."""
    encoded = [await _encode(wire, prompt) for prompt in prompts]
    shared = _shared_length(encoded)
    return TokenPrompts(encoded[0][:shared], [tokens[shared:] for tokens in encoded])


async def _encode(wire: ServerConnection, prompt: str) -> list[int]:
    tokens = await wire.tokenizer.encode(wire.framed(prompt))
    if not tokens:
        raise RequestRejected("the server could not tokenize the prompt.")
    limit = wire.server.context
    if limit is not None and len(tokens) >= limit:
        # Scoring endpoints would truncate it silently.
        raise RequestRejected(
            f"the prompt has {len(tokens)} tokens, but the model's context is {limit}."
        )
    return tokens


def _shared_length(prompts: Sequence[Sequence[int]]) -> int:
    """Return the length of the shared prefix, leaving each prompt at least one token."""
    shortest = min(len(prompt) for prompt in prompts)
    for position in range(shortest - 1):
        if len({prompt[position] for prompt in prompts}) > 1:
            return position
    return shortest - 1
