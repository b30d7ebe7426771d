"""Examinations of scripted judges: figures, number of requests and findings."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import pytest

from rocketeval.config import PriceConfig
from rocketeval.doctor import examine as module
from rocketeval.doctor.examine import FULL, QUICK, DoctorVerdict, Examination, examine
from rocketeval.engines.base import EngineAnswers, EngineFinding
from rocketeval.engines.scripted import ScriptedEngine, exact_answer
from rocketeval.errors import EngineRefused
from rocketeval.observer import Observer
from rocketeval.prompts.render import GradingPrompt, Template
from rocketeval.records import Answer, GradingTask, Status, Usage

from .judges import coin, constant, contrary, perfect, yes_sayer

PROMPT = GradingPrompt()


def named(examination: Examination, name: str) -> EngineFinding:
    """Return the finding of that name."""
    return next(finding for finding in examination.findings if finding.name == name)


async def test_perfect_judge_is_ready() -> None:
    """A perfect judge is ready, and every figure is measured."""
    found = await examine(perfect(), PROMPT)
    assert found.verdict is DoctorVerdict.READY
    assert found.reasons == []
    figures = found.figures
    assert (figures.items, figures.answered, figures.right) == (24, 24, 24)
    assert (figures.accuracy, figures.auc, figures.yes_bias, figures.no_bias) == (1, 1, 0, 0)
    assert (figures.repeat_alone, figures.repeat_together) == (0, 0)
    assert figures.mass == 1.0
    assert figures.latency_items == 8
    assert figures.items_per_second is not None
    assert figures.items_per_second > 0
    assert figures.in_flight == 8
    assert "identical" in named(found, "repeat concurrent").told


async def test_yes_bias_is_usable_with_care() -> None:
    """A judge that ranks well but always says yes is usable with care."""
    found = await examine(yes_sayer(), PROMPT)
    assert found.verdict is DoctorVerdict.CARE
    assert [finding.name for finding in found.reasons] == ["bias"]
    assert found.figures.yes_bias == 1.0
    assert found.figures.auc == 1.0


@pytest.mark.parametrize("judge", [coin, constant])
async def test_guessing_judge_is_unusable(
    judge: Callable[[], ScriptedEngine],
) -> None:
    """Noise and a constant both count as guessing."""
    found = await examine(judge(), PROMPT)
    assert found.verdict is DoctorVerdict.UNUSABLE
    assert "this judge guesses" in named(found, "accuracy").told


async def test_contrary_judge_is_unusable() -> None:
    """For an AUC far below 0.5, the advice is to check the prompt."""
    found = await examine(contrary(), PROMPT)
    assert found.verdict is DoctorVerdict.UNUSABLE
    assert "opposite" in named(found, "accuracy").told
    assert "grading prompt" in named(found, "accuracy").advice


async def test_number_of_requests() -> None:
    """It sends about a hundred requests, a third of them with `quick`, and counts them."""
    whole, quick = perfect(), perfect()
    found = await examine(whole, PROMPT)
    assert found.usage.requests == whole.items_asked == 104
    assert found.usage.prompt_tokens > 1000
    brief = await examine(quick, PROMPT, quick=True)
    assert brief.usage.requests == quick.items_asked == 32
    assert brief.figures.auc == 1.0
    assert brief.figures.repeat_alone is None
    assert brief.figures.items_per_second is None
    assert brief.verdict is DoctorVerdict.READY


async def test_rate_measurement_has_a_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the limit, only the repeated items are sent."""
    monkeypatch.setattr(module, "RATE_SECONDS", -1.0)
    judge = perfect()
    found = await examine(judge, PROMPT)
    assert judge.items_asked == 80
    assert found.figures.repeat_together == 0


