"""One vLLM engine on its own thread: set up from a config, asked as a judge, outputs in order."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Annotated, Any

from pydantic import Field, field_validator

from rocketeval.config import EngineConfig, Section
from rocketeval.engines.base import EngineFinding
from rocketeval.engines.label_tokens import LabelTokens, find_label_tokens, refuse_split_labels
from rocketeval.engines.likelihood import ChatText
from rocketeval.engines.readout import called
from rocketeval.engines.scale_readout import AnyReadout
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
"""How long closing waits for vLLM to let go of its memory."""
_COMPUTING = Lock()
"""vLLM keeps what belongs to one forward pass in globals, so that two engines in one process must
not compute at the same time."""


@dataclass(slots=True, eq=False)
class _PromptBatch:
    """Prompts that were handed over together."""

    prompts: Sequence[list[int]]
    params: Any
    done: Future[list[Any]] = field(default_factory=Future)
    outputs: dict[int, Any] = field(default_factory=dict)


class Driver:
    """Owns an engine from its loading to its end and keeps it busy with everything submitted.

    Only its thread touches the engine. Between two steps it hands over all that has arrived, so
    vLLM's scheduler always sees every task in flight, and one future is resolved per task, not
    per item.
    """

    def __init__(self, load: Callable[[], Any]) -> None:
        self.loaded: Future[None] = Future()
        """Done once the engine can be asked; or says why it could not be loaded."""
        self.loaded.set_running_or_notify_cancel()
        self.engine: Any = None
        """vLLM's engine, while it is loaded: to be looked at, not to be asked."""
        self._inbox: SimpleQueue[_PromptBatch | None] = SimpleQueue()
        self._asked: dict[str, tuple[_PromptBatch, int]] = {}
        self._numbers = count()
        self._ending = Lock()
        self._ended: EngineUnavailable | None = None
        self._thread = Thread(target=self._run, args=(load,), name="rocketeval-vllm", daemon=True)
        self._thread.start()

    @property
    def ended(self) -> EngineUnavailable | None:
        """Why nothing can be asked any more; None while it can."""
        return self._ended

    def submit(self, prompts: Sequence[list[int]], params: Any) -> Future[list[Any]]:
        """Return a future of one finished request per prompt, or RequestRejected in its place.

        EngineUnavailable is raised, now or by the future, once the engine is gone.
        """
        job = _PromptBatch(prompts, params)
        with self._ending:
            if self._ended is not None:
                raise self._ended
            self._inbox.put(job)
        return job.done

    def close(self) -> None:
        """Let go of the engine; one that is still loading is let go of when it is there."""
        self._inbox.put(None)
        if self.loaded.done():
            self._thread.join(CLOSE_SECONDS)

    def _run(self, load: Callable[[], Any]) -> None:
        # Processes that vLLM starts inherit this: Ctrl-C in a terminal reaches all of them, and
        # must not end them while tasks in flight are being finished.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            with _COMPUTING:
                self.engine = load()
        except BaseException as error:  # noqa: BLE001 - whoever waits must learn of it
            self._end(EngineUnavailable("The engine could not be loaded."))
            self.loaded.set_exception(error)
            return
        self.loaded.set_result(None)
        ended = EngineUnavailable("The engine was closed.")
        try:
            self._serve(self.engine)
        except Exception as error:  # noqa: BLE001 - whatever it was, this engine is gone
            ended = EngineUnavailable(
                f"vLLM stopped working: {type(error).__name__}: {error}",
                hint="Its own messages are above. Finished judgments are safe: run the same "
                "command again to go on.",
            )
        self._end(ended)
        self._let_go()

    def _serve(self, engine: Any) -> None:
        while self._hand_over(engine):
            with _COMPUTING:
                outputs = engine.step()
            for output in outputs:
                if output.finished:
                    self._deliver(*self._asked.pop(output.request_id), output)

    def _hand_over(self, engine: Any) -> bool:
        """Give the engine all that has arrived, waiting if it has nothing to do; False to end."""
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
            try:
                engine.add_request(name, _token_prompt(prompt), job.params)
            except Exception as error:
                if not _is_rejection(error):
                    raise
                self._deliver(job, position, RequestRejected(str(error)))
            else:
                self._asked[name] = (job, position)

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

    def _let_go(self) -> None:
        self.engine.engine_core.shutdown()
        renderer = getattr(self.engine, "renderer", None)
        if renderer is not None:
            renderer.shutdown()
        # A model is full of reference cycles: without this its memory stays taken.
        self.engine = renderer = None
        gc.collect()


