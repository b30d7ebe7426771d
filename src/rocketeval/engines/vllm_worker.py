"""A vLLM engine on its own thread: setup from a config, prompts in, outputs in order."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import count
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Annotated, Any

from pydantic import Field, field_validator

from rocketeval.config import EngineConfig, Section
from rocketeval.engines.base import EngineFinding
from rocketeval.engines.label_tokens import (
    AnyReadout,
    LabelTokens,
    find_label_tokens,
    refuse_split_labels,
)
from rocketeval.engines.likelihood import ChatText
from rocketeval.engines.readout import called
from rocketeval.engines.tokenizer import ChatTokenizer, folder_hash
from rocketeval.errors import (
    ConfigError,
    EngineError,
    EngineRefused,
    EngineUnavailable,
    RequestRejected,
)
from rocketeval.hashing import content_hash
from rocketeval.records import Answer

CLOSE_SECONDS = 60.0
"""How long closing waits for vLLM to free its memory."""
_COMPUTING = Lock()
"""vLLM keeps the state of a forward pass in globals, so two engines in one process must not
compute at the same time."""


@dataclass(slots=True, eq=False)
class _PromptBatch:
    """Prompts submitted together."""

    prompts: Sequence[list[int]]
    params: Any
    done: Future[list[Any]] = field(default_factory=Future)
    outputs: dict[int, Any] = field(default_factory=dict)


class Driver:
    """The owner of one vLLM engine, from loading to shutdown.

    Only its thread touches the engine. Between two steps it adds everything that has arrived, so
    vLLM's scheduler always sees every task in flight. Each task, not each item, has one future.
    """

    def __init__(self, load: Callable[[], Any]) -> None:
        self.loaded: Future[None] = Future()
        """Done once the engine is loaded; fails with the reason if loading failed."""
        self.loaded.set_running_or_notify_cancel()
        self.engine: Any = None
        """vLLM's engine while it is loaded, for inspection only."""
        self._inbox: SimpleQueue[_PromptBatch | None] = SimpleQueue()
        self._asked: dict[str, tuple[_PromptBatch, int]] = {}
        self._numbers = count()
        self._ending = Lock()
        self._ended: EngineUnavailable | None = None
        self._thread = Thread(target=self._run, args=(load,), name="rocketeval-vllm", daemon=True)
        self._thread.start()

    @property
    def ended(self) -> EngineUnavailable | None:
        """Why the engine no longer accepts prompts; None while it does."""
        return self._ended

    def submit(self, prompts: Sequence[list[int]], params: Any) -> Future[list[Any]]:
        """Return a future with one finished request, or RequestRejected, per prompt.

        EngineUnavailable is raised, now or by the future, once the engine has stopped.
        """
        job = _PromptBatch(prompts, params)
        with self._ending:
            if self._ended is not None:
                raise self._ended
            self._inbox.put(job)
        return job.done

    def close(self) -> None:
        """Shut the engine down; one that is still loading shuts down once it is loaded."""
        self._inbox.put(None)
        if self.loaded.done():
            self._thread.join(CLOSE_SECONDS)

    def _run(self, load: Callable[[], Any]) -> None:
        # Processes that vLLM starts inherit this: Ctrl-C in a terminal reaches all of them, and
        # must not end them while tasks in flight finish.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            with _COMPUTING:
                self.engine = load()
        except BaseException as error:  # noqa: BLE001 - waiting callers must get the error
            self._end(EngineUnavailable("The engine could not be loaded."))
            self.loaded.set_exception(error)
            return
        self.loaded.set_result(None)
        ended = EngineUnavailable("The engine was closed.")
        try:
            self._serve(self.engine)
        except Exception as error:  # noqa: BLE001 - after any error this engine is unusable
            ended = EngineUnavailable(
                f"vLLM stopped working: {type(error).__name__}: {error}",
                hint="See vLLM's own messages above. Finished judgments are safe: run the same "
                "command again to continue.",
            )
        self._end(ended)
        self._release()

    def _serve(self, engine: Any) -> None:
        while self._hand_over(engine):
            with _COMPUTING:
                outputs = engine.step()
            for output in outputs:
                if output.finished:
                    self._deliver(*self._asked.pop(output.request_id), output)

    def _hand_over(self, engine: Any) -> bool:
        """Give the engine everything that has arrived, waiting if it is idle; False to stop."""
        while True:
            try:
                job = self._inbox.get(block=not self._asked)
            except Empty:
                return True
            if job is None:
                return False
            if job.done.set_running_or_notify_cancel():
                self._ask(engine, job)

    def _ask(self, engine: Any, job: _PromptBatch) -> None:
        for position, prompt in enumerate(job.prompts):
            name = str(next(self._numbers))
            # Before the engine has it: if adding it ends the engine, the task must end too.
            self._asked[name] = (job, position)
            try:
                engine.add_request(name, _token_prompt(prompt), job.params)
            except Exception as error:
                if not _is_rejection(error):
                    raise
                self._deliver(*self._asked.pop(name), RequestRejected(str(error)))

    def _deliver(self, job: _PromptBatch, position: int, output: Any) -> None:
        job.outputs[position] = output
        if len(job.outputs) == len(job.prompts):
            job.done.set_result([job.outputs[place] for place in range(len(job.prompts))])

    def _end(self, reason: EngineUnavailable) -> None:
        with self._ending:
            self._ended = reason
        jobs = {job: None for job, _ in self._asked.values()}
        while True:
            try:
                waiting = self._inbox.get(block=False)
            except Empty:
                break
            if waiting is not None and waiting.done.set_running_or_notify_cancel():
                jobs[waiting] = None
        for job in jobs:
            job.done.set_exception(reason)

    def _release(self) -> None:
        self.engine.engine_core.shutdown()
        renderer = getattr(self.engine, "renderer", None)
        if renderer is not None:
            renderer.shutdown()
        # A model is full of reference cycles: without a collection its memory stays allocated.
        self.engine = renderer = None
        gc.collect()


