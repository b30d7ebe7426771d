"""The judge's own tokens that mean yes and no, for engines that tell chosen tokens exactly."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from rocketeval.engines.readout import UNTOLD, Readout
from rocketeval.records import Answer


@dataclass(frozen=True, slots=True)
class LabelTokens:
    """Token ids of every spelling that is one token of the judge's vocabulary."""

    yes: tuple[int, ...]
    no: tuple[int, ...]

    @property
    def ids(self) -> list[int]:
        """All of them, those that mean yes first."""
        return [*self.yes, *self.no]

    def read(self, readout: Readout, logps: Mapping[int, float], wrote: str | None) -> Answer:
        """Return the answer that the log-probabilities of all label tokens give."""
        told = {token: logp for token, logp in logps.items() if logp > UNTOLD}
        yes = [told[token] for token in self.yes if token in told]
        no = [told[token] for token in self.no if token in told]
        if len(yes) + len(no) < len(self.yes) + len(self.no):
            # An engine that leaves a label out, or puts a placeholder in its place, did not do
            # what it was asked.
            return readout.read_exact([], [])
        return readout.read_exact(yes, no, wrote=wrote)


async def find_label_tokens(
    readout: Readout, encode: Callable[[str], Awaitable[Sequence[int]]]
) -> LabelTokens | None:
    """Return the label tokens of the vocabulary behind `encode`; None when yes or no has none.

    `encode` tokenises a text without special tokens. Byte markers are how some engines print a
    space, not texts of their own, so only real texts are encoded.
    """

    async def single_tokens(spelled: frozenset[str]) -> tuple[int, ...]:
        texts = sorted(text for text in spelled if text.isascii())
        encoded = [await encode(text) for text in texts]
        return tuple(sorted({tokens[0] for tokens in encoded if len(tokens) == 1}))

    yes, no = await single_tokens(readout.yes), await single_tokens(readout.no)
    return LabelTokens(yes, no) if yes and no else None
