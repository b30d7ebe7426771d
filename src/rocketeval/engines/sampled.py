"""Judges without log-probabilities: written answers, counted, with a confidence interval.

Each item is asked several times at a temperature above zero, and the share of yes estimates the
probability that other engines read. The estimate is never exact: its bounds are those of the
binomial distribution (Clopper-Pearson), so one written answer says little and eight say more.
`fit_scale` learns from a few answers of both kinds how shares relate to probabilities.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field

from rocketeval.arrays import Floats
from rocketeval.budget import most_written
from rocketeval.config import EngineConfig, Section, parse_options
from rocketeval.engines.base import (
    EngineAnswers,
    EngineFinding,
    EngineIdentity,
    RefusedPartway,
    fails_for_good,
    usage_of,
)
from rocketeval.engines.openai_http import OpenAIEngine, WrittenTexts, extra_mark
from rocketeval.errors import (
    ConfigError,
    EngineError,
    EngineRefused,
    EngineUnavailable,
    RequestRejected,
)
from rocketeval.hashing import content_hash
from rocketeval.items import AnswerLabels
from rocketeval.records import Answer, GradingTask, Status, Usage
from rocketeval.text import count_of

__all__ = ["ProbabilityScale", "fit_scale"]

LEVEL = 0.95
"""Confidence level of the bounds."""
LEAST_READABLE = 0.5
"""Share of the written answers that must be one of the labels."""
_FIRST_WORD = re.compile(r"[\s\"'*_`(\[#>-]*([^\W_]+)")


FEWEST_ITEMS = 20
"""Items answered both ways that a scale needs."""
REACH = 1.96
"""Standard errors of a 95% interval."""
FARTHEST = 7.0
"""Log-odds are cut to this distance from zero: a probability of 0.999."""


class ProbabilityScale(Section):
    """How the written answers of a judge relate to probabilities; `fit_scale` makes it.

    The log-odds of a written yes are `intercept + slope * log-odds of the probability`. A judge
    that writes at temperature T has a slope of about 1/T.
    """

    intercept: float
    slope: Annotated[float, Field(gt=0)]
    variances: tuple[float, float, float]
    """Variance of the intercept, covariance, variance of the slope."""
    scatter: Annotated[float, Field(ge=0)] = 0.0
    """Standard deviation of items around the line, in log-odds of a written yes."""
    items: int
    """Items it was fitted on."""

    def applied(self, answer: Answer) -> Answer:
        """Return a sampled answer on the probability scale.

        Its bounds include those of the share, the uncertainty of the fit, and the scatter.
        """
        if answer.p_yes is None or answer.p_low is None or answer.p_high is None:
            return answer
        low, high = self._position(answer.p_low), self._position(answer.p_high)
        return replace(
            answer,
            p_yes=_logistic(self._position(answer.p_yes)),
            p_low=_logistic(low - REACH * self._error(low)) if answer.p_low > 0 else 0.0,
            p_high=_logistic(high + REACH * self._error(high)) if answer.p_high < 1 else 1.0,
        )

    def _position(self, share: float) -> float:
        return (_log_odds(share) - self.intercept) / self.slope

    def _error(self, position: float) -> float:
        first, both, second = self.variances
        fit = first + 2 * position * both + position**2 * second
        return math.sqrt(max(0.0, fit) + self.scatter**2) / self.slope


def fit_scale(sampled: Iterable[Answer], exact: Iterable[Answer], samples: int) -> ProbabilityScale:
    """Return the scale on which written answers match probabilities of the same items.

    `sampled` has a judge's written answers, `samples` of them per item, and `exact` the answers
    with log-probabilities to the same items in the same order, from the same judge elsewhere or
    from one that stands in for it. ConfigError if they are too few or do not rise together.
    """
    rows = [
        (answer.p_yes, known.p_yes, round(samples * (answer.mass or 1.0)))
        for answer, known in zip(sampled, exact, strict=True)
        if answer.status is Status.SAMPLED and answer.p_yes is not None and known.p_yes is not None
    ]
    if len(rows) < FEWEST_ITEMS:
        raise ConfigError(
            f"{len(rows)} items have answers of both kinds; a scale needs {FEWEST_ITEMS}.",
            hint="Ask both judges more items.",
        )
    shares, known, counts = np.array(rows, dtype=np.float64).T
    design = np.column_stack([np.ones(len(rows)), [_log_odds(float(p)) for p in known]])
    fitted = _fit_logistic(design, shares * counts, counts)
    if fitted is None:
        raise ConfigError(
            "The written answers do not follow the probabilities: no scale fits.",
            hint="Sample at temperature 1, with items of both kinds; or use another judge.",
        )
    line, information = fitted
    q = 1 / (1 + np.exp(-design @ line))
    spread = q * (1 - q)
    surplus = (shares * counts - counts * q) ** 2 - counts * spread
    pairs = (counts * (counts - 1) * spread**2).sum()
    scatter = math.sqrt(max(0.0, float(surplus.sum() / pairs))) if pairs > 0 else 0.0
    chi_squared = float(((shares - q) ** 2 * counts / np.maximum(spread, 1e-9)).sum())
    covariance = np.linalg.inv(information) * max(1.0, chi_squared / (len(rows) - 2))
    return ProbabilityScale(
        intercept=float(line[0]),
        slope=float(line[1]),
        variances=(float(covariance[0, 0]), float(covariance[0, 1]), float(covariance[1, 1])),
        scatter=scatter,
        items=len(rows),
    )


def _fit_logistic(design: Floats, yes: Floats, counts: Floats) -> tuple[Floats, Floats] | None:
    """Return intercept and slope with their information; None if no rising line fits."""
    line = np.zeros(2)
    for _ in range(50):
        q = 1 / (1 + np.exp(-design @ line))
        information = (design.T * (counts * q * (1 - q))) @ design
        if np.linalg.cond(information) > 1e10:
            return None
        step = np.linalg.solve(information, design.T @ (yes - counts * q))
        line = line + step * min(1.0, 2.0 / max(1e-12, float(np.abs(step).max())))
        if float(np.abs(step).max()) < 1e-9:
            error = math.sqrt(float(np.linalg.inv(information)[1, 1]))
            return (line, information) if line[1] > REACH * error else None
    return None


def _log_odds(p: float) -> float:
    if not 0.0 < p < 1.0:
        return FARTHEST if p >= 1.0 else -FARTHEST
    return max(-FARTHEST, min(FARTHEST, math.log(p) - math.log1p(-p)))


def _logistic(position: float) -> float:
    return 1 / (1 + math.exp(-position))


class SampleOptions(Section):
    """Options of the `openai_sampled` engine."""

    samples: Annotated[int, Field(ge=1, le=1000)] = 8
    """Written answers per item; 1 takes the judge's word, with an interval that says so."""
    temperature: Annotated[float, Field(ge=0, le=2)] = 1.0
    """Sampling temperature; 1 makes the share of yes estimate the judge's own probability."""
    max_tokens: Annotated[int, Field(ge=1, le=4096)] = 4
    """Most tokens of a written answer."""
    per_request: Annotated[int, Field(ge=1, le=128)] = 1
    """Answers per request (`n`). A server that supports it reads the prompt once for all of them,
    and hosted ones charge it once. Others ignore or refuse it, which is an error."""
    seeds: bool = True
    """Send a different seed with each request; switch it off for servers that refuse seeds."""
    scale: ProbabilityScale | None = None
    """Maps the shares of yes/no items to probabilities; without it a share is the estimate."""


