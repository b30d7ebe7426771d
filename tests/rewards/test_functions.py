"""Reward functions in the signatures of TRL, verl and OpenRLHF, and the monitor of rewards."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rocketeval import Grader, ScriptedEngine
from rocketeval.engines.base import EngineAnswers
from rocketeval.records import Answer, GradingTask, Status
from rocketeval.rewards import functions
from rocketeval.rewards.functions import (
    compute_score,
    reward_batch,
    reward_func,
    to_gradings,
    trl_reward,
)
from rocketeval.rewards.monitor import RewardMonitor

SHORT = {"text": "At most 3 words", "check": {"fn": "words", "args": {"max": 3}}}


def by_content(prefix: str, item: str) -> float:
    """Return a high probability for responses that say good."""
    return 0.9 if "good" in prefix else 0.2


@pytest.fixture
def grader() -> Any:
    """A grader with a scripted judge that fails on some responses."""
    with Grader(ScriptedEngine(by_content, fail_on="broken")) as made:
        yield made


async def test_trl_gets_a_reward_per_completion(grader: Grader) -> None:
    """Rewards are in order, a failed grade is None, and columns bring their own checklists."""
    reward = trl_reward(["Is it fine?"], judge=grader, name="fine")
    metrics: dict[str, float] = {}
    extras: dict[str, list[Any]] = {}
    found = await reward(
        prompts=["q1", "q1", "q2", "q2"],
        completions=["good", "broken", "bad", "good"],
        completion_ids=[[1]] * 4,
        trainer_state=None,
        log_extra=extras.__setitem__,
        log_metric=metrics.__setitem__,
        checklist=[None, None, None, ["Is it fine?", SHORT]],
    )
    assert found == [0.9, None, 0.2, 0.95]
    assert metrics["checklist/failed"] == 0.25
    assert metrics["checklist/Is it fine?"] == pytest.approx((0.9 + 0.2 + 0.9) / 3)
    assert extras["checklist_failed"] == ["", "no grade", "Is it fine?", ""]
    assert inspect.iscoroutinefunction(reward)
    assert reward.__name__ == "fine"


class Mute(ScriptedEngine):
    """A judge whose answers are hidden, so that no response has a score."""

    async def grade(self, task: GradingTask, known: Mapping[int, Answer]) -> EngineAnswers:
        """Return no probability for any item."""
        given = await super().grade(task, known)
        return replace(given, answers=tuple(Answer(Status.HIDDEN) for _ in given.answers))


async def test_trl_counts_responses_without_a_score() -> None:
    """A response of which no item has an answer has no grade, like one that failed."""
    metrics: dict[str, float] = {}
    extras: dict[str, list[Any]] = {}
    with Grader(Mute(by_content)) as grader:
        found = await trl_reward(["Is it fine?"], judge=grader)(
            prompts=["q", "q"],
            completions=["good", "bad"],
            log_extra=extras.__setitem__,
            log_metric=metrics.__setitem__,
        )
    assert found == [None, None]
    assert metrics == {"checklist/failed": 1.0}
    assert extras["checklist_failed"] == ["no grade", "no grade"]


async def test_trl_items_that_start_alike_have_their_own_metrics() -> None:
    """Names are cut; those that would be equal are numbered, so that no item is lost."""
    start = "Does the response explain, with at least one concrete example, why"
    items = [f"{start} the sky is blue?", f"{start} grass is green?", "failed"]
    metrics: dict[str, float] = {}
    with Grader(ScriptedEngine(lambda _, item: 0.9 if "sky" in item else 0.1)) as grader:
        await trl_reward(items, judge=grader)(
            prompts=["q"], completions=["x"], log_metric=metrics.__setitem__
        )
    assert metrics == {
        f"checklist/{start[:60]}": 0.9,
        f"checklist/{start[:60]} (2)": 0.1,
        "checklist/failed (2)": 0.1,
        "checklist/failed": 0.0,
    }


async def test_trl_conversations_are_read(grader: Grader) -> None:
    """Prompts and completions may be lists of messages; the last user message is the query."""
    reward = trl_reward(["Is it fine?"], judge=grader)
    earlier = [{"role": "user", "content": "good?"}, {"role": "assistant", "content": "Yes."}]
    asked = [*earlier, {"role": "user", "content": "q"}]
    # This judge likes whatever says good: it sees the earlier turns, too.
    assert await reward(prompts=[asked], completions=["bad"]) == [0.9]
    prompt = [{"role": "system", "content": "s"}, {"role": "user", "content": "q"}]
    found = await reward(prompts=[prompt], completions=[[{"role": "assistant", "content": "good"}]])
    assert found == [0.9]


async def test_slow_judge_gives_no_reward(caplog: pytest.LogCaptureFixture) -> None:
    """A completion without an answer in time has no reward, and the log says why."""
    with Grader(ScriptedEngine(by_content, delay=60)) as slow:
        reward = trl_reward(["Is it fine?"], judge=slow, timeout=0.05)
        assert await reward(prompts=["q"], completions=["good"]) == [None]
    assert "no answer within 0.05 s" in caplog.text


async def test_verl_gets_a_score(grader: Grader, monkeypatch: pytest.MonkeyPatch) -> None:
    """The score is a number; a failed grade is named in the extra field."""
    monkeypatch.setattr(functions, "open_grader", lambda judge, base_url: grader)
    info = {"question": "q", "checklist": '["Is it fine?"]'}
    good = await compute_score("data", "good", "reference", info)
    broken = await compute_score("data", "broken", None, info)
    assert good == {"score": 0.9, "reward_failed": 0.0}
    assert broken == {"score": 0.0, "reward_failed": 1.0}
    parts = np.array([{"type": "text", "text": "q"}])
    turns = [{"role": "user", "content": "good?"}, {"role": "user", "content": parts}]
    levels = {"text": "How good?", "levels": np.array(["bad", "good"]), "weight": None}
    arrays = {"prompt": np.array(turns), "checklist": np.array(["Is it fine?", levels])}
    targets = np.array(["4", "four"])
    scored = await compute_score("data", "bad", targets, arrays)
    assert scored["reward_failed"] == 0.0
    assert (await compute_score("data", "good", 4, {**info, "question": np.int64(7)}))[
        "score"
    ] == 0.9


async def test_openrlhf_batch_is_graded(grader: Grader) -> None:
    """A query is a prompt with its response, a label the checklist; failures are counted."""
    queries = ["Say: good<|im_end|>\n", "Say: broken</s>"]
    given = to_gradings(queries, ["Say: ", "Say: "], [["Is it fine?"], "a?"])
    assert [one.response for one in given] == ["good", "broken"]
    batch = await reward_batch(grader, given, 10)
    assert (batch.rewards, batch.failed) == ([0.9, 0.0], 1)
    assert batch.as_reply()["extra_logs"] == {"reward_failed": [0.5, 0.5]}


def test_openrlhf_function_returns_tensors(grader: Grader, monkeypatch: pytest.MonkeyPatch) -> None:
    """The function returns what OpenRLHF reads, made with torch."""
    monkeypatch.setattr(functions, "open_grader", lambda: grader)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(tensor=tuple))
    found = reward_func(["p good"], ["p "], [["Is it fine?"]])
    assert found["rewards"] == found["scores"] == (0.9,)
    assert found["extra_logs"] == {"reward_failed": (0.0,)}


def test_monitor_reports_growing_responses() -> None:
    """Longer responses with higher rewards are reported once."""
    monitor = RewardMonitor(window=4)
    with Grader(ScriptedEngine(by_content)) as grader:
        short = [grader.grade("q", f"bad {n}", ["Is it fine?"]) for n in range(4)]
        long = [grader.grade("q", f"good {n} " * 9, ["Is it fine?"]) for n in range(8)]
    assert monitor.observe(short) == ()
    (warning,) = monitor.observe(long)
    assert "times as long while the reward rose" in warning
    assert monitor.observe(long) == ()
    assert monitor.figures["length_ratio"] > 5


def test_monitor_reports_a_judge_that_rises_alone() -> None:
    """Items of the judge that rise while code checks fall are reported."""
    monitor = RewardMonitor(window=4)
    with Grader(ScriptedEngine(by_content)) as grader:
        items = ["Is it fine?", SHORT]
        first = [grader.grade("q", f"bad {n}", items) for n in range(4)]
        later = [grader.grade("q", f"good but four words{n}", items) for n in range(4)]
    monitor.observe(first)
    assert any("code checks" in warning for warning in monitor.observe(later))


def test_certain_judge_is_not_taken_for_a_code_check() -> None:
    """Exact answers of a judge count as the judge's, so that one that rises alone is reported."""

    def certain(prefix: str, item: str) -> float:
        return 1.0 if "good" in prefix else 0.0

    monitor = RewardMonitor(window=4)
    with Grader(ScriptedEngine(certain)) as grader:
        items = ["Is it fine?", SHORT]
        first = [grader.grade("q", f"bad {n}", items) for n in range(4)]
        later = [grader.grade("q", f"good {n}", items) for n in range(4)]
    monitor.observe(first)
    assert any("code checks by 0.00" in warning for warning in monitor.observe(later))
    assert monitor.figures["judge_over_checks"] == 1.0


