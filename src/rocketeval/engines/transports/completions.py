"""`/completions` with a list of prompts: all items of a response a call, the template ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rocketeval.engines.meter import Meter
from rocketeval.engines.transports.base import Transport, expected_shape, items_of
from rocketeval.records import Answer


class Completions(Transport):
    """Raw prompts with the chat template applied here, and exact label tokens (vLLM)."""

    name = "completions"
    several = True
    exact = True
    framed = True

    async def ask(
        self, prompts: Sequence[str], headers: Mapping[str, str], meter: Meter
    ) -> list[Answer]:
        """Return the answers to all prompts, from one call."""
        wire = self.wire
        assert wire.frame is not None
        assert wire.labels is not None
        body = {
            "model": wire.model,
            "prompt": [wire.frame.around(prompt) for prompt in prompts],
            # The frame already begins with the model's first token: a second one is a known trap.
            "add_special_tokens": False,
            "temperature": wire.temperature,
            "max_tokens": 1,
            "logprobs": 1,
            "logprob_token_ids": wire.labels.ids,
            "return_tokens_as_token_ids": True,
            **wire.raw_extra,
        }
        reply = await wire.http.post("/completions", body, meter, headers=headers)
        # vLLM tells the cached tokens of the last prompt alone.
        meter.answered(reply, cached_told=len(prompts) == 1)
        choices = items_of(reply, "choices", len(prompts))
        with expected_shape("a completion"):
            return [self._read(choice) for choice in choices]

    def _read(self, choice: Mapping[str, Any]) -> Answer:
        assert self.wire.labels is not None
        positions = (choice.get("logprobs") or {}).get("top_logprobs") or [{}]
        return self.wire.labels.named.read(
            self.wire.readout, positions[0] or {}, choice.get("text")
        )
