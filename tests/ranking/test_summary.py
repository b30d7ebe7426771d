"""Sentences about tied candidates and about the leader."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from rocketeval.ranking.rank import RankedCandidate, Ranking
from rocketeval.ranking.summary import MOST_SENTENCES, conclusion_in_words, separation_in_words
from rocketeval.records import Interval

ANY = Interval(0.0, 0.0, 0.0)
UNKNOWN = Interval(0.0, math.nan, math.nan)


def row(name: str, group: int, beats_next: bool | None) -> RankedCandidate:
    return RankedCandidate(name, 1, 1, 1, ANY, ANY, 9, 0, group, 1, beats_next)


def test_members_of_a_group_are_tied_with_its_first() -> None:
    """The sentence names the members and the first candidate of a group."""
    rows = [row("a", 1, False), row("b", 1, False), row("c", 1, True), row("d", 2, None)]
    assert separation_in_words(rows) == ["Group 1: b, c are tied with a."]


def test_tied_neighbors_of_different_groups_are_named() -> None:
    """The last of a group and the first of the next may be tied."""
    rows = [row("a", 1, False), row("b", 1, False), row("c", 2, None)]
    first, second = separation_in_words(rows)
    assert first == "Group 1: b is tied with a."
    assert second.startswith("b and c are also tied")


def test_ranking_without_ties_says_so() -> None:
    """One sentence states that all differences are significant."""
    rows = [row("a", 1, True), row("b", 2, None)]
    (sentence,) = separation_in_words(rows)
    assert "significantly better" in sentence
    assert separation_in_words(rows[:1]) == []


def test_candidates_of_different_islands_are_not_called_tied() -> None:
    """Neither two leaders of islands, nor members of one island with another one's between them."""
    rows = [
        replace(row(name, group, beats_next), island=island)
        for name, group, beats_next, island in (
            ("a", 1, None, 1), ("c", 2, None, 2), ("b", 1, None, 1), ("d", 3, None, 2)
        )
    ]  # fmt: skip
    assert separation_in_words(rows) == ["Group 1: b is tied with a."]
    (sentence,) = separation_in_words(rows[:2] + rows[3:])
    assert "shares queries" in sentence
    assert separation_in_words(rows[:2]) == []
    former = [replace(rows[0], beats_next=False), rows[1]]
    assert separation_in_words(former) == []


def test_long_rankings_are_cut_with_a_count() -> None:
    """A thousand candidates give neither a thousand sentences nor a very long one."""
    pairs = [row(f"{side}{n}", n, side == "b") for n in range(500) for side in "ab"]
    sentences = separation_in_words(pairs)
    assert len(sentences) == MOST_SENTENCES + 1
    assert sentences[-1].startswith("488 more sentences")
    (sentence,) = separation_in_words([row(f"c{n}", 1, False) for n in range(1000)])
    assert "and 991 more" in sentence


def test_no_candidates_give_no_sentences() -> None:
    assert separation_in_words(()) == []


def ranking(*groups: int, islands: int = 1, first_to: int = 1, level: int = 1) -> Ranking:
    """Return candidates by group; the first has ranks up to `first_to`, and `level` share it."""
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
        (ranking(1, 2), "a is significantly better than b."),
        (ranking(1, 2, 2), "a is significantly better than all 2 others."),
        (ranking(1, 2, 2, first_to=2), "a is significantly better than b."),
        (ranking(1, 1, 2), "a leads, but is statistically tied with b."),
        (ranking(1, 1, 1, 2), "a leads, but is statistically tied with b and c."),
        (ranking(1, 1, 1, 1), "a leads, but is statistically tied with b, c and d."),
        (ranking(*[1] * 900), "a leads, but is statistically tied with b, c, d and 896 more."),
        (ranking(1, 1, 2, level=2), "a and b share first place."),
        (
            ranking(1, 2, 2, islands=2),
            "The candidates fall into 2 sets that share no queries: ranks cannot be compared "
            "across these sets.",
        ),
    ],
)
def test_conclusion_is_one_short_sentence(found: Ranking, words: str) -> None:
    """It never claims more than the groups and ranks."""
    assert conclusion_in_words(found) == words


def test_too_few_queries_are_no_tie() -> None:
    """Without any interval nothing was tested; equal scores or an anchor are another matter."""
    found = ranking(1, 1)
    few = replace(
        found,
        queries=5,
        rows=tuple(replace(row, rating=UNKNOWN, mean_score=UNKNOWN) for row in found.rows),
    )
    assert conclusion_in_words(few) == "Too few queries to compare the candidates: 5."
    assert conclusion_in_words(few, "The judge was not checked.") == "The judge was not checked."
    anchored = replace(few, rows=(replace(few.rows[0], rating=ANY), few.rows[1]))
    assert "Too few queries" in conclusion_in_words(anchored)
    assert "tied" in conclusion_in_words(replace(few, queries=9))
    apart = replace(few.rows[1], mean_score=Interval(3.0, math.nan, math.nan))
    shared = conclusion_in_words(replace(few, queries=20, rows=(few.rows[0], apart)))
    assert "shared queries or clusters" in shared
    assert "20" not in shared
    equal = replace(found, rows=tuple(replace(row, mean_score=UNKNOWN) for row in found.rows))
    assert "tied" in conclusion_in_words(equal)
