"""A synthetic benchmark whose prompts identify their response."""

from __future__ import annotations

import random
import re
from pathlib import Path

from rocketeval.store.files import write_jsonl

QUERY_WORDS = 40
WORDS = [first + second for first in ("ba", "de", "ki", "lo") for second in ("n", "rus", "tam")]
_ABOUT = re.compile(r"Response q\d+ of c\d+")


def write_benchmark(folder: Path, queries: int, candidates: int, items: int, words: int) -> None:
    """Write queries, checklists, and responses of `words` words."""
    rng = random.Random(1)
    names = [f"q{number}" for number in range(queries)]
    asked = [f"Is it {WORDS[number % len(WORDS)]}?" for number in range(items)]
    texts = {query: f"What is {query}? {_words(rng, QUERY_WORDS)}" for query in names}
    write_jsonl(folder / "queries.jsonl", ({"id": q, "text": text} for q, text in texts.items()))
    write_jsonl(folder / "checklists.jsonl", ({"query_id": q, "items": asked} for q in names))
    for number in range(candidates):
        rows = (
            {"query_id": q, "text": f"Response {q} of c{number}: {_words(rng, words)}"}
            for q in names
        )
        write_jsonl(folder / "responses" / f"c{number}.jsonl", rows)


def response_in(prompt: str) -> str:
    """Return which response a prompt is about."""
    found = _ABOUT.search(prompt)
    assert found is not None, prompt
    return found.group()


def _words(rng: random.Random, number: int) -> str:
    return " ".join(rng.choices(WORDS, k=number))
