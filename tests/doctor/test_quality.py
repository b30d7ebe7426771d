"""Figures over known answers, against values worked out by hand, and what they are called."""

from __future__ import annotations

import pytest

from rocketeval.doctor.quality import GUESSING, GoldAnswer, Quality, auc, measure, quality_findings
from rocketeval.engines.base import EngineFinding
from rocketeval.engines.scripted import exact_answer
from rocketeval.records import Answer, Status
from rocketeval.stats.bootstrap import wilson


def gold(*answers: tuple[bool, float | Status]) -> Quality:
    """Measure answers given as (expected, p_yes or why there is none)."""
    return measure(
        [
            GoldAnswer(
                "case",
                f"item {number}",
                expected,
                Answer(told, mass=0.05) if isinstance(told, Status) else exact_answer(told),
            )
            for number, (expected, told) in enumerate(answers)
        ]
    )


def named(quality: Quality, name: str) -> EngineFinding:
    """The finding of that name."""
    return next(finding for finding in quality_findings(quality) if finding.name == name)


def test_auc_counts_pairs() -> None:
    """3.5 of 4 pairs in order, a tie counted half; nothing to compare is no figure."""
    assert auc([0.9, 0.5], [0.5, 0.1]) == 0.875
    assert auc([0.1], [0.9]) == 0.0
    assert auc([], [0.5]) is None


def test_wilson_interval() -> None:
    """The textbook interval for 8 of 10, and one that stays below 1 for 24 of 24."""
    found = wilson(8 / 10, 1.96**2 / 10)
    assert (found.low, found.high) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    whole = wilson(1.0, 1.96**2 / 24)
    assert 0.8 < whole.low < whole.high == 1.0


def test_guessing_limit_is_the_95th_percentile_of_guessing() -> None:
    """Under the null hypothesis the AUC of 12 and 12 items passes the limit once in 20 times."""
    deviation = ((12 + 12 + 1) / (12 * 12 * 12)) ** 0.5
    assert pytest.approx(0.5 + 1.645 * deviation, abs=0.005) == GUESSING


def test_counts() -> None:
    """Right, wrong either way, exactly undecided and missing answers are told apart."""
    quality = gold(
        (True, 0.9), (True, 0.2), (True, 0.5), (False, 0.1), (False, 0.8), (False, Status.LOW_MASS)
    )
    assert (quality.items, quality.answered, quality.right) == (6, 5, 2)
    assert (quality.false_yes, quality.nos, quality.yes_bias) == (1, 3, 1 / 3)
    assert (quality.false_no, quality.yeses, quality.no_bias) == (1, 3, 1 / 3)
    assert quality.accuracy.value == 2 / 6
    assert quality.without == {"low_mass": 1}
    assert quality.mass == pytest.approx((5 + 0.05) / 6)


def test_a_good_judge_has_only_good_findings() -> None:
    """Nothing to say against it, nothing is said."""
    quality = gold((True, 0.9), (False, 0.1))
    assert [finding.level for finding in quality_findings(quality)] == ["good"] * 3


@pytest.mark.parametrize(
    ("yes", "no", "level", "words"),
    [
        ([0.6, 0.4], [0.6, 0.4], "bad", "this judge guesses: AUC 0.50, 2 of 4"),
        ([0.2, 0.1], [0.9, 0.8], "bad", "this judge says the opposite: AUC 0.00, 0 of 4"),
        ([0.9, 0.6], [0.7, 0.2], "note", "weak: AUC 0.75, 3 of 4"),
        ([0.9, 0.8], [0.2, 0.1], "good", "AUC 1.00, 4 of 4 gold items right (100%, 51% to 100%)"),
    ],
)
def test_judgement_in_plain_words(
    yes: list[float], no: list[float], level: str, words: str
) -> None:
    """Chance, contrary, weak and good judges are called what they are."""
    finding = named(gold(*((True, p) for p in yes), *((False, p) for p in no)), "judgement")
    assert finding.level == level
    assert finding.told.startswith(words)
    assert bool(finding.advice) == (level != "good")


def test_a_yes_sayer_leans_though_it_ranks() -> None:
    """Perfect order with everything above 0.5 is a note about yes, with advice."""
    finding = named(gold((True, 0.9), (True, 0.8), (False, 0.7), (False, 0.6)), "leaning")
    assert finding.level == "note"
    assert finding.told.startswith("says yes too often: yes to 2 of 2")
    assert "still rank" in finding.advice


def test_a_guessing_naysayer_is_not_told_that_it_ranks() -> None:
    """Leaning to no is named too; a judge that guesses gets no comfort."""
    finding = named(gold((True, 0.2), (True, 0.1), (False, 0.2), (False, 0.1)), "leaning")
    assert finding.told.startswith("says no too often: yes to 0 of 2")
    assert finding.advice == ""


def test_little_mass_is_noted() -> None:
    """A judge that would rather say something else is noted."""
    assert named(gold((True, 0.9), (False, 0.1)), "gold mass").level == "good"
    vague = gold((True, Status.LOW_MASS), (False, Status.HIDDEN), (True, 0.9))
    assert named(vague, "gold mass").level == "note"


def test_missing_answers_are_named_and_many_are_bad() -> None:
    """One in five without a probability is a note, half of them rules the judge out."""
    few = gold((True, 0.9), (False, 0.1), (True, 0.9), (False, 0.1), (True, Status.UNBOUNDED))
    assert named(few, "missing").level == "note"
    assert "1 of 5 gold items have no probability (unbounded 1)" in named(few, "missing").told
    many = gold((True, 0.9), (False, Status.HIDDEN))
    assert named(many, "missing").level == "bad"


def test_no_answer_at_all_is_bad_not_a_crash() -> None:
    """A judge without a single probability has no AUC and is ruled out."""
    silent = gold((True, Status.HIDDEN), (False, Status.HIDDEN))
    assert silent.auc is None
    assert named(silent, "judgement").level == "bad"
