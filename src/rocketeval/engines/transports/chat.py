"""Chat completions, one item or all items per call, and `/completions` with a list of prompts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from rocketeval.engines.label_tokens import AnyReadout
from rocketeval.engines.replies import UsageMeter
from rocketeval.engines.transports.base import (
    ServerConnection,
    Transport,
    expected_shape,
    items_of,
    usable,
)
from rocketeval.records import Answer

Message = Mapping[str, str]
T = TypeVar("T")


class Chat(Transport):
    """`/chat/completions` with the most likely tokens, which every server with logprobs has."""

    name = "chat"
    several = False
    exact = False

    async def ask(
        self, prompts: Sequence[str], headers: Mapping[str, str], meter: UsageMeter
    ) -> list[Answer]:
        """Return the answer to the one prompt."""
        (prompt,) = prompts

        def read(choice: Mapping[str, Any]) -> list[Answer]:
            with expected_shape("a chat completion"):
                return usable([self._read(choice)])

        return await complete_chat(self.wire, user(prompt), self._settings(), headers, meter, read)

    def _settings(self) -> dict[str, Any]:
        return top_settings(self.wire.top_logprobs)

    def _read(self, choice: Mapping[str, Any]) -> Answer:
        return read_top(self.wire.readout, choice)


class ChatExact(Chat):
    """`/chat/completions` with the log-probabilities of exactly the label tokens (vLLM)."""

    name = "chat_exact"
    exact = True

    def _settings(self) -> dict[str, Any]:
        return exact_settings(self.wire)

    def _read(self, choice: Mapping[str, Any]) -> Answer:
        return read_exact_choice(self.wire, choice)


class ChatBatch(Transport):
    """vLLM's `/chat/completions/batch`: all items of a response, exact, template applied."""

    name = "chat_batch"
    several = True
    exact = True

    async def ask(
        self, prompts: Sequence[str], headers: Mapping[str, str], meter: UsageMeter
    ) -> list[Answer]:
        """Return the answers to all prompts, from one call."""
        messages = [user(prompt) for prompt in prompts]
        body = wire_body(self.wire, messages, exact_settings(self.wire))

        def read(reply: Mapping[str, Any]) -> list[Answer]:
            meter.answered(reply, cached_reported=False)
            choices = items_of(reply, "choices", len(prompts))
            with expected_shape("a batch of chat completions"):
                return usable(read_exact_choices(self.wire, choices))

        path = "/chat/completions/batch"
        return await self.wire.http.ask(path, body, meter, read, headers=headers)


async def complete_chat(
    wire: ServerConnection,
    messages: Sequence[Message],
    settings: Mapping[str, Any],
    headers: Mapping[str, str],
    meter: UsageMeter,
    read: Callable[[dict[str, Any]], T],
) -> T:
    """Return what `read` finds in the single choice of a chat completion."""
    body = wire_body(wire, messages, settings)
    return await wire.choice("/chat/completions", body, headers, meter, read)


