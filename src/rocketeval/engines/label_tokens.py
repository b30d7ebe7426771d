"""The judge's own tokens that mean its labels, for engines that tell chosen tokens exactly."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from typing import Generic, TypeVar

from rocketeval.engines.readout import BYTE_MARKERS, UNTOLD
from rocketeval.engines.scale_readout import AnyReadout
from rocketeval.errors import EngineRefused
from rocketeval.records import Answer, Status

Token = TypeVar("Token", int, str)


@dataclass(frozen=True)
class Labels(Generic[Token]):
    """Tokens of the judge's vocabulary that mean its labels, as replies name them."""

    groups: tuple[tuple[Token, ...], ...]
    """The tokens of each label, best first: those that mean yes, then those that mean no."""

    def read(self, readout: AnyReadout, logps: Mapping[Token, float], wrote: str | None) -> Answer:
        """Return the answer that the log-probabilities of all label tokens give."""
        try:
            told = [[logps[token] for token in group] for group in self.groups]
        except KeyError:
            # An engine that leaves a label out did not do what it was asked.
            return Answer(Status.NO_LOGPROBS)
        if min(map(min, told)) <= UNTOLD:
            # Nor did one that puts a placeholder in its place.
            return Answer(Status.NO_LOGPROBS)
        return readout.read_labels(told, wrote=wrote)


class LabelTokens(Labels[int]):
    """Token ids of every spelling that is one token of the judge's vocabulary."""

    @property
    def ids(self) -> list[int]:
        """All of them, those of the best label first."""
        return [token for group in self.groups for token in group]

    @cached_property
    def named(self) -> Labels[str]:
        """The same, as engines name tokens by id, such as `token_id:42`."""
        names = (tuple(f"token_id:{token}" for token in group) for group in self.groups)
        return Labels(tuple(names))


async def find_label_tokens(
    readout: AnyReadout, encode: Callable[[str], Awaitable[Sequence[int]]]
) -> LabelTokens | None:
    """Return the label tokens of the vocabulary behind `encode`; None when a label has none.

    `encode` tokenises a text without special tokens. Byte markers are how some engines print a
    space, not texts of their own, so only real texts are encoded.
    """

    async def single_tokens(spelled: frozenset[str]) -> tuple[int, ...]:
        texts = sorted(text for text in spelled if not text.startswith(BYTE_MARKERS))
        encoded = await asyncio.gather(*(encode(text) for text in texts))
        return tuple(sorted({tokens[0] for tokens in encoded if len(tokens) == 1}))

    found = LabelTokens(tuple([await single_tokens(spelled) for spelled in readout.spelled]))
    # A token that stands for anything unknown could mean every label.
    apart = len(set(found.ids)) == len(found.ids)
    return found if all(found.groups) and apart else None


def begin_alike(words: Sequence[str]) -> list[tuple[str, str]]:
    """Return the labels with which longer ones begin, and those.

    >>> begin_alike(("10", "9", "1"))
    [('1', '10')]
    """
    return [(short, long) for short, long in permutations(words, 2) if long.startswith(short)]


async def refuse_split_labels(
    words: Sequence[str], encode: Callable[[str], Awaitable[Sequence[int]]], model: str
) -> None:
    """Raise EngineRefused if one label begins with the token of another: 10, where it is 1 and 0.

    What the judge says with its first token could then be either of the two.
    """
    for short, long in begin_alike(words):
        begins, tokens = await encode(short), await encode(long)
        if tokens[: len(begins)] == begins:
            raise EngineRefused(
                f"To {model!r} the label {long!r} begins with the token of {short!r}, so that its "
                "first token could mean either.",
                hint="Grade on labels that do not begin alike, such as 0 to 9.",
            )
