"""The description of an evaluator matches what it learned."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from evolve.planted import WHICH_TYPE, planted_pairs
from rocketeval.errors import ArtifactError
from rocketeval.evolve.describe import MOST_TRAITS, describe_evaluator, distinguishing
from rocketeval.evolve.evaluator import Evaluator, fit_mixture
from rocketeval.evolve.forest import ForestSettings
from rocketeval.evolve.perspective import PerspectiveKind
from rocketeval.evolve.result import Described, DescribedProvenance, DescribedTrait
from rocketeval.evolve.select import Router
from rocketeval.evolve.validate import SINGLE, WITH, WITHOUT
from rocketeval.records import JudgeFingerprint
from rocketeval.store.codec import decode, encode

SURE = {"value": 0.7, "low": -0.6, "high": None}
JUDGE = JudgeFingerprint("scripted", "tiny", "chat", "1", "top20", "t", "r")


@pytest.fixture(scope="module")
def evaluator() -> Evaluator:
    """Two experts, one per query type."""
    table = planted_pairs(queries=40, idle=2).table
    ids = [each.id for each in table.about_queries]
    weights = np.array([1.0 if each in WHICH_TYPE else 0.1 for each in table.about_queries])
    router = Router.fit(ids, table.traits, weights, 2, seed=0)
    mixture = fit_mixture(
        table, router, lambda *_: ForestSettings(n_estimators=10), 0, mirrored=True
    )
    notes = {
        "benchmark": "planted",
        "counts": {"cases": len(table)},
        "standings": {each.id: [0.4, 0.8] for each in table.about_responses},
    }
    return Evaluator(
        "each", table.about_responses, table.about_queries, mixture, {"a": JUDGE, "b": JUDGE}, notes
    )


def arm(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "figures": {"accuracy": SURE}, "gain": SURE, "lead": SURE, **more}


def figures(*arms: dict[str, Any]) -> dict[str, Any]:
    return {
        "measure": "accuracy",
        "cases": 1200,
        "queries": 300,
        "experts": [1],
        "overall": "Is it good?",
        "arms": list(arms),
    }


def test_description_is_complete_json(evaluator: Evaluator) -> None:
    """Perspectives in column order with their weights, and the judge."""
    described = describe_evaluator(evaluator)
    assert decode(Described, json.loads(json.dumps(encode(described)))) == described
    assert (described.decides, described.asking, described.measure) == ("pairs", "each", "accuracy")
    kinds = [each.kind for each in described.perspectives]
    assert kinds == sorted(kinds, reverse=True)
    own = evaluator.about_responses
    assert [each.id for each in described.perspectives[: len(own)]] == [each.id for each in own]
    weighed = [(each.importance, each.stability) for each in described.perspectives]
    assert weighed[: len(own)] == [(0.4, 0.8)] * len(own)
    assert set(weighed[len(own) :]) == {(None, None)}
    assert described.provenance == DescribedProvenance(
        created="", benchmark="planted", cases=160, rounds=None, judge="tiny"
    )


def test_first_trait_of_each_expert_is_its_planted_type(evaluator: Evaluator) -> None:
    """Each expert has another query type."""
    described = describe_evaluator(evaluator)
    types = {each.id for each in WHICH_TYPE}
    first = [expert.traits[0] for expert in described.experts]
    assert {trait.perspective for trait in first} <= types
    for expert, trait in zip(described.experts, first, strict=True):
        assert sum(expert.attention) == pytest.approx(1.0, abs=1e-4)
        assert trait.share is not None
        assert trait.usual is not None
        assert (trait.apart > 0) == (trait.share > trait.usual)
        assert len(expert.traits) <= MOST_TRAITS
    assert [expert.size for expert in described.experts] == [None, None]


def test_router_weights_cover_query_perspectives(evaluator: Evaluator) -> None:
    """All of them, largest first."""
    described = describe_evaluator(evaluator).router
    weights = [each.weight for each in described]
    assert weights == sorted(weights, reverse=True)
    about_queries = {each.id for each in evaluator.about_queries}
    assert {each.perspective for each in described} == about_queries
    assert all(each.kind is PerspectiveKind.QUERY for each in evaluator.about_queries)


def test_traits_use_weights_and_expert_sizes() -> None:
    """Shares are centroids divided by weights; zero weights and equal shares are left out."""
    weights = np.array([1.0, 0.1, 0.0, 0.5])
    shares = np.array([[0.8, 1.0, 0.0, 0.5], [0.4, 0.0, 0.0, 0.5]])
    router = Router(("a", "b", "c", "d"), weights, weights * shares, 0.3)
    assert distinguishing(router, 0) == (
        DescribedTrait(perspective="a", apart=0.2, share=0.8, usual=0.6),
        DescribedTrait(perspective="b", apart=0.05, share=1.0, usual=0.5),
    )
    [first, _] = distinguishing(router, 1, [30, 10])
    assert first == DescribedTrait(perspective="a", apart=-0.3, share=0.4, usual=0.7)


def test_single_expert_has_no_traits() -> None:
    """It judges all queries."""
    router = Router(("a",), np.array([1.0]), np.array([[0.3]]), 0.0)
    assert distinguishing(router, 0) == ()


def test_own_figure_comes_first(evaluator: Evaluator) -> None:
    """Each arm has its gain over no experts, and a single prompt its question."""
    found = figures(arm(SINGLE), arm(WITHOUT), arm(WITH))
    described = describe_evaluator(evaluator.documented({}, {"figures": found})).figures
    assert [(each.name, each.own) for each in described] == [
        ("this evaluator", True),
        (SINGLE, False),
        (WITHOUT, False),
    ]
    assert encode(described[0].value) == SURE
    gain = "+70.0 points over no experts (\N{MINUS SIGN}60.0 to ?)"
    assert [each.note for each in described] == [
        f"1,200 cases of 300 queries; {gain}",
        f"Is it good?; {gain}",
        "",
    ]


def test_nan_figure_is_missing(evaluator: Evaluator) -> None:
    """JSON cannot store NaN."""
    nothing = {"value": None, "low": None, "high": None}
    found = figures(arm(WITH, figures={"accuracy": nothing}, gain=nothing))
    [described] = describe_evaluator(evaluator.documented({}, {"figures": found})).figures
    assert (described.value, described.note) == (None, "1,200 cases of 300 queries")


def test_confidence_and_cost_are_described(evaluator: Evaluator) -> None:
    """Lowest threshold first; a case on its own, on the benchmark, and with one question."""
    row = {"threshold": 0.5, "coverage": 0.4, "cases": 40, "accuracy": SURE}
    load = {"calls": 12.0, "prompt_tokens": 3456.4, "money": 0.00123}
    notes = {
        "confidence": [row, {**row, "threshold": 0.0, "accuracy": None}],
        "cost": {
            "case": "pair",
            "about_responses": 12,
            "about_queries": 0,
            "alone": load,
            "here": {**load, "calls": 7.25, "money": None},
            "single": {"calls": 1.0, "prompt_tokens": None, "money": None},
            "currency": "USD",
        },
    }
    described = describe_evaluator(evaluator.documented({}, notes))
    assert encode(described.confidence) == [{**row, "threshold": 0.0, "accuracy": None}, row]
    assert [words for _, words in described.cost] == [
        "12 questions to the judge, 3,456 prompt tokens, 0.0012 USD",
        "7.2 questions to the judge, 3,456 prompt tokens",
        "1 question to the judge",
    ]
    assert described.cost[0][0] == "one pair on its own"


def test_ancestors_exclude_used_perspectives(evaluator: Evaluator) -> None:
    """With sizes and rounds from the provenance."""
    old = {"text": "Is it good?", "kind": "response", "origin": "transfer", "form": "choice"}
    used = evaluator.about_responses[0].id
    notes = {
        "ancestors": [{"id": "old", **old}, {"id": used, **old}],
        "cases by expert": [7, 5],
        "rounds": [{}, {}],
    }
    described = describe_evaluator(evaluator.documented({}, notes))
    assert [each.id for each in described.ancestors] == ["old"]
    assert [expert.size for expert in described.experts] == [7, 5]
    assert described.provenance.rounds == 2


@pytest.mark.parametrize(
    "notes",
    [
        {"figures": {"arms": 3}},
        {"confidence": [{"threshold": 0.1}]},
        {"standings": []},
        {"cases by expert": [1]},
        {"cost": "much"},
    ],
)
def test_unreadable_provenance_is_an_error(evaluator: Evaluator, notes: dict[str, Any]) -> None:
    """A file may contain anything."""
    with pytest.raises(ArtifactError, match="provenance cannot be read"):
        describe_evaluator(evaluator.documented({}, notes))
