"""A scripted judge that counts every token it reads and writes, and stores every prompt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rocketeval.engines.base import EngineAnswers, Likelihood, WrittenText
from rocketeval.engines.scripted import ScriptedEngine
from rocketeval.records import Answer, GradingTask, Usage

SCORED = 'Q1: Yes\nQ2: No\n{"score": "7"}'
"""A text in which every writing method finds its answers."""


class MeteredEngine(ScriptedEngine):
    """A judge at maximum cost: every byte is a token, and it writes as much as allowed."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(text=lambda _: SCORED, **settings)
        self.prompts: list[str] = []
        self.tokens = 0

    async def grade(self, task: GradingTask, known: Mapping[int, Answer]) -> EngineAnswers:
        """Answer, and count one written token per item."""
        asked = [s for place, s in enumerate(task.suffixes) if place not in known]
        graded = await super().grade(task, known)
        usage = Usage()
        for suffix in asked[: graded.usage.requests]:
            usage += self._read(task.prefix + suffix, 1)
        return EngineAnswers(graded.answers, usage, graded.failure)

    async def write(
        self, prompt: str, *, max_tokens: int, temperature: float = 0.0, seed: int | None = None
    ) -> WrittenText:
        """Write the text, and count as many tokens as are allowed."""
        written = await super().write(prompt, max_tokens=max_tokens)
        return WrittenText(written.text, self._read(prompt, max_tokens), finished=True)

    async def likelihood(self, prompt: str, text: str) -> Likelihood:
        """Return log-probabilities, and count the tokens read."""
        result = await super().likelihood(prompt, text)
        return Likelihood(result.logprobs, self._read(prompt + text, 1))

    def _read(self, prompt: str, written: int) -> Usage:
        self.prompts.append(prompt)
        # One more for the chat template, which `tokenise` reports as one token.
        used = Usage(1, len(prompt.encode()) + 1, 0, written)
        self.tokens += used.prompt_tokens + written
        return used
