"""The judge's own tokens of every prompt, from an interpreter that has its tokenizer."""

from __future__ import annotations

from typing import Any

from harness.bare_vllm import chat_tokens
from harness.child import serve
from harness.measured import Measured


class NoMethod:
    """A placeholder method that grades nothing."""

    def run(self) -> Measured:
        """Return nothing."""
        return Measured([])

    def close(self) -> None:
        """Do nothing."""


def prepare(settings: dict[str, Any]) -> tuple[NoMethod, dict[str, Any]]:
    """Tokenize every prompt inside the chat template."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(settings["folder"])
    prompts = [prompt for items in settings["prompts"] for prompt in items]
    return NoMethod(), {"tokens": [chat_tokens(tokenizer, prompt) for prompt in prompts]}


if __name__ == "__main__":
    serve(prepare)
