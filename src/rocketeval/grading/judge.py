"""Who judges: an engine and a grading prompt, and the fingerprint of the two."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from rocketeval.engines.base import EngineIdentity
from rocketeval.prompts.render import GradingPrompt, Template
from rocketeval.records import JudgeFingerprint


def grading_prompt(template: Path | None) -> GradingPrompt:
    """Return the packaged grading prompt, or the user's own."""
    return GradingPrompt(Template.load("grade", template))


def fingerprint(identity: EngineIdentity, prompt: GradingPrompt) -> JudgeFingerprint:
    """Return everything that can change this judge's probabilities."""
    return JudgeFingerprint(**asdict(identity), template=prompt.hash)
