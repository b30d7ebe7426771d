"""Slices of queries: fields and bands, means with simultaneous intervals, and what is left out."""

from __future__ import annotations

import numpy as np
import pytest

from rocketeval.records import Query, Turn
from rocketeval.report.slices import (
    MOST_VALUES,
    SliceField,
    slice_fields,
    slice_means,
    slices_in_words,
)


def named(queries: list[Query]) -> dict[str, SliceField]:
    return {field["name"]: field for field in slice_fields(queries)}


def test_every_kind_of_field() -> None:
    """Category, tags, length, turns and further fields; bands are in order, not by name."""
    history = (Turn("user", "Hi"), Turn("assistant", "Ho"))
    queries = [
        Query("a", "x" * 900, category="math", tags=("t", "u"), metadata={"hard": True}),
        Query("b", "x" * 10, category="code", tags=("u",), history=history),
        Query("c", "x" * 300, metadata={"hard": False, "id": "1"}),
        Query("d", "x" * 5000, metadata={"hard": True, "id": "2", "long": "y" * 99}),
    ]
    found = named(queries)
    assert list(found) == ["category", "tag", "length", "turns", "hard", "id"]
    assert found["category"]["of"] == [[1], [0], [], []]
    assert found["tag"]["of"] == [[0, 1], [1], [], []]
    assert found["length"]["values"] == [
        "under 200 characters",
        "200-799 characters",
        "800-3,199 characters",
        "3,200 characters or more",
    ]
    assert found["turns"]["values"] == ["1 turn", "2 turns"]
    assert found["hard"] == {"name": "hard", "values": ["no", "yes"], "of": [[1], [], [0], [1]]}


def test_fields_that_divide_nothing_are_left_out() -> None:
    """One value for all queries, and as many values as queries, such as an id."""
    queries = [Query(f"q{n}", "?", category="x", metadata={"number": n}) for n in range(8)]
    assert slice_fields(queries) == []
    some = [Query("a", "?", category="x"), Query("b", "?")]
    assert named(some)["category"]["of"] == [[0], []]


def test_means_hold_for_all_slices_together() -> None:
    """The same slice has a wider interval among eight than among two; a small one has none."""
    scores = np.random.default_rng(0).normal(5.0, 1.0, (400, 2))
    scores[0, 1] = np.nan

    def width(slices: int, rows: int) -> float:
        """Return the width of the first slice's interval, which has the first queries."""
        others = [[1 + query % (slices - 1)] for query in range(400 - rows)]
        field: SliceField = {
            "name": "kind",
            "values": [str(n) for n in range(slices)],
            "of": [[0]] * rows + others,
        }
        places = np.arange(400)
        found = slice_means(scores, [field], places=places, times=500, seed=0, level=0.95)
        mean, other = found[0].means
        assert mean is not None
        assert other is not None
        assert mean.value == pytest.approx(scores[:rows, 0].mean(), abs=1e-4)
        assert other.value == pytest.approx(scores[1:rows, 1].mean(), abs=1e-4)
        return mean.high - mean.low

    assert 1.15 < width(8, 50) / width(2, 50) < 1.5
    assert np.isnan(width(8, 6))


def test_number_of_slices_is_limited_and_said() -> None:
    """The largest are kept; the sentence has their number and the level of each."""
    of = [[query % 30] for query in range(60)] + [[29]]
    field: SliceField = {"name": "kind", "values": [f"{n:02d}" for n in range(30)], "of": of}
    found = slice_means(
        np.full((61, 1), 3.0), [field], places=np.arange(61), times=50, seed=0, level=0.95
    )
    assert len(found) == MOST_VALUES
    assert found[-1].name == "29"
    assert found[-1].queries == 3
    (words,) = slices_in_words(found, 0.95)
    assert "24 slices" in words
    assert "99.8%" in words


def test_clusters_are_drawn_together() -> None:
    """Copies of a query in one cluster do not make an interval narrower."""
    scores = np.random.default_rng(1).normal(5.0, 1.0, (40, 1))
    field: SliceField = {"name": "k", "values": ["a", "b"], "of": [[n % 2] for n in range(40)]}
    once = slice_means(scores, [field], places=np.arange(40), times=2000, seed=0, level=0.95)
    thrice: SliceField = {**field, "of": field["of"] * 3}
    copied = slice_means(
        np.tile(scores, (3, 1)),
        [thrice],
        places=np.tile(np.arange(40), 3),
        times=2000,
        seed=0,
        level=0.95,
    )
    for one, other in zip(once, copied, strict=True):
        assert one.means == other.means
