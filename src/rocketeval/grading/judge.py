"""Who judges: an engine and a grading prompt, and the fingerprint of the two."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Protocol

from rocketeval.engines.base import EngineIdentity
from rocketeval.prompts.render import GradingPrompt, Template
from rocketeval.records import JudgeFingerprint


def grading_prompt(template: Path | None) -> GradingPrompt:
    """Return the packaged grading prompt, or the user's own."""
    return GradingPrompt(Template.load("grade", template))


class Hashed(Protocol):
    """A grading prompt, or a method with its prompt."""

    @property
    def hash(self) -> str:
        """Hex hash of all that decides what the judge is asked."""
        ...


def fingerprint(identity: EngineIdentity, prompt: Hashed) -> JudgeFingerprint:
    """Return everything that can change this judge's probabilities."""
    return JudgeFingerprint(**asdict(identity), template=prompt.hash)
