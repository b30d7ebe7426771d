"""The `openai_batch` engine: the OpenAI Batch API, within a day and at about half the price.

Requests are the same chat completions that `engine: openai` sends live, so the same readout reads
them; the identity differs, so a run never mixes the two. Set `price` to the batch price: the
OpenAI API charges about half of the live price.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rocketeval.config import EngineConfig, parse_options
from rocketeval.engines.base import (
    EngineAnswers,
    EngineFinding,
    EngineIdentity,
    Likelihood,
    WrittenText,
    fails_for_good,
)
from rocketeval.engines.batch.api import BatchApi, FileClient
from rocketeval.engines.batch.queue import Batcher, BatchOptions, Outcome
from rocketeval.engines.batch.store import BatchStore
from rocketeval.engines.label_tokens import AnyReadout
from rocketeval.engines.likelihood import refused_likelihood
from rocketeval.engines.openai_http import extra_mark
from rocketeval.engines.replies import UsageMeter, secrets_in
from rocketeval.engines.rubric_readout import item_readout
from rocketeval.engines.scale_readout import make_readout
from rocketeval.engines.server import Server, base_url, inspect_server
from rocketeval.engines.transports.base import items_of, usable
from rocketeval.engines.transports.chat import (
    chat_body,
    read_text,
    read_top,
    top_settings,
    user,
    writing_settings,
)
from rocketeval.errors import (
    ConfigError,
    EngineError,
    EngineRefused,
    EngineUnavailable,
    UnusableReply,
)
from rocketeval.observer import EngineStatus
from rocketeval.records import Answer, GradingTask, Usage

IN_FLIGHT = 10_000
"""Tasks at once: several full batches, so that they wait in parallel."""
CONNECTIONS = 8


class OpenAIBatchEngine:
    """A judge or author that answers in batches, within a day.

    Requests wait until a batch is full or no more arrive. Batches survive the process: the next
    one, given the same `home`, finds them and continues to wait.
    """

    def __init__(self, config: EngineConfig, home: Path | None = None) -> None:
        self.config = config
        self.durable = home is not None
        self.in_flight = config.concurrency or IN_FLIGHT
        self.base_url = base_url(config)
        self.readout = make_readout(config)
        where = f"The engine of {config.model!r}: options"
        options = parse_options(config.options, BatchOptions, where)
        _refuse_transport(config)
        self._home = home
        self._window = options.completion_window
        self._http = FileClient(
            self.base_url,
            key=os.environ.get(config.api_key_env),
            concurrency=CONNECTIONS,
            timeout=config.timeout,
            patience=config.patience,
            key_variable=config.api_key_env,
            secrets=secrets_in(config.extra_body, config.options),
        )
        self._api = BatchApi(
            self._http, completion_window=options.completion_window, patience=config.patience
        )
        self._store = BatchStore(home, self._http.safe)
        self._batcher = Batcher(self._api, self._store, options)
        self._server: Server | None = None

    @classmethod
    def create(cls, config: EngineConfig, home: Path | None = None) -> OpenAIBatchEngine:
        """Return an engine for `config` that keeps its batches in `home`."""
        return cls(config, home)

    @property
    def pulse(self) -> EngineStatus:
        """Number of batches it waits for, and their progress as the server reports it."""
        http = self._http
        return EngineStatus(http.retries, self._waiting(), dict(http.retry_reasons))

    async def ready(self) -> None:
        """Check that the server serves the model and has a Batch API."""
        if self._server is not None:
            return
        server = await inspect_server(self._http, self.config.model)
        await self._api.check()
        self._server = server

    async def identify(self) -> EngineIdentity:
        """Return everything about this judge that can change a probability."""
        await self.ready()
        return EngineIdentity(
            engine="openai_batch",
            model=self.config.model,
            endpoint="batch",
            version=str(self._server),
            logprobs=f"top{self.config.top_logprobs}{extra_mark(self.config.extra_body)}",
            readout=self.readout.hash,
        )

    async def findings(self) -> Sequence[EngineFinding]:
        """Report how long answers take, and which batches survive this process."""
        await self.ready()
        found = [EngineFinding("batches", f"answers arrive within {self._window}", "note")]
        left = self._store.unfinished()
        if left:
            found.append(EngineFinding("open batches", f"{left} of an earlier process are resumed"))
        if self._home is None:
            found.append(
                EngineFinding(
                    "durability",
                    "no folder for its journal: open batches are lost when this process ends",
                    "note",
                    "Use it inside a run, or give `create` a `home`.",
                )
            )
        return found

    async def grade(self, task: GradingTask, known: Mapping[int, Answer]) -> EngineAnswers:
        """Answer every item of `task` that is not already `known`, once the batches have ended."""
        started = time.monotonic()
        asked = task.left(known)
        settings = top_settings(self.config.top_logprobs)

        def body(item: int) -> dict[str, Any]:
            return self._body(task.prefix + task.suffixes[item], settings)

        try:
            outcomes = await self._batcher.ask(map(body, asked)) if asked else []
        except EngineUnavailable as error:
            outcomes = [error] * len(asked)
        meter = UsageMeter()
        answers, failures = dict(known), []
        for item, outcome in zip(asked, outcomes, strict=True):
            try:
                answer = read_top(self._readout_of(task, item), _choice(outcome, meter))
                (answers[item],) = usable([answer])
            except EngineRefused:
                raise
            except EngineError as error:
                if isinstance(error, UnusableReply):
                    self._batcher.discard(body(item))
                failures.append((item, error))
        return EngineAnswers.of(
            task,
            answers,
            _since(started, meter),
            failure=_first_failure(failures),
            unavailable=any(isinstance(error, EngineUnavailable) for _, error in failures),
            rejected=bool(failures) and all(fails_for_good(error) for _, error in failures),
        )

    def _readout_of(self, task: GradingTask, item: int) -> AnyReadout:
        labels = task.labels_of(item)
        return self.readout if labels is None else item_readout(self.config, labels)

    async def tokenise(self, prompts: Sequence[str]) -> list[list[int]] | None:
        """Return None: the Batch API has no tokenizer."""
        return None

    async def write(
        self, prompt: str, *, max_tokens: int, temperature: float = 0.0, seed: int | None = None
    ) -> WrittenText:
        """Return the text the model writes for `prompt`, once its batch has ended."""
        started, meter = time.monotonic(), UsageMeter()
        body = self._body(prompt, writing_settings(max_tokens, seed), temperature)
        (outcome,) = await self._batcher.ask([body])
        try:
            text, finished = read_text(_choice(outcome, meter))
        except UnusableReply:
            self._batcher.discard(body)
            raise
        safe = self._http.redact.in_written(text)
        return WrittenText(safe, _since(started, meter), finished)

    async def likelihood(self, prompt: str, text: str) -> Likelihood:
        """Raise EngineRefused: the Batch API reports only tokens the model writes."""
        raise refused_likelihood("The Batch API")

    def answers_recorded(self, *, everything: bool = False) -> None:
        """Allow `aclose` to delete the answers given so far; `everything`: and all others."""
        self._batcher.recorded(everything=everything)

    async def aclose(self) -> None:
        """Stop polling and close the connections; open batches continue on the server."""
        await self._batcher.aclose()
        await self._http.aclose()

    def _waiting(self) -> str:
        state = self._batcher.waits_for
        if not state.batches:
            return "collecting requests for the next batch" if state.gathering else ""
        batches = f"{state.batches:,} {'batch' if state.batches == 1 else 'batches'}"
        progress = f"{state.answered:,} of {state.requests:,} requests answered"
        return f"waiting for {batches} at the server (within {self._window}): {progress}"

    def _body(
        self, prompt: str, settings: Mapping[str, Any], temperature: float = 0
    ) -> dict[str, Any]:
        # Always the integer zero: a request is identified by the hash of its body.
        heat = temperature or 0
        return chat_body(self.config.model, user(prompt), settings, self.config.extra_body, heat)


def _choice(outcome: Outcome, meter: UsageMeter) -> dict[str, Any]:
    """Return the single choice of a completion and count its usage; raise a failed outcome."""
    if isinstance(outcome, EngineUnavailable | EngineRefused):
        raise outcome
    meter.sent()
    if isinstance(outcome, EngineError):
        raise outcome
    meter.answered(outcome)
    choice: dict[str, Any] = items_of(outcome, "choices", 1)[0]
    return choice


def _since(started: float, meter: UsageMeter) -> Usage:
    return replace(meter.usage, seconds=time.monotonic() - started)


def _first_failure(failures: Sequence[tuple[int, EngineError]]) -> str | None:
    if not failures:
        return None
    item, error = failures[0]
    more = f" (and {len(failures) - 1} more items)" if len(failures) > 1 else ""
    return f"item {item + 1}: {error.message}{more}"


def _refuse_transport(config: EngineConfig) -> None:
    if config.transport not in ("auto", "chat"):
        raise ConfigError(
            f"`transport: {config.transport}` cannot be sent in batches.",
            hint="Remove `transport`: batches always use chat completions.",
        )
