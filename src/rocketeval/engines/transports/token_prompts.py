"""Prompts as the tokens the judge reads, cut into what they share and what each has of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rocketeval.engines.transports.base import Wire
from rocketeval.errors import RequestRejected


@dataclass(frozen=True, slots=True)
class TokenPrompts:
    """Prompts inside the chat template; sent as tokens, nothing is added to them or cut in two."""

    shared: list[int]
    own: list[list[int]]
    """What follows `shared` in each prompt: at least one token."""

    @property
    def count(self) -> int:
        """Tokens of all prompts together."""
        return sum(len(self.shared) + len(own) for own in self.own)


async def token_prompts(wire: Wire, prompts: Sequence[str]) -> TokenPrompts:
    """Return the prompts by the server's own tokenizer; RequestRejected if one is too long."""
    encoded = [await _encode(wire, prompt) for prompt in prompts]
    shared = _shared_length(encoded)
    return TokenPrompts(encoded[0][:shared], [tokens[shared:] for tokens in encoded])


async def _encode(wire: Wire, prompt: str) -> list[int]:
    assert wire.frame is not None
    tokens = await wire.tokenizer.encode(wire.frame.around(prompt))
    if not tokens:
        raise RequestRejected("the server could not tokenise the prompt.")
    limit = wire.server.context
    if limit is not None and len(tokens) >= limit:
        # Scoring endpoints would cut it without a word.
        raise RequestRejected(f"the prompt has {len(tokens)} tokens, the model reads {limit}.")
    return tokens


def _shared_length(prompts: Sequence[Sequence[int]]) -> int:
    """Return how many tokens all prompts begin with, leaving each at least one of its own."""
    shortest = min(len(prompt) for prompt in prompts)
    for position in range(shortest - 1):
        if len({prompt[position] for prompt in prompts}) > 1:
            return position
    return shortest - 1
