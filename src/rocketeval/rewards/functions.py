"""Reward functions in the signatures that TRL, verl and OpenRLHF call.

A reward is the checklist score from 0 to 1, with weights and penalties. A response that the judge
cannot grade in time has no reward: None for TRL, which leaves it out.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from rocketeval.benchmarks.inspect_logs import target_text
from rocketeval.benchmarks.messages import content_text
from rocketeval.errors import ConfigError, EngineError, EngineUnavailable
from rocketeval.grader import Grader, Items, ResponseGrade, ResponseToGrade
from rocketeval.integrations.shared import (
    JudgeChoice,
    asked_in,
    checklist_for,
    open_grader,
)
from rocketeval.rewards.monitor import RewardMonitor

__all__ = ["compute_score", "reward_func", "trl_reward"]

TIMEOUT = 120.0
"""Seconds per response."""
VERL_FIELDS = ("question", "prompt", "checklist")
"""What is read of verl's `extra_info`."""
FAILED = 0.0
"""Reward of a response without a grade, for frameworks that need a number."""
MOST_METRIC = 60
"""Characters of an item in the name of its metric."""
_END_TOKENS = re.compile(r"(?:\s*(?:<\|[^<>|]{1,40}\|>|</s>|<eos>|<end_of_turn>))+\s*\Z")
_log = logging.getLogger("rocketeval.rewards")
Reward = Callable[..., Awaitable[list[float | None]]]


def trl_reward(
    checklist: Items | str | None = None,
    *,
    judge: JudgeChoice = None,
    base_url: str | None = None,
    answers: str | None = None,
    timeout: float = TIMEOUT,
    monitor: RewardMonitor | None = None,
    name: str = "checklist_reward",
) -> Reward:
    """Return a reward function for TRL's GRPO and RLOO trainers.

    The columns `checklist` and `reference` of the dataset go first. Completions of one prompt are
    graded one after the other in the server's queue, so that it computes their prefix once. Metrics
    are logged per item: `checklist/ITEM`, the share of failed grades, and the monitor's warnings.
    """
    grader = open_grader(judge, base_url, answers)

    async def reward(
        prompts: Sequence[Any],
        completions: Sequence[Any],
        log_extra: Callable[[str, list[Any]], None] | None = None,
        log_metric: Callable[[str, float], None] | None = None,
        **columns: Any,
    ) -> list[float | None]:
        rows = len(completions)
        own = columns.get("checklist") or [None] * rows
        references = columns.get("reference") or [None] * rows
        given = [
            ResponseToGrade(
                query,
                _completion_text(completion),
                checklist_for(_decoded(items), checklist),
                history,
                reference,
                about="reward",
            )
            for (query, history), completion, items, reference in zip(
                map(asked_in, prompts), completions, own, references, strict=True
            )
        ]
        graded = await grade_rewards(grader, given, timeout)
        rewards = [None if isinstance(one, EngineError) else one.score for one in graded]
        if monitor is not None:
            monitor.observe([one for one in graded if not isinstance(one, EngineError)])
        if log_metric is not None:
            for metric, value in _metrics(graded).items():
                log_metric(metric, value)
            for metric, value in (monitor.figures if monitor else {}).items():
                log_metric(f"reward_monitor/{metric}", value)
        if log_extra is not None:
            log_extra("checklist_failed", [_failed_items(one) for one in graded])
        return rewards

    reward.__name__ = reward.__qualname__ = name
    return reward


async def grade_rewards(
    grader: Grader, given: Sequence[ResponseToGrade], timeout: float
) -> list[ResponseGrade | EngineError]:
    """Return the grade of each response; an error for one that failed or took too long."""

    async def one(each: ResponseToGrade) -> ResponseGrade | EngineError:
        try:
            return await asyncio.wait_for(grader.grade_async(each), timeout)
        except TimeoutError:
            found: EngineError = EngineUnavailable(f"no answer within {timeout:g} s")
        except EngineError as error:
            found = error
        _log.warning("No reward: %s", found)
        return found

    return list(await asyncio.gather(*map(one, given)))


async def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: Any,
    extra_info: Mapping[str, Any] | None = None,
    **settings: Any,
) -> dict[str, float]:
    """Return verl's reward: `score`, and whether the grade failed.

    `extra_info` has the `checklist` and the `question` (or `prompt`); the ground truth is the
    reference. The judge is $ROCKETEVAL_JUDGE, or `judge` and `base_url` in the reward's arguments.
    """
    info = {name: _as_list((extra_info or {}).get(name)) for name in VERL_FIELDS}
    asked = info["question"] or info["prompt"] or data_source
    target = _as_list(ground_truth)
    grader = open_grader(settings.get("judge"), settings.get("base_url"))
    query, history = asked_in(asked if isinstance(asked, list) else str(asked))
    given = ResponseToGrade(
        query,
        solution_str,
        checklist_for(_decoded(info["checklist"]), None),
        history,
        reference=target_text(target) if isinstance(target, list) else _text_or_none(target),
        about="reward",
    )
    (graded,) = await grade_rewards(grader, [given], TIMEOUT)
    if isinstance(graded, EngineError) or graded.score is None:
        return {"score": FAILED, "reward_failed": 1.0}
    return {"score": graded.score, "reward_failed": 0.0}


