"""Weights of perspectives: decisive ones weigh most, even if only a trait reveals them."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from evolve.planted import (
    CONCISE,
    CONSTANT,
    CORRECT,
    DETAILED,
    WHICH_TYPE,
    planted_labels,
    planted_pairs,
)
from rocketeval.config import EvolveConfig
from rocketeval.errors import BenchmarkError
from rocketeval.evolve import select
from rocketeval.evolve.cases import Case, CaseTable
from rocketeval.evolve.select import (
    PerspectiveWeight,
    PerspectiveWeights,
    trait_weights,
    weigh_perspectives,
    weigh_traits,
)

SETTINGS = EvolveConfig(folds=3)
PLANTED = {CONCISE.id, DETAILED.id, CORRECT.id}
TYPES = {each.id for each in WHICH_TYPE[:2]}


@cache
def pairs() -> PerspectiveWeights:
    """The weights of the perspectives of planted pairs."""
    return weigh_perspectives(planted_pairs(100).table, SETTINGS)


def test_decisive_answers_weigh_most() -> None:
    """Although concise and detailed are uninformative without the query type."""
    weighed = pairs().about_responses
    idle = max(found.importance for name, found in weighed.items() if name not in PLANTED)
    assert min(weighed[name].importance for name in PLANTED) > 2.0 * idle


def test_only_type_traits_have_weight() -> None:
    """Noise traits, and one that every query has, have weight zero."""
    weighed = pairs().about_queries
    assert {name for name, found in weighed.items() if found.importance > 0.0} == TYPES
    assert weighed[CONSTANT.id] == PerspectiveWeight(0.0, 0.0)


def test_queries_of_unequal_size_add_no_error_to_a_gain(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mean gain of 0.1 has a standard error of 0.08, although one query has most of the cases."""
    sizes = [1] * 9 + [40]
    cases = [Case(f"q{n}", ("a", "b"), 1.0) for n, size in enumerate(sizes) for _ in range(size)]
    gains = np.full((len(cases), 1), 0.1)
    gains[:8, 0] += np.tile([1.3, -1.3], 4)
    nothing = np.zeros((len(cases), 1))
    table = CaseTable(tuple(cases), (CONCISE,), nothing, (CONSTANT,), nothing)
    monkeypatch.setattr(select, "_held_out_gains", lambda _, __, held_out: gains[held_out])
    assert weigh_traits(table, SETTINGS)[CONSTANT.id].importance == 1.0


def test_importances_are_shares() -> None:
    """They sum to one per kind."""
    for kind in (pairs().about_responses, pairs().about_queries):
        assert sum(found.importance for found in kind.values()) == pytest.approx(1.0)
        assert all(0.0 <= found.stability <= 1.0 for found in kind.values())


def test_labels_are_weighed_too() -> None:
    """The same holds for labels of single responses."""
    found = weigh_perspectives(planted_labels(100).table, SETTINGS)
    assert set(found.keep(3, 9)) == PLANTED | TYPES


def test_no_trait_has_weight_if_types_do_not_matter() -> None:
    """With one query type, traits are noise."""
    found = weigh_perspectives(planted_pairs(100, types=1).table, SETTINGS)
    assert found.keep(3, 9)[3:] == ()
    assert trait_weights(found.about_queries, list(found.about_queries)).max() == 0.0


def test_best_of_each_kind_are_kept() -> None:
    """Best first, up to the limit, none with weight zero."""
    standings = PerspectiveWeights(
        {
            "a": PerspectiveWeight(0.2, 1.0),
            "b": PerspectiveWeight(0.8, 1.0),
            "c": PerspectiveWeight(0.0, 0.0),
        },
        {"d": PerspectiveWeight(0.0, 0.0), "e": PerspectiveWeight(1.0, 1.0)},
    )
    assert standings.keep(9, 9) == ("b", "a", "e")
    assert standings.keep(1, 0) == ("b",)
    assert standings.by_id()["b"] == (0.8, 1.0)


def test_one_response_perspective_always_stays() -> None:
    """An evaluator without answers could not judge."""
    assert PerspectiveWeights({"a": PerspectiveWeight(0.0, 0.0)}, {}).keep(5, 5) == ("a",)


def test_routing_weights_are_relative_to_the_largest() -> None:
    """The most important trait has weight 1."""
    weighed = {"d": PerspectiveWeight(0.25, 1.0), "e": PerspectiveWeight(0.5, 1.0)}
    assert trait_weights(weighed, ["e", "d"]).tolist() == [1.0, 0.5]


def test_missing_answers_and_empty_columns_are_handled() -> None:
    """A perspective without answers has weight zero."""
    table = planted_pairs(60).table
    answers, traits = table.answers.copy(), table.traits.copy()
    answers[::7, 1], answers[:, 4], traits[::5, 0] = np.nan, np.nan, np.nan
    holed = CaseTable(table.cases, table.about_responses, answers, table.about_queries, traits)
    found = weigh_perspectives(holed, SETTINGS)
    assert found.about_responses[table.about_responses[4].id].importance == 0.0
    assert found.about_responses[DETAILED.id].importance > 0.1


def test_one_query_is_too_few() -> None:
    """Folds need two queries."""
    table = planted_pairs(1).table
    with pytest.raises(BenchmarkError, match="at least 2 queries"):
        weigh_perspectives(table, SETTINGS)
