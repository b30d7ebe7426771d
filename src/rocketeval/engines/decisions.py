"""A judge behind a decision endpoint: `POST /decisions` answers up to 400 predicates at once.

The endpoint returns a probability per predicate, so a whole checklist is one request. Written after
its published request and reply; not yet run against the service itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rocketeval.config import EngineConfig
from rocketeval.engines.base import (
    EngineAnswers,
    EngineFinding,
    EngineIdentity,
    Likelihood,
    WrittenText,
)
from rocketeval.engines.likelihood import refused_likelihood
from rocketeval.engines.openai_http import OpenAIEngine, extra_mark
from rocketeval.engines.replies import UsageMeter, unusable
from rocketeval.engines.transports.base import SHAPE
from rocketeval.errors import EngineRefused, EngineUnavailable, RequestRejected
from rocketeval.items import AnswerLabels
from rocketeval.records import Answer, GradingTask, Status

MOST_QUESTIONS = 400
"""Questions per request."""
PREDICATE = "predicate"


class DecisionsEngine(OpenAIEngine):
    """A judge that answers predicates with probabilities instead of writing tokens."""

    @classmethod
    def create(cls, config: EngineConfig, home: Path | None = None) -> DecisionsEngine:
        """Return an engine for `config` without contacting the server."""
        return cls(config)

    @property
    def items_per_call(self) -> int:
        """Number of items per call."""
        return MOST_QUESTIONS

    async def ready(self) -> None:
        """Do nothing: a decision endpoint has no list of models."""

    async def identify(self) -> EngineIdentity:
        """Return the identity, which the endpoint does not report beyond its model."""
        return EngineIdentity(
            engine="decisions",
            model=self.config.model,
            endpoint="decisions",
            version="unknown",
            logprobs=f"probability{extra_mark(self.config.extra_body)}",
            readout="probability",
        )

    async def findings(self) -> Sequence[EngineFinding]:
        """Report the kind of judge and its cost."""
        told = f"probabilities from a decision endpoint: one request per {MOST_QUESTIONS} items"
        advice = "The service states these probabilities; audit them on your own labels."
        return (EngineFinding("answers", told, "note", advice),)

    async def tokenise(self, prompts: Sequence[str]) -> list[list[int]] | None:
        """Return None: the endpoint has no tokenizer."""
        return None

    async def write(
        self, prompt: str, *, max_tokens: int, temperature: float = 0.0, seed: int | None = None
    ) -> WrittenText:
        """Raise EngineRefused: a decision endpoint writes no text."""
        raise EngineRefused("A decision endpoint writes no text.", hint="Use another author.")

    async def likelihood(self, prompt: str, text: str) -> Likelihood:
        """Raise EngineRefused: a decision endpoint has no likelihoods."""
        raise refused_likelihood("A decision endpoint")

    async def grade(self, task: GradingTask, known: Mapping[int, Answer]) -> EngineAnswers:
        """Answer every item of `task` that is not already `known`, in one request if possible."""
        answers, meter = dict(known), UsageMeter()
        waiting = task.left(known)
        for start in range(0, len(waiting), MOST_QUESTIONS):
            places = waiting[start : start + MOST_QUESTIONS]
            try:
                found = await self._decide(task, places, meter)
            except (EngineUnavailable, RequestRejected) as error:
                return EngineAnswers.of(
                    task,
                    answers,
                    meter.usage,
                    failure=f"item {places[0] + 1}: {error.message}",
                    unavailable=isinstance(error, EngineUnavailable),
                    rejected=isinstance(error, RequestRejected),
                )
            answers.update(zip(places, found, strict=True))
            self._count(len(places))
        return EngineAnswers.of(task, answers, meter.usage)

    async def _decide(
        self, task: GradingTask, places: Sequence[int], meter: UsageMeter
    ) -> list[Answer]:
        body = {
            "model": self.config.model,
            "input": task.prefix,
            "questions": [
                _question(task.suffixes[place], f"i{place + 1}", task.labels_of(place))
                for place in places
            ],
            **self.config.extra_body,
        }

        def read(reply: dict[str, Any]) -> list[Answer]:
            usage = reply.get("usage") or {}
            meter.answered(
                {
                    "usage": {
                        "prompt_tokens": usage.get("input_tokens"),
                        "completion_tokens": usage.get("output_tokens"),
                        "prompt_tokens_details": usage.get("input_tokens_details"),
                    }
                }
            )
            rows = reply.get("answers")
            if not isinstance(rows, list) or len(rows) != len(places):
                raise unusable("the server sent another number of answers than asked.", SHAPE)
            return [
                _answer(row, task.labels_of(place)) for row, place in zip(rows, places, strict=True)
            ]

        return await self._http.ask("/decisions", body, meter, read)


def _question(text: str, name: str, labels: AnswerLabels | None) -> dict[str, object]:
    if labels is None:
        return {"type": PREDICATE, "name": name, "instructions": text}
    words = [*labels.words, *([] if labels.na is None else [labels.na])]
    choices = [{"value": word, "description": word} for word in words]
    return {"type": "choice", "name": name, "instructions": text, "choices": choices}


def _answer(row: Any, labels: AnswerLabels | None) -> Answer:
    """Return the answer in a row; UnusableReply unless it has the documented shape."""
    if not isinstance(row, dict):
        raise unusable("an answer is not an object.", SHAPE)
    if row.get("type") == "refusal":
        return Answer(Status.UNREADABLE, text="the service refused to answer")
    if row.get("type") == PREDICATE:
        p_yes = _probability(row.get("probability"))
        return Answer(Status.OK, p_yes, p_yes, p_yes, 1.0)
    rows = row.get("probabilities")
    if labels is None or not isinstance(rows, list):
        raise unusable("an answer has no probabilities.", SHAPE)
    shares = {str(each.get("value")): _probability(each.get("probability")) for each in rows}
    last = len(labels.words) - 1
    own = [shares.get(word, 0.0) for word in labels.words]
    total = sum(own)
    p_na = shares.get(labels.na, 0.0) if labels.na is not None else None
    if total <= 0.0 and not p_na:
        raise unusable("no label has a probability.", SHAPE)
    value = sum(p * (last - place) / last for place, p in enumerate(own)) / (total or 1.0)
    best = labels.words[own.index(max(own))] if last > 1 else None
    return Answer(Status.OK, value, value, value, 1.0, None, None, best, p_na, p_na, p_na)


def _probability(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value <= 1.0:
        raise unusable(f"a probability is {str(value)[:40]!r}.", SHAPE)
    return float(value)
