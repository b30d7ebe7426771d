"""What perspectives are worth: those that decide stand out, also where only a trait shows it."""

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
from rocketeval.evolve.cases import CaseTable
from rocketeval.evolve.select import (
    PerspectiveWeight,
    PerspectiveWeights,
    trait_weights,
    weigh_perspectives,
)

SETTINGS = EvolveConfig(folds=3)
PLANTED = {CONCISE.id, DETAILED.id, CORRECT.id}
TYPES = {each.id for each in WHICH_TYPE[:2]}


@cache
def pairs() -> PerspectiveWeights:
    """What the perspectives of planted pairs are worth."""
    return weigh_perspectives(planted_pairs(100).table, SETTINGS)


def test_the_answers_that_decide_are_worth_most() -> None:
    """Although concise and detailed tell nothing as long as the type is not known."""
    worth = pairs().about_responses
    idle = max(found.importance for name, found in worth.items() if name not in PLANTED)
    assert min(worth[name].importance for name in PLANTED) > 2.0 * idle


def test_the_traits_that_tell_the_type_are_worth_all() -> None:
    """Those that tell nothing, and the one that every query has, are worth nothing."""
    worth = pairs().about_queries
    assert {name for name, found in worth.items() if found.importance > 0.0} == TYPES
    assert worth[CONSTANT.id] == PerspectiveWeight(0.0, 0.0)


def test_importances_are_shares() -> None:
    """They sum to one within a kind."""
    for kind in (pairs().about_responses, pairs().about_queries):
        assert sum(found.importance for found in kind.values()) == pytest.approx(1.0)
        assert all(0.0 <= found.stability <= 1.0 for found in kind.values())


def test_labels_are_weighed_too() -> None:
    """The same holds of labels of single responses."""
    found = weigh_perspectives(planted_labels(100).table, SETTINGS)
    assert set(found.keep(3, 9)) == PLANTED | TYPES


def test_no_trait_is_worth_anything_where_types_do_not_matter() -> None:
    """One type of query: whatever traits say is noise."""
    found = weigh_perspectives(planted_pairs(100, types=1).table, SETTINGS)
    assert found.keep(3, 9)[3:] == ()
    assert trait_weights(found.about_queries, list(found.about_queries)).max() == 0.0


def test_what_is_kept_is_the_best_of_each_kind() -> None:
    """Best first, no more than wanted, nothing that is worth nothing."""
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


def test_one_about_responses_always_stays() -> None:
    """An evaluator without any answer could judge nothing."""
    assert PerspectiveWeights({"a": PerspectiveWeight(0.0, 0.0)}, {}).keep(5, 5) == ("a",)


def test_routing_weights_are_held_against_the_largest() -> None:
    """The most important trait weighs 1."""
    worth = {"d": PerspectiveWeight(0.25, 1.0), "e": PerspectiveWeight(0.5, 1.0)}
    assert trait_weights(worth, ["e", "d"]).tolist() == [1.0, 0.5]


def test_missing_answers_and_a_column_without_any_do_no_harm() -> None:
    """They are filled; a perspective that nobody answered is worth nothing."""
    table = planted_pairs(60).table
    answers, traits = table.answers.copy(), table.traits.copy()
    answers[::7, 1], answers[:, 4], traits[::5, 0] = np.nan, np.nan, np.nan
    holed = CaseTable(table.cases, table.about_responses, answers, table.about_queries, traits)
    found = weigh_perspectives(holed, SETTINGS)
    assert found.about_responses[table.about_responses[4].id].importance == 0.0
    assert found.about_responses[DETAILED.id].importance > 0.1


def test_gold_of_one_query_is_too_little() -> None:
    """Folds of queries need two."""
    table = planted_pairs(1).table
    with pytest.raises(BenchmarkError, match="at least 2 queries"):
        weigh_perspectives(table, SETTINGS)
