"""The probe of a judge before its first use: request forms, and checks of its answers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rocketeval.engines.base import EngineFinding
from rocketeval.engines.label_tokens import (
    AnyReadout,
    begin_alike,
    find_label_tokens,
    refuse_split_labels,
)
from rocketeval.engines.readout import NOT_REPORTED, YES_NO
from rocketeval.engines.replies import UsageMeter
from rocketeval.engines.server import NO_ANSWER, ChatFrame, Server, learn_frame
from rocketeval.engines.transports.base import ServerConnection, Transport, expected_shape
from rocketeval.engines.transports.chat import (
    complete_chat,
    listed_tokens,
    ranked_tokens,
    top_settings,
    user,
)
from rocketeval.engines.transports.registry import BEST_FIRST, OFFERED, TRANSPORTS
from rocketeval.errors import EngineRefused, RequestRejected, UnusableReply
from rocketeval.precision import KEPT, Measured
from rocketeval.records import Answer, Status

PREFIX = (
    "Read the response, then answer one question about it.\n\n"
    "Response: Paris is the capital of France.\n\nQuestion: "
)
QUESTIONS = ("Does the response name a city?", "Is the response about the weather?")
OPEN_QUESTIONS = ("Which country is it about?", "How does it sound to you?")
"""Extra questions to measure a judge's precision: many tokens are likely after them."""
MORE_PROMPTS = tuple(f"{PREFIX}{one}\nAnswer with one word.\nAnswer:" for one in OPEN_QUESTIONS)
HOT = 2.0
"""A temperature that raw log-probabilities do not depend on; servers allow no higher one."""
SAME = 0.25
"""Two identical requests have log-probabilities whose spreads differ by less than this share."""
APART = 0.15
"""Two request forms whose probabilities differ by more do not ask the same question."""
LOOKS = 3
"""Requests for the most likely tokens after one question, if the list is empty or short."""
MOST_REPEATED = 8
"""Requests of one probe that are repeated because the list is short."""
SHORT = "short list of tokens"
"""Retry reason: fewer tokens were listed than requested, and than a judge's precision needs."""
FEWER_LOGPROBS = (20, 10, 5, 1)
FEW_LISTED = (
    "So few tokens may not show the judge's precision. On vLLM, requests of other clients may "
    "break the lists: run this again while nobody else uses the server."
)
NO_THINKING = "`extra_body: {chat_template_kwargs: {enable_thinking: false}}`"


Listed = list[tuple[str, float]]
"""The most likely tokens with their log-probabilities."""


@dataclass(frozen=True, slots=True)
class ProbeReference:
    """The result of chat requests, the form that every server has."""

    answers: tuple[Answer, ...]
    prompt_tokens: int
    """Of all probe prompts together; 0 if not reported."""
    replies: tuple[tuple[tuple[str, float], ...], ...]
    """The most likely tokens after each prompt."""

    @property
    def listed(self) -> tuple[tuple[str, float], ...]:
        """The most likely tokens after the first prompt."""
        return self.replies[0]


@dataclass(frozen=True, slots=True)
class TransportTrial:
    """The result of one request form on the probe."""

    name: str
    refused: str | None
    """Why the form cannot be used; None if it can."""
    answers: tuple[Answer, ...] = ()


@dataclass
class ListRetries:
    """Questions that may be repeated because their lists of tokens are short.

    vLLM 0.32 breaks the lists of a batch in which other requests ask for label tokens. If that is
    over a moment later, it does not change the judge's measured precision. A server that always
    lists few tokens keeps its first lists.
    """

    left: int = MOST_REPEATED

    def allowed(self, wire: ServerConnection) -> bool:
        """Count one more request after a short list; False if there were enough."""
        if not self.left:
            return False
        self.left -= 1
        wire.http.retry_reasons[SHORT] += 1
        return True


