"""Agreement by category of query."""

from __future__ import annotations

import numpy as np
import pytest

from rocketeval.audit.figures import agreement_with_votes, find_paired_votes, hits, measure_votes
from rocketeval.audit.votes import OTHER, CategoryAgreement, by_category, split_votes
from rocketeval.grid import ScoreGrid
from rocketeval.records import Vote

QUERIES = tuple(f"q{row}" for row in range(30))
GRID = ScoreGrid(QUERIES, ("x", "y"), np.column_stack([np.arange(30.0), np.full(30, 14.5)]))


def votes_on(rows: range, winner: str = "a", voters: int = 2) -> list[Vote]:
    return [
        Vote(QUERIES[row], "x", "y", winner, f"v{voter}")  # type: ignore[arg-type]
        for row in rows
        for voter in range(voters)
    ]


def measured(
    votes: list[Vote], categories: dict[str, str], grid: ScoreGrid = GRID
) -> tuple[CategoryAgreement, ...]:
    paired = find_paired_votes(grid, votes)
    judged = hits(paired, grid.scores, 0.1)
    split = split_votes(votes, paired, judged, categories)
    named = {name: judged.where(chosen) for name, chosen in split.chosen.items()}
    return by_category(split, measure_votes(paired, named, bootstrap=50), bootstrap=50)


def test_each_category_equals_its_votes_alone() -> None:
    """One category has 0% and the other 100%, with the same voters."""
    votes = votes_on(range(30))
    kinds = {query: "low" if row < 15 else "high" for row, query in enumerate(QUERIES)}
    found = {part.category: part for part in measured(votes, kinds)}
    assert list(found) == ["high", "low"]
    for name, expected in (("low", 0.0), ("high", 1.0)):
        own = [vote for vote in votes if kinds[vote.query_id] == name]
        alone = agreement_with_votes(GRID, own, bootstrap=50)
        share, voters = found[name].agreement, found[name].voters
        assert share.with_ties is not None
        assert alone.with_ties is not None
        assert voters is not None
        assert share.with_ties.value == alone.with_ties.value == expected
        assert (share.used, share.decisive, share.votes) == (30, 30, 30)
        assert (voters.with_ties.value, voters.pairs) == (1.0, 30)
        assert found[name].pooled == ()


def test_small_categories_are_pooled_and_named() -> None:
    """Categories with fewer than twenty usable votes are pooled; no vote is lost."""
    kinds = dict.fromkeys(QUERIES[:20], "big")
    kinds |= dict.fromkeys(QUERIES[20:25], "small") | {QUERIES[25]: "tiny"}
    parts = measured(votes_on(range(30)), kinds)
    assert [part.category for part in parts] == ["big", OTHER]
    assert parts[-1].pooled == ("small", "tiny")
    assert sum(part.agreement.used for part in parts) == 60


def test_unusable_votes_do_not_count_toward_category_size() -> None:
    """Twenty votes without a score are counted as unusable."""
    scores = np.array(GRID.scores)
    scores[:10] = np.nan
    kinds = {query: "gone" if row < 10 else "here" for row, query in enumerate(QUERIES)}
    parts = measured(votes_on(range(30)), kinds, ScoreGrid(QUERIES, ("x", "y"), scores))
    assert [part.category for part in parts] == ["here", OTHER]
    assert (parts[-1].agreement.used, parts[-1].agreement.unusable) == (0, 20)
    assert parts[-1].agreement.with_ties is None


@pytest.mark.parametrize("kinds", [{}, dict.fromkeys(QUERIES, "all")])
def test_one_category_is_not_split(kinds: dict[str, str]) -> None:
    """Without categories, or with one for all, there is no split."""
    assert measured(votes_on(range(30)), kinds) == ()


def test_category_named_other_absorbs_small_ones() -> None:
    """The benchmark's own `other` and the pooled one are the same."""
    kinds = {query: "other" if row < 15 else "kept" for row, query in enumerate(QUERIES)}
    kinds[QUERIES[29]] = "tiny"
    parts = measured(votes_on(range(30)), kinds)
    assert [(part.category, part.agreement.used) for part in parts] == [("kept", 28), (OTHER, 32)]
    assert parts[-1].pooled == ("tiny",)
