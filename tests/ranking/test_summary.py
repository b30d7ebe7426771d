"""What a ranking does not settle is said in words, with names, and not for ever."""

from __future__ import annotations

import pytest

from rocketeval.ranking.rank import RankedCandidate, Ranking
from rocketeval.ranking.summary import MOST_SENTENCES, conclusion_in_words, separation_in_words
from rocketeval.records import Interval

ANY = Interval(0.0, 0.0, 0.0)


def row(name: str, group: int, beats_next: bool | None) -> RankedCandidate:
    return RankedCandidate(name, 1, 1, 1, ANY, ANY, 9, 0, group, 1, beats_next)


def test_members_of_a_group_are_named_with_its_first() -> None:
    """A group is defined by its first candidate, so the sentence says so."""
    rows = [row("a", 1, False), row("b", 1, False), row("c", 1, True), row("d", 2, None)]
    assert separation_in_words(rows) == ["Group 1: b, c cannot be told apart from a."]


def test_neighbours_across_a_border_are_named_when_nothing_parts_them() -> None:
    """The last of a group and the first of the next may be inseparable, and that is said."""
    rows = [row("a", 1, False), row("b", 1, False), row("c", 2, None)]
    assert separation_in_words(rows) == [
        "Group 1: b cannot be told apart from a.",
        "b and c stand in different groups, yet cannot be told apart from each other.",
    ]


def test_a_clean_ranking_says_so() -> None:
    """Silence could mean anything."""
    rows = [row("a", 1, True), row("b", 2, None)]
    assert separation_in_words(rows) == ["Every candidate is told apart from the next."]
    assert separation_in_words(rows[:1]) == []


def test_long_rankings_are_cut_with_a_count() -> None:
    """A thousand candidates do not make a thousand sentences, nor a sentence of a thousand."""
    pairs = [row(f"{side}{n}", n, side == "b") for n in range(500) for side in "ab"]
    sentences = separation_in_words(pairs)
    assert len(sentences) == MOST_SENTENCES + 1
    assert sentences[-1] == "488 more sentences like these are left out."
    (sentence,) = separation_in_words([row(f"c{n}", 1, False) for n in range(1000)])
    assert "and 991 more" in sentence


def test_nobody_ranked_is_nothing_to_say() -> None:
    assert separation_in_words(()) == []


def ranking(*groups: int, islands: int = 1, first_to: int = 1, level: int = 1) -> Ranking:
    """Candidates a, b, c... by group; the first may hold ranks to `first_to`, `level` share it."""
    rows = tuple(
        RankedCandidate(
            f"{chr(97 + place % 26)}{place // 26 or ''}",
            1 if place < level else place + 1,
            1,
            first_to if place == 0 else len(groups),
            ANY,
            ANY,
            9,
            0,
            group,
            1,
        )
        for place, group in enumerate(groups)
    )
    return Ranking(rows, (), 0.1, 100, 0, 0.95, 9, islands)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (ranking(), ""),
        (ranking(1), "a is the only candidate with a score."),
        (ranking(1, 2), "a is clearly ahead of b."),
        (ranking(1, 2, 2), "a is clearly ahead of all 2 others."),
        (ranking(1, 2, 2, first_to=2), "a is clearly ahead of b."),
        (ranking(1, 1, 2), "a leads, but cannot be told apart from b."),
        (ranking(1, 1, 1, 2), "a leads, but cannot be told apart from b and c."),
        (ranking(1, 1, 1, 1), "a leads, but cannot be told apart from b, c and d."),
        (ranking(*[1] * 900), "a leads, but cannot be told apart from b, c, d and 896 more."),
        (ranking(1, 1, 2, level=2), "a and b share the first place."),
        (
            ranking(1, 2, 2, islands=2),
            "The candidates fall into 2 sets that share no query: ranks say nothing across "
            "these sets.",
        ),
    ],
)
def test_the_conclusion_is_a_sentence_for_a_stranger(found: Ranking, words: str) -> None:
    """It never claims more than the groups and ranks do, and stays short."""
    assert conclusion_in_words(found) == words