@dataclass(frozen=True, slots=True)
class RewardBatch:
    """Rewards of a batch, in OpenRLHF's form."""

    rewards: list[float]
    failures: tuple[str, ...] = ()
    """Why responses have no grade, one reason per response."""

    @property
    def failed(self) -> int:
        """Number of responses without a grade."""
        return len(self.failures)

    def as_reply(self, column: Callable[[list[float]], Any] = list) -> dict[str, Any]:
        """Return the reply of a reward function or server; `column` makes lists or tensors."""
        rows = len(self.rewards)
        rewards = column(self.rewards)
        failed = column([self.failed / max(1, rows)] * rows)
        return {"rewards": rewards, "scores": rewards, "extra_logs": {"reward_failed": failed}}


def to_gradings(
    queries: Sequence[str], prompts: Sequence[str], labels: Sequence[Any]
) -> list[ResponseToGrade]:
    """Return the responses of an OpenRLHF batch: a query is a prompt with its response.

    OpenRLHF decodes special tokens, too; those at the end are no part of a response. A label is
    the checklist: a list, its JSON, or one item per line.
    """
    return [
        ResponseToGrade(
            prompt,
            _END_TOKENS.sub("", query.removeprefix(prompt)),
            checklist_for(_decoded(label), None),
            about="reward",
        )
        for query, prompt, label in zip(queries, prompts, labels, strict=True)
    ]


async def reward_batch(
    grader: Grader, given: Sequence[ResponseToGrade], timeout: float
) -> RewardBatch:
    """Return the rewards of a batch; a failed grade gets the reward `FAILED` and is counted."""
    rewards: list[float] = []
    failures: list[str] = []
    for one in await grade_rewards(grader, given, timeout):
        if isinstance(one, EngineError):
            failures.append(one.message)
        elif one.score is None:
            failures.append("no item has an answer")
        else:
            rewards.append(one.score)
            continue
        rewards.append(FAILED)
    return RewardBatch(rewards, tuple(failures))


def reward_func(
    queries: Sequence[str], prompts: Sequence[str], labels: Sequence[Any]
) -> dict[str, Any]:
    """Return OpenRLHF's rewards, as tensors; `--reward.remote_url` names a file that imports it."""
    given = to_gradings(queries, prompts, labels)
    batch = asyncio.run(reward_batch(open_grader(), given, TIMEOUT))
    return batch.as_reply(import_module("torch").tensor)


def _completion_text(completion: Any) -> str:
    """Return the text of a completion, which is a text or a list of messages."""
    if isinstance(completion, str):
        return completion
    return "\n".join(content_text(message.get("content"), set()) for message in completion)


def _without_nulls(item: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in item.items() if value is not None}


def _text_or_none(value: Any) -> str | None:
    return None if value is None else str(value)


def _as_list(value: Any) -> Any:
    """Return arrays, as in rows of Parquet files, as lists, at any depth."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, Mapping):
        return {name: _as_list(each) for name, each in value.items()}
    return [_as_list(each) for each in value] if isinstance(value, list | tuple) else value


def _decoded(items: Any) -> Any:
    """Return a checklist that may be JSON text, or items of a table, which have null fields."""
    if isinstance(items, list):
        return [_without_nulls(each) if isinstance(each, Mapping) else each for each in items]
    if isinstance(items, str) and items.lstrip().startswith("["):
        try:
            return json.loads(items)
        except ValueError as error:
            raise ConfigError(
                f"The checklist {items[:60]!r} is not JSON: {error}.",
                hint='Give a JSON list, such as ["Is it correct?"], or one item per line.',
            ) from None
    return items


def _metrics(graded: Sequence[ResponseGrade | EngineError]) -> dict[str, float]:
    """Return the mean value of each item, and the share of responses without a grade."""
    values: dict[str, list[float]] = {}
    for one in graded:
        for item in () if isinstance(one, EngineError) else one.items:
            if item.value is not None:
                values.setdefault(item.text, []).append(item.value)
    found = {
        f"checklist/{name}": sum(own) / len(own)
        for name, own in zip(_metric_names(values), values.values(), strict=True)
    }
    failed = sum(isinstance(one, EngineError) or one.score is None for one in graded)
    found["checklist/failed"] = failed / max(1, len(graded))
    return found


def _metric_names(texts: Iterable[str]) -> list[str]:
    """Return a short name for each item; items that start alike are numbered.

    >>> _metric_names(["Is it kind?", "x" * 70, "x" * 60 + "y", "failed"])[2:]
    ['xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx (2)', 'failed (2)']
    """
    names: list[str] = []
    taken = {"failed"}
    for text in texts:
        start = name = text[:MOST_METRIC]
        number = 2
        while name in taken:
            name, number = f"{start} ({number})", number + 1
        taken.add(name)
        names.append(name)
    return names


def _failed_items(graded: ResponseGrade | EngineError) -> str:
    if isinstance(graded, EngineError) or graded.score is None:
        return "no grade"
    return "; ".join(item.text for item in graded.failed)
