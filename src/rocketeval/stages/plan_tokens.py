"""How many tokens a run's prompts have, with and without reuse of what they share."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rocketeval.engines.base import Engine
from rocketeval.grading.budget import calls
from rocketeval.grading.prefix import trie_tokens
from rocketeval.records import GradingTask
from rocketeval.stages.work import Work

BYTES_PER_TOKEN = 4
"""Of English text, roughly: what is taken where the judge's tokenizer cannot be asked."""
PER_CALL = 256
"""Prompts tokenised at a time."""

Known = Literal["exact", "sampled", "estimated"]


@dataclass(frozen=True, slots=True)
class Asking:
    """What will be asked."""

    items: int
    requests: int
    prompt_tokens: int
    computed_tokens: int
    """The least that has to be computed when every shared beginning is computed once."""
    known: Known
    """By the judge's tokenizer for all prompts, for whole queries among them, or from bytes."""
    counted: int
    """Prompts that were looked at token by token."""
    sample: tuple[GradingTask, ...]
    """The tasks they belong to, in the order of a run."""


async def count_tokens(
    work: Work, engine: Engine | None, most_prompts: int | None, *, alone: bool = False
) -> Asking:
    """Return how much will be asked, from at most about `most_prompts` prompts.

    `alone`: each item is a request of its own.
    """
    sizes = work.items()
    chosen = choose_evenly(sizes, most_prompts)
    places = {query_id: place for place, query_id in enumerate(work.queries)}
    requests = written = 0
    sample: list[GradingTask] = []
    prompts: list[str] = []
    for task, asked in work.tasks():
        requests += calls(engine, len(asked), alone=alone) if engine else len(asked)
        written += sum(map(_bytes, asked))
        if task.query_id in chosen:
            sample.append(task)
            prompts += asked
    tokens = await _tokenise(engine, prompts)
    bound = trie_tokens(map(str.encode, prompts) if tokens is None else tokens)
    share = written / max(1, sum(map(_bytes, prompts)))
    unit = BYTES_PER_TOKEN if tokens is None else 1
    known: Known = "exact" if len(prompts) == sizes.total() else "sampled"
    return Asking(
        items=sizes.total(),
        requests=requests,
        prompt_tokens=round(bound.tokens * share / unit),
        # What all prompts begin with is computed once, however many there are.
        computed_tokens=round((bound.common + (bound.computed - bound.common) * share) / unit),
        known="estimated" if tokens is None else known,
        counted=len(prompts),
        sample=tuple(sorted(sample, key=lambda task: places[task.query_id])),
    )


def choose_evenly(sizes: Mapping[str, int], most: int | None) -> set[str]:
    """Return queries, evenly spaced, that have about `most` prompts together; all if they fit.

    >>> sorted(choose_evenly({"a": 10, "b": 10, "c": 10, "d": 10}, 20))
    ['b', 'd']
    """
    names, total = list(sizes), sum(sizes.values())
    if most is None or total <= most:
        return set(names)
    count = max(1, len(names) * most // total)
    return {names[(2 * place + 1) * len(names) // (2 * count)] for place in range(count)}


async def _tokenise(engine: Engine | None, prompts: Sequence[str]) -> Iterable[array[int]] | None:
    """Return the tokens of each prompt, four bytes each; None where the engine cannot tell."""
    if engine is None:
        return None
    tokens: list[array[int]] = []
    for start in range(0, len(prompts), PER_CALL):
        told = await engine.tokenise(prompts[start : start + PER_CALL])
        if told is None:
            return None
        tokens += (array("I", prompt) for prompt in told)
    return tokens


def _bytes(text: str) -> int:
    return len(text.encode())
