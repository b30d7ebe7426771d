"""What every request form is given and returns, and prompts as tokens with their shared prefix."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

from rocketeval.engines.http import HttpClient, UsageMeter
from rocketeval.engines.label_tokens import LabelTokens
from rocketeval.engines.readout import YES_NO, called
from rocketeval.engines.scale_readout import AnyReadout
from rocketeval.engines.server import CHAT_SETTINGS, ChatFrame, Server, Tokenizer
from rocketeval.errors import RequestRejected
from rocketeval.records import Answer


@dataclass(frozen=True)
class ServerConnection:
    """One server, one model, and all that is known about how to ask it."""

    http: HttpClient
    server: Server
    model: str
    readout: AnyReadout
    top_logprobs: int
    temperature: float = 0.0
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    labels: LabelTokens | None = None
    """The labels' tokens in the model's vocabulary; None when not known."""
    frame: ChatFrame | None = None
    """The model's chat template; None when not known."""
    words: tuple[str, ...] = YES_NO
    """The labels the judge answers with, best first."""

    @property
    def tokenizer(self) -> Tokenizer:
        """The server's own tokenizer."""
        return Tokenizer(self.http, self.server, self.model)

    @property
    def called(self) -> str:
        """The labels, as people call them."""
        return called(self.words)

    @property
    def label_tokens(self) -> LabelTokens:
        """The labels' tokens, for a form that is tried only where they are known."""
        assert self.labels is not None
        return self.labels

    def framed(self, prompt: str) -> str:
        """Return a prompt in the chat template, for a form that is tried only where it is known."""
        assert self.frame is not None
        return self.frame.around(prompt)

    async def choice(
        self, path: str, body: Mapping[str, Any], headers: Mapping[str, str], meter: UsageMeter
    ) -> dict[str, Any]:
        """Return the one choice of a completion."""
        reply = await self.http.post(path, body, meter, headers=headers)
        meter.answered(reply)
        choice: dict[str, Any] = items_of(reply, "choices", 1)[0]
        return choice

    @property
    def raw_extra(self) -> dict[str, Any]:
        """The user's own settings, without those that only chat requests know."""
        return {name: value for name, value in self.extra_body.items() if name not in CHAT_SETTINGS}


class Transport(ABC):
    """A request form: asks for the answers to prompts that share a prefix."""

    name: ClassVar[str]
    several: ClassVar[bool]
    """Whether one call takes all items of a response."""
    exact: ClassVar[bool]
    """Whether the labels' own log-probabilities are told, so that nothing is cut off."""
    framed: ClassVar[bool] = False
    """Whether the chat template is applied here, not by the server."""
    no_frame: ClassVar[str] = "the server does not tell its chat template"
    """What to say when it would have to be, and is not known."""
    asks_once: ClassVar[bool] = True
    """Whether every prompt is read once, so that its tokens are counted once."""

    def __init__(self, wire: ServerConnection) -> None:
        self.wire = wire

    def missing(self) -> str | None:
        """Return what this form would need and does not have; None when it can be tried."""
        if self.framed and self.wire.frame is None:
            return self.no_frame
        if self.exact and self.wire.labels is None:
            return f"the server does not tell the {self.wire.called} tokens"
        return None

    @abstractmethod
    async def ask(
        self, prompts: Sequence[str], headers: Mapping[str, str], meter: UsageMeter
    ) -> list[Answer]:
        """Return one answer per prompt, in order. A form that is not `several` gets one prompt.

        Raises RequestRejected, EngineRefused or EngineUnavailable.
        """


def items_of(reply: Mapping[str, Any], field_name: str, count: int) -> list[Any]:
    """Return the `count` rows of a reply's list, put in order by their `index` if they have one."""
    rows = reply.get(field_name)
    if not isinstance(rows, list) or len(rows) != count:
        told = len(rows) if isinstance(rows, list) else "no"
        raise RequestRejected(f"the server sent {told} {field_name} for {count} items.")
    if count > 1 and all(
        isinstance(row, dict) and isinstance(row.get("index"), int) for row in rows
    ):
        rows = sorted(rows, key=lambda row: row["index"])
        if [row["index"] for row in rows] != list(range(count)):
            raise RequestRejected(f"the server numbered its {field_name} wrongly.")
    return rows


@contextmanager
def expected_shape(what: str) -> Iterator[None]:
    """Turn a reply of another shape into an error that says so."""
    try:
        yield
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise RequestRejected(
            f"the server's answer is not {what} ({type(error).__name__}: {error})."
        ) from None


@dataclass(frozen=True, slots=True)
class TokenPrompts:
    """Prompts inside the chat template; sent as tokens, nothing is added to them or cut in two."""

    shared: list[int]
    own: list[list[int]]
    """What follows `shared` in each prompt: at least one token."""

    @property
    def count(self) -> int:
        """Tokens of all prompts together."""
        return sum(len(self.shared) + len(own) for own in self.own)


async def token_prompts(wire: ServerConnection, prompts: Sequence[str]) -> TokenPrompts:
    """Return the prompts by the server's own tokenizer; RequestRejected if one is too long."""
    encoded = [await _encode(wire, prompt) for prompt in prompts]
    shared = _shared_length(encoded)
    return TokenPrompts(encoded[0][:shared], [tokens[shared:] for tokens in encoded])


async def _encode(wire: ServerConnection, prompt: str) -> list[int]:
    tokens = await wire.tokenizer.encode(wire.framed(prompt))
    if not tokens:
        raise RequestRejected("the server could not tokenise the prompt.")
    limit = wire.server.context
    if limit is not None and len(tokens) >= limit:
        # Scoring endpoints would cut it without a word.
        raise RequestRejected(f"the prompt has {len(tokens)} tokens, the model reads {limit}.")
    return tokens


def _shared_length(prompts: Sequence[Sequence[int]]) -> int:
    """Return how many tokens all prompts begin with, leaving each at least one of its own."""
    shortest = min(len(prompt) for prompt in prompts)
    for position in range(shortest - 1):
        if len({prompt[position] for prompt in prompts}) > 1:
            return position
    return shortest - 1
