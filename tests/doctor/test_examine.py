"""Examinations of scripted judges: what is measured, how much is asked, what is said."""

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
    """The finding of that name."""
    return next(finding for finding in examination.findings if finding.name == name)


async def test_a_perfect_judge_is_ready() -> None:
    """Every answer found, nothing moves: ready, and every figure is there."""
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
    assert "the same to the last bit" in named(found, "among others").told


async def test_a_polite_judge_asks_for_care() -> None:
    """A judge that ranks well and says yes to all is usable, and the reason is named."""
    found = await examine(yes_sayer(), PROMPT)
    assert found.verdict is DoctorVerdict.CARE
    assert [finding.name for finding in found.reasons] == ["leaning"]
    assert found.figures.yes_bias == 1.0
    assert found.figures.auc == 1.0


@pytest.mark.parametrize("judge", [coin, constant])
async def test_a_guessing_judge_is_ruled_out_in_plain_words(
    judge: Callable[[], ScriptedEngine],
) -> None:
    """Noise and a constant are both called guessing."""
    found = await examine(judge(), PROMPT)
    assert found.verdict is DoctorVerdict.UNUSABLE
    assert "this judge guesses" in named(found, "judgement").told


async def test_a_contrary_judge_is_ruled_out() -> None:
    """An AUC far below one half is no chance, and the prompt is suspected."""
    found = await examine(contrary(), PROMPT)
    assert found.verdict is DoctorVerdict.UNUSABLE
    assert "opposite" in named(found, "judgement").told
    assert "grading prompt" in named(found, "judgement").advice


async def test_the_examination_is_bounded_and_counted() -> None:
    """About a hundred requests, a third of it when quick; what is counted is what was asked."""
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


async def test_a_slow_judge_is_not_asked_only_for_the_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once time is up, no response is sent that only measures the rate; repeats are complete."""
    monkeypatch.setattr(module, "RATE_SECONDS", -1.0)
    judge = perfect()
    found = await examine(judge, PROMPT)
    assert judge.items_asked == 80
    assert found.figures.repeat_together == 0


async def test_a_very_slow_judge_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where all items take too long for a waiting person, they are not asked again; it is said."""
    monkeypatch.setattr(module, "TOO_SLOW", -1.0)
    judge = perfect()
    found = await examine(judge, PROMPT)
    assert judge.items_asked == 32
    assert found.figures.repeat_alone is None
    assert named(found, "again").told.startswith("not asked: 24 items took")
    assert found.verdict is DoctorVerdict.READY


async def test_moving_answers_are_found() -> None:
    """A judge whose answers move only in company is told from one that repeats itself."""

    class Drifting(ScriptedEngine):
        """Says a little more yes while something else is in flight."""

        busy = 0

        async def grade(self, task: GradingTask, known: Mapping[int, Answer]) -> EngineAnswers:
            """Answer as alone, or as in company."""
            self.busy += 1
            graded = await super().grade(task, known)
            company = 0.03 if self.busy > 1 else 0.0
            self.busy -= 1
            moved = tuple(exact_answer((found.p_yes or 0) + company) for found in graded.answers)
            return EngineAnswers(moved, graded.usage)

    found = await examine(Drifting(perfect()._p_yes), PROMPT)
    assert found.figures.repeat_alone == 0
    assert found.figures.repeat_together == pytest.approx(0.03)
    assert named(found, "among others").level == "note"
    assert found.verdict is DoctorVerdict.READY


async def test_a_failing_response_is_a_finding_beside_what_was_found_before() -> None:
    """A task that fails ends the examination with a bad line, not with an exception."""
    judge = ScriptedEngine(perfect()._p_yes, fail_on="Sydney")
    found = await examine(judge, PROMPT)
    assert found.verdict is DoctorVerdict.UNUSABLE
    assert found.fingerprint is not None
    assert found.figures.latency_seconds is not None
    assert "scripted to fail" in named(found, "judgement").told


