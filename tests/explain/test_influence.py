"""Influence of sentences on an answer, measured with the scripted engine."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rocketeval.config import PriceConfig, RunConfig
from rocketeval.engines.base import EngineAnswers
from rocketeval.engines.scripted import ScriptedEngine, exact_answer
from rocketeval.errors import BenchmarkError, ConfigError, EngineUnavailable, RequestRejected
from rocketeval.explain.influence import (
    AnswerInfluence,
    JudgedItem,
    estimate_cost,
    measure_influence,
    plan_influence,
)
from rocketeval.grading.ask import Method
from rocketeval.grading.methods import create_method
from rocketeval.items import ItemDetail, ItemKind
from rocketeval.records import (
    Answer,
    Checklist,
    GradingTask,
    JudgeFingerprint,
    Query,
    Response,
    Status,
    Usage,
)

TEXT = "Rest the ankle. Call a doctor if it swells. Good luck!\n\n- Use ice."
JUDGE = JudgeFingerprint("scripted", "scripted", "script", "1", "exact", "", "script")


def _method(kind: str = "checklist") -> Method:
    config = {"benchmark": {"path": "."}, "judge": {"model": "m"}, "method": {"kind": kind}}
    return create_method(RunConfig.model_validate(config))


def _judged(text: str = TEXT, stored: float = 0.9, usage: Usage | None = None) -> JudgedItem:
    query = Query("q", "What now?")
    checklist = Checklist("q", ("Is it kind?", "Does it name a doctor?"))
    response = Response("q", "mine", text)
    return JudgedItem(query, response, checklist, 1, exact_answer(stored), usage or Usage())


def _doctor(prefix: str, suffix: str) -> float:
    """Name a judge that looks for two words, and likes a shorter end."""
    assert "doctor?" in suffix
    return 0.9 if "Call a doctor" in prefix else 0.2 if "Rest" in prefix else 0.1


async def _measured(engine: ScriptedEngine, judged: JudgedItem) -> AnswerInfluence:
    plan = plan_influence(judged, _method())
    done: list[int] = []
    found = await measure_influence(
        plan, judged.answer, JUDGE, engine.grade, concurrency=3, advanced=lambda: done.append(1)
    )
    assert len(done) == len(plan.tasks)
    return found


async def test_the_sentence_that_decides_is_found() -> None:
    """The others do not move the answer; one request per sentence and one for the whole."""
    engine = ScriptedEngine(_doctor)
    found = await _measured(engine, _judged())
    assert engine.items_asked == found.requests == 5
    assert "".join(piece.text for piece in found.pieces) == TEXT
    clear = [piece for piece in found.pieces if piece.clear]
    assert [piece.text for piece in clear] == ["Call a doctor if it swells. "]
    assert clear[0].p_yes == 0.2
    assert clear[0].change == pytest.approx(0.7)
    assert (found.whole, found.stored, found.repeated) == (0.9, 0.9, True)


async def test_another_answer_than_in_the_run_is_said() -> None:
    """Beyond the repeatability of a first repetition; small differences are not."""
    assert not (await _measured(ScriptedEngine(_doctor), _judged(stored=0.6))).repeated
    assert (await _measured(ScriptedEngine(_doctor), _judged(stored=0.89))).repeated


async def test_what_a_repetition_moves_by_is_no_influence() -> None:
    """A sentence must move the answer more than asking again did."""

    def judge(prefix: str, suffix: str) -> float:
        return 0.8 if "Rest" in prefix else 0.775

    exact = await _measured(ScriptedEngine(judge), _judged(stored=0.8))
    assert [piece.text for piece in exact.pieces if piece.clear] == ["Rest the ankle. "]
    moved = await _measured(ScriptedEngine(judge), _judged(stored=0.77))
    assert moved.repeated
    assert not any(piece.clear for piece in moved.pieces)


async def test_the_prompts_are_those_of_the_run() -> None:
    """The whole response is asked with exactly the prompt of the run, without the other item."""
    judged, method = _judged(), _method()
    plan = plan_influence(judged, method)
    own = method.prompt.render(judged.query, judged.response, judged.checklist, b"k")
    assert plan.whole.prefix + plan.whole.suffixes[0] == own.prefix + own.suffixes[1]
    assert plan.whole.cold
    assert len({task.key for task in plan.tasks}) == len(plan.tasks) == 5


async def test_failures() -> None:
    """A part without an answer stays without one; an unreachable judge ends the measurement."""
    found = await _measured(ScriptedEngine(_doctor, fail_on="swells. - Use"), _judged())
    assert found.problem == ""
    partly = ScriptedEngine(_doctor, fail_on="Rest the ankle. Good luck!")
    found = await _measured(partly, _judged())
    missing = [piece.text for piece in found.pieces if piece.unit and piece.p_yes is None]
    assert missing == ["Call a doctor if it swells. "]
    assert "scripted to fail" in found.problem
    with pytest.raises(RequestRejected, match="whole response"):
        await _measured(ScriptedEngine(_doctor, fail_on="Rest"), _judged())

    async def down(task: GradingTask, known: object) -> EngineAnswers:
        return EngineAnswers((Answer(Status.ERROR),), Usage(), "no connection", unavailable=True)

    plan = plan_influence(_judged(), _method())
    with pytest.raises(EngineUnavailable, match="no connection"):
        await measure_influence(
            plan, exact_answer(0.5), JUDGE, down, concurrency=2, advanced=lambda: None
        )


def test_methods_and_items_that_cannot_be_asked_are_refused() -> None:
    """With a sentence: dependent items, code checks and empty responses."""
    for kind in ("sequential", "multi_item", "all_yes", "cot"):
        with pytest.raises(ConfigError, match="independently"):
            plan_influence(_judged(), _method(kind))
    checked = ItemDetail(kind=ItemKind.CHECK)
    judged = _judged()
    checklist = replace(judged.checklist, details=(ItemDetail(), checked))
    with pytest.raises(ConfigError, match="Code decides"):
        plan_influence(replace(judged, checklist=checklist), _method())
    with pytest.raises(BenchmarkError, match="empty"):
        plan_influence(_judged(" \n"), _method())


def test_the_cost_is_estimated_from_the_recorded_usage() -> None:
    """Bytes per token as in the judgment; a rough value without recorded tokens."""
    method, engine, judged = _method(), ScriptedEngine(), _judged()
    plan = plan_influence(judged, method)
    size = sum(len((task.prefix + task.suffixes[0]).encode()) for task in plan.tasks)
    price = PriceConfig(prompt=2.0, completion=3.0, currency="USD")
    rough = estimate_cost(plan, judged, method, engine, None)
    assert (rough.requests, rough.units, rough.asked) == (5, 4, 4)
    assert (rough.tokens, rough.cost) == (round(size / 4), None)
    own = method.prompt.render(judged.query, judged.response, judged.checklist, b"k")
    both = sum(len((own.prefix + suffix).encode()) for suffix in own.suffixes)
    counted = _judged(usage=Usage(requests=2, prompt_tokens=both // 2))
    known = estimate_cost(plan, counted, method, engine, price)
    assert known.tokens == pytest.approx(size / 2, rel=0.01)
    assert known.cost == pytest.approx((known.tokens * 2.0 + 5 * 3.0) / 1e6)


async def test_items_that_may_not_apply() -> None:
    """A sentence without which the item does not apply is named; p_yes would be noise then."""
    detail = ItemDetail(na=True)
    judged = _judged()
    judged = replace(judged, checklist=replace(judged.checklist, details=(ItemDetail(), detail)))

    def p_na(prefix: str, suffix: str) -> float:
        return 0.1 if "Use ice" in prefix else 0.9

    found = await _measured(ScriptedEngine(lambda _, __: 0.5, p_na=p_na), judged)
    needed = [piece for piece in found.pieces if piece.clear]
    assert [(piece.text, piece.inapplicable, piece.p_yes) for piece in needed] == [
        ("- Use ice.", True, None)
    ]
    with pytest.raises(RequestRejected, match="does not apply"):
        await _measured(ScriptedEngine(lambda _, __: 0.5, p_na=lambda _, __: 0.8), judged)
