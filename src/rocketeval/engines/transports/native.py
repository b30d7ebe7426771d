"""Endpoints that vLLM or SGLang alone have: all items per call, exact label tokens."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rocketeval.engines.http import ARRAY, UsageMeter
from rocketeval.engines.transports.base import Transport, expected_shape, items_of, token_prompts
from rocketeval.errors import RequestRejected
from rocketeval.records import Answer


class GenerativeScoring(Transport):
    """One call per label token, because a call tells the first label's probability only.

    The items' tokens are all in the prefix cache after the first of these calls. Prompts go as
    tokens: split as text, they would be tokenised in two parts, into other tokens than the model
    reads in a chat. It is never chosen by itself: `chat_batch` tells the same in one call.
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
            told = await self._logps({**body, "label_token_ids": [label]}, headers, meter)
            for item, logp in zip(logps, told, strict=True):
                item[label] = logp
        return [labels.read(self.wire.readout, item, None) for item in logps]

    async def _logps(
        self, body: Mapping[str, Any], headers: Mapping[str, str], meter: UsageMeter
    ) -> list[float]:
        url = self.wire.server.root + "/generative_scoring"
        reply = await self.wire.http.post(url, body, meter, headers=headers)
        meter.answered(reply, cached_told=False)
        rows = items_of(reply, "data", len(body["items"]))
        with expected_shape("a list of probabilities"):
            return [log_of(row["score"]) for row in rows]


def log_of(probability: Any) -> float:
    """Return the logarithm of a probability, minus infinity for zero; ValueError below zero."""
    return math.log(float(probability)) if probability else -math.inf


class SGLangForm(Transport):
    """What SGLang's own request forms have in common."""

    several = True
    exact = True
    framed = True
    no_frame = "the chat template is not known: set options.chat_head and options.chat_tail"


class SGLangGenerate(SGLangForm):
    """`/generate` with a list of texts and `token_ids_logprob`."""

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
        reply = await self.wire.http.post(url, body, meter, headers=headers)
        rows = items_of(reply, ARRAY, len(prompts))
        with expected_shape("a list of generated texts"):
            for row in rows:
                meter.answered({"usage": _usage(row["meta_info"])})
            return [self._read(row) for row in rows]

    def _read(self, row: Mapping[str, Any]) -> Answer:
        first = row["meta_info"]["output_token_ids_logprobs"][0]
        logps = {
            int(token): -math.inf if logp is None else float(logp) for logp, token, *_ in first
        }
        return self.wire.label_tokens.read(self.wire.readout, logps, row.get("text"))


class SGLangScore(SGLangForm):
    """`/v1/score`: the probability of every label token after each of several prompts.

    Prompts go as tokens: this endpoint does not always count what it read, so a second
    beginning-of-text token could not be seen. It is never chosen by itself: `/generate` tells the
    same without our asking for the tokens first.
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
        reply = await self.wire.http.post("/score", body, meter, headers=headers)
        # Some versions do not tell what was used: then it is what we sent.
        meter.answered({"usage": {"prompt_tokens": tokens.count}, **_told_usage(reply)})
        rows = items_of(reply, "scores", len(prompts))
        with expected_shape("a list of probabilities"):
            if any(len(row) != len(labels.ids) for row in rows):
                raise RequestRejected("the server did not score every label.")
            logps = [dict(zip(labels.ids, map(log_of, row), strict=True)) for row in rows]
        return [labels.read(self.wire.readout, item, None) for item in logps]


def _usage(told: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "prompt_tokens": told.get("prompt_tokens"),
        "completion_tokens": told.get("completion_tokens"),
        "prompt_tokens_details": {"cached_tokens": told.get("cached_tokens")},
    }


def _told_usage(reply: Mapping[str, Any]) -> dict[str, Any]:
    usage = reply.get("usage")
    told = isinstance(usage, dict) and usage.get("prompt_tokens")
    return {"usage": usage} if told else {}
