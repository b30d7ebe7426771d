"""All request forms by name, and the forms to try on each kind of server."""

from __future__ import annotations

from rocketeval.engines.server import Kind
from rocketeval.engines.transports.base import Transport
from rocketeval.engines.transports.chat import Chat, ChatBatch, ChatExact, Completions
from rocketeval.engines.transports.native import GenerativeScoring, SGLangGenerate, SGLangScore
from rocketeval.errors import ConfigError
from rocketeval.registry import nearest

TRANSPORTS: dict[str, type[Transport]] = {
    form.name: form
    for form in (
        Chat,
        ChatExact,
        ChatBatch,
        Completions,
        GenerativeScoring,
        SGLangGenerate,
        SGLangScore,
    )
}
BEST_FIRST: dict[Kind, tuple[str, ...]] = {
    "vllm": ("chat_batch", "completions", "chat_exact", "chat"),
    "sglang": ("sglang_generate", "chat"),
}
"""The order in which forms are tried; other servers have `chat` only.

llama.cpp accepts lists of prompts too, but spreads them over its slots, and each slot computes the
shared prefix again.
"""
OFFERED: dict[Kind, tuple[str, ...]] = {
    **BEST_FIRST,
    "vllm": (*BEST_FIRST["vllm"], "generative_scoring"),
    "sglang": (*BEST_FIRST["sglang"], "sglang_score"),
}
"""All forms of each kind of server."""


def check_transport(name: str) -> None:
    """Raise ConfigError unless `name` is a request form or `auto`."""
    if name != "auto" and name not in TRANSPORTS:
        raise ConfigError(f"Unknown transport {name!r}.", hint=nearest(name, ["auto", *TRANSPORTS]))
