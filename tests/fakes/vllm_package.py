"""A fake of the parts of vllm and transformers that the vllm engine uses, without a model.

`installed(monkeypatch)` puts both into `sys.modules`. Probabilities are a fixed function of the
prompt; tests set faults on the FakeEngines that were created.
"""

from __future__ import annotations

import hashlib
import math
import re
import sys
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

CONTEXT = 200
MASS = 0.9


class VLLMClientError(Exception):
    """The error with which newer releases refuse one request."""


class FakeTokenizer:
    """A tokenizer whose tokens are words, numbered by content."""

    def __init__(self) -> None:
        self.words: dict[int, str] = {0: "Yes", 1: "No"}

    @classmethod
    def from_pretrained(cls, model: str, **settings: Any) -> FakeTokenizer:
        if model == "missing":
            raise OSError("missing is not a local folder\nand more lines")
        return cls()

    def get_chat_template(self) -> str:
        return "<user>{message}<assistant>"

    def apply_chat_template(
        self, chats: Sequence[Any], *, add_generation_prompt: bool, tokenize: bool, **kwargs: Any
    ) -> list[str]:
        assert add_generation_prompt
        assert not tokenize
        return [f"<user> {chat[0]['content']} <assistant>" for chat in chats]

    def __call__(self, texts: Sequence[str], *, add_special_tokens: bool, **_: Any) -> Any:
        assert not add_special_tokens, "the template has written them"
        return {"input_ids": [[self._id(word) for word in _words(text)] for text in texts]}

    def convert_ids_to_tokens(self, token: int) -> str:
        return self.words[token]

    def _id(self, word: str) -> int:
        number = {"Yes": 0, "No": 1}.get(word, zlib.crc32(word.encode()))
        self.words[number] = word
        return number


@dataclass
class FakeParams:
    """Sampling parameters of a vLLM that returns chosen tokens."""

    max_tokens: int
    temperature: float
    detokenize: bool = True
    logprobs: int | None = None
    logprob_token_ids: list[int] | None = None
    prompt_logprobs: int | None = None
    seed: int | None = None


@dataclass
class OldParams:
    """Sampling parameters of a vLLM that does not."""

    max_tokens: int
    temperature: float
    detokenize: bool = True
    logprobs: int | None = None
    prompt_logprobs: int | None = None
    seed: int | None = None


@dataclass
class FakeEngine:
    """An engine that answers every waiting request in one step, the last first."""

    arguments: Mapping[str, Any] = field(default_factory=dict)
    asked: list[tuple[str, list[int]]] = field(default_factory=list)
    waiting: list[Any] = field(default_factory=list)
    params: list[Any] = field(default_factory=list)
    swallowed: int = 0
    """Number of final prompt tokens whose log-probabilities are left out."""
    dies: bool = False
    shut_down: int = 0

    def __post_init__(self) -> None:
        self.engine_core = SimpleNamespace(shutdown=self._shut_down)
        self.vllm_config = _settings()

    def add_request(self, name: str, prompt: Mapping[str, Any], params: Any) -> None:
        tokens = prompt["prompt_token_ids"]
        if len(tokens) >= CONTEXT:
            raise VLLMClientError(f"The prompt (length {len(tokens)}) is longer than {CONTEXT}.")
        self.asked.append((name, tokens))
        self.params.append(params)
        self.waiting.append((name, tokens, params))

    def step(self) -> list[Any]:
        if self.dies:
            raise RuntimeError("the engine core died")
        outputs = [_output(*request, self.swallowed) for request in reversed(self.waiting)]
        self.waiting.clear()
        return outputs

    def _shut_down(self) -> None:
        self.shut_down += 1


class FakeVLLM:
    """The fake package: engines created so far, and settings for the next one."""

    def __init__(self) -> None:
        self.engines: list[FakeEngine] = []
        self.cannot_load: Exception | None = None

    def from_engine_args(self, arguments: Mapping[str, Any], usage_context: str) -> FakeEngine:
        assert usage_context == "llm"
        if self.cannot_load is not None:
            raise self.cannot_load
        self.engines.append(FakeEngine(arguments))
        return self.engines[-1]


