"""A loaded vLLM as a judge: how it is asked, and what its outputs mean."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rocketeval.config import EngineConfig
from rocketeval.engines.base import Finding
from rocketeval.engines.chat_tokenizer import ChatTokenizer
from rocketeval.engines.labels import LabelTokens, find_label_tokens, refuse_split_labels
from rocketeval.engines.likelihood import Spoken
from rocketeval.engines.readout import called
from rocketeval.engines.scale_readout import AnyReadout
from rocketeval.engines.vllm_driver import Driver
from rocketeval.engines.vllm_load import VLLMOptions
from rocketeval.engines.weights import folder_hash
from rocketeval.hashing import content_hash
from rocketeval.records import Answer

HARMLESS = frozenset(
    {"kv_cache_memory_bytes", "max_num_batched_tokens", "max_num_seqs", "download_dir"}
)
"""Arguments of vLLM that say how much it does at once, not what it computes."""


@dataclass(frozen=True)
class Judge:
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

    def read_prompt(self, said: Spoken, output: Any) -> tuple[float, ...]:
        """Return how likely the text in a finished request's prompt was."""
        rows = output.prompt_logprobs or ()
        told = [
            row[token].logprob if row and token in row else None
            for token, row in zip(said.tokens, rows, strict=False)
        ]
        return said.logprobs(told)

    def findings(self) -> Sequence[Finding]:
        """Return how it was set up, and what that means for its answers."""
        if self.labels is None:
            logprobs = Finding("logprobs", f"the {self.top_logprobs} most likely tokens", "note")
        else:
            logprobs = Finding(
                "logprobs", f"exact for {len(self.labels.ids)} tokens of {self.called}"
            )
        if self.dtype == "float32":
            precision = Finding("precision", "float32: answers repeat to the last bit")
        else:
            precision = Finding(
                "precision",
                f"{self.dtype}: answers move a little with what is graded beside them",
                "note",
                "`options: {dtype: float32}` repeats exactly, and is slower.",
            )
        cache = Finding("prefix cache", f"on, in blocks of {self.block_size} tokens")
        return (logprobs, precision, cache, Finding("context", f"{self.context} tokens"))


async def open_judge(
    driver: Driver,
    chat: ChatTokenizer,
    readout: AnyReadout,
    config: EngineConfig,
    options: VLLMOptions,
) -> Judge:
    """Return the judge that the engine of `driver`, which is loaded, makes."""
    from vllm import SamplingParams

    labels = await find_labels(chat, readout, config)
    asked: dict[str, Any] = (
        {"logprobs": config.top_logprobs} if labels is None else {"logprob_token_ids": labels.ids}
    )
    settings = driver.engine.vllm_config
    model, cache = settings.model_config, settings.cache_config
    return Judge(
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
