"""How likely a text is, asked of a server that tells the log-probabilities of prompt tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rocketeval.engines.likelihood import Spoken, refused_likelihood, spoken
from rocketeval.engines.meter import Meter
from rocketeval.engines.server import Server
from rocketeval.engines.transports.base import Wire, expected_shape, items_of
from rocketeval.errors import EngineRefused, RequestRejected


def refuse_untelling(server: Server, url: str) -> None:
    """Raise EngineRefused unless this kind of server tells of prompt tokens."""
    if server.kind not in ("vllm", "sglang"):
        raise refused_likelihood(f"The server at {url}")


async def ask_likelihood(
    wire: Wire, prompt: str, text: str, headers: Mapping[str, str], meter: Meter
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


def _by_token(said: Spoken, rows: list[Mapping[str, Any] | None]) -> list[Any]:
    """Return what each row tells about the token that was sent in its place."""
    return [
        None if row is None else (row.get(str(token)) or {}).get("logprob")
        for token, row in zip(said.tokens, rows, strict=False)
    ]


async def _spoken(wire: Wire, prompt: str, text: str) -> Spoken:
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
    return spoken(before, whole)


async def _complete(
    wire: Wire,
    said: Spoken,
    settings: Mapping[str, Any],
    headers: Mapping[str, str],
    meter: Meter,
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
    reply = await wire.http.post("/completions", body, meter, headers=headers)
    meter.answered(reply)
    choice: dict[str, Any] = items_of(reply, "choices", 1)[0]
    return choice
