"""What a grading method is: a prompt, and a way to put it to an engine."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from rocketeval.engines.base import Engine, Graded
from rocketeval.hashing import content_hash
from rocketeval.prompts.render import Prompt
from rocketeval.records import Answer, GradingTask

Ask = Callable[[GradingTask, Mapping[int, Answer]], Awaitable[Graded]]
"""Gets the answers to a task, except those that are already known."""


def each_item_alone(engine: Engine) -> Ask:
    """Ask every item by itself: what an engine does best."""
    return engine.grade


@dataclass(frozen=True)
class Method:
    """One way to grade responses, ready to be used."""

    name: str
    prompt: Prompt
    asking: Callable[[Engine], Ask] = each_item_alone
    most_written: int = 1
    """Tokens the judge writes for one request, at most."""
    reading: str = ""
    """How answers are read from what the judge writes; empty where it writes none."""
    alone: bool = False
    """Whether every item is a request of its own, also where an engine takes several at once."""

    @cached_property
    def hash(self) -> str:
        """Hex hash of all that decides what the judge is asked, part of its fingerprint."""
        if self.asking is each_item_alone and self.most_written == 1:
            return self.prompt.hash
        read = (self.reading,) if self.reading else ()
        return content_hash("method", self.name, self.most_written, self.prompt.hash, *read).hex()
