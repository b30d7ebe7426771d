"""vLLM's `/generative_scoring`: the probability of a token after each of several prompts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rocketeval.engines.meter import Meter
from rocketeval.engines.transports.base import Transport, expected_shape, items_of
from rocketeval.engines.transports.token_prompts import token_prompts
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
        self, prompts: Sequence[str], headers: Mapping[str, str], meter: Meter
    ) -> list[Answer]:
        """Return the answers to all prompts, from one call per label token."""
        assert self.wire.labels is not None
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
        for label in self.wire.labels.ids:
            told = await self._logps({**body, "label_token_ids": [label]}, headers, meter)
            for item, logp in zip(logps, told, strict=True):
                item[label] = logp
        return [self.wire.labels.read(self.wire.readout, item, None) for item in logps]

    async def _logps(
        self, body: Mapping[str, Any], headers: Mapping[str, str], meter: Meter
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