def _is_rejection(error: Exception) -> bool:
    """Whether vLLM refuses one request, such as a prompt too long, and could answer others.

    Older releases raise ValueError for it, newer ones have a tree of their own.
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
"""Said to vLLM unless the user says otherwise. All in this process: an engine process of its own
would outlive us when we are killed, with the memory it holds. Quiet, and no telemetry."""
_OURS = frozenset({"model", "max_logprobs", "logprobs_mode", "skip_tokenizer_init"})
_TOKENIZER_SETTINGS = {
    "tokenizer_revision": "revision",
    "revision": "revision",
    "trust_remote_code": "trust_remote_code",
}
CPU_BLOCK_SIZE = 32
"""vLLM's own default on a CPU, 128, computes up to 127 tokens of every shared prefix again."""


class VLLMOptions(Section):
    """What the config can say to the vllm engine."""

    dtype: str = "auto"
    """Precision: auto, bfloat16, float16 or float32; float32 answers repeat to the last bit."""
    max_model_len: Annotated[int, Field(gt=0)] | None = None
    """Tokens a prompt may have at most; what the model allows when absent."""
    gpu_memory_utilization: Annotated[float, Field(gt=0, le=1)] | None = None
    """Share of the GPU's memory to use; vLLM's own default when absent."""
    tensor_parallel_size: Annotated[int, Field(ge=1)] = 1
    """Over how many GPUs the model is spread."""
    block_size: Annotated[int, Field(gt=0)] | None = None
    """Tokens per block of the prefix cache; what suits the device when absent."""
    seed: int = 0
    """vLLM's seed; answers do not depend on it."""
    chat_template_kwargs: dict[str, Any] = Field(default_factory=dict)
    """Told to the judge's chat template, such as `enable_thinking: false`."""
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
    """Return a loaded vLLM engine; raises whatever vLLM raises."""
    parsed = _arguments(config, options)
    from vllm import LLMEngine
    from vllm.usage.usage_lib import UsageContext

    return LLMEngine.from_engine_args(parsed, usage_context=UsageContext.LLM_CLASS)


def read_settings(config: EngineConfig, options: VLLMOptions) -> Any:
    """Return the settings that a loaded engine would have, without its weights."""
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
            model=config.model, max_logprobs=max(20, config.top_logprobs), **arguments
        )
    except TypeError as error:
        raise ConfigError(
            f"options.engine_args: this vLLM does not take them: {error}.",
            hint="The names are those of vLLM's EngineArgs, with underscores.",
        ) from None


def not_loaded(model: str, error: Exception) -> EngineError | ConfigError:
    """Return what to tell a person when loading raised `error`."""
    if isinstance(error, EngineError | ConfigError):
        return error
    return EngineRefused(
        f"vLLM cannot load {model!r}: {type(error).__name__}: {error}",
        hint="Its own messages are above: memory too small, a model it does not know, or a "
        "setting in `options`.",
    )


def tokenizer_settings(config: EngineConfig, options: VLLMOptions) -> tuple[str, dict[str, Any]]:
    """Return which tokenizer vLLM will use, and how it is to be loaded."""
    arguments = options.engine_args
    settings = {
        ours: arguments[theirs]
        for theirs, ours in reversed(_TOKENIZER_SETTINGS.items())
        if theirs in arguments
    }
    return str(arguments.get("tokenizer") or config.model), settings


HARMLESS = frozenset(
    {"kv_cache_memory_bytes", "max_num_batched_tokens", "max_num_seqs", "download_dir"}
)
"""Arguments of vLLM that say how much it does at once, not what it computes."""


