"""A toy tokenizer and chat template: small, reversible, and with the pitfalls of real ones."""

from __future__ import annotations

import re
from dataclasses import dataclass

BOS = "<s>"
SPECIAL = (BOS, "<|system|>", "<|user|>", "<|end|>", "<|bot|>")
_PIECE = re.compile("|".join(map(re.escape, SPECIAL)) + "| ?[A-Z]?[a-z]+|.", re.DOTALL)


class ToyTokenizer:
    """A tokenizer of words with their leading space: `Yes` and ` Yes` differ, `YES` is 3 tokens."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        for piece in (*SPECIAL, "Yes", "No", " Yes", " No", "yes", "no", " yes", " no"):
            self.id_of(piece)

    def id_of(self, piece: str) -> int:
        """Return the token of one piece of text; create it on first use."""
        return self._ids.setdefault(piece, len(self._ids))

    def piece(self, token: int) -> str:
        """Return the text of the token."""
        return list(self._ids)[token]

    def encode(self, text: str, *, bos: bool = False) -> list[int]:
        """Return the tokens of `text`, optionally with a beginning-of-text token."""
        return [self.id_of(piece) for piece in [BOS] * bos + _PIECE.findall(text)]

    def decode(self, tokens: list[int]) -> str:
        """Return the text of the tokens."""
        return "".join(map(self.piece, tokens))


@dataclass
class ToyTemplate:
    """A chat template with a system preamble."""

    head: str = f"{BOS}<|system|>You judge. Be brief.<|end|><|user|>"
    tail: str = "<|end|><|bot|>"
    trims: bool = False

    def render(self, message: str) -> str:
        """Return the prompt for a user's message."""
        return self.head + (message.strip() if self.trims else message) + self.tail

    def message_in(self, prompt: str) -> str | None:
        """Return the user's message in a prompt of this template; None in any other text."""
        message = prompt.removeprefix(self.head).removesuffix(self.tail)
        return message if self.head + message + self.tail == prompt else None
