"""Endpoints specific to vLLM or SGLang: all items per call, exact label tokens."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rocketeval.engines.replies import ARRAY, UsageMeter
from rocketeval.engines.transports.base import (
    Transport,
    expected_shape,
    items_of,
    token_prompts,
    usable,
)
from rocketeval.records import Answer


class GenerativeScoring(Transport):
    """vLLM's `/generative_scoring`, with one call per label token.

    A call returns only the first label's probability. After the first call the items' tokens are
    in the prefix cache. Prompts are sent as tokens: sent as text, they would be tokenized in two
    parts, differently from the chat. `auto` never chooses this form, because `chat_batch` returns
    the same in one call.
    """

    name = "generative_scoring"
    several = True
    exact = True
    framed = True
    asks_once = False

    async def ask(
        self, prompts: Sequence[str], headers: Mapping[str, str], meter: UsageMeter
    ) -> list[Answer]:
        """Return the answers to all prompts, from one call per label token."""
        labels = self.wire.label_tokens
        tokens = await token_prompts(self.wire, prompts)
        body = {
            "model": self.wire.model,
            "query": tokens.shared,
            "items": tokens.own,
            "apply_softmax": False,
            "add_special_tokens": False,
            **self.wire.raw_extra,
        }
        logps: list[dict[int, float]] = [{} for _ in prompts]
        for label in labels.ids:
            found = await self._logps({**body, "label_token_ids": [label]}, headers, meter)
            for item, logp in zip(logps, found, strict=True):
                item[label] = logp
        return usable([labels.read(self.wire.readout, item, None) for item in logps])

    async def _logps(
        self, body: Mapping[str, Any], headers: Mapping[str, str], meter: UsageMeter
    ) -> list[float]:
        url = self.wire.server.root + "/generative_scoring"

        def read(reply: Mapping[str, Any]) -> list[float]:
            meter.answered(reply, cached_reported=False)
            rows = items_of(reply, "data", len(body["items"]))
            with expected_shape("a list of probabilities"):
                return [log_of(row["score"]) for row in rows]

        return await self.wire.http.ask(url, body, meter, read, headers=headers)


def log_of(probability: Any) -> float:
    """Return the logarithm of a probability, minus infinity for zero; ValueError if negative."""
    return math.log(float(probability)) if probability else -math.inf


class SGLangForm(Transport):
    """Common settings of SGLang's own request forms."""

    several = True
    exact = True
    framed = True
    no_frame = "its chat template is unknown: set options.chat_head and options.chat_tail"


class SGLangGenerate(SGLangForm):
    """SGLang's `/generate` with a list of texts and `token_ids_logprob`."""

    name = "sglang_generate"

    async def ask(
        self, prompts: Sequence[str], headers: Mapping[str, str], meter: UsageMeter
    ) -> list[Answer]:
        """Return the answers to all prompts, from one call."""
        body = {
            "text": list(map(self.wire.framed, prompts)),
            "sampling_params": {"max_new_tokens": 1, "temperature": self.wire.temperature},
            "return_logprob": True,
            "token_ids_logprob": [self.wire.label_tokens.ids] * len(prompts),
            **self.wire.raw_extra,
        }
        url = self.wire.server.root + "/generate"

        def read(reply: Mapping[str, Any]) -> list[Answer]:
            rows = items_of(reply, ARRAY, len(prompts))
            with expected_shape("a list of generated texts"):
                for row in rows:
                    meter.answered({"usage": _usage(row["meta_info"])})
                return usable([self._read(row) for row in rows])

        return await self.wire.http.ask(url, body, meter, read, headers=headers)

    def _read(self, row: Mapping[str, Any]) -> Answer:
        first = row["meta_info"]["output_token_ids_logprobs"][0]
        logps = {
            int(token): -math.inf if logp is None else float(logp) for logp, token, *_ in first
        }
        return self.wire.label_tokens.read(self.wire.readout, logps, row.get("text"))


class SGLangScore(SGLangForm):
    """SGLang's `/v1/score`: the probability of every label token after each of several prompts.

    Prompts are sent as tokens: this endpoint does not always report token counts, so a duplicate
    beginning-of-text token would go unnoticed. `auto` never chooses this form, because `/generate`
    returns the same without a separate tokenize call.
    """

    name = "sglang_score"

    async def ask(
        self, prompts: Sequence[str], headers: Mapping[str, str], meter: UsageMeter
    ) -> list[Answer]:
        """Return the answers to all prompts, from one call."""
        labels = self.wire.label_tokens
        tokens = await token_prompts(self.wire, prompts)
        body = {
            "model": self.wire.model,
            "query": tokens.shared,
            "items": tokens.own,
            "label_token_ids": labels.ids,
            "apply_softmax": False,
            "item_first": False,
            **self.wire.raw_extra,
        }

        def read(reply: Mapping[str, Any]) -> list[Answer]:
            # Some versions do not report usage: then count what we sent.
            meter.answered({"usage": {"prompt_tokens": tokens.count}, **_reported_usage(reply)})
            rows = items_of(reply, "scores", len(prompts))
            with expected_shape("a list of probabilities"):
                if any(len(row) != len(labels.ids) for row in rows):
                    raise ValueError("it does not score every label")
                logps = [dict(zip(labels.ids, map(log_of, row), strict=True)) for row in rows]
            return usable([labels.read(self.wire.readout, item, None) for item in logps])

        return await self.wire.http.ask("/score", body, meter, read, headers=headers)


def _usage(meta: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "prompt_tokens": meta.get("prompt_tokens"),
        "completion_tokens": meta.get("completion_tokens"),
        "prompt_tokens_details": {"cached_tokens": meta.get("cached_tokens")},
    }


def _reported_usage(reply: Mapping[str, Any]) -> dict[str, Any]:
    usage = reply.get("usage")
    reported = isinstance(usage, dict) and usage.get("prompt_tokens")
    return {"usage": usage} if reported else {}
