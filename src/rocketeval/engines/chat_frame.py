"""The judge's chat template, learned from the server: what it writes around a user message."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rocketeval.engines.server import Tokenizer

MARK = "ROCKETEVALMARK"
CHAT_SETTINGS = frozenset(
    {"chat_template", "chat_template_kwargs", "add_generation_prompt", "continue_final_message"}
)
"""Settings of a request that change the template, and mean nothing to raw completions."""


@dataclass(frozen=True, slots=True)
class ChatFrame:
    """What stands before and after a user message in the prompt that the model reads.

    >>> ChatFrame("<user>", "<assistant>", trims=True).around(" hello ")
    '<user>hello<assistant>'
    """

    head: str
    tail: str
    trims: bool
    """Whether the template strips the message."""

    def around(self, message: str) -> str:
        """Return the whole prompt for `message`."""
        return self.head + (message.strip() if self.trims else message) + self.tail


async def learn_frame(tokenizer: Tokenizer, extra_body: Mapping[str, Any]) -> ChatFrame | None:
    """Return the frame the server's template makes; None where it cannot be learned for sure."""
    settings = {name: value for name, value in extra_body.items() if name in CHAT_SETTINGS}
    plain = await tokenizer.render(MARK, settings)
    spaced = await tokenizer.render(f" {MARK} ", settings)
    if plain is None or spaced is None or plain[0].count(MARK) != 1:
        return None
    head, tail = plain[0].split(MARK)
    # Two renderings, because a template may have spaces of its own around the message.
    for trims in (False, True):
        frame = ChatFrame(head, tail, trims)
        if frame.around(f" {MARK} ") == spaced[0]:
            break
    else:
        return None
    text, tokens = plain
    if tokens is not None and await tokenizer.encode(text) != tokens:
        # Text that does not come back as the same tokens would show the model another prompt.
        return None
    return frame
