"""An author LLM that is asked for something strict, and again with its own mistake shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from rocketeval.budget import TEMPLATE_TOKENS, most_tokens, most_written
from rocketeval.engines.base import Engine
from rocketeval.errors import ChecklistError, RequestRejected
from rocketeval.prompts.neutralise import neutralise
from rocketeval.records import Usage

MAX_TOKENS = 1500
"""What one checklist may be long."""
LONGEST_REASON = 1000
"""Bytes of what a reader says is wrong, which quotes sixty characters at most."""
REFUSED = "\n\nYour last list was refused: {reason} Write the whole list again, in the form asked."

T = TypeVar("T")


class Writer:
    """Lets an engine write until what it wrote can be read, a few times at most."""

    def __init__(self, engine: Engine, attempts: int, extra_body: Mapping[str, Any]) -> None:
        self.usage = Usage()
        """What all attempts have cost so far, those that could not be read included."""
        self.lost = 0
        """Requests that brought no answer; they may be on the bill all the same."""
        self._engine = engine
        self._attempts = attempts
        self._extra_body = extra_body

    def most(self, asked: str, max_tokens: int = MAX_TOKENS) -> Usage:
        """Return what all attempts together use at most."""
        read = most_tokens(asked + REFUSED, TEMPLATE_TOKENS + LONGEST_REASON)
        return Usage(
            prompt_tokens=self._attempts * read,
            completion_tokens=self._attempts * most_written(max_tokens, self._extra_body),
        )

    async def write(self, asked: str, read: Callable[[str], T], max_tokens: int = MAX_TOKENS) -> T:
        """Return what `read` makes of the engine's text; ChecklistError names the last mistake.

        `read` raises ChecklistError for a text it cannot use.
        """
        prompt, reason = asked, ""
        for _ in range(self._attempts):
            try:
                written = await self._engine.write(prompt, max_tokens=max_tokens)
            except RequestRejected as error:
                raise ChecklistError(f"the author rejected it: {error.message}") from None
            self.usage += written.usage
            self.lost += written.usage.requests - 1
            try:
                if not written.finished:
                    raise ChecklistError("it was cut off at the token limit.")
                return read(written.text)
            except ChecklistError as error:
                reason = error.message
                prompt = asked + REFUSED.format(reason=neutralise(reason).text)
        raise ChecklistError(f"the author's list was refused {self._attempts} times: {reason}")
