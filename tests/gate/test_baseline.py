"""Baselines: what is compared, what is left out, and files that several processes update."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rocketeval import Grader, ScriptedEngine
from rocketeval.compare.pair import ComparisonVerdict
from rocketeval.errors import ConfigError
from rocketeval.gate.baseline import BaselineFile, ScoredTest, compare_scores, scored_test

ITEMS = ["Is it good?", "Is it short?"]


def scored(p_good: float, cases: int = 8, items: list[str] | None = None) -> ScoredTest:
    """Return the scores of cases whose first item gets a probability."""

    def p_yes(prefix: str, item: str) -> float:
        return p_good if "good" in item else 0.9

    with Grader(ScriptedEngine(p_yes)) as grader:
        return scored_test(
            {f"c{n}": grader.grade(f"q{n}", "r", items or ITEMS) for n in range(cases)}
        )


def test_fall_is_significant_and_names_the_item() -> None:
    """A fall on every case is worse, and the item that fell is named with both values."""
    found = compare_scores(scored(0.1), scored(0.9))
    assert found.comparison.verdict is ComparisonVerdict.WORSE
    assert found.comparison.effect.value == pytest.approx(-0.4)
    assert found.regressions[0].items == (("Is it good?", 0.9, 0.1),)
    assert len(found.regressions) == 8


def test_rise_is_better_and_equal_scores_are_no_regression() -> None:
    """A rise is better; equal scores cannot be distinguished."""
    assert compare_scores(scored(0.9), scored(0.1)).comparison.verdict is ComparisonVerdict.BETTER
    same = compare_scores(scored(0.9), scored(0.9))
    assert same.comparison.verdict is ComparisonVerdict.UNKNOWN
    assert same.regressions == ()


def test_changed_checklists_are_left_out() -> None:
    """Cases with another checklist are named and left out; if none is left, it is an error."""
    before = scored(0.9)
    now = scored(0.9)
    other = scored(0.9, items=["Is it good?"])
    now.cases["c3"] = other.cases["c3"]
    assert compare_scores(now, before).changed == ("c3",)
    with pytest.raises(ConfigError, match="No case has the same checklist"):
        compare_scores(other, before)


def test_new_and_missing_cases_are_named() -> None:
    """Cases on one side only do not count, and are named."""
    found = compare_scores(scored(0.9, cases=9), scored(0.9, cases=8))
    assert (found.new, found.gone, found.comparison.queries) == (("c8",), (), 8)


def without_score(scores: ScoredTest, *numbers: int) -> ScoredTest:
    """Return the same scores, with none for some cases."""
    unscored = {f"c{n}": scores.cases[f"c{n}"].model_copy(update={"score": None}) for n in numbers}
    return scores.model_copy(update={"cases": {**scores.cases, **unscored}})


def test_missing_scores_are_counted_by_side_and_named() -> None:
    """The summary counts them, now and in the baseline, and the description names the cases."""
    whole = scored(0.9, cases=12)
    found = compare_scores(without_score(whole, *range(6, 12)), whole)
    assert (found.comparison.queries, len(found.lost)) == (6, 6)
    assert "on 6 of 12 cases, missing scores: 6 now" in found.summary
    assert "left out, no score now: c6, c7, c8, c9, c10 and 1 more" in found.describe()
    found = compare_scores(without_score(whole, 0, 1), without_score(whole, 0, 2, 3))
    assert (found.lost, found.gained, found.unscored) == (("c1",), ("c2", "c3"), ("c0",))
    assert "missing scores: 1 now, 2 in the baseline, 1 in both" in found.summary
    assert "missing" not in compare_scores(whole, whole).describe()


def test_summary_names_the_level_or_why_there_is_no_interval() -> None:
    """The interval has the level that was given; with too few cases there is a reason instead."""
    now = scored(0.1)
    now.cases["c0"] = scored(0.9).cases["c0"]
    assert "(90% interval -0.400 to -0.2" in compare_scores(now, scored(0.9), level=0.9).summary
    few = compare_scores(scored(0.1, cases=3), scored(0.9, cases=3)).summary
    assert "-0.400 (no interval: 3 cases are too few, p = 0.250) on 3 cases" in few
    one = compare_scores(scored(0.1, cases=1), scored(0.9, cases=1)).summary
    assert "no interval: 1 case is too few, p = 1.000) on 1 case" in one


def test_names_that_are_left_out_are_counted_beyond_five() -> None:
    """More than five names are shortened with a count."""
    found = compare_scores(scored(0.9, cases=15), scored(0.9, cases=8))
    assert "not in the baseline: c8, c9, c10, c11, c12 and 2 more" in found.describe()


def test_file_keeps_sections_of_several_writers(tmp_path: Path) -> None:
    """Writers at the same time lose nothing, and a section is read back as written."""
    file, one = BaselineFile(tmp_path / "b" / "baseline.json"), scored(0.9, cases=2)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda name: file.write(name, one), [f"t{n}" for n in range(8)]))
    assert all(file.read(f"t{n}") == one for n in range(8))
    with pytest.raises(ConfigError, match="no baseline of other"):
        file.read("other")


def test_damaged_file_is_named(tmp_path: Path) -> None:
    """A baseline that is no baseline is an error that names the file."""
    (tmp_path / "baseline.json").write_text('{"schema": 1, "tests": 3}')
    with pytest.raises(ConfigError, match=r"baseline\.json is invalid: tests"):
        BaselineFile(tmp_path / "baseline.json").read("t")
