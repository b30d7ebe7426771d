"""Accuracy figures on reference items, compared with values computed by hand."""

from __future__ import annotations

import pytest

from rocketeval.doctor.quality import GOLD, GoldAnswer, Quality, auc, measure, quality_findings
from rocketeval.engines.base import EngineFinding
from rocketeval.engines.scripted import exact_answer
from rocketeval.records import Answer, Status
from rocketeval.stats.bootstrap import wilson


def gold(*answers: tuple[bool, float | Status]) -> Quality:
    """Measure answers given as (expected, p_yes or status)."""
    return measure(
        [
            GoldAnswer(
                f"case {number // 2}",
                f"item {number}",
                expected,
                Answer(given, mass=0.05) if isinstance(given, Status) else exact_answer(given),
            )
            for number, (expected, given) in enumerate(answers)
        ]
    )


def named(quality: Quality, name: str) -> EngineFinding:
    """Return the finding of that name."""
    return next(finding for finding in quality_findings(quality) if finding.name == name)


def test_auc_counts_pairs() -> None:
    """3.5 of 4 pairs are in order, with a tie counted half; without pairs there is no AUC."""
    assert auc([0.9, 0.5], [0.5, 0.1]) == 0.875
    assert auc([0.1], [0.9]) == 0.0
    assert auc([], [0.5]) is None


def test_wilson_interval() -> None:
    """Check the textbook interval for 8 of 10, and one for 24 of 24."""
    found = wilson(8 / 10, 1.96**2 / 10)
    assert (found.low, found.high) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    whole = wilson(1.0, 1.96**2 / 24)
    assert 0.8 < whole.low < whole.high == 1.0


def test_intervals_resample_cases() -> None:
    """Eight wrong items of one case are one mistake, not eight independent ones."""
    answers = [
        GoldAnswer(case.name, item, right, exact_answer(0.9 if right == known else 0.1))
        for case in GOLD
        for known in [case.name != "museum"]
        for item, right in zip(case.items, case.expected, strict=True)
    ]
    quality = measure(answers)
    assert (quality.right, quality.accuracy.value) == (16, pytest.approx(16 / 24))
    independent = wilson(16 / 24, 1.96**2 / 24)
    assert quality.accuracy.low < independent.low - 0.1
    assert quality.accuracy.high == 1.0
    assert quality.auc is not None
    assert quality.auc.low < 0.5 < quality.auc.value


def test_counts() -> None:
    """Correct, wrong, undecided and missing answers are counted separately."""
    quality = gold(
        (True, 0.9), (True, 0.2), (True, 0.5), (False, 0.1), (False, 0.8), (False, Status.LOW_MASS)
    )
    assert (quality.items, quality.answered, quality.right) == (6, 5, 2)
    assert (quality.false_yes, quality.nos, quality.yes_bias) == (1, 3, 1 / 3)
    assert (quality.false_no, quality.yeses, quality.no_bias) == (1, 3, 1 / 3)
    assert quality.accuracy.value == 2 / 6
    assert quality.without == {"low_mass": 1}
    assert quality.mass == pytest.approx((5 + 0.05) / 6)


def test_good_judge_has_only_good_findings() -> None:
    """All findings of a good judge have the level good."""
    quality = gold(*[(True, 0.9), (False, 0.1)] * 6)
    assert [finding.level for finding in quality_findings(quality)] == ["good"] * 3


@pytest.mark.parametrize(
    ("yes", "no", "level", "words"),
    [
        ([0.7, 0.7, 0.7], [0.7, 0.7, 0.7], "bad", "this judge guesses, or nearly so: AUC 0.50, 9"),
        ([0.2, 0.1, 0.1], [0.9, 0.8, 0.8], "bad", "this judge answers the opposite: AUC 0.00 (0"),
        ([0.9, 0.9, 0.1], [0.1, 0.1, 0.9], "note", "not significantly better than guessing on 18"),
        ([0.9, 0.6, 0.5], [0.7, 0.2, 0.1], "note", "weak: AUC 0.78 (0."),
        ([0.9, 0.8, 0.9], [0.2, 0.1, 0.1], "good", "AUC 1.00 (0.66-1.00), 18 of 18 reference"),
    ],
)
def test_accuracy_finding(yes: list[float], no: list[float], level: str, words: str) -> None:
    """Guessing, contrary, undecided, weak and good judges get different findings, on nine cases."""
    pairs = [
        each for high, low in zip(yes, no, strict=True) for each in ((True, high), (False, low))
    ]
    finding = named(gold(*pairs * 3), "accuracy")
    assert finding.level == level
    assert finding.told.startswith(words)
    assert bool(finding.advice) == (level != "good")


def test_yes_bias_with_a_perfect_order_is_a_note() -> None:
    """A judge that always says yes but ranks well gets a note with advice."""
    finding = named(gold(*[(True, 0.9), (False, 0.7), (True, 0.8), (False, 0.6)] * 3), "bias")
    assert finding.level == "note"
    assert finding.told.startswith("says yes too often: yes to 6 of 6")
    assert "still rank" in finding.advice


def test_no_bias_of_a_guessing_judge_has_no_advice() -> None:
    """A bias to no is reported; the advice on ranking does not apply to a guessing judge."""
    finding = named(gold((True, 0.2), (True, 0.1), (False, 0.2), (False, 0.1)), "bias")
    assert finding.told.startswith("says no too often: yes to 0 of 2")
    assert finding.advice == ""


def test_low_mass_is_a_note() -> None:
    """A judge with little mass on yes and no gets a note."""
    assert named(gold((True, 0.9), (False, 0.1)), "answer mass").level == "good"
    vague = gold((True, Status.LOW_MASS), (False, Status.HIDDEN), (True, 0.9))
    assert named(vague, "answer mass").level == "note"


def test_few_unanswered_items_are_a_note_many_are_bad() -> None:
    """20% unanswered items are a note; with 50%, the judge is unusable."""
    few = gold((True, 0.9), (False, 0.1), (True, 0.9), (False, 0.1), (True, Status.UNBOUNDED))
    assert named(few, "missing").level == "note"
    assert "1 of 5 reference items" in named(few, "missing").told
    assert "(unbounded 1)" in named(few, "missing").told
    many = gold((True, 0.9), (False, Status.HIDDEN))
    assert named(many, "missing").level == "bad"


def test_judge_without_answers_is_bad() -> None:
    """A judge without any probability has no AUC and is unusable."""
    silent = gold((True, Status.HIDDEN), (False, Status.HIDDEN))
    assert silent.auc is None
    assert named(silent, "accuracy").level == "bad"


@pytest.mark.parametrize("of_yes", [0.1, 0.5, 0.9])
def test_answers_on_few_cases_are_bad(of_yes: float) -> None:
    """Answers on five of nine cases cannot show whether the judge is right, inverted or guesses."""
    answered = [(True, of_yes), (False, 1.0 - of_yes)] * 5
    few = gold(*answered, *[(True, Status.HIDDEN), (False, Status.HIDDEN)] * 4)
    finding = named(few, "accuracy")
    assert finding.level == "bad"
    assert finding.told == "too few items answered to check accuracy (10 of 18)"
