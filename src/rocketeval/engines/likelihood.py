"""How likely each token of a text is as the judge's own words, asked of a server."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rocketeval.engines.http import UsageMeter
from rocketeval.engines.readout import NO_LOGPROB, UNTOLD
from rocketeval.engines.server import Server
from rocketeval.engines.transports.base import ServerConnection, expected_shape
from rocketeval.errors import EngineRefused, RequestRejected

NO_TEXT = "there is no text whose likelihood could be told."


@dataclass(frozen=True, slots=True)
class ChatText:
    """A prompt in its chat template, with a text as the assistant's words after it."""

    tokens: list[int]
    start: int
    """Where the text begins."""

    @property
    def text(self) -> list[int]:
        """The tokens of the text."""
        return self.tokens[self.start :]

    def logprobs(self, told: Sequence[Any]) -> tuple[float, ...]:
        """Return what an engine tells of the text's tokens, from what it tells of all.

        RequestRejected unless it tells of every token but the very first. Engines with a prefix
        cache have left out what they found in it: the mean of the rest would be of another text.
        """
        values = [_known(value) for value in told[: len(self.tokens)]]
        missing = sum(value is None for value in values[1:]) + len(self.tokens) - len(values)
        if missing:
            raise RequestRejected(
                f"the engine left out the log-probabilities of {missing} of "
                f"{len(self.tokens)} tokens.",
                hint="A prefix cache may have swallowed them: switch it off.",
            )
        return tuple(value for value in values[self.start :] if value is not None)


def chat_text(prompt: Sequence[int], whole: list[int]) -> ChatText:
    """Return `whole` with the text beginning at its first token that is not the prompt's own.

    >>> chat_text([1, 2, 3], [1, 2, 3, 7, 8]).text
    [7, 8]
    """
    pairs = zip(prompt, whole, strict=False)
    start = next((at for at, (one, other) in enumerate(pairs) if one != other), len(prompt))
    if not 0 < start < len(whole):
        raise RequestRejected(NO_TEXT)
    return ChatText(whole, start)


def refused_likelihood(what: str) -> EngineRefused:
    """Return what to tell a person whose engine cannot tell how likely a text is."""
    return EngineRefused(
        f"{what} does not tell how likely a given text is.",
        hint="It takes an engine that tells the log-probabilities of prompt tokens: a vLLM or "
        "SGLang server, or `engine: vllm`.",
    )


def _known(value: Any) -> float | None:
    """Return a value that can be a log-probability; None for a placeholder or no number at all."""
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        return None
    if value > NO_LOGPROB:
        raise RequestRejected("what the engine calls log-probabilities are none.")
    return float(value) if value > UNTOLD else None


def refuse_untelling(server: Server, url: str) -> None:
    """Raise EngineRefused unless this kind of server tells of prompt tokens."""
    if server.kind not in ("vllm", "sglang"):
        raise refused_likelihood(f"The server at {url}")


async def ask_likelihood(
    wire: ServerConnection, prompt: str, text: str, headers: Mapping[str, str], meter: UsageMeter
) -> tuple[float, ...]:
    """Return the log-probability of each token of `text` after `prompt`."""
    said = await _spoken(wire, prompt, text)
    if wire.server.kind == "vllm":
        choice = await _complete(wire, said, {"prompt_logprobs": 0}, headers, meter)
        if choice.get("prompt_logprobs") is not None:
            with expected_shape("a completion with the log-probabilities of its prompt"):
                return said.logprobs(_by_token(said, choice["prompt_logprobs"]))
    choice = await _complete(wire, said, {"echo": True, "logprobs": 1}, headers, meter)
    with expected_shape("a completion that repeats its prompt"):
        told = list(choice["logprobs"]["token_logprobs"])
    # One more: the token that was written after the prompt.
    if len(told) > len(said.tokens) + 1:
        raise RequestRejected(
            f"the server tells of {len(told)} tokens where {len(said.tokens)} were sent."
        )
    return said.logprobs(told)


def _by_token(said: ChatText, rows: list[Mapping[str, Any] | None]) -> list[Any]:
    """Return what each row tells about the token that was sent in its place."""
    return [
        None if row is None else (row.get(str(token)) or {}).get("logprob")
        for token, row in zip(said.tokens, rows, strict=False)
    ]


async def _spoken(wire: ServerConnection, prompt: str, text: str) -> ChatText:
    if wire.frame is None:
        raise EngineRefused(
            f"The chat template of {wire.model!r} is not known, so that no text can be put into "
            "the judge's mouth.",
            hint="Set `options: {chat_head: ..., chat_tail: ...}`: what its template writes "
            "before and after a user's message.",
        )
    framed = wire.frame.around(prompt)
    before = await wire.tokenizer.encode(framed)
    whole = await wire.tokenizer.encode(framed + text)
    if before is None or whole is None:
        raise RequestRejected("the server could not tokenise the text.")
    return chat_text(before, whole)


async def _complete(
    wire: ServerConnection,
    said: ChatText,
    settings: Mapping[str, Any],
    headers: Mapping[str, str],
    meter: UsageMeter,
) -> dict[str, Any]:
    body = {
        "model": wire.model,
        # As tokens, so that nothing is added to them or cut in another way.
        "prompt": said.tokens,
        "temperature": 0,
        "max_tokens": 1,
        **settings,
        **wire.raw_extra,
    }
    return await wire.choice("/completions", body, headers, meter)
