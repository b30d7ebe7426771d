"""Cross-validation: unbiased results for all arms on the same cases."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from evolve.planted import CORRECT, planted_labels, planted_pairs
from rocketeval.config import EvolveConfig
from rocketeval.evolve.cases import Case, CaseTable
from rocketeval.evolve.forest import SPACES, ForestSettings
from rocketeval.evolve.validate import (
    COMMONEST,
    MEAN,
    SINGLE,
    SINGLE_FITTED,
    WITH,
    WITHOUT,
    Validation,
    cross_validate,
    out_of_fold,
)

SETTINGS = EvolveConfig(folds=3, experts=(1, 2))
PLANTED = planted_pairs(80, idle=2)


@pytest.fixture(scope="module", autouse=True)
def _small_forests() -> Iterator[None]:
    """Use two settings and twenty trees, because nested folds take time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(SPACES, "short", tuple(ForestSettings(20, 10, 2, leaf) for leaf in (2, 5)))
        yield


@pytest.fixture(scope="module")
def pairs(_small_forests: None) -> Validation:
    """Planted pairs of two query types."""
    return cross_validate(PLANTED.table, SETTINGS, overall=CORRECT.id)


def with_gold(table: CaseTable, gold: list[float | None]) -> CaseTable:
    """The table with other reference values."""
    cases = (replace(case, gold=new) for case, new in zip(table.cases, gold, strict=True))
    return CaseTable(
        tuple(cases), table.about_responses, table.answers, table.about_queries, table.traits
    )


def test_experts_come_near_the_optimum_and_others_stay_below(pairs: Validation) -> None:
    """The gain over no experts is significant."""
    arms = pairs.arms
    accuracy = {name: arm.figures["accuracy"].value for name, arm in arms.items()}
    assert set(arms) == {COMMONEST, SINGLE, SINGLE_FITTED["pairs"], MEAN, WITHOUT, WITH}
    assert accuracy[WITH] > PLANTED.ceiling - 0.2
    assert max(value for name, value in accuracy.items() if name != WITH) < accuracy[WITH] - 0.15
    assert arms[WITH].gain.low > 0.1
    assert arms[WITHOUT].gain.value == 0.0
    assert pairs.experts == (2, 2, 2)


def test_every_case_has_an_out_of_fold_prediction(pairs: Validation) -> None:
    """For the mistakes and the confidence table."""
    found, predicted = pairs, pairs.arms[WITH].predictions
    assert predicted is not None
    assert len(predicted) == len(found.gold) == len(found.rows) == 320
    assert (found.arms[WITH].outcome == predicted.verdict).all()
    by_query: dict[str, set[int]] = {}
    for query_id, fold in zip(found.query_ids, found.folds.tolist(), strict=True):
        by_query.setdefault(query_id, set()).add(fold)
    assert all(len(folds) == 1 for folds in by_query.values())
    accuracy = float(np.mean(predicted.verdict == found.gold))
    assert found.arms[WITH].figures["accuracy"].value == accuracy


def test_shuffled_reference_gives_chance() -> None:
    """No information leaks between folds."""
    table = PLANTED.table
    gold = np.random.default_rng(1).permutation(table.gold).tolist()
    found = cross_validate(with_gold(table, gold), SETTINGS)
    most = max(np.mean(np.array(gold) == outcome) for outcome in (-1.0, 0.0, 1.0))
    for name in (WITHOUT, WITH):
        figures = found.arms[name].figures
        assert figures["accuracy"].value < most + 0.06
        assert abs(figures["rho"].value) < 0.15


def test_left_out_queries_are_never_trained_on() -> None:
    """A copy of the table as extra training data changes nothing."""
    small = planted_pairs(24).table
    gold = np.random.default_rng(1).permutation(small.gold).tolist()
    table = with_gold(small, gold)
    found = cross_validate(table, SETTINGS, learn_also=table)
    assert found.learned_also == len(table)
    assert found.arms[WITH].figures["accuracy"].value < 0.6


def test_extra_training_cases_help() -> None:
    """They are used in every fold and not measured."""
    few, more = planted_pairs(20, seed=3).table, planted_pairs(60, seed=4).table
    renamed = CaseTable(
        tuple(Case(f"other {case.query_id}", case.candidates, case.gold) for case in more.cases),
        more.about_responses,
        more.answers,
        more.about_queries,
        more.traits,
    )
    alone = cross_validate(few, SETTINGS)
    helped = cross_validate(few, SETTINGS, learn_also=renamed)
    assert len(helped.gold) == len(alone.gold) == len(few)
    assert helped.learned_also == len(more)
    gain = helped.arms[WITH].figures["accuracy"].value - alone.arms[WITH].figures["accuracy"].value
    assert gain > 0.05


def test_labels_have_their_own_metrics() -> None:
    """Rho, tau and the mean squared error; experts gain in rho."""
    found = cross_validate(planted_labels(60).table, SETTINGS, overall=CORRECT.id)
    assert set(found.arms) == {SINGLE, SINGLE_FITTED["scores"], MEAN, WITHOUT, WITH}
    assert set(found.arms[WITH].figures) == {"rho", "tau", "mse"}
    assert found.measure == "rho"
    assert found.arms[WITH].gain.low > 0.1
    assert found.arms[WITH].figures["mse"].value < found.arms[WITHOUT].figures["mse"].value


def test_cases_without_reference_are_counted_and_left_out() -> None:
    """The result lists the rows that were used."""
    table = planted_pairs(20).table
    gold: list[float | None] = [None, *table.gold.tolist()[1:]]
    found = cross_validate(with_gold(table, gold), SETTINGS)
    assert found.without_gold == 1
    assert found.rows.tolist() == list(range(1, len(table)))


def test_out_of_fold_predicts_every_case() -> None:
    """Also without reference data, in table order, nearly as well as full cross-validation."""
    table = PLANTED.table
    gold: list[float | None] = [None, *table.gold.tolist()[1:]]
    predicted = out_of_fold(with_gold(table, gold), SETTINGS)
    assert len(predicted) == len(table)
    assert np.mean(predicted.verdict == table.gold) > PLANTED.ceiling - 0.2
    assert predicted.expert.max() == 1


def test_equal_queries_stay_in_one_fold() -> None:
    """Otherwise the evaluator would have seen the case."""
    random = np.random.default_rng(0)
    once = planted_pairs(24, idle=2).table
    gold = random.choice([-1.0, 0.0, 1.0], len(once)).tolist()
    once = with_gold(once, gold)
    copies = [
        replace(case, query_id=f"{case.query_id}#{copy}", group=case.query_id)
        for copy in range(4)
        for case in once.cases
    ]
    rows = np.tile(np.arange(len(once)), 4)
    four = CaseTable(
        tuple(copies),
        once.about_responses,
        once.answers[rows],
        once.about_queries,
        once.traits[rows],
    )
    assert cross_validate(four, SETTINGS).arms[WITHOUT].figures["accuracy"].value < 0.6


def test_other_arms_use_only_kept_perspectives() -> None:
    """Only the single-prompt arms use the overall question."""
    table = PLANTED.table
    kept = [each.id for each in table.about_responses if each.id != CORRECT.id]
    found = cross_validate(table, SETTINGS, overall=CORRECT.id, kept=kept)
    without = cross_validate(table.narrow(kept), SETTINGS)
    assert found.arms[SINGLE].figures["accuracy"].value > 0.0
    for name in (MEAN, WITHOUT, WITH):
        assert found.arms[name].outcome.tolist() == without.arms[name].outcome.tolist()
