"""The log-probability of each token of a text as the judge's own answer, from a server."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rocketeval.engines.readout import NO_LOGPROB, NOT_REPORTED
from rocketeval.errors import EngineRefused, RequestRejected

if TYPE_CHECKING:
    # Engines without a server use this module too: they need not import an HTTP client.
    from rocketeval.engines.replies import UsageMeter
    from rocketeval.engines.server import Server
    from rocketeval.engines.transports.base import ServerConnection

NO_TEXT = "the text is empty, so it has no likelihood."


@dataclass(frozen=True, slots=True)
class ChatText:
    """A prompt in its chat template, followed by a text as the assistant message."""

    tokens: list[int]
    start: int
    """Position of the first token of the text."""

    @property
    def text(self) -> list[int]:
        """The tokens of the text."""
        return self.tokens[self.start :]

    def logprobs(self, reported: Sequence[Any]) -> tuple[float, ...]:
        """Return the log-probabilities of the text's tokens, given those of all tokens.

        Raises RequestRejected unless every token except the first has one. Engines with a prefix
        cache may leave out cached tokens; the mean of the rest would describe another text.
        """
        values = [_known(value) for value in reported[: len(self.tokens)]]
        missing = sum(value is None for value in values[1:]) + len(self.tokens) - len(values)
        if missing:
            raise RequestRejected(
                f"the engine left out the log-probabilities of {missing} of "
                f"{len(self.tokens)} tokens.",
                hint="The server's prefix cache may have hidden them: switch it off.",
            )
        return tuple(value for value in values[self.start :] if value is not None)


def chat_text(prompt: Sequence[int], whole: list[int]) -> ChatText:
    """Return `whole`, with the text starting at the first token that differs from the prompt.

    >>> chat_text([1, 2, 3], [1, 2, 3, 7, 8]).text
    [7, 8]
    """
    pairs = zip(prompt, whole, strict=False)
    start = next((at for at, (one, other) in enumerate(pairs) if one != other), len(prompt))
    if not 0 < start < len(whole):
        raise RequestRejected(NO_TEXT)
    return ChatText(whole, start)


def refused_likelihood(what: str) -> EngineRefused:
    """Return the error for an engine that cannot report how likely a text is."""
    return EngineRefused(
        f"{what} does not report the likelihood of a given text.",
        hint="Use an engine that reports the log-probabilities of prompt tokens: a vLLM or "
        "SGLang server, or `engine: vllm`.",
    )


def _known(value: Any) -> float | None:
    """Return a valid log-probability; None for a placeholder or a value that is not a number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        return None
    if value > NO_LOGPROB:
        raise RequestRejected("the values sent as log-probabilities are not log-probabilities.")
    return float(value) if value > NOT_REPORTED else None


def require_prompt_logprobs(server: Server, url: str) -> None:
    """Raise EngineRefused unless this kind of server reports prompt tokens."""
    if server.kind not in ("vllm", "sglang"):
        raise refused_likelihood(f"The server at {url}")


async def ask_likelihood(
    wire: ServerConnection, prompt: str, text: str, headers: Mapping[str, str], meter: UsageMeter
) -> tuple[float, ...]:
    """Return the log-probability of each token of `text` after `prompt`."""
    from rocketeval.engines.transports.base import expected_shape

    spoken = await _spoken(wire, prompt, text)
    if wire.server.kind == "vllm":
        choice = await _complete(wire, spoken, {"prompt_logprobs": 0}, headers, meter)
        if choice.get("prompt_logprobs") is not None:
            with expected_shape("a completion with the log-probabilities of its prompt"):
                return spoken.logprobs(_by_token(spoken, choice["prompt_logprobs"]))
    choice = await _complete(wire, spoken, {"echo": True, "logprobs": 1}, headers, meter)
    with expected_shape("a completion that repeats its prompt"):
        reported = list(choice["logprobs"]["token_logprobs"])
    # One more than sent: the token written after the prompt.
    if len(reported) > len(spoken.tokens) + 1:
        raise RequestRejected(
            f"the server reports {len(reported)} tokens, but {len(spoken.tokens)} were sent."
        )
    return spoken.logprobs(reported)


def _by_token(spoken: ChatText, rows: list[Mapping[str, Any] | None]) -> list[Any]:
    """Return the log-probability in each row of the token sent at that position."""
    return [
        None if row is None else (row.get(str(token)) or {}).get("logprob")
        for token, row in zip(spoken.tokens, rows, strict=False)
    ]


async def _spoken(wire: ServerConnection, prompt: str, text: str) -> ChatText:
    if wire.frame is None:
        raise EngineRefused(
            f"The chat template of {wire.model!r} is unknown, so a text cannot be placed as the "
            "judge's answer.",
            hint="Set `options: {chat_head: ..., chat_tail: ...}`: the text its template puts "
            "before and after a user message.",
        )
    framed = wire.frame.around(prompt)
    before = await wire.tokenizer.encode(framed)
    whole = await wire.tokenizer.encode(framed + text)
    if before is None or whole is None:
        raise RequestRejected("the server could not tokenize the text.")
    return chat_text(before, whole)


async def _complete(
    wire: ServerConnection,
    spoken: ChatText,
    settings: Mapping[str, Any],
    headers: Mapping[str, str],
    meter: UsageMeter,
) -> dict[str, Any]:
    body = {
        "model": wire.model,
        # Tokens, so that the server neither adds nor splits any.
        "prompt": spoken.tokens,
        "temperature": 0,
        "max_tokens": 1,
        **settings,
        **wire.raw_extra,
    }
    return await wire.choice("/completions", body, headers, meter, dict)