def wire_body(
    wire: ServerConnection, messages: Sequence[Any], settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the body of a chat request to this server."""
    return chat_body(wire.model, messages, settings, wire.extra_body, wire.temperature)


def chat_body(
    model: str,
    messages: Sequence[Any],
    settings: Mapping[str, Any],
    extra_body: Mapping[str, Any],
    temperature: float = 0,
) -> dict[str, Any]:
    """Return the body of a chat request; the user's own settings take precedence."""
    return {
        "model": model,
        "messages": messages,
        "temperature": temperature,
        **settings,
        **extra_body,
    }


def top_settings(number: int) -> dict[str, Any]:
    """Return the settings that request one token and its most likely alternatives."""
    return {"max_tokens": 1, "logprobs": True, "top_logprobs": number}


def writing_settings(max_tokens: int, seed: int | None) -> dict[str, Any]:
    """Return the settings that request a text."""
    return {"max_tokens": max_tokens} if seed is None else {"max_tokens": max_tokens, "seed": seed}


def exact_settings(wire: ServerConnection) -> dict[str, Any]:
    """Return the settings that request the log-probabilities of the label tokens from vLLM."""
    return {
        "max_tokens": 1,
        "logprobs": True,
        "logprob_token_ids": wire.label_tokens.ids,
        "return_tokens_as_token_ids": True,
    }


def read_exact_choice(wire: ServerConnection, choice: Mapping[str, Any]) -> Answer:
    """Return the answer in a choice whose tokens are named by id."""
    return read_exact_choices(wire, (choice,))[0]


def read_exact_choices(
    wire: ServerConnection, choices: Sequence[Mapping[str, Any]]
) -> list[Answer]:
    """Return the answers in choices whose tokens are named by id."""
    labels, readout = wire.label_tokens.named, wire.readout
    answers = []
    for choice in choices:
        wrote = (choice.get("message") or {}).get("content")
        logps = {row["token"]: row["logprob"] for row in _listed(choice)}
        # One pass over all of them is faster than a call per token.
        values = logps.values()
        if set(map(type, values)) != _FLOATS or math.isnan(sum(values)):
            logps = {token: logprob_of(logp) for token, logp in logps.items()}
        answers.append(labels.read(readout, logps, wrote))
    return answers


_FLOATS = {float}


def read_top(readout: AnyReadout, choice: Mapping[str, Any]) -> Answer:
    """Return the answer that the most likely tokens of a choice prove."""
    with expected_shape("a chat completion"):
        return readout.read(ranked_tokens(choice))


def read_text(choice: Mapping[str, Any]) -> tuple[str, bool]:
    """Return the text of a choice, and whether it is complete."""
    with expected_shape("a chat completion"):
        text = choice.get("message", {}).get("content") or ""
    return text, choice.get("finish_reason") != "length"


def listed_tokens(choice: Mapping[str, Any]) -> list[tuple[str, float]]:
    """Return the `(token, logprob)` pairs of the first generated position."""
    return [(row["token"], logprob_of(row["logprob"])) for row in _listed(choice)]


def _listed(choice: Mapping[str, Any]) -> list[dict[str, Any]]:
    logprobs = choice.get("logprobs") or {}
    positions = logprobs.get("content") or []
    rows: list[dict[str, Any]] = positions[0].get("top_logprobs") or [] if positions else []
    return rows


def logprob_of(value: Any) -> float:
    """Return a reported log-probability; ValueError unless it is a number.

    Text such as "NaN" is not a number, although Python could read it.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        raise ValueError(f"a log-probability is {str(value)[:40]!r}")
    return float(value)


def ranked_tokens(choice: Mapping[str, Any]) -> list[tuple[str, float]]:
    """Return the `(token, logprob)` pairs that are certainly the most likely ones.

    Servers may list the sampled token first, in place of the last of the most likely ones. An
    unlikely sampled token gives no bound on the tokens that are not listed.
    """
    listed = listed_tokens(choice)
    others = [logp for _, logp in listed[1:]]
    return listed[1:] if others and listed[0][1] < min(others) else listed


def user(prompt: str) -> list[dict[str, str]]:
    """Return a conversation with one user message."""
    return [{"role": "user", "content": prompt}]


class Completions(Transport):
    """`/completions` with the chat template applied here, and exact label tokens (vLLM)."""

    name = "completions"
    several = True
    exact = True
    framed = True

    async def ask(
        self, prompts: Sequence[str], headers: Mapping[str, str], meter: UsageMeter
    ) -> list[Answer]:
        """Return the answers to all prompts, from one call."""
        wire = self.wire
        body = {
            "model": wire.model,
            "prompt": list(map(wire.framed, prompts)),
            # The frame already starts with the model's first token: do not add a second one.
            "add_special_tokens": False,
            "temperature": wire.temperature,
            "max_tokens": 1,
            "logprobs": 1,
            "logprob_token_ids": wire.label_tokens.ids,
            "return_tokens_as_token_ids": True,
            **wire.raw_extra,
        }

        def read(reply: Mapping[str, Any]) -> list[Answer]:
            # vLLM reports the cached tokens of the last prompt only.
            meter.answered(reply, cached_reported=len(prompts) == 1)
            choices = items_of(reply, "choices", len(prompts))
            with expected_shape("a completion"):
                return usable([self._read(choice) for choice in choices])

        return await wire.http.ask("/completions", body, meter, read, headers=headers)

    def _read(self, choice: Mapping[str, Any]) -> Answer:
        positions = (choice.get("logprobs") or {}).get("top_logprobs") or [{}]
        labels = self.wire.label_tokens.named
        return labels.read(self.wire.readout, positions[0] or {}, choice.get("text"))
