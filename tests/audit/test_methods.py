"""Comparison of methods on the same responses, with figures computed by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict

import numpy as np
import orjson
import pytest

from rocketeval.audit.figures import GUESS, LONGER, TIE
from rocketeval.audit.methods import MethodComparison, MethodFigures, MethodGrades, compare_methods
from rocketeval.audit.votes import common_responses, gain_over, mean_scores
from rocketeval.config import RankingConfig
from rocketeval.errors import BenchmarkError
from rocketeval.grid import ScoreGrid
from rocketeval.records import Gold, Interval, Label, Rating, Usage, Vote

RANKING = RankingConfig(bootstrap=100)
NAN = math.nan


def grid(rows: Mapping[str, Sequence[float]], candidates: str = "abc") -> ScoreGrid:
    """Return scores by query, with one column per letter."""
    return ScoreGrid(tuple(rows), tuple(candidates), np.array(list(rows.values())))


ONE = grid({"q1": (9.0, 5.0, 1.0), "q2": (2.0, 6.0, 6.05)})
TWO = grid({"q1": (5.0, 9.0, NAN), "q2": (2.0, 6.0, 4.0)})
LENGTHS = {(q, c): 10.0 if c == "a" else 20.0 for q in ("q1", "q2") for c in "abc"}
VOTES = [
    Vote("q1", "a", "b", "a"),
    Vote("q1", "a", "c", "a"),
    Vote("q2", "b", "c", "tie"),
    Vote("q2", "a", "b", "b"),
]


def compare(graded: Mapping[str, ScoreGrid], **gold: Sequence[object]) -> MethodComparison:
    """Return the comparison of plain grids."""
    methods = {name: MethodGrades(each) for name, each in graded.items()}
    return compare_methods(methods, LENGTHS, Gold(**gold), RANKING)  # type: ignore[arg-type]


def rows_of(comparison: MethodComparison) -> dict[str, MethodFigures]:
    """Return the rows by name."""
    return {row.name: row for row in comparison.rows}


def value(interval: Interval | None) -> float:
    """Return the value of an interval that must be present."""
    assert interval is not None
    return interval.value


def test_agreement_uses_votes_that_all_methods_can_predict() -> None:
    """`two` has no score for c on q1: that response and its vote count for no method."""
    found = compare({"one": ONE, "two": TWO}, votes=VOTES)
    assert (found.responses, found.left_out) == (5, 1)
    rows = rows_of(found)
    assert list(rows) == ["one", "two", LONGER, TIE, GUESS]
    expected = {"one": (1, 1), "two": (1 / 3, 1 / 2), LONGER: (2 / 3, 1 / 2), TIE: (1 / 3, 1 / 2)}
    for name, (with_ties, without_ties) in {**expected, GUESS: (1 / 3, 1 / 2)}.items():
        agreement = rows[name].agreement
        assert agreement is not None
        assert value(agreement.with_ties) == pytest.approx(with_ties), name
        assert value(agreement.without_ties) == pytest.approx(without_ties), name
        assert agreement.used == 3
    assert rows["one"].gain is None
    assert value(rows["two"].gain) == pytest.approx(-2 / 3)
    assert value(rows[LONGER].gain) == pytest.approx(-1 / 3)


def test_human_agreement_uses_the_same_votes() -> None:
    """Two voters who agree on a left-out response do not raise it."""
    second = [Vote("q1", "a", "c", "a", "b"), Vote("q2", "b", "c", "b", "b")]
    found = compare({"one": ONE, "two": TWO}, votes=[*VOTES, *second])
    assert found.voters is not None
    assert (found.voters.pairs, found.voters.with_ties.value) == (2, 0.0)


def test_labels_are_compared_on_the_same_responses() -> None:
    """Errors by hand; length has no RMSE because it is not on the label scale."""
    labels = [Label("q1", "a", 8.0), Label("q1", "b", 5.0), Label("q1", "c", 9.0)]
    labels += [Label("q2", "a", 1.0), Label("q2", "b", 7.0), Label("q2", "c", 6.05)]
    rows = rows_of(compare({"one": ONE, "two": TWO}, labels=labels))
    one, two, longer = (rows[name].labels for name in ("one", "two", LONGER))
    assert one is not None
    assert two is not None
    assert longer is not None
    assert (one.responses, one.unusable) == (5, 1)
    assert value(one.rmse) == pytest.approx(math.sqrt((1 + 0 + 1 + 1 + 0) / 5))
    assert value(two.rmse) == pytest.approx(math.sqrt((9 + 16 + 1 + 1 + 2.05**2) / 5))
    assert longer.rmse is None
    assert longer.spearman is not None
    assert set(one.levels) == {"responses", "per query", "candidates"}
    assert TIE not in rows


def test_ratings_are_compared_with_mean_scores() -> None:
    """Means over common responses: `one` 5.5, 5.5 and 6.05; `two` 3.5, 7.5 and 4."""
    ratings = [Rating("a", 1.0), Rating("b", 2.0), Rating("c", 3.0)]
    rows = rows_of(compare({"one": ONE, "two": TWO}, ratings=ratings))
    for name, expected in (("one", math.sqrt(0.75)), ("two", 0.5)):
        found = rows[name].ratings
        assert found is not None
        assert found.spearman is not None
        assert found.spearman.value == pytest.approx(expected)


def test_mean_scores_skip_unscored_candidates() -> None:
    """A candidate without a score has no mean."""
    assert mean_scores(grid({"q1": (1.0, NAN, NAN), "q2": (2.0, 4.0, NAN)})) == {"a": 1.5, "b": 4.0}


def test_methods_may_have_queries_in_another_order() -> None:
    """Cells are matched by name; a query missing in one is dropped for all."""
    turned = ScoreGrid(("q2",), ("c", "b"), np.array([[4.0, 6.0]]))
    cut, left_out = common_responses({"one": ONE, "turned": turned})
    assert cut["turned"].query_ids == ONE.query_ids
    assert np.isfinite(cut["one"].scores).sum() == 2
    assert cut["turned"].scores[1].tolist()[1:] == [6.0, 4.0]
    assert left_out == 4


def test_gain_uses_only_shared_votes() -> None:
    """Votes that only one method can predict do not count."""
    assert value(gain_over(ONE, TWO, VOTES, RANKING)) == pytest.approx(2 / 3)
    assert gain_over(ONE, TWO, VOTES[1:2], RANKING) is None
    assert gain_over(ONE, TWO, [], RANKING) is None


def many(scored: int, total: int = 20) -> ScoreGrid:
    """Return two candidates on ten queries with the first cells scored."""
    flat = np.where(np.arange(total) < scored, np.linspace(1.0, 9.0, total), NAN)
    names = tuple(f"q{number}" for number in range(total // 2))
    return ScoreGrid(names, ("a", "b"), flat.reshape(-1, 2))


@pytest.mark.parametrize(("scored", "compared"), [(0, False), (15, False), (16, True), (20, True)])
def test_method_with_few_scores_is_excluded(scored: int, compared: bool) -> None:
    """Below 80% of the most complete method, it is listed with its counts."""
    few = MethodGrades(many(scored), Usage(requests=7), unanswered=3, unscored=20 - scored)
    graded = {"few": few, "all": MethodGrades(many(20)), "most": MethodGrades(many(18))}
    found = compare_methods(graded, {}, Gold(), RANKING)
    assert [row.name for row in found.rows if row.name != LONGER] == [
        name for name in graded if compared or name != "few"
    ]
    assert found.responses == (min(scored, 18) if compared else 18)
    if not compared:
        (apart,) = found.apart
        assert apart.reason == f"it scored only {scored} of 20 responses"
        assert apart.figures is not None
        assert (apart.figures.unanswered, apart.figures.unscored) == (3, 20 - scored)
        assert apart.figures.usage == Usage(requests=7)


def test_nothing_scored_is_an_error() -> None:
    """An empty comparison raises an error."""
    with pytest.raises(BenchmarkError, match="No method scored"):
        compare_methods(
            {"a": MethodGrades(many(0)), "b": MethodGrades(many(0))}, {}, Gold(), RANKING
        )


def test_counts_are_those_of_each_method() -> None:
    """Missing counts are the method's own, not those of absent responses."""
    graded = {"one": MethodGrades(TWO, Usage(requests=3), 4, 0, 2)}
    row = compare_methods(graded, LENGTHS, Gold(), RANKING).rows[0]
    assert (row.unanswered, row.unscored, row.unfinished) == (4, 0, 2)
    assert row.usage == Usage(requests=3)


def test_comparison_can_be_written_as_json() -> None:
    """Unknown bounds are included."""
    found = compare({"one": ONE, "two": TWO}, votes=VOTES[:1], labels=[Label("q1", "a", 3.0)])
    assert b'"advice"' in orjson.dumps(asdict(found))