async def test_very_slow_judge_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the items take too long, they are not repeated, and a finding says so."""
    monkeypatch.setattr(module, "TOO_SLOW", -1.0)
    judge = perfect()
    found = await examine(judge, PROMPT)
    assert judge.items_asked == 32
    assert found.figures.repeat_alone is None
    assert named(found, "repeat").told.startswith("not measured: 24 items took")
    assert found.verdict is DoctorVerdict.READY


async def test_answers_that_change_under_load_are_found() -> None:
    """Differences that occur only with other requests in flight are measured separately."""

    class Drifting(ScriptedEngine):
        """A judge that says yes more often while other requests are in flight."""

        busy = 0

        async def grade(self, task: GradingTask, known: Mapping[int, Answer]) -> EngineAnswers:
            """Raise the probability while other requests are in flight."""
            self.busy += 1
            graded = await super().grade(task, known)
            company = 0.03 if self.busy > 1 else 0.0
            self.busy -= 1
            moved = tuple(exact_answer((found.p_yes or 0) + company) for found in graded.answers)
            return EngineAnswers(moved, graded.usage)

    found = await examine(Drifting(perfect()._p_yes), PROMPT)
    assert found.figures.repeat_alone == 0
    assert found.figures.repeat_together == pytest.approx(0.03)
    assert named(found, "repeat concurrent").level == "note"
    assert found.verdict is DoctorVerdict.READY


async def test_failed_response_is_a_finding() -> None:
    """A failed task ends the examination with a bad finding, and earlier figures are kept."""
    judge = ScriptedEngine(perfect()._p_yes, fail_on="Sydney")
    found = await examine(judge, PROMPT)
    assert found.verdict is DoctorVerdict.UNUSABLE
    assert found.fingerprint is not None
    assert found.figures.latency_seconds is not None
    assert "scripted to fail" in named(found, "accuracy").told


async def test_failure_under_load_advises_less_concurrency() -> None:
    """A failure only with other requests in flight has advice on concurrency."""

    class Fragile(ScriptedEngine):
        """A judge that fails while other requests are in flight."""

        busy = 0

        async def grade(self, task: GradingTask, known: Mapping[int, Answer]) -> EngineAnswers:
            """Fail unless it is the only request."""
            self.busy += 1
            graded = await super().grade(task, known)
            crowded = self.busy > 1
            self.busy -= 1
            if crowded:
                return EngineAnswers((Answer(Status.ERROR),) * 2, Usage(), "item 1: HTTP 503", True)
            return graded

    found = await examine(Fragile(perfect()._p_yes), PROMPT)
    assert found.verdict is DoctorVerdict.UNUSABLE
    assert found.figures.auc == 1.0
    assert "HTTP 503" in named(found, "repeat concurrent").told
    assert "concurrency" in named(found, "repeat concurrent").advice


async def test_refusal_during_the_examination_is_a_finding() -> None:
    """A key that expires meanwhile is a finding with its hint."""

    class Expiring(ScriptedEngine):
        """A judge that identifies itself, then refuses."""

        async def grade(self, task: GradingTask, known: Mapping[int, Answer]) -> EngineAnswers:
            """Refuse."""
            raise EngineRefused("no more credit", hint="Pay.")

    found = await examine(Expiring(), PROMPT)
    assert named(found, "latency") == EngineFinding("latency", "no more credit", "bad", "Pay.")
    assert found.verdict is DoctorVerdict.UNUSABLE


async def test_batch_engine_is_not_asked() -> None:
    """A batch engine is identified, but no item is asked."""

    class Later(ScriptedEngine):
        """An engine whose work outlives the process."""

        durable = True

    judge = Later()
    found = await examine(judge, PROMPT)
    assert judge.items_asked == 0
    assert found.verdict is DoctorVerdict.CARE
    assert "--engine openai" in named(found, "reference items").advice


async def test_fingerprint_is_that_of_a_run() -> None:
    """It covers the engine and the grading prompt; another prompt is another judge."""
    own = Template("grade", "{{history}}{{query}}{{response}}{{item}}\nYes or No?")
    packaged = (await examine(perfect(), PROMPT, quick=True)).fingerprint
    other = (await examine(perfect(), GradingPrompt(own), quick=True)).fingerprint
    assert packaged is not None
    assert other is not None
    assert packaged.template == PROMPT.hash
    assert packaged.digest != other.digest


@pytest.mark.parametrize(("quick", "total"), [(False, FULL), (True, QUICK)])
async def test_progress_reaches_its_total(quick: bool, total: int) -> None:
    """The observer gets as many steps as announced."""

    class Counting(Observer):
        """An observer that counts steps."""

        total: int | None = None
        done = 0

        def stage_began(self, stage: str, total: int | None = None, done: int = 0) -> None:
            """Record the total."""
            self.total = total

        def advanced(self) -> None:
            """Count."""
            self.done += 1

    observer = Counting()
    await examine(perfect(), PROMPT, quick=quick, observer=observer)
    assert observer.done == observer.total == total


async def test_json_schema() -> None:
    """A change of these keys needs a new schema number."""
    found = json.loads(
        json.dumps((await examine(perfect(), PROMPT)).to_json(), allow_nan=False),
    )
    assert set(found) == {
        "schema",
        "verdict",
        "reasons",
        "judge",
        "findings",
        "figures",
        "reference_items",
        "usage",
        "seconds",
    }
    assert found["schema"] == 2
    assert found["verdict"] == "ready"
    assert set(found["findings"][0]) == {"name", "message", "level", "advice"}
    assert set(found["judge"]) == {
        "engine",
        "model",
        "endpoint",
        "version",
        "logprobs",
        "template",
        "readout",
        "digest",
    }
    assert set(found["figures"]) == {
        "items",
        "answered",
        "right",
        "accuracy",
        "accuracy_low",
        "accuracy_high",
        "auc",
        "yes_bias",
        "no_bias",
        "mass",
        "latency_seconds",
        "latency_items",
        "items_per_second",
        "in_flight",
        "repeat_alone",
        "repeat_together",
    }
    assert len(found["reference_items"]) == 24
    assert found["reference_items"][0] == {
        "case": "museum",
        "item": "Does the response say at what time to meet?",
        "expected": "yes",
        "p_yes": 0.9,
        "mass": 1.0,
        "status": "ok",
    }
    assert found["usage"]["requests"] == 104


async def test_cost_of_the_examination() -> None:
    """With a price, the JSON has the cost of the examination."""
    found = await examine(perfect(), PROMPT, quick=True)
    price = PriceConfig(prompt=1.0, completion=2.0)
    assert found.to_json()["usage"]["cost"] is None
    expected = found.usage.prompt_tokens / 1e6
    assert found.to_json(price)["usage"]["cost"] == pytest.approx(expected, abs=1e-6)
