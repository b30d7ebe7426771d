"""Items with their own labels through every request form and engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from fakes.native_server import NativeServer
from fakes.openai_server import FILLER, yes_no
from rocketeval.engines.recorded import RecordedAnswer
from rocketeval.engines.scripted import ScriptedEngine
from rocketeval.items import AnswerLabels
from rocketeval.records import Answer, GradingTask, Status
from support.judges import FORMS, SEVERAL, judged

SCALE = AnswerLabels(("3", "2", "1"))
MAYBE = AnswerLabels(("Yes", "No"), "NA")
TASK = GradingTask(
    b"one",
    "q",
    "c",
    "Shared words. ",
    ("Plain?", "Graded levels?", "Perhaps inapplicable?", "", "Plain again?"),
    items=5,
    labels=(None, SCALE, MAYBE, None, None),
    checks={3: object()},  # type: ignore[dict-item]
)
KNOWN: Mapping[int, Answer] = {3: Answer(Status.OK, 1.0, 1.0, 1.0, 1.0)}


def answers_of(prompt: str) -> dict[str, float]:
    """Return a distribution over the labels that the prompt asks for."""
    rest = {f"word{number}": 0.1 / FILLER for number in range(FILLER)}
    if "levels" in prompt:
        return {"3": 0.45, "2": 0.36, "1": 0.09, **rest}
    if "inapplicable" in prompt:
        return {"Yes": 0.36, "No": 0.09, "Na": 0.45, **rest}
    return {**yes_no(0.7, 0.9), **rest}


def stub(name: str) -> NativeServer:
    return replace(FORMS[name](), distribution=answers_of)


@pytest.mark.parametrize("name", FORMS)
async def test_every_form_reads_every_kind(name: str) -> None:
    """Plain items, levels and NA of one response are read exactly, and checks are not asked."""
    server = stub(name)
    async with judged(server, transport=name) as engine:
        plain, graded, maybe, check, again = (await engine.grade(TASK, KNOWN)).answers
    assert plain.p_yes == again.p_yes == pytest.approx(0.7, abs=1e-6)
    assert graded.p_yes == pytest.approx((0.45 + 0.18) / 0.9, abs=1e-6)
    assert graded.p_na is None
    assert maybe.p_yes == pytest.approx(0.8, abs=1e-6)
    assert maybe.p_na == pytest.approx(0.5, abs=1e-6)
    assert maybe.na_low is not None
    assert maybe.na_high is not None
    assert maybe.na_low <= 0.5 + 1e-6
    assert maybe.na_high >= 0.5 - 1e-6
    assert check == KNOWN[3]
    asked = [prompt for call in server.calls for prompt in call.prompts]
    assert not any(prompt.endswith("Shared words. ") for prompt in asked)
    if name in SEVERAL and name != "generative_scoring":
        # Items with the same labels share a call.
        assert sorted(len(call.prompts) for call in server.calls) == [1, 1, 2]


async def test_scripted_engine_answers_every_kind() -> None:
    """The engine for users' tests has levels and NA, too."""
    engine = ScriptedEngine(lambda prefix, suffix: 0.9, p_na=lambda prefix, suffix: 0.25)
    plain, graded, maybe, *_ = (await engine.grade(TASK, KNOWN)).answers
    assert (plain.p_na, graded.p_na, maybe.p_na) == (None, None, 0.25)
    assert graded.text == "3"
    assert engine.items_asked == 4


def test_recorded_answers_keep_applicability() -> None:
    """A recorded answer returns as it was given."""
    given = Answer(Status.OK, 0.5, 0.4, 0.6, 0.9, text="Yes", p_na=0.2, na_low=0.1, na_high=0.3)
    line = RecordedAnswer.of(TASK, 2, given).model_dump_json(exclude_defaults=True)
    assert RecordedAnswer.model_validate_json(line).answer == given
