"""A fake author that rewrites items by a rule, on a separate server."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fakes.openai_server import MODEL, FakeOpenAI
from rocketeval.config import RunConfig
from rocketeval.engines.probe import PREFIX
from support.make import QUERIES, make_config, write_benchmark, write_jsonl

PRICE = {"prompt": 1000.0, "completion": 2000.0}


def numbers(prompt: str) -> list[int]:
    """Return the numbers of the items to rewrite."""
    listed = re.search(r"in their order: ([\d, ]+)\.", prompt)
    assert listed is not None
    return [int(number) for number in listed[1].split(",")]


def good(prompt: str) -> str:
    """Return one new question per item that no rule flags."""
    return "\n".join(f"{n}. Does the response explain reason {n}?" for n in numbers(prompt))


@dataclass
class RewritingServer(FakeOpenAI):
    """A server that applies `rule` to a prompt and counts one token per byte."""

    rule: Callable[[str], str] = good

    def reply(self, prompt: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the rule's text with its usage."""
        if prompt.startswith(PREFIX):
            return super().reply(prompt, body)
        self.text = self.rule(prompt)
        used = {"prompt_tokens": len(prompt.encode()), "completion_tokens": len(self.text)}
        return {**super().reply(prompt, body), "usage": used}


def bad_items(query: str) -> list[str]:
    """Return a good item and two that are flagged."""
    return [
        f"Does the response name the cause of the {query}?",
        f"Does the response fail to mention the {query}?",
        f"What does the response say about the {query}?",
    ]


def write_bad_benchmark(folder: Path, *, shared: bool = False) -> None:
    """Write three queries whose checklists have two bad items each, or one shared checklist."""
    write_benchmark(folder / "benchmark")
    rows = [
        {"query_id": query, "items": bad_items("world" if shared else query)} for query in QUERIES
    ]
    write_jsonl(folder / "benchmark" / "checklists.jsonl", rows)


def fixing_config(
    folder: Path, server: FakeOpenAI, *, shared: bool = False, **changes: Any
) -> RunConfig:
    """Return a config for that benchmark with the server as author."""
    write_bad_benchmark(folder, shared=shared)
    author = {
        "engine": {"model": MODEL, "base_url": server.base_url, "patience": 5},
        "price": PRICE,
        **changes.pop("author", {}),
    }
    return make_config(folder, author=author, **changes)
