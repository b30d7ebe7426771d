"""Judges behind decision endpoints, `POST /decisions` and `POST /systemone`.

Such an endpoint returns a probability per question, so a whole checklist is one request. Written
after the published requests and replies; not yet run against a service.
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
    RefusedPartway,
    WrittenText,
    fails_for_good,
)
from rocketeval.engines.likelihood import refused_likelihood
from rocketeval.engines.openai_http import OpenAIEngine, extra_mark
from rocketeval.engines.readout import YES_NO
from rocketeval.engines.replies import UsageMeter, unusable
from rocketeval.engines.transports.base import SHAPE
from rocketeval.errors import EngineRefused, EngineUnavailable, RequestRejected
from rocketeval.hashing import content_hash
from rocketeval.items import AnswerLabels
from rocketeval.records import Answer, GradingTask, Status

Questions = Mapping[str, tuple[str, AnswerLabels | None]]
"""Text and labels of each question by its name; without labels it is answered yes or no."""


class DecisionsEngine(OpenAIEngine):
    """A judge that answers predicates with probabilities instead of writing tokens."""

    endpoint = "decisions"
    most_questions = 400
    """Questions per request."""

    @classmethod
    def create(cls, config: EngineConfig, home: Path | None = None) -> DecisionsEngine:
        """Return an engine for `config` without contacting the server."""
        return cls(config)

    @property
    def items_per_call(self) -> int:
        """Number of items per call."""
        return self.most_questions

    async def ready(self) -> None:
        """Do nothing: a decision endpoint has no list of models."""

    async def identify(self) -> EngineIdentity:
        """Return the identity, which the endpoint does not report beyond its model."""
        own = self._own_labels
        mark = "" if own is None else f"+{content_hash('labels', own.words).hex()}"
        return EngineIdentity(
            engine=self.endpoint,
            model=self.config.model,
            endpoint=self.endpoint,
            version="unknown",
            logprobs=f"probability{extra_mark(self.config.extra_body)}",
            readout=f"{self._readout()}{mark}",
        )

    async def findings(self) -> Sequence[EngineFinding]:
        """Report the kind of judge and its cost."""
        told = f"probabilities from /{self.endpoint}: one request per {self.most_questions} items"
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
        for start in range(0, len(waiting), self.most_questions):
            places = waiting[start : start + self.most_questions]
            try:
                found = await self._decide(task, places, meter)
            except EngineRefused as error:
                raise RefusedPartway.of(error, task, answers, meter.usage) from None
            except (EngineUnavailable, RequestRejected) as error:
                return EngineAnswers.of(
                    task,
                    answers,
                    meter.usage,
                    failure=f"item {places[0] + 1}: {error.message}",
                    unavailable=isinstance(error, EngineUnavailable),
                    rejected=fails_for_good(error),
                )
            answers.update(zip(places, found, strict=True))
            self._count(len(places))
        return EngineAnswers.of(task, answers, meter.usage)

    async def _decide(
        self, task: GradingTask, places: Sequence[int], meter: UsageMeter
    ) -> list[Answer]:
        questions = {
            f"i{place + 1}": (task.suffixes[place], task.labels_of(place) or self._own_labels)
            for place in places
        }
        body = {
            "model": self.config.model,
            **self._asked(task.prefix, questions),
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
            return self._read(reply, questions)

        return await self._http.ask(f"/{self.endpoint}", body, meter, read)

    @property
    def _own_labels(self) -> AnswerLabels | None:
        """The judge's own labels; None if they are yes and no, as for a predicate."""
        words = self.config.labels
        return None if words == YES_NO else AnswerLabels(words)

    def _readout(self) -> str:
        return "probability"

    def _asked(self, state: str, questions: Questions) -> dict[str, object]:
        """Return the part of the request with what is judged and the questions about it."""

        def question(name: str, text: str, labels: AnswerLabels | None) -> dict[str, object]:
            if labels is None:
                return {"type": "predicate", "name": name, "instructions": text}
            choices = [{"value": word, "description": word} for word in _words(labels)]
            return {"type": "choice", "name": name, "instructions": text, "choices": choices}

        return {
            "input": state,
            "questions": [question(name, *asked) for name, asked in questions.items()],
        }

    def _read(self, reply: dict[str, Any], questions: Questions) -> list[Answer]:
        """Return the answers in a reply; UnusableReply unless it has the documented shape."""

        def answer(row: Any, labels: AnswerLabels | None) -> Answer:
            if not isinstance(row, dict):
                raise unusable("an answer is not an object.", SHAPE)
            if row.get("type") == "refusal":
                return Answer(Status.UNREADABLE, text="the service refused to answer")
            if labels is None:
                return _yes(row.get("probability"), 1.0)
            shares = row.get("probabilities")
            if not isinstance(shares, list) or not all(isinstance(one, dict) for one in shares):
                raise unusable("an answer has no probabilities.", SHAPE)
            pairs = {str(one.get("value")): one.get("probability") for one in shares}
            return _labeled(pairs, labels, 1.0)

        rows = reply.get("answers")
        if not isinstance(rows, list) or len(rows) != len(questions):
            raise unusable("the server sent another number of answers than asked.", SHAPE)
        pairs = zip(rows, questions.values(), strict=True)
        return [answer(row, labels) for row, (_, labels) in pairs]