@dataclass(frozen=True)
class ProbeResult:
    """How requests to a judge are sent, and the observations behind that choice."""

    wire: ServerConnection
    transport: Transport
    reference: ProbeReference
    processed: bool
    """Whether the server's log-probabilities depend on sampling settings."""
    repeats: ListRetries


def probe_prompts(words: Sequence[str]) -> tuple[str, ...]:
    """Return the probe prompts for a judge with these labels."""
    choice = " or ".join(words) if len(words) == 2 else f"{', '.join(words)}, the best grade first"
    ending = f"\nAnswer with one word: {choice}.\nAnswer:"
    return tuple(PREFIX + question + ending for question in QUESTIONS)


async def probe(
    wire: ServerConnection, name: str, frame: ChatFrame | None, meter: UsageMeter
) -> ProbeResult:
    """Choose the request form for a judge; EngineRefused if its answers cannot be trusted.

    `name` is a request form, or `auto` for the best one that works. `frame` is a chat template
    from the config, if any. `meter` counts the requests.
    """
    repeats = ListRetries()
    wire, listed = await _allowed_logprobs(wire, meter, repeats)
    wire, processed = await _unscaled(wire, listed, meter, repeats)
    reference = await ask_reference(wire, meter, repeats)
    _refuse_untrustworthy(reference, wire)
    wire = await _with_knowledge(wire, frame)
    for form in BEST_FIRST.get(wire.server.kind, ("chat",)) if name == "auto" else (name,):
        transport = TRANSPORTS[form](wire)
        trial = await try_transport(transport, reference, meter)
        if trial.refused is None:
            return ProbeResult(wire, transport, reference, processed, repeats)
    raise EngineRefused(
        f"{wire.http.base_url} does not work with the transport {trial.name!r}: {trial.refused}.",
        hint="`transport: auto` uses the best one that works; `rocketeval doctor` lists them all.",
    )


async def try_transport(
    transport: Transport, reference: ProbeReference, meter: UsageMeter
) -> TransportTrial:
    """Try a request form, and compare its answers with the reference for the same prompts."""
    missing = transport.missing()
    if missing:
        return TransportTrial(transport.name, missing)
    before, prompts = meter.usage.prompt_tokens, probe_prompts(transport.wire.words)
    together = [prompts] if transport.several else [[prompt] for prompt in prompts]
    try:
        with transport.wire.http.trying():
            answers = [
                answer for each in together for answer in await transport.ask(each, {}, meter)
            ]
    except UnusableReply as error:
        why = f"it returns no usable log-probabilities: {error.message.rstrip('.')}"
        return TransportTrial(transport.name, why)
    except NO_ANSWER as error:
        return TransportTrial(transport.name, error.message)
    tokens = meter.usage.prompt_tokens - before
    refused = _difference(answers, tokens, reference, transport)
    return TransportTrial(transport.name, refused, tuple(answers))


async def ask_reference(
    wire: ServerConnection, meter: UsageMeter, repeats: ListRetries
) -> ProbeReference:
    """Return the answers of chat requests to the probe prompts."""
    lists = [await _ask_list(wire, prompt, meter, repeats) for prompt in probe_prompts(wire.words)]
    return ProbeReference(
        tuple(wire.readout.read(each.ranked) for each in lists),
        sum(each.prompt_tokens for each in lists),
        tuple(tuple(each.ranked) for each in lists),
    )


async def measure(probed: ProbeResult, meter: UsageMeter) -> Measured:
    """Measure what distinguishes this judge from the same weights at another precision.

    The probe's own questions are asked once more, the extra ones twice, always one at a time.
    """
    wire, reference = probed.wire, probed.reference

    async def asked(prompts: Sequence[str]) -> list[dict[str, float]]:
        lists = [await _ask_list(wire, prompt, meter, probed.repeats) for prompt in prompts]
        return [_reported(each.ranked) for each in lists]

    first = [*(_reported(list(one)) for one in reference.replies), *await asked(MORE_PROMPTS)]
    return Measured.of(first, await asked((*probe_prompts(wire.words), *MORE_PROMPTS)))