class SampledEngine(OpenAIEngine):
    """A judge behind an OpenAI-compatible URL that returns no log-probabilities."""

    repeatable = False
    """Whether the same question gets the same answer."""

    def __init__(self, config: EngineConfig) -> None:
        super().__init__(config.model_copy(update={"options": {}}))
        self.options = parse_options(config.options, SampleOptions, "The sampled engine's options")

    @classmethod
    def create(cls, config: EngineConfig, home: Path | None = None) -> SampledEngine:
        """Return an engine for `config` without contacting the server."""
        return cls(config)

    @property
    def items_per_call(self) -> int:
        """Number of items per call: a request asks for written answers to one item."""
        return 1

    @property
    def requests_per_item(self) -> int:
        """Number of requests per item."""
        return -(-self.options.samples // self.options.per_request)

    @property
    def most_written(self) -> int:
        """Most tokens of one request, over all the answers that it asks for."""
        answers = min(self.options.samples, self.options.per_request)
        return answers * most_written(self.options.max_tokens, self.config.extra_body)

    async def identify(self) -> EngineIdentity:
        """Return the identity; the number of samples and the temperature are part of it."""
        server, chosen = await self._look(), self.options
        scale = chosen.scale
        scaled = "" if scale is None else f" scale {content_hash(scale.model_dump()).hex()[:8]}"
        return EngineIdentity(
            engine="openai_sampled",
            model=self.config.model,
            endpoint="chat",
            version=str(server),
            logprobs=f"sampled{chosen.samples}@{chosen.temperature:g}"
            f"{scaled}{extra_mark(self.config.extra_body)}",
            readout=content_hash(_FIRST_WORD.pattern, LEAST_READABLE, chosen.max_tokens).hex(),
        )

    async def findings(self) -> Sequence[EngineFinding]:
        """Report that answers are estimates, how wide their intervals are, and the cost."""
        await self._look()
        count, scale = self.options.samples, self.options.scale
        requests = count_of(self.requests_per_item, "request", "requests")
        low, high = binomial_interval(count / 2, count)
        kind = "not calibrated" if scale is None else f"calibrated on {scale.items} items"
        return (
            EngineFinding(
                "answers",
                f"{count} written answers per item instead of log-probabilities ({kind}): "
                f"{requests} per item, an interval of up to {low:.2f} to {high:.2f} for one answer",
                "note",
                "A judge with log-probabilities needs one request and has no sampling error.",
            ),
        )

    async def tokenise(self, prompts: Sequence[str]) -> list[list[int]] | None:
        """Return None: the chat template is unknown."""
        return None

    async def grade(self, task: GradingTask, known: Mapping[int, Answer]) -> EngineAnswers:
        """Answer every item of `task` that is not already `known`."""
        answers, usage = dict(known), Usage()
        for place in task.left(known):
            labels = task.labels_of(place) or AnswerLabels(self.config.labels)
            written = await asyncio.gather(
                *(
                    self._sample(task.prefix + task.suffixes[place], number, count)
                    for number, count in enumerate(self._counts())
                ),
                return_exceptions=True,
            )
            usage += sum((one.usage for one in written if isinstance(one, WrittenTexts)), Usage())
            failed = [one for one in written if isinstance(one, BaseException)]
            if failed:
                error = next((one for one in failed if isinstance(one, EngineRefused)), failed[0])
                lost = (usage_of(one) for one in failed if isinstance(one, EngineError))
                usage += sum(lost, Usage())
                if isinstance(error, EngineRefused):
                    raise RefusedPartway.of(error, task, answers, usage)
                if not isinstance(error, EngineUnavailable | RequestRejected):
                    raise error
                return EngineAnswers.of(
                    task,
                    answers,
                    usage,
                    failure=f"item {place + 1}: {error.message}",
                    unavailable=isinstance(error, EngineUnavailable),
                    rejected=fails_for_good(error),
                )
            texts = [text for one in written if isinstance(one, WrittenTexts) for text in one.texts]
            answers[place] = self._counted(texts, labels, own=task.labels_of(place) is not None)
            self._count(1)
        return EngineAnswers.of(task, answers, usage)

    def _counted(self, texts: Sequence[str], labels: AnswerLabels, *, own: bool) -> Answer:
        answer, scale = count_answers(texts, labels), self.options.scale
        if scale is None or own:
            return answer
        return scale.applied(answer)

    def _counts(self) -> Iterator[int]:
        """Yield the number of answers that each request asks for."""
        left, most = self.options.samples, self.options.per_request
        while left > 0:
            yield min(left, most)
            left -= most

    async def _sample(self, prompt: str, number: int, count: int) -> WrittenTexts:
        chosen = self.options
        return await self.write_several(
            prompt,
            count,
            max_tokens=chosen.max_tokens,
            temperature=chosen.temperature,
            # A server with `n` counts seeds up from the request's own.
            seed=number * chosen.per_request if chosen.seeds else None,
        )


def count_answers(texts: Sequence[str], labels: AnswerLabels) -> Answer:
    """Return the answer that some written texts estimate.

    >>> answer = count_answers(["Yes", "yes.", "No", "Yes"], AnswerLabels(("Yes", "No")))
    >>> answer.p_yes, round(answer.p_low, 2), round(answer.p_high, 2)
    (0.75, 0.19, 0.99)
    """
    words = [*labels.words, *([] if labels.na is None else [labels.na])]
    by_word = {word.casefold(): word for word in words}
    found = Counter(
        by_word[first[1].casefold()]
        for first in map(_FIRST_WORD.match, texts)
        if first and first[1].casefold() in by_word
    )
    readable = sum(found.values())
    if readable < LEAST_READABLE * len(texts) or not readable:
        shown = next((text for text in texts if text.strip()), "")
        return Answer(Status.UNREADABLE, mass=readable / len(texts), text=shown[:200])
    last = len(labels.words) - 1
    applicable = readable - (found[labels.na] if labels.na else 0)
    total = sum(found[word] * (last - place) / last for place, word in enumerate(labels.words))
    p_yes = total / applicable if applicable else 0.5
    low, high = binomial_interval(total, applicable)
    na: tuple[float | None, float | None, float | None] = (None, None, None)
    if labels.na is not None:
        count = found[labels.na]
        na = (count / readable, *binomial_interval(count, readable))
    return Answer(
        Status.SAMPLED,
        p_yes,
        low,
        high,
        readable / len(texts),
        None,
        None,
        max(labels.words, key=lambda word: found[word]) if last > 1 else None,
        *na,
    )


@lru_cache(maxsize=4096)
def binomial_interval(successes: float, trials: int, level: float = LEVEL) -> tuple[float, float]:
    """Return the Clopper-Pearson interval of a share.

    A sum of grades from 0 to 1 may have a fraction: a yes/no answer varies at least as much as a
    grade with the same mean, so the interval of a share is wide enough.

    >>> tuple(round(end, 3) for end in binomial_interval(1, 1))
    (0.025, 1.0)
    """
    from scipy.stats import beta

    tail = (1.0 - level) / 2.0
    low = float(beta.ppf(tail, successes, trials - successes + 1)) if successes > 0 else 0.0
    high = (
        float(beta.ppf(1.0 - tail, successes + 1, trials - successes))
        if (successes < trials)
        else 1.0
    )
    return low, high
