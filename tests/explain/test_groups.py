"""Means by group: by hand, with missing answers, and consistent with the scores."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from rocketeval.explain import groups as module
from rocketeval.explain.groups import (
    GroupScore,
    dimension_of,
    find_groups,
    group_columns,
    score_groups,
)
from rocketeval.records import Checklist
from rocketeval.scoring.mean import MeanScorer
from rocketeval.stats import bootstrap
from support.made_runs import answer_table, made_run

GAP = math.nan


def checklists(groups: Mapping[str, Sequence[str] | None], items: int) -> dict[str, Checklist]:
    """Return a checklist per query with these groups."""
    texts = tuple(f"Item {n}?" for n in range(items))
    return {
        query: Checklist(query, texts[: len(own)] if own else texts, "x", own and tuple(own))
        for query, own in groups.items()
    }


def by_name(found: Sequence[GroupScore]) -> dict[str, GroupScore]:
    return {group.group: group for group in found}


def test_mean_per_response_then_over_responses() -> None:
    """A query with more items of a group does not count more; missing answers are left out."""
    table = answer_table(
        [
            ("one", "a", [0.2, 0.4, 0.9]),
            ("one", "b", [GAP, 0.5, 0.1]),
            ("two", "a", [0.7, GAP]),
            ("two", "b", [GAP, 0.3]),
        ]
    )
    lists = checklists({"one": ["x", "x", "y"], "two": ["x", "y"]}, 3)
    found = by_name(score_groups(table, lists, ["b", "a"])[0])
    assert [own.candidate for own in found["x"].candidates] == ["b", "a"]
    b, a = found["x"].candidates
    assert a.mean is not None
    assert b.mean is not None
    assert a.mean.value == pytest.approx((0.3 + 0.7) / 2)
    assert (a.responses, a.missing) == (2, 0)
    assert b.mean.value == pytest.approx(0.5)
    assert (b.responses, b.missing) == (1, 2)
    b, a = found["y"].candidates
    assert (a.mean and a.mean.value, a.missing) == (pytest.approx(0.9), 1)
    assert (b.mean and b.mean.value, b.missing) == (pytest.approx(0.2), 0)
    assert math.isnan(a.mean.low)


def test_dimension_mean_is_over_all_items() -> None:
    """Not over its groups: two items of one part count twice."""
    table = answer_table([("one", "a", [0.2, 0.4, 0.9, 0.5])])
    lists = checklists({"one": ["d: x", "d: x", "d: y", "e: z"]}, 4)
    found, left_out = score_groups(table, lists, ["a"])
    assert [(group.group, group.whole) for group in found] == [
        ("d", True),
        ("d: x", False),
        ("d: y", False),
        ("e: z", False),
    ]
    means = [own.mean.value for group in found for own in group.candidates if own.mean]
    assert means == pytest.approx([0.5, 0.3, 0.9, 0.5])
    assert left_out == 0


def test_unjudged_response_counts_all_its_items_as_missing() -> None:
    """Queries without the group do not count."""
    table = answer_table([("one", "a", []), ("one", "b", [0.5, 0.5]), ("two", "a", [0.1])])
    lists = checklists({"one": ["x", "x"], "two": None}, 2)
    ((group,), _) = score_groups(table, lists, ["a", "b", "never ranked"])
    a, b, nobody = group.candidates
    assert (group.queries, a.mean, a.responses, a.missing) == (1, None, 0, 2)
    assert (b.responses, b.missing) == (1, 0)
    assert (nobody.mean, nobody.missing) == (None, 0)


def test_group_of_all_items_equals_the_mean_score() -> None:
    """On the scale from 0 to 1, with an interval."""
    table, _ = made_run(queries=12, candidates=4, items=5)
    lists = checklists({query: ["all"] * 5 for query in set(table.query_ids)}, 5)
    names = sorted(set(table.candidates))
    ((group,), _) = score_groups(table, lists, names, bootstrap=200)
    scores = (MeanScorer().predict(table) - 1.0) / 9.0
    for name, own in zip(names, group.candidates, strict=True):
        rows = [row for row, other in enumerate(table.candidates) if other == name]
        assert own.mean is not None
        assert own.mean.value == pytest.approx(float(np.mean(scores[rows])))
        assert own.mean.low < own.mean.value < own.mean.high


def test_too_many_groups_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first ones are kept."""
    monkeypatch.setattr(module, "MOST_GROUPS", 2)
    table = answer_table([("one", "a", [0.2, 0.4, 0.9])])
    found, left_out = score_groups(table, checklists({"one": ["x", "y", "z"]}, 3), ["a"])
    assert ([group.group for group in found], left_out) == (["x", "y"], 1)