async def _allowed_logprobs(
    wire: ServerConnection, meter: UsageMeter, repeats: ListRetries
) -> tuple[ServerConnection, Listed]:
    """Return the wire with as many listed tokens as the server allows, and a first list."""
    fewer = [number for number in FEWER_LOGPROBS if number < wire.top_logprobs]
    prompt, *_ = probe_prompts(wire.words)
    rejected: RequestRejected | None = None
    for number in (wire.top_logprobs, *fewer):
        allowed = replace(wire, top_logprobs=number)
        try:
            return allowed, (await _ask_list(allowed, prompt, meter, repeats)).ranked
        except RequestRejected as error:
            rejected = rejected or error
    raise EngineRefused(
        f"{wire.http.base_url} rejects a request with log-probabilities: "
        f"{rejected.message if rejected else ''}",
        hint="Use an endpoint that returns log-probabilities of chat answers, or count written "
        "answers: `engine: openai_sampled`.",
    )


async def _unscaled(
    wire: ServerConnection, listed: Listed, meter: UsageMeter, repeats: ListRetries
) -> tuple[ServerConnection, bool]:
    """Return the wire that gets unscaled log-probabilities, and whether temperature scales them.

    `listed` is the list after the first prompt with the current settings.
    """

    prompt, *_ = probe_prompts(wire.words)

    async def at(temperature: float) -> dict[str, float]:
        hot = replace(wire, temperature=temperature)
        return _reported((await _ask_list(hot, prompt, meter, repeats)).ranked)

    cold = _reported(listed)
    try:
        if _alike(cold, await at(HOT)):
            return wire, False
        if _alike(cold, await at(1.0)):
            # Greedy answers are not scaled, and no unlikely token is sampled.
            return wire, True
    except RequestRejected:
        return wire, False
    # At temperature 1 a server that scales by temperature returns the model's probabilities.
    return replace(wire, temperature=1.0), True


def _reported(listed: Listed) -> dict[str, float]:
    return {token: logp for token, logp in listed if logp > NOT_REPORTED}


def _alike(one: Mapping[str, float], other: Mapping[str, float]) -> bool:
    """Return whether two lists of log-probabilities are consistent with one distribution."""
    both = [token for token in one if token in other]
    if not both:
        # A list with only the sampled token cannot be compared with another.
        return min(len(one), len(other)) < 2
    if len(both) == 1:
        return math.isclose(one[both[0]], other[both[0]], rel_tol=SAME, abs_tol=SAME)
    spreads = [
        max(logps[token] for token in both) - min(logps[token] for token in both)
        for logps in (one, other)
    ]
    return math.isclose(*spreads, rel_tol=SAME, abs_tol=SAME)


async def _with_knowledge(wire: ServerConnection, frame: ChatFrame | None) -> ServerConnection:
    """Return the wire with the model's label tokens and chat template, if they can be found."""
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


async def form_for_labels(
    probed: ProbeResult, readout: AnyReadout, words: tuple[str, ...]
) -> Transport:
    """Return the judge's request form for items with other labels.

    Labels that are not single tokens of the vocabulary are read from the most likely tokens.
    """
    labels = None
    if probed.transport.exact:
        tokenizer = probed.wire.tokenizer

        async def encode(text: str) -> Sequence[int]:
            return await tokenizer.encode(text) or ()

        labels = await find_label_tokens(readout, encode)
    wire = replace(probed.wire, readout=readout, words=words, labels=labels)
    exact_without_labels = probed.transport.exact and labels is None
    return TRANSPORTS["chat"](wire) if exact_without_labels else type(probed.transport)(wire)


@dataclass(frozen=True, slots=True)
class _ReadList:
    """The most likely tokens in one reply."""

    ranked: Listed
    reported: int
    """Number of tokens with a log-probability, also of those that are not certainly most likely."""
    prompt_tokens: int