def _is_rejection(error: Exception) -> bool:
    """Return whether vLLM rejects only this request, such as a prompt that is too long.

    Older releases raise ValueError, newer ones have their own exception classes.
    """
    names = {kind.__name__ for kind in type(error).__mro__}
    return not names.isdisjoint({"ValueError", "VLLMClientError"})


def _token_prompt(tokens: list[int]) -> dict[str, Any]:
    return {"type": "token", "prompt_token_ids": tokens}


_ENVIRONMENT = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_NO_USAGE_STATS": "1",
}
"""Defaults for vLLM's environment. Everything runs in this process: a separate engine process
would survive if we are killed, and keep its memory. Quiet, and no telemetry."""
_OURS = frozenset({"model", "max_logprobs", "logprobs_mode", "skip_tokenizer_init"})
_TOKENIZER_SETTINGS = {
    "tokenizer_revision": "revision",
    "revision": "revision",
    "trust_remote_code": "trust_remote_code",
}
CPU_BLOCK_SIZE = 32
"""vLLM's CPU default, 128, recomputes up to 127 tokens of every shared prefix."""


class VLLMOptions(Section):
    """Engine-specific options of the `vllm` engine."""

    dtype: str = "auto"
    """Precision: auto, bfloat16, float16 or float32; float32 answers repeat to the last bit."""
    max_model_len: Annotated[int, Field(gt=0)] | None = None
    """Maximum tokens per prompt; the model's limit if absent."""
    gpu_memory_utilization: Annotated[float, Field(gt=0, le=1)] | None = None
    """Share of GPU memory to use; vLLM's default if absent."""
    tensor_parallel_size: Annotated[int, Field(ge=1)] = 1
    """Number of GPUs to spread the model over."""
    block_size: Annotated[int, Field(gt=0)] | None = None
    """Tokens per block of the prefix cache; chosen for the device if absent."""
    seed: int = 0
    """vLLM's seed; answers do not depend on it."""
    chat_template_kwargs: dict[str, Any] = Field(default_factory=dict)
    """Variables of the judge's chat template, such as `enable_thinking: false`."""
    engine_args: dict[str, Any] = Field(default_factory=dict)
    """Any other argument of vLLM's EngineArgs."""

    @field_validator("engine_args")
    @classmethod
    def _leaves_ours_alone(cls, value: dict[str, Any]) -> dict[str, Any]:
        taken = sorted(name for name in value if name in _OURS or name in cls.model_fields)
        if taken:
            raise ValueError(f"{', '.join(taken)} cannot be set here.")
        return value


