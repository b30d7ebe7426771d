"""The verdict on an evaluator uses paired differences, not two separate intervals."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rocketeval.evolve.result import ArmFigures, HeldOutFigures, evaluator_verdict
from rocketeval.evolve.validate import COMMONEST, RHO_WITHIN, SINGLE, SINGLE_FITTED, WITH
from rocketeval.records import Interval

ABOVE, BELOW = Interval(0.08, 0.03, 0.13), Interval(0.02, -0.03, 0.07)
WORSE, WIDE = Interval(-0.123, -0.186, -0.06), Interval(0.09, -0.01, 0.19)
UNKNOWN = Interval(0.2, float("nan"), float("nan"))
NO_LEAD = Interval(0.0, 0.0, 0.0)


def figures(measure: str = "accuracy", own: Interval = ABOVE, **leads: Interval) -> HeldOutFigures:
    """Arms with the given lead of the evaluator."""
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
            ("No significant difference", "commonest verdict", "+2.0 points (-3.0 to +7.0)"),
        ),
        (
            figures(commonest=UNKNOWN, single=ABOVE),
            False,
            ("Undecided", "commonest verdict", "too few queries"),
        ),
        (
            figures(commonest=WORSE, single=ABOVE),
            False,
            ("Significantly worse", "commonest verdict", "-12.3 points (-18.6 to -6.0)"),
        ),
        (
            figures(commonest=ABOVE, single=WORSE, fitted=ABOVE),
            False,
            ("Significantly worse than the cheaper single prompt: -12.3", "Use that instead."),
        ),
        (
            figures(commonest=ABOVE, single=UNKNOWN),
            True,
            ("Undecided", "too few queries", "single prompt."),
        ),
        (
            figures(commonest=ABOVE, single=ABOVE, fitted=WIDE),
            True,
            ("No significant difference", "cut points", "+9.0 points (-1.0"),
        ),
        (
            figures(commonest=ABOVE, single=ABOVE, fitted=BELOW),
            True,
            ("No significant difference", "cheaper single prompt, cut points", "+2.0 points (-3.0"),
        ),
        (
            figures(commonest=ABOVE, single=ABOVE),
            True,
            ("Significantly better", "single prompt", "+8.0 points (+3.0 to +13.0)"),
        ),
        (
            figures(commonest=ABOVE),
            True,
            ("Significantly better than chance", "not compared with a single prompt"),
        ),
        (figures("rho", UNKNOWN, single=ABOVE), False, ("Undecided", "too few queries", "chance")),
        (figures("rho", WORSE, single=ABOVE), False, ("Significantly worse than chance",)),
        (figures("rho", BELOW, single=ABOVE), False, ("No significant difference from chance",)),
        (
            figures("rho", single=BELOW),
            True,
            ("No significant difference", "cheaper single prompt", "+0.02 (-0.03 to +0.07)"),
        ),
    ],
)
def test_closest_baseline_decides(
    found: HeldOutFigures, usable: bool, words: tuple[str, ...]
) -> None:
    """First the most common verdict, then the best form of a single prompt."""
    verdict = evaluator_verdict(found)
    assert verdict.usable is usable
    assert all(part in verdict.words for part in words), verdict.words


@pytest.mark.parametrize(
    ("within", "usable", "words"),
    [
        (ABOVE, True, "better than chance at ranking responses to the same query: +0.08 (+0.03"),
        (BELOW, False, "No significant difference from chance at ranking responses"),
        (UNKNOWN, False, "Undecided"),
    ],
)
def test_labels_need_a_rank_correlation_within_queries(
    within: Interval, usable: bool, words: str
) -> None:
    """A correlation over all responses may come from the queries alone."""
    found = figures("rho", single=ABOVE)
    arms = tuple(replace(arm, figures={"rho": ABOVE, RHO_WITHIN: within}) for arm in found.arms)
    verdict = evaluator_verdict(replace(found, arms=arms))
    assert verdict.usable is usable
    assert words in verdict.words
