"""A fake author of dimension checklists with predictable lines that depend on its prompt."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from fakes.openai_server import FakeOpenAI
from rocketeval.engines.probe import PREFIX

ONE_PART = """\
task: A machine was asked to greet somebody. The greeting is judged.
dimensions:
  warmth:
    definition: Whether the greeting is friendly.
    sub_dimensions:
      words:
        definition: Friendly words.
        seeds:
          - Is there a friendly word?
"""
"""A dimension file: one sub-dimension with one seed."""
TWO_PARTS = (
    ONE_PART
    + """\
          - Is the name said?
      tone:
        definition: A friendly tone.
        seeds:
          - Does it sound glad?
  length:
    definition: Whether the greeting is short.
    sub_dimensions:
      brevity:
        definition: Few words.
        seeds:
          - Is it one sentence?
"""
)
"""A dimension file: two dimensions, three sub-dimensions, four seeds."""
AUGMENTING = 3 + 4
"""Requests that produce new questions: one per sub-dimension, one per seed."""
FILTERING = 2


def kind_of(prompt: str) -> str:
    """Return the step that a prompt asks for."""
    if "# The broad question" in prompt:
        return "elaborate"
    return "diversify" if "# Questions that are there" in prompt else "filter"


def asked_questions(prompt: str) -> list[str]:
    """Return the questions that a filter prompt lists."""
    listed = prompt.split("# Questions, each with")[1].split("# Task")[0]
    return re.findall(r"^\d+\. \[.*?\] (.*)$", listed, re.MULTILINE)


def reply(prompt: str, worse: Collection[str] = (), other: Collection[str] = ()) -> str:
    """Return three questions that name their origin, or a verdict on each question.

    Questions with a word of `worse` or `other` fail alignment or the dimension; a question that
    ends in `(again)?` repeats the first one.
    """
    kind = kind_of(prompt)
    if kind == "filter":
        rows = [
            {
                "question": number,
                "yes_is_better": not any(word in text for word in worse),
                "fits": not any(word in text for word in other),
                "repeats": 1 if text.endswith("(again)?") else None,
            }
            for number, text in enumerate(asked_questions(prompt), 1)
        ]
        return json.dumps(rows)
    part = re.search(r"to ask about\n(.*?):", prompt)
    seed = re.search(r"# The broad question\n(.*)\n", prompt)
    about = f"{part[1] if part else ''} {seed[1].rstrip('?') if seed else ''}".strip()
    return "\n".join(f"{n}. Is {kind} {n} of {about} met?" for n in (1, 2, 3))


@dataclass
class AuthorServer(FakeOpenAI):
    """A server that writes dimension checklists, and answers a listed checklist with yes."""

    unreadable: str | None = None
    """Steps whose prompt contains this text get nonsense."""

    def reply(self, prompt: str, body: Mapping[str, Any]) -> dict[str, Any]:
        if prompt.startswith(PREFIX):
            return super().reply(prompt, body)
        self.text = self._written(prompt)
        used = {"prompt_tokens": len(prompt.encode()), "completion_tokens": len(self.text)}
        return {**super().reply(prompt, body), "usage": used}

    def _written(self, prompt: str) -> str:
        if "# Questions about the response" in prompt:
            return "\n".join(f"Q{number}: Yes" for number in range(1, 22))
        if self.unreadable is not None and self.unreadable in prompt.split("# Task")[0]:
            return "Sorry."
        return reply(prompt, worse=["elaborate 2"])

    @property
    def kinds(self) -> Counter[str]:
        """Return how often each step was requested."""
        return Counter(kind_of(seen.prompt) for seen in self.chats)