def load_engine(config: EngineConfig, options: VLLMOptions) -> Any:
    """Return a loaded vLLM engine; vLLM's exceptions pass through."""
    parsed = _arguments(config, options)
    from vllm import LLMEngine
    from vllm.usage.usage_lib import UsageContext

    return LLMEngine.from_engine_args(parsed, usage_context=UsageContext.LLM_CLASS)


def read_settings(config: EngineConfig, options: VLLMOptions) -> Any:
    """Return the settings a loaded engine would have, without loading its weights."""
    parsed = _arguments(config, options)
    from vllm.usage.usage_lib import UsageContext

    return parsed.create_engine_config(UsageContext.LLM_CLASS)


def _arguments(config: EngineConfig, options: VLLMOptions) -> Any:
    """Return vLLM's EngineArgs."""
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    from vllm import EngineArgs
    from vllm.platforms import current_platform

    chosen = {
        "dtype": options.dtype,
        "max_model_len": options.max_model_len,
        "gpu_memory_utilization": options.gpu_memory_utilization,
        "tensor_parallel_size": options.tensor_parallel_size,
        "block_size": options.block_size or (CPU_BLOCK_SIZE if current_platform.is_cpu() else None),
        "seed": options.seed,
    }
    arguments = {
        "enable_prefix_caching": True,
        "disable_log_stats": True,
        "use_tqdm_on_load": False,
        **{name: value for name, value in chosen.items() if value is not None},
        **options.engine_args,
    }
    try:
        return EngineArgs(
            model=_model(config), max_logprobs=max(20, config.top_logprobs), **arguments
        )
    except TypeError as error:
        raise ConfigError(
            f"options.engine_args: this vLLM version does not accept them: {error}.",
            hint="Use the names of vLLM's EngineArgs, with underscores.",
        ) from None


def _model(config: EngineConfig) -> str:
    """Return the folder of a local model, else the name that vLLM finds itself."""
    return str(config.local_model) if config.local_model.exists() else config.model


def not_loaded(model: str, error: Exception) -> EngineError | ConfigError:
    """Return the error for a user when loading raised `error`."""
    if isinstance(error, EngineError | ConfigError):
        return error
    return EngineRefused(
        f"vLLM cannot load {model!r}: {type(error).__name__}: {error}",
        hint="See vLLM's own messages above. Usual causes: too little memory, an unsupported "
        "model, or a setting in `options`.",
    )


def tokenizer_settings(config: EngineConfig, options: VLLMOptions) -> tuple[str, dict[str, Any]]:
    """Return the tokenizer vLLM will use, and the settings to load it."""
    arguments = options.engine_args
    settings = {
        ours: arguments[theirs]
        for theirs, ours in reversed(_TOKENIZER_SETTINGS.items())
        if theirs in arguments
    }
    return str(arguments.get("tokenizer") or _model(config)), settings


HARMLESS = frozenset(
    {"kv_cache_memory_bytes", "max_num_batched_tokens", "max_num_seqs", "download_dir"}
)
"""vLLM arguments that change how much it does at once, not what it computes."""


