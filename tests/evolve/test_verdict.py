"""Whether an evaluator is worth using is told from paired differences, not from two intervals."""

from __future__ import annotations

import pytest

from rocketeval.evolve.result import ArmFigures, HeldOutFigures, evaluator_verdict
from rocketeval.evolve.validate import COMMONEST, SINGLE, SINGLE_FITTED, WITH
from rocketeval.records import Interval

ABOVE, BELOW = Interval(0.08, 0.03, 0.13), Interval(0.02, -0.03, 0.07)
UNKNOWN = Interval(0.2, float("nan"), float("nan"))
NO_LEAD = Interval(0.0, 0.0, 0.0)


def figures(measure: str = "accuracy", own: Interval = ABOVE, **leads: Interval) -> HeldOutFigures:
    """Arms that the evaluator leads by so much."""
    names = {"commonest": COMMONEST, "single": SINGLE, "fitted": SINGLE_FITTED["pairs"]}
    arms = {WITH: NO_LEAD, **{names[name]: lead for name, lead in leads.items()}}
    return HeldOutFigures(
        measure,
        100,
        20,
        (1, 2),
        "Is it good?",
        tuple(ArmFigures(name, {measure: own}, NO_LEAD, lead) for name, lead in arms.items()),
    )


@pytest.mark.parametrize(
    ("found", "usable", "words"),
    [
        (
            figures(commonest=BELOW, single=ABOVE),
            False,
            "Not told apart from always the commonest verdict: +2.0 points (-3.0 to +7.0).",
        ),
        (
            figures(commonest=UNKNOWN, single=ABOVE),
            False,
            "Not told apart from always the commonest verdict "
            "(too few queries to say by how much).",
        ),
        (
            figures(commonest=ABOVE, single=ABOVE, fitted=BELOW),
            True,
            "Not told apart from the cheaper single prompt, cut points learned: +2.0 points "
            "(-3.0 to +7.0).",
        ),
        (
            figures(commonest=ABOVE, single=ABOVE),
            True,
            "Better than the single prompt: +8.0 points (+3.0 to +13.0).",
        ),
        (
            figures(commonest=ABOVE),
            True,
            "Better than chance; it was not held against a single prompt.",
        ),
        (figures("rho", BELOW, single=ABOVE), False, "Not told apart from chance."),
        (
            figures("rho", single=BELOW),
            True,
            "Not told apart from the cheaper single prompt: +0.02 (-0.03 to +0.07).",
        ),
    ],
)
def test_the_closest_simple_way_decides(found: HeldOutFigures, usable: bool, words: str) -> None:
    """First no judge at all, then one prompt in its best form."""
    worth = evaluator_verdict(found)
    assert (worth.usable, worth.words) == (usable, words)