def test_without_groups_the_result_is_empty() -> None:
    table, _ = made_run(queries=2, candidates=2, items=2)
    assert score_groups(table, checklists({"q000": None, "q001": None}, 2), ["c0"]) == ((), 0)


@pytest.mark.parametrize(
    ("group", "dimension"),
    [("a: b", "a"), ("a: b: c", "a"), ("a:b", None), (": b", None), ("a: ", None), ("a", None)],
)
def test_dimension_is_the_prefix_before_the_colon(group: str, dimension: str | None) -> None:
    assert dimension_of(group) == dimension


def test_group_named_like_a_dimension_belongs_to_it() -> None:
    """Its items count for the dimension and for the group."""
    made = Checklist("q", ("A?", "B?", "C?"), groups=("d: x", "e", "d"))
    found = find_groups({"q": made})
    assert [(group.name, group.dimension, group.parts) for group in found] == [
        ("d", "d", ("d: x", "d")),
        ("d: x", "d", ("d: x",)),
        ("d", "d", ("d",)),
        ("e", None, ("e",)),
    ]
    table = answer_table([("q", "a", [0.2, 0.5, 0.8])])
    scores, _ = score_groups(table, {"q": made}, ["a"])
    means = [own.mean.value for group in scores for own in group.candidates if own.mean]
    assert means == pytest.approx([0.5, 0.2, 0.8, 0.5])


def test_no_ranked_candidate_gives_no_groups() -> None:
    table = answer_table([("one", "a", [0.5])])
    assert score_groups(table, checklists({"one": ["x"]}, 1), []) == ((), 0)


def test_shared_resamples_give_the_same_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bit by bit the same as drawing again for every batch of groups."""
    drawn = []
    draw = bootstrap.resample_queries

    def counted(queries: int, times: int, seed: int) -> Iterator[NDArray[np.float64]]:
        drawn.append(queries)
        return draw(queries, times, seed)

    monkeypatch.setattr(bootstrap, "resample_queries", counted)
    monkeypatch.setattr(module, "_CELLS_AT_ONCE", 1)
    monkeypatch.setattr(bootstrap, "_BLOCK_CELLS", 100)
    table, _ = made_run(queries=12, candidates=4, items=5)
    lists = checklists({query: list("xxyyz") for query in set(table.query_ids)}, 5)
    names = sorted(set(table.candidates))
    once = score_groups(table, lists, names, bootstrap=50)
    assert drawn == [12]
    monkeypatch.setattr(bootstrap, "_MOST_KEPT", 0)
    assert score_groups(table, lists, names, bootstrap=50) == once
    assert drawn == [12] * 4


def test_large_counts_are_kept_exactly() -> None:
    """A query can be drawn as often as there are queries."""
    assert bootstrap._smallest(np.array([[255.0]])).dtype == np.uint8
    assert bootstrap._smallest(np.array([[300.0]])).tolist() == [[300]]


def test_one_group_per_query_stays_fast() -> None:
    """Two thousand groups need no table of queries by groups."""
    count = 2000
    texts = [f"q{n:04d}" for n in range(count)]
    table = answer_table([(query, "a", [0.25, 0.75]) for query in texts])
    lists = checklists({query: [f"of {query}"] * 2 for query in texts}, 2)
    groups = find_groups(lists)
    assert len(groups) == count
    tracemalloc.start()
    try:
        for place, column in enumerate(group_columns(table, lists, groups)):
            assert column.queries == 1
            assert (column.items[place], column.items.sum()) == (2, 2)
            assert column.scores[place] == 0.5
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < count * count


def test_answers_without_groups_are_ignored() -> None:
    """Queries without a checklist or groups can be mixed with others."""
    table = answer_table([("no", "a", [0.1]), ("one", "a", [0.5, GAP]), ("two", "a", [0.3])])
    lists = checklists({"one": ["x", "x"], "two": None}, 2)
    (column,) = group_columns(table, lists, find_groups(lists))
    assert column.items.tolist() == [0, 2, 0]
    assert column.answered.tolist() == [0, 1, 0]
    assert np.isnan(column.scores).tolist() == [True, False, True]