def test_attacks_keep_code_checks_and_references() -> None:
    """An attacked response is graded like the original: checks by code, references shown."""
    asked: list[str] = []

    def judge(prefix: str, item: str) -> float:
        asked.append(prefix + item)
        return 0.5

    items = [{"text": "Does it agree with the reference?", "uses": ["reference"]}, SHORT]
    with Grader(ScriptedEngine(judge)) as grader:
        graded = grader.grade("q", "two words", items, reference="the true one")
        assert RewardMonitor().attack(grader, graded) == ()
    assert len(asked) > 5
    assert all("the true one" in prompt for prompt in asked)
    assert not any("At most 3 words" in prompt for prompt in asked)


def test_monitor_reports_an_attack_that_pays() -> None:
    """An attack that raises the reward is reported; a judge that ignores attacks is not."""

    def gullible(prefix: str, item: str) -> float:
        return 0.9 if "panel of domain experts" in prefix else 0.2

    monitor = RewardMonitor()
    with Grader(ScriptedEngine(gullible, model="gullible")) as grader:
        found = monitor.attack(grader, grader.grade("q", "bad", ["Is it fine?"]))
    assert len(found) == 1
    assert "false_authority" in found[0]
    assert monitor.figures["attack_gain"] == pytest.approx(0.7)
    steady = RewardMonitor()
    with Grader(ScriptedEngine(lambda prefix, item: 0.2)) as grader:
        assert steady.attack(grader, grader.grade("q", "bad", ["Is it fine?"])) == ()
    assert steady.figures["attack_gain"] == 0.0


def test_refused_attacks_do_not_end_the_training(caplog: pytest.LogCaptureFixture) -> None:
    """An attack that the judge refuses is counted; the others are compared."""

    def gullible(prefix: str, item: str) -> float:
        return 0.9 if "panel of domain experts" in prefix else 0.2

    monitor = RewardMonitor()
    with Grader(ScriptedEngine(gullible, fail_on="Ignore all previous")) as grader:
        found = monitor.attack(grader, grader.grade("q", "bad", ["Is it fine?"]))
    assert len(found) == 1
    assert "false_authority" in found[0]
    assert monitor.figures["attacks_failed"] == 1.0
    assert "'ignore_previous' has no grade" in caplog.text
