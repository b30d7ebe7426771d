"""A stub of SGLang's server, with formats from its documentation and source: it was not run."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from fakes.native_server import CONTEXT, NativeServer, error
from fakes.openai_server import MODEL


@dataclass
class SGLangShaped(NativeServer):
    """The endpoints of SGLang."""

    adds_bos: bool = False
    """Whether raw text gets a beginning-of-text token, as in SGLang for models that have one."""
    tells_prompts: bool = False
    tells_usage: bool = False
    """Whether `/v1/score` reports usage, as newer versions do."""

    def endpoints(self) -> dict[str, Callable[[Any], Any]]:
        """Return the handlers by path."""
        return {
            **super().endpoints(),
            "/server_info": lambda _: {"tokenizer_path": "toy", "version": "0.5.9"},
            "/tokenize": self._tokenize,
            "/generate": self._generate,
            "/v1/score": self._score,
            "/v1/completions": self.read_prompt,
        }

    def prompts_in(self, path: str, body: Any) -> list[str]:
        """Return the prompts of a request for answers."""
        match path:
            case "/v1/completions":
                return [self.tokenizer.decode(body["prompt"])]
            case "/generate":
                return list(body["text"])
            case "/v1/score":
                return [self.tokenizer.decode(body["query"] + item) for item in body["items"]]
        return super().prompts_in(path, body)

    def _models(self, _: Any) -> Any:
        row = {"id": MODEL, "object": "model", "owned_by": "sglang", "max_model_len": CONTEXT}
        return {"object": "list", "data": [row]}

    def _tokenize(self, body: Any) -> Any:
        if "prompt" not in body:
            return error("prompt: field required", status=422)
        tokens = self.tokenizer.encode(body["prompt"], bos=body["add_special_tokens"])
        return {"tokens": tokens, "count": len(tokens), "max_model_len": CONTEXT}

    def _generate(self, body: Any) -> Any:
        bos = self.template.head[:3] if self.adds_bos else ""
        rows = []
        for text, labels in zip(body["text"], body["token_ids_logprob"], strict=True):
            temperature = body["sampling_params"]["temperature"]
            result = [[self.logp(bos + text, label, temperature), label, None] for label in labels]
            meta = {
                "prompt_tokens": len(self.tokens(bos + text)),
                "completion_tokens": 1,
                "cached_tokens": 5,
                "output_token_ids_logprobs": [result],
            }
            rows.append({"text": next(iter(self.logps(bos + text))), "meta_info": meta})
        return web.json_response(rows)

    def _score(self, body: Any) -> Any:
        prompts = [self.tokenizer.decode(body["query"] + item) for item in body["items"]]
        scores = [
            [math.exp(self.logp(prompt, label)) for label in body["label_token_ids"]]
            for prompt in prompts
        ]
        usage = self.usage(prompts, None) if self.tells_usage else None
        return {"scores": scores, "model": MODEL, "usage": usage, "object": "scoring"}