def installed(monkeypatch: pytest.MonkeyPatch, params: type = FakeParams) -> FakeVLLM:
    """Install the fake for `import vllm` and return it."""
    fake = FakeVLLM()
    modules: dict[str, dict[str, Any]] = {
        "vllm": {
            "__version__": "9.9.fake",
            "EngineArgs": _engine_args,
            "LLMEngine": fake,
            "SamplingParams": params,
        },
        "vllm.platforms": {
            "current_platform": SimpleNamespace(is_cpu=lambda: True, device_type="cpu")
        },
        "vllm.usage": {},
        "vllm.usage.usage_lib": {"UsageContext": SimpleNamespace(LLM_CLASS="llm")},
        "transformers": {"AutoTokenizer": FakeTokenizer},
    }
    for name, content in modules.items():
        module = ModuleType(name)
        module.__spec__ = ModuleSpec(name, None)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
    return fake


class FakeArguments(dict[str, Any]):
    """Engine arguments by name."""

    def create_engine_config(self, usage_context: str) -> Any:
        """Return the settings of an engine without loading it."""
        assert usage_context == "llm"
        if self["model"] == "unknown":
            raise ValueError("unknown is no model")
        return _settings()


def _settings() -> Any:
    return SimpleNamespace(
        model_config=SimpleNamespace(
            dtype="torch.float32", max_model_len=CONTEXT, hf_config=SimpleNamespace()
        ),
        cache_config=SimpleNamespace(block_size=16),
    )


def _engine_args(**arguments: Any) -> FakeArguments:
    if "no_such_argument" in arguments:
        raise TypeError("unexpected keyword argument 'no_such_argument'")
    return FakeArguments(arguments)


def _words(text: str) -> list[str]:
    return re.findall(r"\S+", text)


def _shares(tokens: Sequence[int], p_yes: float) -> dict[int, float]:
    """Return log-probabilities: a share of yes on the first half of the tokens, the rest on no."""
    half = len(tokens) // 2
    best = {token: math.log(MASS * p_yes / half) for token in tokens[:half]}
    rest = math.log(MASS * (1 - p_yes) / (len(tokens) - half))
    return {**best, **dict.fromkeys(tokens[half:], rest)}


def _read(tokens: Sequence[int], swallowed: int) -> list[Any]:
    rows: list[Any] = [None]
    for place in range(1, len(tokens)):
        logp = -(zlib.crc32(repr(tokens[: place + 1]).encode()) % 997) / 200
        rows.append({tokens[place]: SimpleNamespace(logprob=logp)})
    return rows[: len(rows) - swallowed]


def _output(name: str, tokens: list[int], params: Any, swallowed: int = 0) -> Any:
    number = int.from_bytes(hashlib.sha256(repr(tokens).encode()).digest()[:8], "big")
    p_yes = 0.02 + 0.96 * number / 2**64
    result = {0: math.log(MASS * p_yes), 1: math.log(MASS * (1 - p_yes))}
    chosen = getattr(params, "logprob_token_ids", None)
    if chosen is not None:
        known = 0 in chosen
        result = {t: result.get(t, -30.0) for t in chosen} if known else _shares(chosen, p_yes)
    logprobs = {token: SimpleNamespace(logprob=logprob) for token, logprob in result.items()}
    graded = chosen is not None or params.logprobs is not None
    completion = SimpleNamespace(
        text="a word" if params.detokenize else "",
        token_ids=[0 if p_yes > 0.5 else 1],
        logprobs=[logprobs] if graded else None,
        finish_reason="length",
    )
    return SimpleNamespace(
        request_id=name,
        prompt_token_ids=tokens,
        num_cached_tokens=len(tokens) // 2,
        finished=True,
        outputs=[completion],
        prompt_logprobs=None if params.prompt_logprobs is None else _read(tokens, swallowed),
    )
