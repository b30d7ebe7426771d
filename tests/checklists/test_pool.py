"""Which questions stay: duplicates, verdicts, and what takes the place of what was dropped."""

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


def fates(*verdicts: QuestionVerdict) -> list[DropReason | None]:
    """What becomes of so many questions."""
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


def test_the_first_of_the_same_words_stays() -> None:
    """Case and spaces make no difference."""
    left, dropped = without_duplicates(questions("Is it?", "is  IT?", "Is she?"))
    assert [question.text for question in left] == ["Is it?", "Is she?"]
    assert [(fate.dropped, fate.repeats) for fate in dropped] == [(DropReason.DUPLICATE, "Is it?")]


def test_one_reason_each_the_gravest_first() -> None:
    """A question that fails twice counts once."""
    both = QuestionVerdict(False, False, 1)
    assert fates(GOOD, both, OTHER, again(1)) == [
        None,
        DropReason.ALIGNMENT,
        DropReason.DIMENSION,
        DropReason.REDUNDANCY,
    ]


def test_a_good_question_takes_the_place_of_a_bad_one_it_repeats() -> None:
    """What a dropped question asked is not lost; the next that asks it again is redundant."""
    assert fates(WORSE, again(1), again(1), again(2)) == [
        DropReason.ALIGNMENT,
        None,
        DropReason.REDUNDANCY,
        DropReason.REDUNDANCY,
    ]


def test_a_chain_of_repeats_leaves_one() -> None:
    """The second repeats the first, the third the second: one is kept, and named."""
    pool = questions("Is it?", "Was it?", "Has it been?")
    judged = judge_pool(pool, [GOOD, again(1), again(2)])
    assert [fate.repeats for fate in judged] == [None, "Is it?", "Is it?"]