async def _ask_list(
    wire: ServerConnection, prompt: str, meter: UsageMeter, repeats: ListRetries
) -> _ReadList:
    """Return the longest list after a prompt, and of equally long ones the first."""
    longest = await _ask_list_once(wire, prompt, meter)
    for _ in range(LOOKS - 1):
        enough = longest.reported >= min(wire.top_logprobs, KEPT)
        if enough or (longest.ranked and not repeats.allowed(wire)):
            break
        again = await _ask_list_once(wire, prompt, meter)
        longest = max(longest, again, key=lambda each: (bool(each.ranked), each.reported))
    return longest


async def _ask_list_once(wire: ServerConnection, prompt: str, meter: UsageMeter) -> _ReadList:
    before = meter.usage.prompt_tokens

    def read(choice: Mapping[str, Any]) -> tuple[Listed, int]:
        with expected_shape("a chat completion"):
            return ranked_tokens(choice), len(_reported(listed_tokens(choice)))

    settings = top_settings(wire.top_logprobs)
    ranked, reported = await complete_chat(wire, user(prompt), settings, {}, meter, read)
    return _ReadList(ranked, reported, meter.usage.prompt_tokens - before)


def _refuse_untrustworthy(reference: ProbeReference, wire: ServerConnection) -> None:
    statuses = {answer.status for answer in reference.answers}
    where = f"{wire.model!r} at {wire.http.base_url}"
    if Status.THINKING in statuses:
        raise EngineRefused(
            f"{where} thinks before it answers, so its first token is not an answer.",
            hint=f"Switch its thinking off (for many servers with {NO_THINKING}), or use a judge "
            "that answers directly.",
        )
    if Status.UNSOUND in statuses:
        raise EngineRefused(
            f"The list of log-probabilities from {where} sums to more than one.",
            hint="The server returns logits or altered values; vLLM: --logprobs-mode raw_logprobs.",
        )
    if statuses == {Status.NO_LOGPROBS}:
        raise EngineRefused(
            f"{where} answers without log-probabilities.",
            hint="Use an endpoint that returns them, such as vLLM, SGLang, llama.cpp and some "
            "hosted APIs, or count written answers: `engine: openai_sampled`.",
        )


def _difference(
    answers: Sequence[Answer], prompt_tokens: int, reference: ProbeReference, transport: Transport
) -> str | None:
    """Return how this form's answers contradict the reference; None if they do not."""
    more = (prompt_tokens - reference.prompt_tokens) / len(QUESTIONS)
    if transport.asks_once and prompt_tokens and reference.prompt_tokens and more:
        return (
            f"its prompts have {more:+g} tokens compared with chat: a second beginning-of-text "
            "token or another template"
        )
    pairs = zip(answers, reference.answers, strict=True)
    called = transport.wire.called
    return next(filter(None, (_contradiction(*pair, called) for pair in pairs)), None)


def _contradiction(answer: Answer, known: Answer, called: str) -> str | None:
    if known.mass is not None and (answer.mass or 0.0) < known.mass - APART:
        # Chat lists some of the label tokens, so no form can find less on all of them.
        return (
            f"it finds {answer.mass or 0.0:.2f} of probability on {called}, chat finds "
            f"{known.mass:.2f}: it asks for other tokens"
        )
    if answer.p_yes is not None and known.p_yes is not None:
        apart = abs(answer.p_yes - known.p_yes)
        if apart > APART:
            return f"its p_yes differs from chat by {apart:.2f}"
    return None


HARDLY = 0.5
"""With less probability than this on all labels, the judge hardly answers the question."""


