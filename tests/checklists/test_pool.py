"""Which questions stay: duplicates, verdicts, and replacements for dropped ones."""

from __future__ import annotations

from rocketeval.checklists.dimension_file import (
    DropReason,
    Question,
    QuestionOrigin,
    judge_pool,
    without_duplicates,
)
from rocketeval.prompts.parse import QuestionVerdict


def questions(*texts: str) -> list[Question]:
    """Seeds of one sub-dimension."""
    return [Question(text, "d", "s", QuestionOrigin.SEED) for text in texts]


def outcomes(*verdicts: QuestionVerdict) -> list[DropReason | None]:
    """The outcomes of a number of questions."""
    pool = questions(*(f"Is it {number}?" for number in range(len(verdicts))))
    return [fate.dropped for fate in judge_pool(pool, verdicts)]


GOOD, WORSE, OTHER = (
    QuestionVerdict(True, True, None),
    QuestionVerdict(False, True, None),
    QuestionVerdict(True, False, None),
)


def again(number: int) -> QuestionVerdict:
    """A good question that repeats an earlier one."""
    return QuestionVerdict(True, True, number)


def test_first_duplicate_stays() -> None:
    """Case and spaces make no difference."""
    left, dropped = without_duplicates(questions("Is it?", "is  IT?", "Is she?"))
    assert [question.text for question in left] == ["Is it?", "Is she?"]
    assert [(fate.dropped, fate.repeats) for fate in dropped] == [(DropReason.DUPLICATE, "Is it?")]


def test_one_reason_per_question_most_severe_first() -> None:
    """A question that fails twice counts once."""
    both = QuestionVerdict(False, False, 1)
    assert outcomes(GOOD, both, OTHER, again(1)) == [
        None,
        DropReason.ALIGNMENT,
        DropReason.DIMENSION,
        DropReason.REDUNDANCY,
    ]


def test_good_question_replaces_a_dropped_one() -> None:
    """The next one that asks the same is redundant."""
    assert outcomes(WORSE, again(1), again(1), again(2)) == [
        DropReason.ALIGNMENT,
        None,
        DropReason.REDUNDANCY,
        DropReason.REDUNDANCY,
    ]


def test_a_chain_of_repeats_leaves_one() -> None:
    """The second repeats the first, the third the second: one is kept and named."""
    pool = questions("Is it?", "Was it?", "Has it been?")
    judged = judge_pool(pool, [GOOD, again(1), again(2)])
    assert [fate.repeats for fate in judged] == [None, "Is it?", "Is it?"]
