"""A lower-ranked candidate with a significantly higher mean score is never called tied."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from rocketeval.cli.main import group
from rocketeval.cli.ranking import show_ranking as print_ranking
from rocketeval.compare.pair import ComparisonVerdict
from rocketeval.config import dump_config
from rocketeval.exports.display import markdown, show_ranking
from rocketeval.grid import ScoreGrid
from rocketeval.pipeline import Run
from rocketeval.ranking.rank import PairTests, Ranking, rank
from rocketeval.ranking.summary import conclusion_in_words, separation_in_words
from rocketeval.report.trust import separation
from rocketeval.scoring.stage import read_grid
from rocketeval.stats.permutation import PairwiseTests
from rocketeval.store.codec import decode_finding, encode_finding
from support.scored import scored_run

MANY_SMALL, FEW_LARGE = "many", "winner"
"""The first wins 24 of 40 queries by 0.3, the second wins 16 by 3.5."""


def scores_of_two() -> dict[str, list[float]]:
    """Return scores in which wins and mean scores disagree."""
    ease = np.random.default_rng(0).normal(6.0, 1.0, 40)
    gap = np.where(np.arange(40) < 24, -0.3, 3.5)
    return {MANY_SMALL: ease.tolist(), FEW_LARGE: (ease + gap).tolist()}


def grid_of(scores: dict[str, list[float]]) -> ScoreGrid:
    """Return these scores as a grid."""
    cells = np.array(list(scores.values())).T
    return ScoreGrid(tuple(f"q{row}" for row in range(len(cells))), tuple(scores), cells)


@pytest.fixture(scope="module")
def two() -> Ranking:
    """The ranking of the two candidates."""
    return rank(grid_of(scores_of_two()), bootstrap=200)


@pytest.fixture(scope="module")
def three() -> Ranking:
    """The same with a candidate that is tied with the first one."""
    scores = scores_of_two()
    noise = np.random.default_rng(1).normal(-0.05, 0.4, 40)
    scores["alike"] = (np.array(scores[MANY_SMALL]) + noise).tolist()
    return rank(grid_of(scores), bootstrap=200)


def test_a_significantly_higher_mean_opens_a_group(two: Ranking) -> None:
    """The order is that of the ratings; groups, tests and counts call the pair different."""
    first, second = two.rows
    assert (first.candidate, first.rank, second.rank) == (MANY_SMALL, 1, 2)
    assert (first.group, second.group) == (1, 2)
    assert (first.beats_next, first.outscored_by) == (False, (FEW_LARGE,))
    assert second.outscored_by == ()
    assert two.significant_pairs == 1
    assert two.tests is not None
    assert not two.tests.tied(MANY_SMALL, FEW_LARGE, two.level)


def test_groups_and_tests_never_disagree() -> None:
    """For skewed scores with gaps, groups, neighbors, counts and tests agree on every pair."""
    contradicted = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        scores = rng.normal(size=(40, 1)) + rng.normal(0.0, 0.2, size=(40, 5))
        jumps = rng.random((40, 2)) < 0.4
        scores[:, 3:] += np.where(jumps, rng.uniform(1.0, 4.0, 2), -0.3)
        scores[rng.random(scores.shape) < 0.05] = np.nan
        cells = {name: scores[:, place].tolist() for place, name in enumerate("abcde")}
        found = rank(grid_of(cells), bootstrap=20, seed=seed)
        tests = found.tests
        assert tests is not None
        tied = {pair: tests.tied(*pair, found.level) for pair in combinations(tests.candidates, 2)}
        assert found.significant_pairs == sum(not each for each in tied.values())
        firsts = {row.group: row.candidate for row in reversed(found.rows)}
        for row in found.rows:
            contradicted += len(row.outscored_by)
            assert not any(tied[row.candidate, name] for name in row.outscored_by)
            if row.candidate != firsts[row.group]:
                assert tied[firsts[row.group], row.candidate]
        for one, following in pairwise(found.rows):
            differs = one.beats_next or following.candidate in one.outscored_by
            assert differs != tied[one.candidate, following.candidate]
    assert contradicted


def test_rounded_p_values_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    """A p-value that the file rounds to 0.05 is significant everywhere."""
    differences = np.array([[0.0, 1.0], [-1.0, 0.0]])
    p_values = np.array([[1.0, 0.0500004], [0.0500004, 1.0]])
    tests = PairwiseTests(differences, p_values, 0.95)
    monkeypatch.setattr("rocketeval.ranking.rank.pairwise_tests", lambda *_, **__: tests)
    found = rank(grid_of({"a": [9.0] * 8, "b": [1.0] * 8}), bootstrap=20)
    assert found.tests is not None
    assert not found.tests.tied("a", "b", found.level)
    assert ([row.group for row in found.rows], found.significant_pairs) == ([1, 2], 1)


def test_the_conclusion_names_both_orders(two: Ranking, three: Ranking) -> None:
    """It says who is first by wins and who has the higher mean, and who else is tied."""
    words = conclusion_in_words(two)
    assert words.startswith(f"{MANY_SMALL} is first by wins")
    assert f"mean score of {FEW_LARGE} is significantly higher" in words
    assert "tied" not in words
    assert [row.candidate for row in three.rows] == [MANY_SMALL, "alike", FEW_LARGE]
    words = conclusion_in_words(three)
    assert f"mean score of {FEW_LARGE} is significantly higher" in words
    assert words.endswith("tied with alike.")
    doubted = conclusion_in_words(two, "The judge was not checked.")
    assert doubted == "The judge was not checked."


def test_a_race_that_names_another_winner_says_why(two: Ranking) -> None:
    """A run that stopped early decides by mean score, and the table by wins."""
    stopped = replace(
        two, stopped=(f"{FEW_LARGE} has the highest mean score of 2 candidates.", "Decided.", "-")
    )
    words = conclusion_in_words(stopped)
    assert words.startswith(f"{FEW_LARGE} has the highest mean score")
    assert f"{MANY_SMALL} is first by wins" in words


@pytest.mark.parametrize(
    ("beats", "outscored", "higher"), [(True, (), "a"), (False, ("b",), "b"), (False, (), None)]
)
def test_a_shared_first_place_names_the_higher_mean(
    two: Ranking, beats: bool, outscored: tuple[str, ...], higher: str | None
) -> None:
    """Equal ratings do not hide a significant difference of the means."""
    first = replace(two.rows[0], candidate="a", beats_next=beats, outscored_by=outscored)
    second = replace(two.rows[1], candidate="b", rank=1, group=1 if higher is None else 2)
    words = conclusion_in_words(replace(two, rows=(first, second)))
    assert words.startswith("a and b share first place")
    assert (f"mean score of {higher} is" in words) == (higher is not None)


def test_a_shared_first_place_may_hold_by_wins_only(two: Ranking) -> None:
    """A third candidate with a higher mean than one of the first is not passed over."""
    first = replace(two.rows[0], candidate="a", outscored_by=())
    second = replace(first, candidate="b")
    third = replace(second, candidate="c", rank=3, group=2)
    plain = replace(two, rows=(first, second, third))
    assert conclusion_in_words(plain) == "a and b share first place."
    outscored = replace(plain, rows=(first, replace(second, outscored_by=("c",)), third))
    assert "not by mean score" in conclusion_in_words(outscored)


def test_sentences_of_a_ranking_name_the_contradiction(two: Ranking, three: Ranking) -> None:
    """The pair is named with its direction, and no sentence calls it tied."""
    (sentence,) = separation_in_words(two.rows)
    assert f"{MANY_SMALL} is ranked above {FEW_LARGE}" in sentence
    assert "tied" not in sentence
    assert "tied" in separation_in_words(three.rows)[0]
    first = replace(two.rows[0], outscored_by=("b", "c"))
    assert "their mean scores" in separation_in_words([first, two.rows[1]])[0]


def test_terminal_and_markdown_show_it(two: Ranking, capsys: pytest.CaptureFixture[str]) -> None:
    """Where a tie would be named, the contradiction is."""
    print_ranking(two, brief=True)
    for shown in (capsys.readouterr().out, markdown(show_ranking(two, "judge"))):
        one_line = " ".join(shown.split())
        assert f"{MANY_SMALL} is ranked above {FEW_LARGE}" in one_line
        assert "Also tied" not in shown


def test_many_contradictions_are_cut_with_a_count(two: Ranking) -> None:
    """A long ranking gives neither the terminal nor an export a sentence per rank."""
    rows = tuple(replace(two.rows[0], candidate=f"c{n}", group=n) for n in range(40))
    notes = show_ranking(replace(two, rows=rows), "judge").notes
    assert any("contradict 28 more" in note for note in notes)
    assert len(notes) < 20


def test_the_order_is_not_graded_good_by_contradicted_pairs(two: Ranking) -> None:
    """All pairs differ, but not in the direction of the order."""
    found = separation(two, None)
    assert found.value is not None
    assert found.value.value == 1.0
    assert "higher mean score" in found.verdict
    assert "more queries" not in found.verdict
    assert found.mood != "good"


def test_pairwise_rank_intervals_do_not_overstate_the_leader(two: Ranking) -> None:
    """A leader is better than all others only if the tests of all pairs say so."""
    rows = tuple(
        replace(two.rows[0], candidate=name, rank=place, rank_high=place, group=place)
        for place, name in enumerate("abc", start=1)
    )
    rows = tuple(replace(row, outscored_by=()) for row in rows)
    tests = PairTests(("a", "b", "c"), ((None, 0.01, 0.2), (0.01, None, 1.0), (0.2, 1.0, None)))
    found = replace(two, rows=rows, rank_intervals="pairwise", tests=tests)
    assert conclusion_in_words(found) == "a is significantly better than b."


def test_compare_agrees_with_the_ranking(tmp_path: Path) -> None:
    """The verdict, `tied_in_ranking` and the text do not contradict the saved ranking."""
    config = scored_run(tmp_path, scores_of_two())
    run = Run(config)
    run.store.save(rank(read_grid(run.store), bootstrap=200))
    found = run.compare(MANY_SMALL, FEW_LARGE)
    assert found.verdict is ComparisonVerdict.WORSE
    assert (found.tied_in_ranking, found.contradicts_ranking) == (False, True)
    assert run.compare(FEW_LARGE, MANY_SMALL).contradicts_ranking
    path = tmp_path / "rocketeval.yaml"
    path.write_text(dump_config(config), encoding="utf-8")
    args = ["compare", FEW_LARGE, MANY_SMALL, str(path)]
    shown = CliRunner().invoke(group, args, standalone_mode=False).output
    assert f"The ranking places {MANY_SMALL} above {FEW_LARGE}" in " ".join(shown.split())


def test_the_file_changes_only_for_contradicted_ranks(two: Ranking, tmp_path: Path) -> None:
    """Other rows have the keys of earlier versions; files without the new key are read."""
    written = json.loads(json.dumps(encode_finding(two)))
    assert [row.get("outscored_by") for row in written["rows"]] == [[FEW_LARGE], None]
    assert decode_finding(Ranking, written, tmp_path).rows[0].outscored_by == (FEW_LARGE,)
    del written["rows"][0]["outscored_by"]
    assert decode_finding(Ranking, written, tmp_path).rows[0].outscored_by == ()