@dataclass(frozen=True)
class VLLMJudge:
    """A model loaded by vLLM."""

    driver: Driver
    chat: ChatTokenizer
    readout: AnyReadout
    labels: LabelTokens | None
    """None if vLLM cannot report chosen tokens, or a label is not a single token."""
    called: str
    """The labels as shown to people."""
    grading: Any
    """Sampling parameters of every item. One kind per batch, because a vLLM that mixes kinds loses
    the lists of requests without label tokens."""
    version: str
    dtype: str
    top_logprobs: int
    context: int
    block_size: int

    @property
    def logprobs(self) -> str:
        """The logprob mode, part of the judge's fingerprint."""
        return logprob_mode(self.labels, self.top_logprobs)

    def read(self, output: Any) -> Answer:
        """Return the answer in a finished request."""
        (completion,) = output.outputs
        if not completion.logprobs:
            return self.readout.read([])
        logps = {token: entry.logprob for token, entry in completion.logprobs[0].items()}
        if self.labels is None:
            return self.readout.read([(self.chat.name(token), p) for token, p in logps.items()])
        return self.labels.read(self.readout, logps, self.chat.name(completion.token_ids[0]))

    def writing(self, max_tokens: int, temperature: float, seed: int | None) -> Any:
        """Return the sampling parameters for a text."""
        from vllm import SamplingParams

        drawn = {} if seed is None else {"seed": seed}
        return SamplingParams(max_tokens=max_tokens, temperature=temperature, **drawn)

    def reading(self) -> Any:
        """Return the sampling parameters that report the likelihood of a prompt's own tokens."""
        from vllm import SamplingParams

        return SamplingParams(max_tokens=1, temperature=0.0, detokenize=False, prompt_logprobs=0)

    def read_prompt(self, spoken: ChatText, output: Any) -> tuple[float, ...]:
        """Return the log-probabilities of the text in a finished request's prompt."""
        rows = output.prompt_logprobs or ()
        reported = [
            row[token].logprob if row and token in row else None
            for token, row in zip(spoken.tokens, rows, strict=False)
        ]
        return spoken.logprobs(reported)

    def findings(self) -> Sequence[EngineFinding]:
        """Return how the judge was set up, and the effect on its answers."""
        if self.labels is None:
            logprobs = EngineFinding(
                "logprobs", f"the {self.top_logprobs} most likely tokens", "note"
            )
        else:
            logprobs = EngineFinding(
                "logprobs", f"exact for {len(self.labels.ids)} tokens of {self.called}"
            )
        if self.dtype == "float32":
            precision = EngineFinding("precision", "float32: answers repeat to the last bit")
        else:
            precision = EngineFinding(
                "precision",
                f"{self.dtype}: answers vary slightly with what is graded at the same time",
                "note",
                "`options: {dtype: float32}` repeats exactly, but is slower.",
            )
        cache = EngineFinding("prefix cache", f"on, in blocks of {self.block_size} tokens")
        context = EngineFinding("context", f"{self.context} tokens")
        return (logprobs, precision, cache, context, self.chat.controls.finding())


async def open_judge(
    driver: Driver,
    chat: ChatTokenizer,
    readout: AnyReadout,
    config: EngineConfig,
    options: VLLMOptions,
) -> VLLMJudge:
    """Return the judge made from the loaded engine of `driver`."""
    from vllm import SamplingParams

    labels = await find_labels(chat, readout, config)
    asked: dict[str, Any] = (
        {"logprobs": config.top_logprobs} if labels is None else {"logprob_token_ids": labels.ids}
    )
    settings = driver.engine.vllm_config
    model, cache = settings.model_config, settings.cache_config
    return VLLMJudge(
        driver,
        chat,
        readout,
        labels,
        called(config.labels),
        SamplingParams(max_tokens=1, temperature=0.0, detokenize=False, **asked),
        await asyncio.to_thread(version_of, model, chat, config, options),
        _dtype(model),
        config.top_logprobs,
        int(model.max_model_len),
        int(cache.block_size),
    )


async def find_labels(
    chat: ChatTokenizer, readout: AnyReadout, config: EngineConfig
) -> LabelTokens | None:
    """Return the label tokens; None if vLLM cannot report them, or a label is not one token."""

    async def encode(text: str) -> list[int]:
        return chat.encode(text)

    await refuse_split_labels(config.labels, encode, config.model)
    return await find_label_tokens(readout, encode) if _reports_chosen_tokens() else None


def logprob_mode(labels: LabelTokens | None, top_logprobs: int) -> str:
    """Return the logprob mode, part of the judge's fingerprint."""
    return f"top{top_logprobs}" if labels is None else f"exact{labels.ids}"


def _dtype(model: Any) -> str:
    return str(model.dtype).removeprefix("torch.")


def _reports_chosen_tokens() -> bool:
    from vllm import SamplingParams

    return hasattr(SamplingParams, "logprob_token_ids")


def version_of(model: Any, chat: ChatTokenizer, config: EngineConfig, options: VLLMOptions) -> str:
    """Return everything about the setup that can change a probability.

    `model` is vLLM's model config, which exists before any weights are loaded.
    """
    import vllm
    from vllm.platforms import current_platform

    arguments = {name: value for name, value in options.engine_args.items() if name not in HARMLESS}
    settings = content_hash("vllm", chat.template, options.chat_template_kwargs, arguments)
    folder = config.local_model
    if folder.is_dir():
        weights = folder_hash(folder)[:16]
    else:
        weights = str(getattr(model.hf_config, "_commit_hash", None) or "unknown")[:16]
    device = str(current_platform.device_type)
    return (
        f"{vllm.__version__} {device} {_dtype(model)} tp{options.tensor_parallel_size} "
        f"weights {weights} settings {settings.hex()[:16]}"
    )
