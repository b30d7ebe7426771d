"""How vLLM is set up and loaded from a config."""

from __future__ import annotations

import os
from typing import Annotated, Any

from pydantic import Field, field_validator

from rocketeval.config import EngineConfig, Section
from rocketeval.errors import ConfigError, EngineError, EngineRefused

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
