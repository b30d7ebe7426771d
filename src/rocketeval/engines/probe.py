"""Before a judge is used: how it can be asked, and whether what it tells can be trusted."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rocketeval.engines.chat_frame import ChatFrame, learn_frame
from rocketeval.engines.labels import find_label_tokens, refuse_split_labels
from rocketeval.engines.meter import Meter
from rocketeval.engines.readout import UNTOLD
from rocketeval.engines.server import NO_ANSWER
from rocketeval.engines.transports.base import Transport, Wire, expected_shape
from rocketeval.engines.transports.chat import (
    complete_chat,
    ranked_tokens,
    top_settings,
    user,
)
from rocketeval.engines.transports.registry import BEST_FIRST, TRANSPORTS
from rocketeval.errors import EngineRefused, RequestRejected
from rocketeval.records import Answer, Status

PREFIX = (
    "Read the response, then answer one question about it.\n\n"
    "Response: Paris is the capital of France.\n\nQuestion: "
)
QUESTIONS = ("Does the response name a city?", "Is the response about the weather?")
HOT = 2.0
"""A temperature that no raw log-probability depends on; servers allow no higher one."""
SAME = 0.25
"""Two identical requests spread their log-probabilities alike, by less than this share."""
APART = 0.15
"""Two request forms whose probabilities differ by more do not ask the same question."""
FEWER_LOGPROBS = (20, 10, 5, 1)
NO_THINKING = "`extra_body: {chat_template_kwargs: {enable_thinking: false}}`"


Listed = list[tuple[str, float]]
"""The most likely tokens with their log-probabilities."""


@dataclass(frozen=True, slots=True)
class Reference:
    """What a chat request, the form every server has, tells about the judge."""

    answers: tuple[Answer, ...]
    prompt_tokens: int
    """Of all probe prompts together; 0 where not told."""
    listed: tuple[tuple[str, float], ...]
    """The most likely tokens after the first prompt."""


@dataclass(frozen=True, slots=True)
class Trial:
    """How one request form did on the probe."""

    name: str
    refused: str | None
    """Why it cannot be used; None when it can."""
    answers: tuple[Answer, ...] = ()


@dataclass(frozen=True)
class Probed:
    """How a judge will be asked, and how that was found out."""

    wire: Wire
    transport: Transport
    reference: Reference
    processed: bool
    """Whether the server's log-probabilities depend on sampling settings."""


def probe_prompts(words: Sequence[str]) -> tuple[str, ...]:
    """Return the prompts that show how a judge with these labels can be asked."""
    choice = " or ".join(words) if len(words) == 2 else f"{', '.join(words)}, the best grade first"
    ending = f"\nAnswer with one word: {choice}.\nAnswer:"
    return tuple(PREFIX + question + ending for question in QUESTIONS)


async def probe(wire: Wire, name: str, frame: ChatFrame | None) -> Probed:
    """Return how to ask the judge; EngineRefused when its answers could not be trusted.

    `name` is a request form, or `auto` for the best that works. `frame` is a chat template the
    user has given.
    """
    wire, listed = await _allowed_logprobs(wire)
    wire, processed = await _unscaled(wire, listed)
    reference = await ask_reference(wire)
    _refuse_untrustworthy(reference, wire)
    wire = await _with_knowledge(wire, frame)
    for form in BEST_FIRST.get(wire.server.kind, ("chat",)) if name == "auto" else (name,):
        transport = TRANSPORTS[form](wire)
        trial = await try_transport(transport, reference)
        if trial.refused is None:
            return Probed(wire, transport, reference, processed)
    raise EngineRefused(
        f"{wire.http.base_url} cannot be asked by the transport {trial.name!r}: {trial.refused}.",
        hint="`transport: auto` takes the best that works; `rocketeval doctor` shows them all.",
    )


async def try_transport(transport: Transport, reference: Reference) -> Trial:
    """Return whether a request form gives the reference's answers for the same prompts."""
    missing = transport.missing()
    if missing:
        return Trial(transport.name, missing)
    meter, prompts = Meter(), probe_prompts(transport.wire.words)
    try:
        if transport.several:
            answers = await transport.ask(prompts, {}, meter)
        else:
            answers = [
                answer for prompt in prompts for answer in await transport.ask([prompt], {}, meter)
            ]
    except NO_ANSWER as error:
        return Trial(transport.name, error.message)
    refused = _difference(answers, meter.usage.prompt_tokens, reference, transport)
    return Trial(transport.name, refused, tuple(answers))


async def ask_reference(wire: Wire) -> Reference:
    """Return what chat requests tell about the probe prompts."""
    meter = Meter()
    replies = [await _listed(wire, prompt, meter) for prompt in probe_prompts(wire.words)]
    return Reference(
        tuple(wire.readout.read(listed) for listed in replies),
        meter.usage.prompt_tokens,
        tuple(replies[0]),
    )