async def test_a_judge_that_breaks_under_load_is_told_to_take_less() -> None:
    """A failure only among others names concurrency as the way out."""

    class Fragile(ScriptedEngine):
        """Loses tasks while others are in flight."""

        busy = 0

        async def grade(self, task: GradingTask, known: Mapping[int, Answer]) -> EngineAnswers:
            """Fail unless alone."""
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
    assert "HTTP 503" in named(found, "among others").told
    assert "concurrency" in named(found, "among others").advice


async def test_a_refusal_in_the_middle_is_a_finding() -> None:
    """A key that expires while the judge is asked is shown with its hint."""

    class Expiring(ScriptedEngine):
        """Identifies itself, then refuses."""

        async def grade(self, task: GradingTask, known: Mapping[int, Answer]) -> EngineAnswers:
            """Refuse."""
            raise EngineRefused("no more credit", hint="Pay.")

    found = await examine(Expiring(), PROMPT)
    assert named(found, "latency") == EngineFinding("latency", "no more credit", "bad", "Pay.")
    assert found.verdict is DoctorVerdict.UNUSABLE


async def test_an_engine_that_answers_hours_later_is_not_asked() -> None:
    """A batch engine is identified and not made to wait for."""

    class Later(ScriptedEngine):
        """Its work outlives the process."""

        durable = True

    judge = Later()
    found = await examine(judge, PROMPT)
    assert judge.items_asked == 0
    assert found.verdict is DoctorVerdict.CARE
    assert "--engine openai" in named(found, "gold items").advice


async def test_the_fingerprint_is_the_one_a_run_would_have() -> None:
    """Engine identity and grading prompt together; another prompt is another judge."""
    own = Template("grade", "{{history}}{{query}}{{response}}{{item}}\nYes or No?")
    packaged = (await examine(perfect(), PROMPT, quick=True)).fingerprint
    other = (await examine(perfect(), GradingPrompt(own), quick=True)).fingerprint
    assert packaged is not None
    assert other is not None
    assert packaged.template == PROMPT.hash
    assert packaged.digest != other.digest


@pytest.mark.parametrize(("quick", "total"), [(False, FULL), (True, QUICK)])
async def test_progress_reaches_its_total(quick: bool, total: int) -> None:
    """The observer hears as many steps as it was promised."""

    class Counting(Observer):
        """Counts steps."""

        total: int | None = None
        done = 0

        def stage_began(self, stage: str, total: int | None = None, done: int = 0) -> None:
            """Note the total."""
            self.total = total

        def advanced(self) -> None:
            """Count."""
            self.done += 1

    observer = Counting()
    await examine(perfect(), PROMPT, quick=quick, observer=observer)
    assert observer.done == observer.total == total


async def test_the_json_keeps_its_shape() -> None:
    """The names machines rely on; a change here needs a new schema number."""
    told = json.loads(
        json.dumps((await examine(perfect(), PROMPT)).to_json(), allow_nan=False),
    )
    assert set(told) == {
        "schema",
        "verdict",
        "reasons",
        "judge",
        "findings",
        "figures",
        "gold",
        "usage",
        "seconds",
    }
    assert told["schema"] == 1
    assert told["verdict"] == "ready"
    assert set(told["findings"][0]) == {"name", "told", "level", "advice"}
    assert set(told["judge"]) == {
        "engine",
        "model",
        "endpoint",
        "version",
        "logprobs",
        "template",
        "readout",
        "digest",
    }
    assert set(told["figures"]) == {
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
    assert len(told["gold"]) == 24
    assert told["gold"][0] == {
        "case": "museum",
        "item": "Does the response say at what time to meet?",
        "expected": "yes",
        "p_yes": 0.9,
        "mass": 1.0,
        "status": "ok",
    }
    assert told["usage"]["requests"] == 104


async def test_a_price_gives_the_examinations_own_cost() -> None:
    """What the examination cost is in its JSON when a price is known."""
    found = await examine(perfect(), PROMPT, quick=True)
    price = PriceConfig(prompt=1.0, completion=2.0)
    assert found.to_json()["usage"]["cost"] is None
    expected = found.usage.prompt_tokens / 1e6
    assert found.to_json(price)["usage"]["cost"] == pytest.approx(expected, abs=1e-6)
