"""A stub of vLLM's server with recorded formats; it does not prove how a real one behaves.

The formats were recorded from vLLM 0.32.0; tests/real_judge/test_vllm_transports.py compares them
with a real server.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fakes.native_server import CONTEXT, PLACEHOLDER, NativeServer, error
from fakes.openai_server import MODEL


@dataclass
class VLLMShaped(NativeServer):
    """The endpoints of vLLM 0.32."""

    most_logprobs: int = 50
    """--max-logprobs; requests for more are refused."""
    adds_bos: bool = False
    """Whether raw prompts always get a beginning-of-text token, even if the request declines it."""
    mixed: bool = False
    """Whether label-token requests are in flight together with other requests: vLLM then lists the
    drawn token and placeholders instead of the most likely tokens."""

    def endpoints(self) -> dict[str, Callable[[Any], Any]]:
        """Return the handlers by path."""
        return {
            **super().endpoints(),
            "/version": lambda _: {"version": "0.32.0"},
            "/tokenize": self._tokenize,
            "/detokenize": lambda body: {"prompt": self.tokenizer.decode(body["tokens"])},
            "/v1/chat/completions/batch": self._batch,
            "/v1/completions": self._completions,
            "/generative_scoring": self._generative_scoring,
        }

    def prompts_in(self, path: str, body: Any) -> list[str]:
        """Return the prompts of a request for answers."""
        match path:
            case "/v1/chat/completions/batch":
                return [messages[-1]["content"] for messages in body["messages"]]
            case "/v1/completions":
                raw = body["prompt"]
                return [self.tokenizer.decode(raw)] if isinstance(raw[0], int) else list(raw)
            case "/generative_scoring":
                return [self.tokenizer.decode(body["query"] + item) for item in body["items"]]
        return super().prompts_in(path, body)

    def _models(self, _: Any) -> Any:
        row = {"id": MODEL, "object": "model", "owned_by": "vllm", "max_model_len": CONTEXT}
        return {"object": "list", "data": [row]}

    def _tokenize(self, body: Any) -> Any:
        if "messages" in body:
            tokens = self.tokens(self.template.render(body["messages"][-1]["content"]))
        else:
            tokens = self.tokenizer.encode(body["prompt"], bos=body["add_special_tokens"])
        result = {"count": len(tokens), "max_model_len": CONTEXT, "tokens": tokens}
        return {**result, "token_strs": None}

    def _chat_completion(self, body: Any) -> Any:
        prompt = self.template.render(body["messages"][-1]["content"])
        if len(self.tokens(prompt)) >= CONTEXT:
            return error("the prompt is longer than max_model_len")
        if body.get("top_logprobs", 0) > self.most_logprobs:
            return error(f"more logprobs than max allowed: {self.most_logprobs}")
        if "logprob_token_ids" not in body:
            return super()._chat_completion(body)
        choice = self.chat_choice(0, self._exact(prompt, body))
        usage = self.usage([prompt], {"cached_tokens": 2})
        return {"object": "chat.completion", "choices": [choice], "usage": usage}

    def listed(self, prompt: str, body: Mapping[str, Any]) -> list[tuple[str, float]]:
        """Return the most likely tokens, damaged when batched with other requests."""
        result = super().listed(prompt, body)
        return [result[0], ("<|endoftext|>", PLACEHOLDER)] if self.mixed else result

    def _batch(self, body: Any) -> Any:
        prompts = [self.template.render(result[-1]["content"]) for result in body["messages"]]
        if any(len(self.tokens(prompt)) >= CONTEXT for prompt in prompts):
            return error("the prompt is longer than max_model_len")
        choices = [
            self.chat_choice(index, self._exact(prompt, body))
            for index, prompt in enumerate(prompts)
        ]
        return {
            "object": "chat.completion",
            "choices": self.ordered(choices),
            "usage": self.usage(prompts, None),
        }

    def _completions(self, body: Any) -> Any:
        if isinstance(body["prompt"][0], int):
            return self.read_prompt(body)
        bos = self.template.head[:3] if self.adds_bos else ""
        prompts = [bos + prompt for prompt in body["prompt"]]
        if any(len(self.tokens(prompt)) >= CONTEXT for prompt in prompts):
            return error("the prompt is longer than max_model_len")
        choices = []
        for index, prompt in enumerate(prompts):
            result = dict(self._exact(prompt, body))
            drawn, logp = next(iter(result.items()))
            logprobs = {"tokens": [drawn], "token_logprobs": [logp], "top_logprobs": [result]}
            text = self.tokenizer.piece(int(drawn.removeprefix("token_id:")))
            choices.append(
                {"index": index, "text": text, "logprobs": logprobs, "finish_reason": "length"}
            )
        # As in vLLM, the cached tokens are those of the last prompt only.
        usage = self.usage(prompts, {"cached_tokens": 3})
        return {"object": "text_completion", "choices": self.ordered(choices), "usage": usage}

    def _generative_scoring(self, body: Any) -> Any:
        rows = []
        prompts = []
        for index, item in enumerate(body["items"]):
            # Silently, as vLLM does.
            prompt = self.tokenizer.decode((body["query"] + item)[: CONTEXT - 1])
            prompts.append(prompt)
            score = math.exp(self.logp(prompt, body["label_token_ids"][0], 1.0))
            rows.append({"index": index, "object": "score", "score": score})
        usage = self.usage(prompts, None)
        return {"object": "list", "model": MODEL, "data": self.ordered(rows), "usage": usage}

    def _exact(self, prompt: str, body: Any) -> list[tuple[str, float]]:
        """Return the drawn token, then the label tokens; a drawn label appears only first."""
        temperature = body["temperature"]
        drawn = self.listed(prompt, {"temperature": temperature, "top_logprobs": 1})[0][0]
        ids = dict.fromkeys((self.tokenizer.id_of(drawn), *body["logprob_token_ids"]))
        return [(f"token_id:{token}", self.logp(prompt, token, temperature)) for token in ids]
