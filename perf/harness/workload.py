"""The workload that every method grades: synthetic text, the same on every machine.

Eight candidates answer each query; responses come in query order, items in checklist order. That
is the ideal order for a prefix cache.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rocketeval.engines.readout import Readout
from rocketeval.hashing import content_hash
from rocketeval.prompts.render import GradingPrompt
from rocketeval.records import Checklist, GradingTask, Query, Response
from rocketeval.store.inputs import Inputs

CANDIDATES = 8
PROMPT_TOKENS = 190
"""Approximate tokens of the grading prompt, chat template and query in the prefix."""
TOKENS_PER_SENTENCE = 19

TOPICS = (
    ("bake a rye bread", "dough", "oven", "crust", "starter"),
    ("true a bicycle wheel", "spoke", "rim", "nipple", "hub"),
    ("plan a small vegetable garden", "bed", "compost", "seedling", "shade"),
    ("learn to read sheet music", "clef", "interval", "rhythm", "scale"),
    ("repair a leaking tap", "washer", "valve", "gasket", "handle"),
    ("photograph the night sky", "tripod", "aperture", "exposure", "lens"),
    ("write a letter of complaint", "receipt", "deadline", "remedy", "tone"),
    ("keep bees on a roof", "hive", "frame", "smoker", "nectar"),
)
OPENINGS = ("First", "Then", "After that", "In most homes", "On a calm day", "If time is short")
ADVICE = (
    "look closely at the {0} and note whether the {1} still moves freely",
    "leave the {0} alone until the {1} is clean, dry and easy to reach",
    "compare the {0} with the {1}, since a worn one hides a problem in the other",
    "ask somebody who knows the {0} before you spend any money on the {1}",
    "write down what the {0} did last week, because the {1} depends on it",
    "set the {0} a little lower than the {1} and try again the next morning",
)
ITEMS = (
    "Does the response explain what to do with the {0}?",
    "Does the response warn about a mistake people make with the {0}?",
    "Is the advice about the {0} given before the advice about the {1}?",
    "Would a beginner understand every word said about the {0}?",
    "Does the response say when the {0} has to be replaced?",
    "Is the response free of contradictions about the {0} and the {1}?",
    "Does the response say how the {0} and the {1} depend on each other?",
    "Does the response name the tools that the {0} asks for?",
)


@dataclass(frozen=True)
class Workload:
    """Queries, their checklists, and eight candidates' responses in query order."""

    queries: tuple[Query, ...]
    responses: tuple[Response, ...]
    checklists: tuple[Checklist, ...]

    @property
    def answers(self) -> int:
        """Return the number of answers."""
        items = {checklist.query_id: len(checklist.items) for checklist in self.checklists}
        return sum(items[response.query_id] for response in self.responses)

    def save(self, folder: Path) -> Inputs:
        """Return the workload as the inputs of a run."""
        inputs = Inputs(folder)
        inputs.save(list(self.queries), self.responses, (), (), ())
        inputs.save_checklists(self.checklists)
        return inputs

    def tasks(self) -> Iterator[GradingTask]:
        """Yield the grading tasks in order, rendered as in a run."""
        prompt = GradingPrompt()
        queries = {query.id: query for query in self.queries}
        checklists = {checklist.query_id: checklist for checklist in self.checklists}
        for response in self.responses:
            query = queries[response.query_id]
            key = content_hash("perf", response.query_id, response.candidate)
            yield prompt.render(query, response, checklists[query.id], key)

    def plain(self) -> dict[str, Any]:
        """Return the JSON data that a method in another interpreter needs."""
        queries = {query.id: query.text for query in self.queries}
        checklists = {checklist.query_id: checklist.items for checklist in self.checklists}
        readout = Readout()
        return {
            "prompts": prompts(list(self.tasks())),
            "responses": [
                {
                    "query": queries[response.query_id],
                    "response": response.text,
                    "items": list(checklists[response.query_id]),
                }
                for response in self.responses
            ],
            "yes": _texts(readout.yes),
            "no": _texts(readout.no),
        }


def make_workload(responses: int, items: int, prefix_tokens: int, seed: int = 0) -> Workload:
    """Return the workload of that size; the same arguments give the same text."""
    rng = random.Random(seed)
    sentences = max(1, round((prefix_tokens - PROMPT_TOKENS) / TOKENS_PER_SENTENCE))
    names = [f"q{number:04d}" for number in range(-(-responses // CANDIDATES))]
    topics = {name: TOPICS[place % len(TOPICS)] for place, name in enumerate(names)}
    queries = tuple(Query(name, _question(topics[name], place)) for place, name in enumerate(names))
    checklists = tuple(Checklist(name, _checklist(topics[name], items, rng)) for name in names)
    answers = tuple(
        Response(name, f"candidate-{place}", _advice(topics[name], sentences, rng))
        for name in names
        for place in range(CANDIDATES)
    )
    return Workload(queries, answers[:responses], checklists)


def prompts(tasks: Sequence[GradingTask]) -> list[list[str]]:
    """Return the complete prompt of every item, response by response."""
    return [[task.prefix + suffix for suffix in task.suffixes] for task in tasks]


def _question(topic: tuple[str, ...], number: int) -> str:
    return (
        f"Case {number + 1}: I would like to {topic[0]} and have never done it before. "
        f"What should I know about the {topic[1]} and the {topic[2]}? Please be practical."
    )


def _checklist(topic: tuple[str, ...], items: int, rng: random.Random) -> tuple[str, ...]:
    written = []
    for place in range(items):
        parts = rng.sample(topic[1:], 2)
        number = f" (point {place + 1})" if place >= len(ITEMS) else ""
        written.append(ITEMS[place % len(ITEMS)].format(*parts) + number)
    return tuple(written)


def _advice(topic: tuple[str, ...], sentences: int, rng: random.Random) -> str:
    return " ".join(
        f"{rng.choice(OPENINGS)}, {rng.choice(ADVICE).format(*rng.sample(topic[1:], 2))}."
        for _ in range(sentences)
    )


def _texts(spelled: frozenset[str]) -> list[str]:
    """Return the real texts among the spellings; some engines print byte markers."""
    return sorted(text for text in spelled if text.isascii())