class SystemOneEngine(DecisionsEngine):
    """A judge behind `POST /systemone`, as vLLM and several services offer it.

    A server that reports the probability of all labels together (`label_mass`) is held to
    `min_mass`, like one with log-probabilities.
    """

    endpoint = "systemone"
    most_questions = 64

    def _readout(self) -> str:
        return content_hash("label mass", self.config.min_mass).hex()

    def _asked(self, state: str, questions: Questions) -> dict[str, object]:
        def question(text: str, labels: AnswerLabels | None) -> dict[str, object]:
            if labels is None:
                return {"type": "noul", "instructions": text}
            criteria = dict.fromkeys(_words(labels))
            return {"type": "choice", "instructions": text, "criteria": criteria}

        return {
            "state": state,
            "questions": {name: question(*asked) for name, asked in questions.items()},
        }

    def _read(self, reply: dict[str, Any], questions: Questions) -> list[Answer]:
        rows = reply.get("answers")
        if not isinstance(rows, dict):
            raise unusable("the server sent no answers by name.", SHAPE)
        masses = reply.get("diagnostics")

        def answer(name: str, labels: AnswerLabels | None) -> Answer:
            row = rows.get(name)
            if row is None:
                return Answer(Status.UNREADABLE, text="the service left the question out")
            told = masses.get(name) if isinstance(masses, dict) else None
            mass = _probability(told.get("label_mass")) if isinstance(told, dict) else 1.0
            if mass < self.config.min_mass:
                return Answer(Status.LOW_MASS, mass=mass)
            if not isinstance(row, dict):
                raise unusable("an answer is not an object.", SHAPE)
            if labels is None:
                return _yes(row.get("noul"), mass)
            shares = row.get("probabilities")
            if not isinstance(shares, dict):
                raise unusable("an answer has no probabilities.", SHAPE)
            return _labeled(shares, labels, mass)

        return [answer(name, labels) for name, (_, labels) in questions.items()]


def _words(labels: AnswerLabels) -> list[str]:
    return [*labels.words, *([] if labels.na is None else [labels.na])]


def _yes(value: Any, mass: float) -> Answer:
    p_yes = _probability(value)
    return Answer(Status.OK, p_yes, p_yes, p_yes, mass)


def _labeled(given: Mapping[str, Any], labels: AnswerLabels, mass: float) -> Answer:
    """Return the answer in the probabilities of an item's own labels."""
    shares = {word: _probability(value) for word, value in given.items()}
    last = len(labels.words) - 1
    own = [shares.get(word, 0.0) for word in labels.words]
    total = sum(own)
    p_na = shares.get(labels.na, 0.0) if labels.na is not None else None
    if total <= 0.0 and not p_na:
        raise unusable("no label has a probability.", SHAPE)
    value = sum(p * (last - place) / last for place, p in enumerate(own)) / (total or 1.0)
    best = labels.words[own.index(max(own))] if last > 1 else None
    return Answer(Status.OK, value, value, value, mass, None, None, best, p_na, p_na, p_na)


def _probability(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value <= 1.0:
        raise unusable(f"a probability is {str(value)[:40]!r}.", SHAPE)
    return float(value)
