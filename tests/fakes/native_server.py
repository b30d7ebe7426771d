"""Stubs of servers with native endpoints, in recorded formats; here llama.cpp and Ollama.

They simulate faults and servers that cannot run in a test; they do not prove that a real server
behaves this way. The formats of llama.cpp are from its server in xllamacpp 2026.10; those of Ollama
come from its documentation: it was not run. vllm_server.py and sglang_server.py have the others.

A stub answers by the prompt that the model would read, so a request form that shows the model a
different prompt than a chat does gets different probabilities.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from fakes.openai_server import MODEL, FakeOpenAI, Seen, by_content
from fakes.toy_tokenizer import ToyTemplate, ToyTokenizer
from rocketeval.engines.probe import PREFIX

PLACEHOLDER = -9999.0
"""vLLM's notation for minus infinity."""
NEVER = 1e-12
"""Probability of a token that is not in the distribution."""
CONTEXT = 4000
"""Context length in tokens, if a server reports it."""


@dataclass(frozen=True)
class Call:
    """One request for answers; probes are excluded."""

    path: str
    prompts: tuple[str, ...]
    """The user's messages, or the raw prompts."""
    seen: Seen


@dataclass
class NativeServer(FakeOpenAI):
    """Shared base of the stubs: a tokenizer, a template, and a model that reads whole prompts."""

    template: ToyTemplate = field(default_factory=ToyTemplate)
    prefix: str = ""
    """Path prefix of the server, such as `/judge`."""
    calls: list[Call] = field(default_factory=list)
    shuffled: bool = False
    """Whether choices are sent out of order."""
    scales: Callable[[float], float | None] = lambda _: 1.0
    """Maps the requested temperature to the one that shows in log-probabilities; None puts all
    probability on one token."""
    tokenizer: ToyTokenizer = field(default_factory=ToyTokenizer)
    tells_prompts: bool = True
    """Whether it supports `prompt_logprobs`."""
    swallowed: int = 0
    """Number of final prompt tokens whose log-probabilities are left out."""

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.json() if request.method == "POST" else None
        path = request.path.removeprefix(self.prefix)
        seen = Seen(path, dict(request.headers), body, asyncio.get_running_loop().time())
        self.seen.append(seen)
        if path in self._path_faults:
            return await self._path_faults[path](request)
        endpoint = self.endpoints().get(path)
        if endpoint is None or not request.path.startswith(self.prefix):
            return web.json_response({"detail": "Not Found"}, status=404)
        prompts = self.prompts_in(path, body)
        if prompts and not all(PREFIX in prompt for prompt in prompts):
            self.calls.append(Call(path, tuple(prompts), seen))
            if self._faults:
                return await self._faults.popleft()(request)
            if self.rejects is not None and any(self.rejects in prompt for prompt in prompts):
                return error("the prompt is too long")
        reply = endpoint(body)
        return reply if isinstance(reply, web.Response) else web.json_response(reply)

    def endpoints(self) -> dict[str, Callable[[Any], Any]]:
        """Return the handlers by path."""
        return {"/v1/models": self._models, "/v1/chat/completions": self._chat_completion}

    def prompts_in(self, path: str, body: Any) -> list[str]:
        """Return the prompts of a request for answers."""
        return [body["messages"][-1]["content"]] if path == "/v1/chat/completions" else []

    def logps(self, prompt: str, temperature: float = 0.0) -> dict[str, float]:
        """Return the model's log-probabilities after a whole prompt, most likely first."""
        message = self.template.message_in(prompt)
        result = by_content("another: " + prompt) if message is None else self.distribution(message)
        ranked = sorted(result.items(), key=lambda pair: -pair[1])
        scale = self.scales(temperature)
        if scale is None:
            return {token: PLACEHOLDER if rank else 0.0 for rank, (token, _) in enumerate(ranked)}
        total = math.fsum(p ** (1 / scale) for _, p in ranked)
        return {token: math.log(p ** (1 / scale) / total) for token, p in ranked}

    def logp(self, prompt: str, token: int, temperature: float = 0.0) -> float:
        """Return the model's log-probability of one token after a whole prompt."""
        result = self.logps(prompt, temperature)
        return result.get(self.tokenizer.piece(token), math.log(NEVER))

    def read_prompt(self, body: Any) -> Any:
        """Return a completion of a token prompt, with the requested log-probabilities."""
        tokens = body["prompt"]
        if len(tokens) >= CONTEXT:
            return error("the prompt is longer than max_model_len")
        result = [None, *(self.read_logp(tokens[: place + 1]) for place in range(1, len(tokens)))]
        del result[len(result) - self.swallowed :]
        choice: dict[str, Any] = {"index": 0, "text": "So", "logprobs": None}
        if self.tells_prompts and "prompt_logprobs" in body:
            choice["prompt_logprobs"] = [
                None if logp is None else {str(token): {"logprob": logp, "rank": 1}}
                for token, logp in zip(tokens, result, strict=False)
            ]
        if body.get("echo"):
            choice["logprobs"] = {"token_logprobs": [*result, -0.5]}
        usage = self.usage([self.tokenizer.decode(tokens)], {"cached_tokens": 0})
        return {"object": "text_completion", "choices": [choice], "usage": usage}

    def read_logp(self, tokens: list[int]) -> float:
        """Return the model's log-probability of the last of these tokens."""
        digest = hashlib.sha256(self.tokenizer.decode(tokens).encode()).digest()
        return -5 * digest[0] / 255

    def tokens(self, prompt: str) -> list[int]:
        """Return the tokens of a prompt without additions."""
        return self.tokenizer.encode(prompt)

    def listed(self, prompt: str, body: Mapping[str, Any]) -> list[tuple[str, float]]:
        """Return the top tokens: the drawn one first, cut to the requested length."""
        result = self.logps(prompt, body.get("temperature", 1.0))
        # Above temperature zero the least likely token is drawn: the worst case.
        drawn = (list(result)[-1] if body.get("temperature") else next(iter(result)),)
        rest = [token for token in result if token not in drawn]
        return [(token, result[token]) for token in (*drawn, *rest)[: body.get("top_logprobs", 0)]]

    def _models(self, _: Any) -> Any:
        return {"object": "list", "data": [{"id": MODEL, "object": "model"}]}

    def _chat_completion(self, body: Any) -> Any:
        prompt = self.template.render(body["messages"][-1]["content"])
        if not body.get("logprobs"):
            message = {"role": "assistant", "content": self.text}
            choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
        else:
            choice = self.chat_choice(0, self.listed(prompt, body))
        usage = self.usage([prompt], {"cached_tokens": 2})
        return {"object": "chat.completion", "choices": [choice], "usage": usage}

    def chat_choice(self, index: int, listed: Sequence[tuple[str, float]]) -> dict[str, Any]:
        """Return one choice of a chat completion; the first row is the drawn token, if listed."""
        rows = [{"token": token, "logprob": logp} for token, logp in listed]
        drawn = rows[0] if rows else {"token": "Yes", "logprob": 0.0}
        content = [{**drawn, "top_logprobs": rows}]
        return {
            "index": index,
            "message": {"role": "assistant", "content": drawn["token"]},
            "logprobs": {"content": content},
            "finish_reason": "length",
        }

    def usage(self, prompts: Sequence[str], details: Any) -> dict[str, Any]:
        """Return the usage of prompts."""
        spent = sum(len(self.tokens(prompt)) for prompt in prompts)
        return {
            "prompt_tokens": spent,
            "completion_tokens": len(prompts),
            "total_tokens": spent + len(prompts),
            "prompt_tokens_details": details,
        }

    def ordered(self, choices: list[Any]) -> list[Any]:
        """Return choices in the order in which this server sends them."""
        return choices[::-1] if self.shuffled else choices


@dataclass
class LlamaCppShaped(NativeServer):
    """The endpoints of llama.cpp's server."""

    slots: int = 1

    def endpoints(self) -> dict[str, Callable[[Any], Any]]:
        """Return the handlers by path."""
        return {
            **super().endpoints(),
            "/props": lambda _: {"build_info": "b4567-abc", "total_slots": self.slots},
            "/apply-template": lambda body: {
                "prompt": self.template.render(body["messages"][-1]["content"])
            },
            "/tokenize": lambda body: {"tokens": self.tokens(body["content"])},
        }


@dataclass
class OllamaShaped(NativeServer):
    """The endpoints of Ollama, from its documentation; never compared with a real server."""

    def endpoints(self) -> dict[str, Callable[[Any], Any]]:
        """Return the handlers by path."""
        return {**super().endpoints(), "/api/version": lambda _: {"version": "0.12.0"}}


def error(message: str, status: int = 400) -> web.Response:
    """Return an HTTP error as these servers send it."""
    return web.json_response({"error": {"message": message}}, status=status)
