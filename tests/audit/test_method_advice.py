"""Advice on methods: the best, its lead, and cheaper alternatives."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from rocketeval.audit import methods
from rocketeval.audit.figures import LONGER
from rocketeval.audit.methods import MethodAdvice, advise_method
from rocketeval.config import RankingConfig
from rocketeval.grid import ScoreGrid
from rocketeval.records import Gold, Interval, Label, Rating, Usage, Vote

QUERIES = tuple(f"q{number}" for number in range(40))
RANKING = RankingConfig(bootstrap=200)
VOTES = [Vote(query, "a", "b", "a") for query in QUERIES]


def grid(right: int) -> ScoreGrid:
    """Return scores that prefer a on the first `right` queries, and b on the others."""
    wins = np.arange(len(QUERIES)) < right
    scores = np.where(wins[:, None], (8.0, 2.0), (2.0, 8.0))
    # Small differences, so that ranks are not all tied.
    return ScoreGrid(QUERIES, ("a", "b"), scores + np.linspace(0, 0.5, len(QUERIES))[:, None])


def advise(
    right: Mapping[str, int],
    gold: Gold,
    costs: Mapping[str, int] | None = None,
    longer: int = 20,
) -> MethodAdvice | None:
    """Return the advice on methods with these hit counts; costs are in prompt tokens."""
    grids = {name: grid(count) for name, count in right.items()}
    usages = {name: Usage(prompt_tokens=(costs or {}).get(name, 1000)) for name in right}
    return advise_method(grids, grid(longer), usages, gold, RANKING)


def test_significant_lead_is_reported() -> None:
    """The interval of the lead excludes zero."""
    found = advise({"weak": 22, "strong": 39}, Gold(votes=VOTES))
    assert found is not None
    assert (found.best, found.next, found.by, found.clear) == (
        "strong",
        "weak",
        "decided votes",
        True,
    )
    assert found.lead is not None
    assert found.lead.value == pytest.approx(17 / 40)
    assert found.lead.low > 0
    assert found.told.startswith("Prefer strong: it agrees with 97.5% of 40 decided votes, ")
    assert "significantly better than weak by 42.5 points (" in found.told
    assert "tied" not in found.told


def test_small_lead_is_reported_as_tied() -> None:
    """The best method is named, and so is the tie."""
    found = advise({"one": 36, "two": 35}, Gold(votes=VOTES))
    assert found is not None
    assert (found.best, found.clear) == ("one", False)
    assert "tied with two, a difference of 2.5 points (" in found.told


def test_cheaper_tied_methods_are_named() -> None:
    """Cheapest first; a significantly worse or hardly cheaper method is left out."""
    costs = {"best": 1000, "half": 500, "tenth": 100, "bad": 10, "dear": 900}
    right = {"best": 37, "half": 36, "tenth": 36, "bad": 21, "dear": 36}
    found = advise(right, Gold(votes=VOTES), costs)
    assert found is not None
    assert found.cheaper == ("tenth", "half")
    assert "tenth, half cost less and are tied" in found.told


def test_tokens_from_a_cache_cost_nothing() -> None:
    """Only computed prompt tokens and output tokens count."""
    grids = {"many": grid(36), "long": grid(37)}
    usages = {"many": Usage(9, 9000, 8900, 9), "long": Usage(1, 900, 0, 400)}
    found = advise_method(grids, grid(20), usages, Gold(votes=VOTES), RANKING)
    assert found is not None
    assert found.cheaper == ("many",)


def test_method_tied_with_length_gets_a_warning() -> None:
    """The warning appears even if it beats all other methods."""
    found = advise({"one": 38, "two": 20}, Gold(votes=VOTES), longer=38)
    assert found is not None
    assert found.rule == LONGER
    assert found.clear
    assert f"not significantly better than the baseline '{LONGER}': 0.0 points" in found.told
    assert found.told.startswith("one is best: ")
    assert "Do not rely on" in found.told


def test_votes_that_are_all_ties_decide_with_ties() -> None:
    """The method that predicts ties like people is best."""
    ties = [Vote(query, "a", "b", "tie") for query in QUERIES]
    equal = ScoreGrid(QUERIES, ("a", "b"), np.full((40, 2), 5.0))
    grids = {"apart": grid(20), "equal": equal}
    found = advise_method(grids, grid(20), dict.fromkeys(grids), Gold(votes=ties), RANKING)
    assert found is not None
    assert (found.best, found.by, found.figure) == ("equal", "votes", 1.0)


def test_labels_decide_without_votes() -> None:
    """By Spearman over responses, with the interval of the paired difference."""
    truth = grid(40)
    labels = [
        Label(query, name, float(truth.scores[row, column]))
        for row, query in enumerate(QUERIES)
        for column, name in enumerate("ab")
    ]
    found = advise({"right": 40, "wrong": 10}, Gold(labels=labels))
    assert found is not None
    assert (found.best, found.by, found.gold, found.clear) == ("right", "labels", 80, True)
    assert found.figure == pytest.approx(1.0)
    assert "its Spearman is 1.00 over 80 labeled responses" in found.told


def test_ratings_give_no_significant_lead() -> None:
    """A handful of candidates gives no interval."""
    scores = {"x": [[1.0, 2.0, 3.0]], "y": [[3.0, 2.0, 1.0]]}
    grids = {
        name: ScoreGrid(("q",), ("a", "b", "c"), np.array(own)) for name, own in scores.items()
    }
    ratings = [Rating("a", 3.0), Rating("b", 2.0), Rating("c", 1.0)]
    usages = {"x": Usage(prompt_tokens=1), "y": Usage(prompt_tokens=100)}
    longer = grids["x"]
    found = advise_method(grids, longer, usages, Gold(ratings=ratings), RANKING)
    assert found is not None
    assert (found.best, found.by, found.lead, found.clear) == ("y", "ratings", None, False)
    assert found.cheaper == ()
    assert found.told.endswith("It is tied with x.")


def test_warning_names_the_baseline_that_is_not_beaten(monkeypatch: pytest.MonkeyPatch) -> None:
    """The best baseline is beaten significantly; another one varies more and is not."""
    rules = {"random guess": Interval(0.10, 0.02, 0.18), LONGER: Interval(0.11, -0.01, 0.23)}
    found = methods.MethodsByGold("votes", {"checklist": 0.6}, 120, {}, rules)
    monkeypatch.setattr(methods, "find_best", lambda *_: found)
    advice = advise_method({}, grid(0), {}, Gold(), RANKING)
    assert advice is not None
    assert advice.rule == LONGER
    assert f"not significantly better than the baseline '{LONGER}'" in advice.told


def test_one_method_is_compared_only_with_baselines() -> None:
    """It is not called the best of one."""
    found = advise({"only": 39}, Gold(votes=VOTES))
    assert found is not None
    assert found.next is None
    assert found.told.startswith("Only only was compared: it agrees with 97.5%")


@pytest.mark.parametrize("gold", [Gold(), Gold(votes=[Vote("?", "a", "b", "a")])])
def test_without_reference_data_there_is_no_advice(gold: Gold) -> None:
    """Votes on other responses do not count."""
    assert advise({"one": 30, "two": 20}, gold) is None


def test_methods_with_unknown_tokens_are_not_cheaper() -> None:
    """A cost of zero means unknown."""
    costs = {"one": 0, "two": 0}
    found = advise({"one": 36, "two": 35}, Gold(votes=VOTES), costs)
    assert found is not None
    assert found.cheaper == ()


def test_identical_methods_have_no_lead() -> None:
    """The advice says that results are identical."""
    found = advise({"one": 36, "two": 36}, Gold(votes=VOTES))
    assert found is not None
    assert "two gives identical results" in found.told
    assert "tied" not in found.told


@pytest.mark.parametrize("by_votes", [True, False])
def test_interval_over_baseline_widens_with_the_number_of_methods(by_votes: bool) -> None:
    """The best of many methods is selected, so its interval is wider."""
    labels = [
        Label(query, name, float(grid(40).scores[row, column]))
        for row, query in enumerate(QUERIES)
        for column, name in enumerate("ab")
    ]
    gold = Gold(votes=VOTES) if by_votes else Gold(labels=labels)
    alone = advise({"best": 30}, gold)
    many = advise({"best": 30, **{f"other{count}": 20 for count in range(9)}}, gold)
    assert alone is not None
    assert many is not None
    assert alone.above_rule is not None
    assert many.above_rule is not None
    assert many.above_rule.value == alone.above_rule.value
    assert many.above_rule.low < alone.above_rule.low
