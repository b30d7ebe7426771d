"""The label tokens of a judge's vocabulary, for engines that report chosen tokens exactly."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from operator import itemgetter
from typing import Generic, TypeVar

from rocketeval.engines.readout import BYTE_MARKERS, NOT_REPORTED, Readout
from rocketeval.engines.rubric_readout import RubricReadout
from rocketeval.engines.scale_readout import ScaleReadout
from rocketeval.errors import EngineRefused
from rocketeval.records import Answer, Status

Token = TypeVar("Token", int, str)
AnyReadout = Readout | ScaleReadout | RubricReadout


@dataclass(frozen=True)
class Labels(Generic[Token]):
    """The vocabulary tokens that count as each label, named as in the server's replies."""

    groups: tuple[tuple[Token, ...], ...]
    """Tokens of each label, best label first: for a checklist yes, then no."""

    def read(self, readout: AnyReadout, logps: Mapping[Token, float], wrote: str | None) -> Answer:
        """Return the answer computed from the log-probabilities of all label tokens."""
        try:
            found = [pick(logps) for pick in self._picks]
        except KeyError:
            # The engine left out a label token that the request asked for.
            return Answer(Status.NO_LOGPROBS)
        if min(map(min, found)) <= NOT_REPORTED:
            # The engine returned a placeholder for a label token.
            return Answer(Status.NO_LOGPROBS)
        return readout.read_labels(found, wrote=wrote)

    @cached_property
    def _picks(self) -> tuple[Callable[[Mapping[Token, float]], tuple[float, ...]], ...]:
        """Functions that return the log-probabilities of each label's tokens."""
        return tuple(map(_pick, self.groups))


def _pick(tokens: tuple[Token, ...]) -> Callable[[Mapping[Token, float]], tuple[float, ...]]:
    # `itemgetter` is several times faster than a loop, but returns no tuple of one.
    if len(tokens) > 1:
        return itemgetter(*tokens)
    return lambda logps: tuple(logps[token] for token in tokens)


class LabelTokens(Labels[int]):
    """Ids of every label spelling that is a single token of the judge's vocabulary."""

    @property
    def ids(self) -> list[int]:
        """All token ids, those of the best label first."""
        return [token for group in self.groups for token in group]

    @cached_property
    def named(self) -> Labels[str]:
        """The same tokens as engines print ids, such as `token_id:42`."""
        names = (tuple(f"token_id:{token}" for token in group) for group in self.groups)
        return Labels(tuple(names))


async def find_label_tokens(
    readout: AnyReadout, encode: Callable[[str], Awaitable[Sequence[int]]]
) -> LabelTokens | None:
    """Return the label tokens of the vocabulary behind `encode`; None if a label has none.

    `encode` tokenizes a text without special tokens. Spellings with byte markers are skipped:
    they are how some engines print a space, not texts.
    """

    async def single_tokens(spelled: frozenset[str]) -> tuple[int, ...]:
        texts = sorted(text for text in spelled if not text.startswith(BYTE_MARKERS))
        encoded = await asyncio.gather(*(encode(text) for text in texts))
        return tuple(sorted({tokens[0] for tokens in encoded if len(tokens) == 1}))

    found = LabelTokens(tuple([await single_tokens(spelled) for spelled in readout.spelled]))
    # An unknown-word token shared by labels could mean any of them.
    apart = len(set(found.ids)) == len(found.ids)
    return found if all(found.groups) and apart else None


def begin_alike(words: Sequence[str]) -> list[tuple[str, str]]:
    """Return pairs of labels in which the longer one starts with the shorter one.

    >>> begin_alike(("10", "9", "1"))
    [('1', '10')]
    """
    return [(short, long) for short, long in permutations(words, 2) if long.startswith(short)]


async def refuse_split_labels(
    words: Sequence[str], encode: Callable[[str], Awaitable[Sequence[int]]], model: str
) -> None:
    """Raise EngineRefused if one label starts with the token of another (10 as 1 and 0).

    The judge's first token would then be ambiguous.
    """
    for short, long in begin_alike(words):
        begins, tokens = await encode(short), await encode(long)
        if tokens[: len(begins)] == begins:
            raise EngineRefused(
                f"In the tokenizer of {model!r} the label {long!r} begins with the token of "
                f"{short!r}, so the judge's first token could mean either.",
                hint="Use labels that do not start alike, such as 0 to 9.",
            )
