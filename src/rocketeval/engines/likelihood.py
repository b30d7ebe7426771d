"""A text as the judge's own words, and how likely each of its tokens is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rocketeval.engines.readout import NO_LOGPROB, UNTOLD
from rocketeval.errors import EngineRefused, RequestRejected

NO_TEXT = "there is no text whose likelihood could be told."


@dataclass(frozen=True, slots=True)
class Spoken:
    """A prompt in its chat template, with a text as the assistant's words after it."""

    tokens: list[int]
    start: int
    """Where the text begins."""

    @property
    def text(self) -> list[int]:
        """The tokens of the text."""
        return self.tokens[self.start :]

    def logprobs(self, told: Sequence[Any]) -> tuple[float, ...]:
        """Return what an engine tells of the text's tokens, from what it tells of all.

        RequestRejected unless it tells of every token but the very first. Engines with a prefix
        cache have left out what they found in it: the mean of the rest would be of another text.
        """
        values = [_known(value) for value in told[: len(self.tokens)]]
        missing = sum(value is None for value in values[1:]) + len(self.tokens) - len(values)
        if missing:
            raise RequestRejected(
                f"the engine left out the log-probabilities of {missing} of "
                f"{len(self.tokens)} tokens.",
                hint="A prefix cache may have swallowed them: switch it off.",
            )
        return tuple(value for value in values[self.start :] if value is not None)


def spoken(prompt: Sequence[int], whole: list[int]) -> Spoken:
    """Return `whole` with the text beginning at its first token that is not the prompt's own.

    >>> spoken([1, 2, 3], [1, 2, 3, 7, 8]).text
    [7, 8]
    """
    pairs = zip(prompt, whole, strict=False)
    start = next((at for at, (one, other) in enumerate(pairs) if one != other), len(prompt))
    if not 0 < start < len(whole):
        raise RequestRejected(NO_TEXT)
    return Spoken(whole, start)


def refused_likelihood(what: str) -> EngineRefused:
    """Return what to tell a person whose engine cannot tell how likely a text is."""
    return EngineRefused(
        f"{what} does not tell how likely a given text is.",
        hint="It takes an engine that tells the log-probabilities of prompt tokens: a vLLM or "
        "SGLang server, or `engine: vllm`.",
    )


def _known(value: Any) -> float | None:
    """Return a value that can be a log-probability; None for a placeholder or no number at all."""
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        return None
    if value > NO_LOGPROB:
        raise RequestRejected("what the engine calls log-probabilities are none.")
    return float(value) if value > UNTOLD else None