async def wire_findings(probed: ProbeResult, meter: UsageMeter) -> Sequence[EngineFinding]:
    """Return findings about the server, after trying every request form it offers."""
    trials = [
        await try_transport(TRANSPORTS[name](probed.wire), probed.reference, meter)
        for name in OFFERED.get(probed.wire.server.kind, ("chat",))
    ]
    return (
        EngineFinding("server", _server(probed.wire.server)),
        _logprobs(probed),
        _labels(probed),
        _mass(probed.reference.answers, probed.wire.called),
        _transport(probed, trials),
        *(_form(trial, probed) for trial in trials if trial.name != probed.transport.name),
    )


def _server(server: Server) -> str:
    return str(server) if server.kind != "unknown" else f"unknown server, version {server.version}"


def _logprobs(probed: ProbeResult) -> EngineFinding:
    listed = len(_reported(list(probed.reference.listed)))
    asked = probed.wire.top_logprobs
    many = f"{listed} listed" if listed >= asked else f"{listed} listed of {asked} requested"
    if probed.processed:
        return EngineFinding(
            "logprobs",
            f"processed by the server (temperature changes them), {many}",
            "note",
            "RocketEval uses a temperature that does not change them; penalties, top-k and top-p "
            "set by the server would still change them. vLLM: --logprobs-mode raw_logprobs.",
        )
    if listed < min(asked, KEPT):
        return EngineFinding("logprobs", f"raw, {many}", "note", FEW_LISTED)
    return EngineFinding("logprobs", f"raw, {many}")


def _labels(probed: ProbeResult) -> EngineFinding:
    wire = probed.wire
    known = {token.strip() for spelled in wire.readout.spelled for token in spelled}
    carrying = [
        f"{token!r} {math.exp(logp):.3f}"
        for token, logp in probed.reference.listed
        if token.strip("\u0120\u2581 \n") in known
    ][:4]
    exact = f"; {len(wire.labels.ids)} label tokens in the vocabulary" if wire.labels else ""
    shown = ", ".join(carrying) or "none of the listed tokens"
    name = "yes/no tokens" if wire.words == YES_NO else "label tokens"
    if carrying and wire.labels is None and begin_alike(wire.words):
        return EngineFinding(
            name,
            f"{shown}; some labels start alike",
            "note",
            "The server does not report its tokens: if 10 is two tokens, it is read as 1. Use "
            "labels that do not start alike, such as 0 to 9.",
        )
    return EngineFinding(name, f"{shown}{exact}", "good" if carrying else "bad")


def _mass(answers: Sequence[Answer], called: str) -> EngineFinding:
    masses = [answer.mass for answer in answers if answer.mass is not None]
    least = min(masses, default=0.0)
    if least >= HARDLY:
        return EngineFinding("mass", f"{least:.3f} on {called}, thinking off")
    return EngineFinding(
        "mass",
        f"{least:.3f} on {called}",
        "bad" if least < 0.1 else "note",
        "The judge hardly answers the question. Use another model, or switch its thinking off.",
    )


def _transport(probed: ProbeResult, trials: Sequence[TransportTrial]) -> EngineFinding:
    form = probed.transport
    calls = "all items of a response per call" if form.several else "one item per call"
    kind = "exact probabilities" if form.exact else "top tokens, with bounds if one is cut off"
    usable = sum(trial.refused is None for trial in trials)
    return EngineFinding(
        "transport", f"{form.name}: {calls}, {kind} ({usable} of {len(trials)} work)"
    )


def _form(trial: TransportTrial, probed: ProbeResult) -> EngineFinding:
    if trial.refused is not None:
        return EngineFinding(f"  {trial.name}", f"not usable: {trial.refused}", "note")
    apart = max(
        (
            abs(mine.p_yes - theirs.p_yes)
            for mine, theirs in zip(trial.answers, probed.reference.answers, strict=True)
            if mine.p_yes is not None and theirs.p_yes is not None
        ),
        default=0.0,
    )
    return EngineFinding(f"  {trial.name}", f"works, p_yes within {apart:.1g} of chat")
