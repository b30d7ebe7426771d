"""The judge's own tokens that mean yes and no, for engines that tell chosen tokens exactly."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from rocketeval.engines.readout import UNTOLD, Readout
from rocketeval.records import Answer, Status

Token = TypeVar("Token", int, str)


@dataclass(frozen=True)
class LabelTokens:
    """Token ids of every spelling that is one token of the judge's vocabulary."""

    yes: tuple[int, ...]
    no: tuple[int, ...]

    @property
    def ids(self) -> list[int]:
        """All of them, those that mean yes first."""
        return [*self.yes, *self.no]

    @cached_property
    def named(self) -> NamedLabels:
        """The same, as engines name tokens by id."""
        yes, no = ([f"token_id:{token}" for token in label] for label in (self.yes, self.no))
        return NamedLabels(yes, no)

    def read(self, readout: Readout, logps: Mapping[int, float], wrote: str | None) -> Answer:
        """Return the answer that the log-probabilities of all label tokens give."""
        return _read(readout, self.yes, self.no, logps, wrote)


@dataclass(frozen=True, slots=True)
class NamedLabels:
    """Label tokens by the names that replies give them, such as `token_id:42`."""

    yes: list[str]
    no: list[str]

    def read(self, readout: Readout, logps: Mapping[str, float], wrote: str | None) -> Answer:
        """Return the answer that the log-probabilities of all label tokens give."""
        return _read(readout, self.yes, self.no, logps, wrote)


def _read(
    readout: Readout,
    yes: Sequence[Token],
    no: Sequence[Token],
    logps: Mapping[Token, float],
    wrote: str | None,
) -> Answer:
    try:
        told_yes = [logps[token] for token in yes]
        told_no = [logps[token] for token in no]
    except KeyError:
        # An engine that leaves a label out did not do what it was asked.
        return Answer(Status.NO_LOGPROBS)
    if min(told_yes) <= UNTOLD or min(told_no) <= UNTOLD:
        # Nor did one that puts a placeholder in its place.
        return Answer(Status.NO_LOGPROBS)
    return readout.read_exact(told_yes, told_no, wrote=wrote)


async def find_label_tokens(
    readout: Readout, encode: Callable[[str], Awaitable[Sequence[int]]]
) -> LabelTokens | None:
    """Return the label tokens of the vocabulary behind `encode`; None when yes or no has none.

    `encode` tokenises a text without special tokens. Byte markers are how some engines print a
    space, not texts of their own, so only real texts are encoded.
    """

    async def single_tokens(spelled: frozenset[str]) -> tuple[int, ...]:
        texts = sorted(text for text in spelled if text.isascii())
        encoded = await asyncio.gather(*(encode(text) for text in texts))
        return tuple(sorted({tokens[0] for tokens in encoded if len(tokens) == 1}))

    yes, no = await single_tokens(readout.yes), await single_tokens(readout.no)
    return LabelTokens(yes, no) if yes and no else None
