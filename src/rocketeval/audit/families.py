"""Whose model a name tells of."""

from __future__ import annotations

import re
from collections.abc import Iterable

_FAMILIES = {
    "claude": "claude",
    "command": "command",
    "deepseek": "deepseek",
    "falcon": "falcon",
    "gemini": "gemini",
    "gemma": "gemma",
    "glm": "(?:chat)?glm",
    "gpt": "(?:chat)?gpt(?!4all|-j|-neo)|o[134]|davinci",
    "granite": "granite",
    "grok": "grok",
    "llama": "(?:code)?llama",
    "mistral": "mistral|mixtral|ministral|codestral",
    "olmo": "olmo",
    "phi": "phi",
    "qwen": "(?:code)?qwen|qwq",
    "smollm": "smollm",
    "yi": "yi",
}


def guess_family(judge: str, candidates: Iterable[str]) -> frozenset[str] | None:
    """Return the candidates of the judge's family by their names; None if none seems to be.

    Only names are read: a model tuned from another under a new name is not found. A distilled
    model is of every family that its name tells.

    >>> sorted(guess_family("Qwen/Qwen2.5-1.5B-Instruct", ["qwen2-72b", "QwQ-32B", "gpt-4o"]))
    ['QwQ-32B', 'qwen2-72b']
    >>> guess_family("ollama/my-tune", ["llama-3-8b"]) is None
    True
    """
    own = _families(judge)
    found = frozenset(candidate for candidate in candidates if _families(candidate) & own)
    return found or None


def _families(name: str) -> set[str]:
    own_name = name.lower().rsplit("/", 1)[-1]
    return {
        family
        for family, words in _FAMILIES.items()
        if re.search(rf"(?<![a-z0-9])(?:{words})(?![a-z])", own_name)
    }