async def _allowed_logprobs(wire: Wire) -> tuple[Wire, Listed]:
    """Return the wire with as many tokens to list as the server allows, and such a list."""
    fewer = [number for number in FEWER_LOGPROBS if number < wire.top_logprobs]
    prompt, *_ = probe_prompts(wire.words)
    rejected: RequestRejected | None = None
    for number in (wire.top_logprobs, *fewer):
        allowed = replace(wire, top_logprobs=number)
        try:
            return allowed, await _listed(allowed, prompt, Meter())
        except RequestRejected as error:
            rejected = rejected or error
    raise EngineRefused(
        f"{wire.http.base_url} rejects a question with log-probabilities: "
        f"{rejected.message if rejected else ''}",
        hint="The judge must be an endpoint that returns log-probabilities of chat answers.",
    )


async def _unscaled(wire: Wire, listed: Listed) -> tuple[Wire, bool]:
    """Return the wire that gets unscaled log-probabilities, and whether temperature scales them.

    `listed` is what it tells about the first prompt as it is.
    """

    prompt, *_ = probe_prompts(wire.words)

    async def at(temperature: float) -> dict[str, float]:
        return _told(await _listed(replace(wire, temperature=temperature), prompt, Meter()))

    cold = _told(listed)
    try:
        if _alike(cold, await at(HOT)):
            return wire, False
        if _alike(cold, await at(1.0)):
            # Greedy answers are not scaled, and nothing is drawn against the odds.
            return wire, True
    except RequestRejected:
        return wire, False
    # At temperature 1 a server that scales by temperature tells what the model said.
    return replace(wire, temperature=1.0), True


def _told(listed: Listed) -> dict[str, float]:
    return {token: logp for token, logp in listed if logp > UNTOLD}


def _alike(one: Mapping[str, float], other: Mapping[str, float]) -> bool:
    """Whether two lists of log-probabilities come from one distribution, as far as they tell."""
    both = [token for token in one if token in other]
    if not both:
        # A list of the drawn token alone says nothing about another one.
        return min(len(one), len(other)) < 2
    if len(both) == 1:
        return math.isclose(one[both[0]], other[both[0]], rel_tol=SAME, abs_tol=SAME)
    spreads = [
        max(told[token] for token in both) - min(told[token] for token in both)
        for told in (one, other)
    ]
    return math.isclose(*spreads, rel_tol=SAME, abs_tol=SAME)


async def _with_knowledge(wire: Wire, frame: ChatFrame | None) -> Wire:
    """Return the wire with the model's label tokens and chat template, where they can be known."""
    tokenizer = wire.tokenizer

    async def encode(text: str) -> Sequence[int]:
        return await tokenizer.encode(text) or ()

    if await tokenizer.encode("Yes") is None:
        return replace(wire, frame=frame)
    await refuse_split_labels(wire.words, encode, wire.model)
    return replace(
        wire,
        labels=await find_label_tokens(wire.readout, encode),
        frame=frame or await learn_frame(tokenizer, wire.extra_body),
    )


async def _listed(wire: Wire, prompt: str, meter: Meter) -> Listed:
    settings = top_settings(wire.top_logprobs)
    choice = await complete_chat(wire, user(prompt), settings, {}, meter)
    with expected_shape("a chat completion"):
        return ranked_tokens(choice)


def _refuse_untrustworthy(reference: Reference, wire: Wire) -> None:
    statuses = {answer.status for answer in reference.answers}
    where = f"{wire.model!r} at {wire.http.base_url}"
    if Status.THINKING in statuses:
        raise EngineRefused(
            f"{where} thinks before it answers, so its first token is no answer.",
            hint=f"Switch its thinking off, for many servers with {NO_THINKING}, or take a judge "
            "that answers at once.",
        )
    if Status.UNSOUND in statuses:
        raise EngineRefused(
            f"What {where} calls log-probabilities sums to more than one.",
            hint="The server returns logits or altered values; vLLM: --logprobs-mode raw_logprobs.",
        )
    if statuses == {Status.NO_LOGPROBS}:
        raise EngineRefused(
            f"{where} answers without log-probabilities.",
            hint="The judge must be an endpoint that returns them: vLLM, SGLang, llama.cpp, and "
            "some hosted APIs do.",
        )


def _difference(
    answers: Sequence[Answer], prompt_tokens: int, reference: Reference, transport: Transport
) -> str | None:
    """Return how this form's answers contradict the reference; None when they do not."""
    more = (prompt_tokens - reference.prompt_tokens) / len(QUESTIONS)
    if transport.asks_once and prompt_tokens and reference.prompt_tokens and more:
        return (
            f"its prompts have {more:+g} tokens against a chat's: a second beginning-of-text "
            "token or another template"
        )
    pairs = zip(answers, reference.answers, strict=True)
    called = transport.wire.called
    return next(filter(None, (_contradiction(*pair, called) for pair in pairs)), None)


def _contradiction(answer: Answer, known: Answer, called: str) -> str | None:
    if answer.status in (Status.NO_LOGPROBS, Status.UNSOUND):
        return f"it tells no usable log-probabilities ({answer.status})"
    if known.mass is not None and (answer.mass or 0.0) < known.mass - APART:
        # A chat lists some of the label tokens: no form can find less on all of them.
        return (
            f"it finds {answer.mass or 0.0:.2f} of probability on {called}, a chat "
            f"{known.mass:.2f}: it asks for other tokens"
        )
    if answer.p_yes is not None and known.p_yes is not None:
        apart = abs(answer.p_yes - known.p_yes)
        if apart > APART:
            return f"its p_yes is {apart:.2f} away from a chat's"
    return None
