"""Model families guessed from names."""

from __future__ import annotations

import pytest

from rocketeval.audit.bias import guess_family


@pytest.mark.parametrize(
    ("judge", "candidate"),
    [
        ("Qwen/Qwen2.5-Coder-1.5B-Instruct", "qwen1.5-72b-chat"),
        ("qwen2.5-coder-1.5b-instruct", "CodeQwen1.5-7B"),
        ("meta-llama/Meta-Llama-3-8B-Instruct", "llama3.1:70b"),
        ("google/gemma-2-9b-it", "gemma-7b"),
        ("mistral-small", "Mixtral-8x7B-Instruct-v0.1"),
        ("gpt-4o-mini-2024-07-18", "chatgpt-4o-latest"),
        ("gpt4o", "gpt-3.5-turbo"),
        ("anthropic/claude-3-haiku", "claude-instant-v1"),
        ("DeepSeek-R1-Distill-Qwen-7B", "qwen2-7b"),
        ("glm-4-9b", "chatglm-6b"),
    ],
)
def test_names_of_one_family_match(judge: str, candidate: str) -> None:
    """Case, organization, version and word order do not matter."""
    assert guess_family(judge, [candidate, "my-tune"]) == {candidate}
    assert guess_family(candidate, [judge, "my-tune"]) == {judge}


@pytest.mark.parametrize(
    ("judge", "candidate"),
    [
        ("ollama/my-tune", "llama-2-7b"),
        ("ollama-tune", "llama-2-7b"),
        ("my-7b-gptq", "gpt-4"),
        ("gpt4all-13b-snoozy", "gpt-4"),
        ("gpt-j-6b", "gpt-4"),
        ("qwen2-7b", "gemma-2-9b-it"),
        ("unheard-of", "unheard-of-2"),
        ("delphi-7b", "phi-3-mini"),
    ],
)
def test_other_names_match_nothing(judge: str, candidate: str) -> None:
    """A part of a word is not a family, and two unknown names do not match."""
    assert guess_family(judge, [candidate]) is None
