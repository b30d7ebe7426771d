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
from rocketeval.evolve.perspective import Perspective
from rocketeval.evolve.result import evaluator_verdict, figures_of
from rocketeval.evolve.validate import (
    COMMONEST,
    MEAN,
    RHO_WITHIN,
    SINGLE,
    SINGLE_FITTED,
    WITH,
    WITHOUT,
    Validation,
    cross_validate,
    figures_within_queries,
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


def test_order_of_pairs_in_the_file_does_not_matter() -> None:
    """If every winner comes first, no baseline profits from it, and a good evaluator is usable."""
    random = np.random.default_rng(1)
    better = random.uniform(-1.0, 1.0, 90)
    noise = random.normal(0.0, 0.1, 90)
    for sides in (np.ones(90), np.sign(better)):
        cases = [
            Case(f"q{place}", ("x", "y"), float(np.sign(value)))
            for place, value in enumerate((better * sides).tolist())
        ]
        answers = ((better + noise) * sides)[:, None]
        table = CaseTable(tuple(cases), (CORRECT,), answers, (), np.zeros((90, 0)))
        found = cross_validate(table, SETTINGS, overall=CORRECT.id)
        accuracy = {name: arm.figures["accuracy"].value for name, arm in found.arms.items()}
        assert accuracy[COMMONEST] == 0.5
        assert accuracy[SINGLE] == np.mean(np.sign(better + noise) == np.sign(better))
        assert max(accuracy[name] for name in (SINGLE_FITTED["pairs"], MEAN)) < 1.0
        assert evaluator_verdict(figures_of(found, "")).usable
    position = SETTINGS.model_copy(update={"asking": "pairs"})
    assert cross_validate(table, position).arms[COMMONEST].figures["accuracy"].value == 1.0


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
    assert set(found.arms[WITH].figures) == {"rho", "tau", "mse", RHO_WITHIN}
    assert found.measure == "rho"
    assert found.arms[WITH].gain.low > 0.1
    assert found.arms[WITH].figures["mse"].value < found.arms[WITHOUT].figures["mse"].value


def labeled(
    query_ids: list[str], labels: list[float], groups: list[str] | None = None
) -> CaseTable:
    """A table of labels without perspectives."""
    cases = (
        Case(query_id, (f"m{place}",), label, group)
        for place, (query_id, label, group) in enumerate(
            zip(query_ids, labels, groups or query_ids, strict=True)
        )
    )
    empty = np.zeros((len(labels), 0))
    return CaseTable(tuple(cases), (), empty, (), empty)


def test_rank_correlation_within_queries() -> None:
    """The mean over queries whose labels differ; equal predictions count as no correlation."""
    names = [f"q{place // 3}" for place in range(30)]
    table = labeled(names, [1.0, 2.0, 3.0] * 9 + [5.0] * 3)
    right, level = table.gold, np.repeat(np.arange(10.0), 3)
    predicted = np.where(np.arange(30) < 18, right, level)
    found = figures_within_queries(predicted, table, 0).intervals()[RHO_WITHIN]
    assert found.value == pytest.approx(6 / 9)
    assert 0.0 < found.low < found.value < found.high
    same = figures_within_queries(level, table, 0).intervals()[RHO_WITHIN]
    assert same.value == 0.0
    assert same.low < 0.0 < same.high
    turned = np.random.default_rng(0).permutation(30)
    again = figures_within_queries(predicted[turned], table.take(turned), 0).intervals()
    assert again[RHO_WITHIN].value == pytest.approx(found.value)
    pairs = [f"q{6 * (place // 18)}" for place in range(30)]
    grouped = figures_within_queries(predicted, labeled(names, right.tolist(), pairs), 0)
    assert grouped.queries == 2


def test_single_responses_have_no_correlation_within_queries() -> None:
    """It is unknown if no labels differ, and not a figure if most queries have one response."""
    alone = labeled([f"q{place}" for place in range(8)], [1.0, 2.0] * 4)
    assert not figures_within_queries(alone.gold, alone, 0).figures
    equal = labeled([f"q{place // 2}" for place in range(8)], [3.0] * 8)
    found = figures_within_queries(np.arange(8.0), equal, 0).intervals()[RHO_WITHIN]
    assert np.isnan([found.value, found.low, found.high]).all()


def test_labels_that_differ_only_between_queries_make_no_usable_evaluator() -> None:
    """The correlation over all responses is high, and says nothing about which one is better."""
    random = np.random.default_rng(1)
    level = np.repeat(random.uniform(1.0, 9.0, 40), 4)
    labels = np.round(level + random.normal(size=160)).tolist()
    table = replace(
        labeled([f"q{place // 4}" for place in range(160)], labels),
        about_responses=(CORRECT,),
        answers=(level / 10.0 + random.normal(0.0, 0.1, 160))[:, None],
    )
    found = cross_validate(table, SETTINGS.model_copy(update={"gold": "labels"}))
    assert found.arms[WITH].figures["rho"].low > 0.5
    verdict = evaluator_verdict(figures_of(found, ""))
    assert not verdict.usable
    assert "ranking responses to the same query: +0." in verdict.words


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


def test_cut_points_of_another_column_are_learned_like_those_of_the_single_prompt() -> None:
    """The same column gives the same arm; a better one is ahead, though no other arm uses it."""
    table = PLANTED.table
    told = Perspective("Do the votes say so?")
    more = replace(
        table,
        about_responses=(*table.about_responses, told),
        answers=np.column_stack([table.answers, 0.1 * table.gold]),
    )
    found = cross_validate(
        more,
        SETTINGS,
        overall=CORRECT.id,
        columns={"again": CORRECT.id, "votes": told.id},
        kept=[each.id for each in table.about_responses],
    )
    fitted = found.arms[SINGLE_FITTED["pairs"]]
    assert found.arms["again"].outcome.tolist() == fitted.outcome.tolist()
    assert found.arms["again"].gain == fitted.gain
    assert found.arms["votes"].figures["accuracy"].value == 1.0
    assert found.arms[WITHOUT].figures["accuracy"].value < 1.0
