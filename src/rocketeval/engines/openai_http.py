"""The `openai` engine: any OpenAI-compatible server over HTTP, with the best request form."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rocketeval.config import EngineConfig, JudgeConfig, Section, parse_options
from rocketeval.engines.base import (
    EngineAnswers,
    EngineFinding,
    EngineIdentity,
    Likelihood,
    RefusedPartway,
    WrittenText,
    fails_for_good,
)
from rocketeval.engines.control_tokens import NOT_ASKED, ControlTokens, of_tokenizer_info
from rocketeval.engines.http import HttpClient
from rocketeval.engines.likelihood import NO_TEXT, ask_likelihood, require_prompt_logprobs
from rocketeval.engines.probe import (
    ProbeResult,
    form_for_labels,
    measure,
    probe,
    wire_findings,
)
from rocketeval.engines.replies import ReplyWatch, UsageMeter, secrets_in
from rocketeval.engines.rubric_readout import item_readout
from rocketeval.engines.scale_readout import make_readout
from rocketeval.engines.server import ChatFrame, Server, base_url, inspect_server
from rocketeval.engines.transports.base import ServerConnection, Transport, items_of
from rocketeval.engines.transports.chat import read_text, user, wire_body, writing_settings
from rocketeval.engines.transports.registry import check_transport
from rocketeval.errors import (
    ConfigError,
    EngineRefused,
    EngineUnavailable,
    RequestRejected,
    UnusableReply,
)
from rocketeval.hashing import content_hash
from rocketeval.items import AnswerLabels
from rocketeval.observer import EngineStatus
from rocketeval.precision import Measured
from rocketeval.records import Answer, GradingTask, Usage

MOST_ITEMS = 64
"""Maximum number of items per call, because every item repeats the prefix in the request."""


@dataclass(frozen=True, slots=True)
class WrittenTexts:
    """The texts of one request."""

    texts: tuple[str, ...]
    usage: Usage
    finished: bool
    """False if one of them ends at the token limit."""
    neutralised: int
    """Number of control tokens of this judge's own that were neutralized in the prompt."""


Failure = tuple[int, EngineUnavailable | RequestRejected]
"""The index of the item that failed, and the error."""


class TaskRequest:
    """The requests for all items of one task that are not yet known."""

    def __init__(
        self,
        transport: Callable[[AnswerLabels | None], Awaitable[Transport]],
        task: GradingTask,
        known: Mapping[int, Answer],
        headers: Mapping[str, str],
        answered: Callable[[int], None],
    ) -> None:
        """Set up the requests; `answered` is called with the number of items just answered.

        `transport` returns the request form for items with these labels.
        """
        self._transport = transport
        self._task = task
        self._answers = dict(known)
        self._headers = headers
        self._heard = answered
        self._meter = UsageMeter()

    async def graded(self) -> EngineAnswers:
        """Return the answers to all items, up to the first failure."""
        failure: Failure | None = None
        for transport, items in await self._calls():
            try:
                failed = await self._ask(transport, items)
            except EngineRefused as error:
                usage = self._meter.usage
                raise RefusedPartway.of(error, self._task, self._answers, usage) from None
            failure = failure or failed
            if failed is not None and not isinstance(failed[1], UnusableReply):
                # The other items share the prefix, so they would fail the same way.
                failure = failed
                break
        return EngineAnswers.of(
            self._task,
            self._answers,
            self._meter.usage,
            failure=None if failure is None else self._describe(*failure),
            unavailable=failure is not None and isinstance(failure[1], EngineUnavailable),
            rejected=failure is not None and fails_for_good(failure[1]),
        )

    def _describe(self, item: int, error: EngineUnavailable | RequestRejected) -> str:
        """Name the item that failed, the reason and, if rejected, the length of the prompt."""
        message = f"item {item + 1}: {error.message}"
        if not fails_for_good(error):
            return message
        length = len(self._task.prefix) + len(self._task.suffixes[item])
        return f"{message.rstrip('.')} (a prompt of {length:,} characters)"

    async def _calls(self) -> list[tuple[Transport, list[int]]]:
        """Return the items of each call, with the request form for their labels."""
        waiting = self._task.left(self._answers)
        if self._task.labels is None:
            transport = await self._transport(None)
            most = items_per_call(transport)
            return [(transport, waiting[at : at + most]) for at in range(0, len(waiting), most)]
        by_labels: dict[AnswerLabels | None, Transport] = {}
        for item in waiting:
            labels = self._task.labels_of(item)
            if labels not in by_labels:
                by_labels[labels] = await self._transport(labels)
        if any(transport.several for transport in by_labels.values()):
            # Calls of several items have the same labels; the server's cache needs no order.
            waiting.sort(key=lambda item: list(by_labels).index(self._task.labels_of(item)))
        calls: list[tuple[Transport, list[int]]] = []
        for item in waiting:
            transport = by_labels[self._task.labels_of(item)]
            if (
                calls
                and calls[-1][0] is transport
                and len(calls[-1][1]) < items_per_call(transport)
            ):
                calls[-1][1].append(item)
            else:
                calls.append((transport, [item]))
        return calls

    async def _ask(self, transport: Transport, items: Sequence[int]) -> Failure | None:
        prompts = [self._task.prefix + self._task.suffixes[item] for item in items]
        try:
            answers = await transport.ask(prompts, self._headers, self._meter)
        except EngineUnavailable as error:
            return items[0], error
        except RequestRejected as error:
            return await self._ask_singly(transport, items) if len(items) > 1 else (items[0], error)
        self._answers.update(zip(items, answers, strict=True))
        self._heard(len(answers))
        return None

    async def _ask_singly(self, transport: Transport, items: Sequence[int]) -> Failure | None:
        """Ask each item in its own call, because one bad item fails a whole call."""
        first: Failure | None = None
        for item in items:
            failure = await self._ask(transport, [item])
            first = first or failure
            if failure is not None and isinstance(failure[1], EngineUnavailable):
                return failure
        return first


