"""The scripted engine on a scale: grades by content, labels, and its own identity."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rocketeval.config import EngineConfig
from rocketeval.engines.base import EngineIdentity, create_engine
from rocketeval.engines.scripted import ScriptedEngine
from rocketeval.errors import EngineRefused
from rocketeval.items import AnswerLabels
from rocketeval.records import GradingTask, Status

SCALE = tuple("54321")
TASK = GradingTask(b"k", "q", "c", "A response. ", ("Is it good?", "Is it short?"))


@pytest.mark.parametrize(
    ("grade", "text"), [(1.0, "5"), (0.9, "5"), (0.7, "4"), (0.5, "3"), (0.1, "1"), (0.0, "1")]
)
async def test_nearest_label_is_named(grade: float, text: str) -> None:
    """A scripted grade is certain, and so is its label."""
    engine = ScriptedEngine(lambda *_: grade, labels=SCALE)
    answer = (await engine.grade(TASK, {})).answers[0]
    assert (answer.status, answer.p_yes, answer.text) == (Status.OK, grade, text)
    assert (answer.p_low, answer.p_high, answer.mass) == (grade, grade, 1.0)
    assert (answer.logp_yes, answer.logp_no) == (None, None)


async def test_grade_is_independent_of_labels() -> None:
    """The config's labels change the label named and the identity, not the grade."""
    plain = create_engine(EngineConfig(engine="scripted", model="m"))
    scale = create_engine(EngineConfig(engine="scripted", model="m", labels=SCALE))
    ours, theirs = await plain.grade(TASK, {}), await scale.grade(TASK, {})
    assert [one.p_yes for one in ours.answers] == [one.p_yes for one in theirs.answers]
    assert all(one.text is None for one in ours.answers)
    assert all(one.text in SCALE for one in theirs.answers)
    assert await plain.identify() == EngineIdentity(
        "scripted", "m", "script", "1", "exact", "script"
    )
    assert (await scale.identify()).readout != "script"


@pytest.mark.parametrize("value", [1.7, -0.1, float("nan"), 80, None, "yes"])
@pytest.mark.parametrize("labels", [("Yes", "No"), SCALE])
async def test_value_that_is_no_probability_is_refused(
    value: object, labels: tuple[str, ...]
) -> None:
    """The error names the value and the function that returned it."""
    engine = ScriptedEngine(lambda *_: value, labels=labels)  # type: ignore[arg-type,return-value]
    with pytest.raises(EngineRefused, match=f"item 1 with {value!r}: .* between 0 and 1") as found:
        await engine.grade(TASK, {})
    assert "`p_yes`" in found.value.hint


async def test_share_of_not_applicable_must_be_a_probability() -> None:
    """So must the value of `p_na`."""
    own = AnswerLabels(("Yes", "No"), "NA")
    task = replace(TASK, labels=(own, None))
    with pytest.raises(EngineRefused, match=r"item 1 with 2: .* between 0 and 1"):
        await ScriptedEngine(p_na=lambda *_: 2).grade(task, {})