@dataclass(frozen=True)
class VLLMJudge:
    """A model that vLLM has loaded."""

    driver: Driver
    chat: ChatTokenizer
    readout: AnyReadout
    labels: LabelTokens | None
    """None where vLLM cannot tell chosen tokens, or a label is not one token."""
    called: str
    """The labels, as people call them."""
    grading: Any
    """Sampling parameters of every item: never two kinds in one batch, because a vLLM that mixes
    them loses the lists of those without label tokens."""
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
        told = {token: entry.logprob for token, entry in completion.logprobs[0].items()}
        if self.labels is None:
            return self.readout.read([(self.chat.name(token), p) for token, p in told.items()])
        return self.labels.read(self.readout, told, self.chat.name(completion.token_ids[0]))

    def writing(self, max_tokens: int, temperature: float, seed: int | None) -> Any:
        """Return the sampling parameters for a text."""
        from vllm import SamplingParams

        drawn = {} if seed is None else {"seed": seed}
        return SamplingParams(max_tokens=max_tokens, temperature=temperature, **drawn)

    def reading(self) -> Any:
        """Return the sampling parameters that tell how likely a prompt's own tokens are."""
        from vllm import SamplingParams

        return SamplingParams(max_tokens=1, temperature=0.0, detokenize=False, prompt_logprobs=0)

    def read_prompt(self, said: ChatText, output: Any) -> tuple[float, ...]:
        """Return how likely the text in a finished request's prompt was."""
        rows = output.prompt_logprobs or ()
        told = [
            row[token].logprob if row and token in row else None
            for token, row in zip(said.tokens, rows, strict=False)
        ]
        return said.logprobs(told)

    def findings(self) -> Sequence[EngineFinding]:
        """Return how it was set up, and what that means for its answers."""
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
                f"{self.dtype}: answers move a little with what is graded beside them",
                "note",
                "`options: {dtype: float32}` repeats exactly, and is slower.",
            )
        cache = EngineFinding("prefix cache", f"on, in blocks of {self.block_size} tokens")
        return (logprobs, precision, cache, EngineFinding("context", f"{self.context} tokens"))


async def open_judge(
    driver: Driver,
    chat: ChatTokenizer,
    readout: AnyReadout,
    config: EngineConfig,
    options: VLLMOptions,
) -> VLLMJudge:
    """Return the judge that the engine of `driver`, which is loaded, makes."""
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
        await asyncio.to_thread(tell_version, model, chat, config, options),
        _dtype(model),
        config.top_logprobs,
        int(model.max_model_len),
        int(cache.block_size),
    )


async def find_labels(
    chat: ChatTokenizer, readout: AnyReadout, config: EngineConfig
) -> LabelTokens | None:
    """Return the tokens of the labels; None where vLLM cannot tell them, or one is not a token."""

    async def encode(text: str) -> list[int]:
        return chat.encode(text)

    await refuse_split_labels(config.labels, encode, config.model)
    return await find_label_tokens(readout, encode) if _tells_chosen_tokens() else None


def logprob_mode(labels: LabelTokens | None, top_logprobs: int) -> str:
    """Return how probabilities are asked for."""
    return f"top{top_logprobs}" if labels is None else f"exact{labels.ids}"


def _dtype(model: Any) -> str:
    return str(model.dtype).removeprefix("torch.")


def _tells_chosen_tokens() -> bool:
    from vllm import SamplingParams

    return hasattr(SamplingParams, "logprob_token_ids")


def tell_version(
    model: Any, chat: ChatTokenizer, config: EngineConfig, options: VLLMOptions
) -> str:
    """Return everything about the set-up that can change a probability.

    `model` is vLLM's model config, which it has before it loads any weights.
    """
    import vllm
    from vllm.platforms import current_platform

    arguments = {name: told for name, told in options.engine_args.items() if name not in HARMLESS}
    settings = content_hash("vllm", chat.template, options.chat_template_kwargs, arguments)
    folder = Path(config.model)
    if folder.is_dir():
        weights = folder_hash(folder)[:16]
    else:
        weights = str(getattr(model.hf_config, "_commit_hash", None) or "unknown")[:16]
    device = str(current_platform.device_type)
    return (
        f"{vllm.__version__} {device} {_dtype(model)} tp{options.tensor_parallel_size} "
        f"weights {weights} settings {settings.hex()[:16]}"
    )