def items_per_call(transport: Transport) -> int:
    """Return how many items of a response fit in one call."""
    return MOST_ITEMS if transport.several else 1


MOST_IN_FLIGHT = 64
"""Default limit of concurrent requests."""
WHOLE_RESPONSES = 16
"""Responses graded at once if one call asks all items of a response."""
SINGLE_ITEMS = 32
"""Responses graded at once if every item needs its own call."""


class HttpOptions(Section):
    """Engine-specific options of the `openai` engine."""

    chat_head: str | None = None
    """Text the judge's chat template puts before a user message, if it cannot be detected."""
    chat_tail: str | None = None
    """Text the template puts after the message, up to the start of the judge's answer."""


class OpenAIEngine:
    """A judge or author behind an OpenAI-compatible base URL.

    The first contact detects which request forms the server supports. If it accepts several
    prompts per call, one response is one call; otherwise the items of a response are sent one
    after the other, so that the server finds their shared prefix in its cache.
    """

    durable = False

    def __init__(self, config: EngineConfig) -> None:
        check_transport(config.transport)
        self.config = config
        self.in_flight = config.concurrency or WHOLE_RESPONSES
        self.base_url = base_url(config)
        self.readout = make_readout(config)
        self._frame = _given_frame(config)
        self._probed: ProbeResult | None = None
        self._measured: Measured | None = None
        self._forms: dict[AnswerLabels, Transport] = {}
        self._server: Server | None = None
        self._controls: ControlTokens | None = None
        self._answered = 0
        self._probing = asyncio.Lock()
        self._probes = UsageMeter()
        self._http = HttpClient(
            self.base_url,
            key=os.environ.get(config.api_key_env),
            concurrency=config.concurrency or MOST_IN_FLIGHT,
            timeout=config.timeout,
            patience=config.patience,
            key_variable=config.api_key_env,
            secrets=secrets_in(config.extra_body, config.options),
        )
        self._http.watch.judges = isinstance(config, JudgeConfig)

    @classmethod
    def create(cls, config: EngineConfig, home: Path | None = None) -> OpenAIEngine:
        """Return an engine for `config` without contacting the server."""
        return cls(config)

    @property
    def retries(self) -> int:
        """Number of requests resent so far."""
        return self._http.retries

    @property
    def watch(self) -> ReplyWatch:
        """The model and system fingerprints in its replies."""
        return self._http.watch

    @property
    def pulse(self) -> EngineStatus:
        """Current status: retries, their reasons, and concurrency."""
        at_once, usual = self._http.at_once, self.in_flight
        fewer = at_once is not None and at_once < usual
        return EngineStatus(
            self.retries,
            retry_reasons=dict(self._http.retry_reasons),
            at_once=at_once if fewer else None,
            usually_at_once=usual if fewer else None,
            answered=self._answered,
        )

    def drop_after(self, seconds: float) -> None:
        """Stop retrying, and end every request that has no answer within `seconds`."""
        self._http.drop_after(seconds)

    @property
    def items_per_call(self) -> int:
        """Number of items per call; 1 until the server has been probed."""
        return items_per_call(self._probed.transport) if self._probed else 1

    def take_probe_usage(self) -> Usage:
        """Return the usage of the requests that probed the server, each request once."""
        usage, self._probes = self._probes.usage, UsageMeter()
        return usage

    async def ready(self) -> None:
        """Check that the server is up and serves the model; log-probabilities are not required."""
        await self._look()

    async def identify(self) -> EngineIdentity:
        """Probe the server and return everything about it that can change a probability."""
        probed = await self._probe()
        reported = probed.wire.server.precision
        if not reported and self._measured is None:
            self._measured = await measure(probed, self._probes)
        return EngineIdentity(
            engine="openai",
            model=self.config.model,
            endpoint=probed.transport.name,
            version=str(probed.wire.server),
            logprobs=self._logprob_mode(probed),
            readout=self.readout.hash,
            precision=reported or (self._measured.precision if self._measured else ""),
            measured=str(self._measured or ""),
            control_tokens=(await self._control_tokens()).identity,
        )

    async def findings(self) -> Sequence[EngineFinding]:
        """Return the results of the probe, after trying every request form of this server."""
        found = await wire_findings(await self._probe(), self._probes)
        return (*found, (await self._control_tokens()).finding())

    async def grade(self, task: GradingTask, known: Mapping[int, Answer]) -> EngineAnswers:
        """Answer every item of `task` that is not already `known`."""
        headers = self._session(task.key)
        task, neutralised = (await self._control_tokens()).disarm_task(task)
        form = self._cold_form if task.cold else self._form_for
        graded = await TaskRequest(form, task, known, headers, self._count).graded()
        return replace(graded, neutralised=neutralised) if neutralised else graded

    async def tokenise(self, prompts: Sequence[str]) -> list[list[int]] | None:
        """Return the tokens of each prompt in the chat template; None if it is unknown."""
        wire = (await self._probe()).wire
        if wire.frame is None or wire.labels is None:
            return None
        controls = await self._control_tokens()
        texts = [wire.frame.around(controls.disarm(prompt).text) for prompt in prompts]
        encoded = await asyncio.gather(*map(wire.tokenizer.encode, texts))
        tokens = [found for found in encoded if found is not None]
        return tokens if len(tokens) == len(prompts) else None

    async def write(
        self, prompt: str, *, max_tokens: int, temperature: float = 0.0, seed: int | None = None
    ) -> WrittenText:
        """Return the text the model writes for `prompt`."""
        found = await self.write_several(
            prompt, 1, max_tokens=max_tokens, temperature=temperature, seed=seed
        )
        return WrittenText(found.texts[0], found.usage, found.finished, found.neutralised)

    async def write_several(
        self, prompt: str, count: int, *, max_tokens: int, temperature: float, seed: int | None
    ) -> WrittenTexts:
        """Return `count` texts that the model writes for `prompt`, from one request."""
        meter = UsageMeter()
        wire = replace(await self._plain_wire(), temperature=temperature)
        settings = writing_settings(max_tokens, seed) | ({"n": count} if count > 1 else {})
        headers = self._session(content_hash("prompt", prompt))
        safe = (await self._control_tokens()).disarm(prompt)

        def read(reply: dict[str, Any]) -> list[tuple[str, bool]]:
            meter.answered(reply)
            if count > 1 and len(reply.get("choices") or ()) == 1:
                raise RequestRejected(
                    f"The server wrote 1 answer to a request for {count}.",
                    hint="Set `per_request: 1` in the judge's `options`.",
                )
            return [read_text(choice) for choice in items_of(reply, "choices", count)]

        body = wire_body(wire, user(safe.text), settings)
        with meter.charging():
            written = await wire.http.ask("/chat/completions", body, meter, read, headers=headers)
        return WrittenTexts(
            texts=tuple(self._http.redact.in_written(text) for text, _ in written),
            usage=meter.usage,
            finished=all(finished for _, finished in written),
            neutralised=safe.count,
        )

    async def likelihood(self, prompt: str, text: str) -> Likelihood:
        """Return how likely the model would have been to answer `prompt` with `text`."""
        require_prompt_logprobs(await self._look(), self.base_url)
        if not text:
            raise RequestRejected(NO_TEXT)
        meter = UsageMeter()
        wire = (await self._probe()).wire
        headers = self._session(content_hash("prompt", prompt))
        controls = await self._control_tokens()
        prompt, text = controls.disarm(prompt).text, controls.disarm(text).text
        with meter.charging():
            logprobs = await ask_likelihood(wire, prompt, text, headers, meter)
        return Likelihood(logprobs, meter.usage)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    def _count(self, items: int) -> None:
        self._answered += items

    def _session(self, key: bytes) -> dict[str, str]:
        """Return the header by which a router sends requests with the same key to one replica.

        Under consistent hashing, requests without it would all go to the same replica.
        """
        name = self.config.session_header
        return {name: key.hex()} if name else {}

    async def _control_tokens(self) -> ControlTokens:
        if self._controls is None:
            self._controls = await self._ask_control_tokens()
        return self._controls

    async def _ask_control_tokens(self) -> ControlTokens:
        server = await self._look()
        if server.kind != "vllm":
            return NOT_ASKED
        info = await self._http.get(server.root + "/tokenizer_info", optional=True)
        return of_tokenizer_info(info)

    async def _look(self) -> Server:
        if self._server is None:
            self._server = await inspect_server(self._http, self.config.model)
        return self._server

    async def _plain_wire(self) -> ServerConnection:
        return ServerConnection(
            self._http,
            await self._look(),
            self.config.model,
            self.readout,
            self.config.top_logprobs,
            extra_body=self.config.extra_body,
            words=self.config.labels,
        )

    async def _form_for(self, labels: AnswerLabels | None) -> Transport:
        """Return the request form for items with these labels; None for the judge's own."""
        probed = await self._probe()
        if labels is None:
            return probed.transport
        if labels not in self._forms:
            readout = item_readout(self.config, labels)
            self._forms[labels] = await form_for_labels(probed, readout, readout.words)
        return self._forms[labels]

    async def _cold_form(self, labels: AnswerLabels | None) -> Transport:
        """Return the request form that computes the whole prompt.

        llama.cpp computes the rest of a prompt whose beginning is in its cache with other kernels,
        so that an answer depends on the request before it.
        """
        form = await self._form_for(labels)
        if form.wire.server.kind != "llamacpp":
            return form
        extra = {**form.wire.extra_body, "cache_prompt": False}
        return type(form)(replace(form.wire, extra_body=extra))

    async def _probe(self) -> ProbeResult:
        if self._probed is None:
            async with self._probing:
                if self._probed is None:
                    wire = await self._plain_wire()
                    probed = await probe(wire, self.config.transport, self._frame, self._probes)
                    self.in_flight = self.config.concurrency or _suitable(probed)
                    self._probed = probed
        return self._probed

    def _logprob_mode(self, probed: ProbeResult) -> str:
        wire = probed.wire
        labels = wire.labels if probed.transport.exact else None
        mode = f"top{wire.top_logprobs}" if labels is None else f"exact{labels.ids}"
        processed = " processed" if probed.processed else ""
        extra = dict(self.config.extra_body)
        if self._frame is not None:
            extra["chat"] = [self._frame.head, self._frame.tail]
        return f"{mode}{processed}{extra_mark(extra)}"


def extra_mark(extra: Mapping[str, Any]) -> str:
    """Return the mark that the user's own request settings add to an identity."""
    return f"+{content_hash('extra', extra).hex()}" if extra else ""


def _given_frame(config: EngineConfig) -> ChatFrame | None:
    options = parse_options(config.options, HttpOptions, f"The engine of {config.model!r}: options")
    if options.chat_head is None and options.chat_tail is None:
        return None
    if options.chat_head is None or options.chat_tail is None:
        raise ConfigError("Set options.chat_head and options.chat_tail together, or neither.")
    return ChatFrame(options.chat_head, options.chat_tail, trims=False)


def _suitable(probed: ProbeResult) -> int:
    """Return how many responses at once this server can usefully process."""
    slots = probed.wire.server.slots
    if slots is not None:
        # llama.cpp keeps one prefix per slot: more responses at once would evict each other.
        return slots
    return WHOLE_RESPONSES if probed.transport.several else SINGLE_ITEMS
