"""Which method to prefer: the best, whether its lead may be chance, and what costs less."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from rocketeval.audit.figures import LONGER
from rocketeval.audit.methods import MethodAdvice, advise_method
from rocketeval.config import RankingConfig
from rocketeval.grid import ScoreGrid
from rocketeval.records import Gold, Label, Rating, Usage, Vote

QUERIES = tuple(f"q{number}" for number in range(40))
RANKING = RankingConfig(bootstrap=200)
VOTES = [Vote(query, "a", "b", "a") for query in QUERIES]


def grid(right: int) -> ScoreGrid:
    """Scores that prefer a on the first so many queries, and b on the others."""
    wins = np.arange(len(QUERIES)) < right
    scores = np.where(wins[:, None], (8.0, 2.0), (2.0, 8.0))
    # A little apart, so that ranks within a and within b are not all tied.
    return ScoreGrid(QUERIES, ("a", "b"), scores + np.linspace(0, 0.5, len(QUERIES))[:, None])


def advise(
    right: Mapping[str, int],
    gold: Gold,
    costs: Mapping[str, int] | None = None,
    longer: int = 20,
) -> MethodAdvice | None:
    """The advice on methods that are right so often; costs are in prompt tokens."""
    grids = {name: grid(count) for name, count in right.items()}
    usages = {name: Usage(prompt_tokens=(costs or {}).get(name, 1000)) for name in right}
    return advise_method(grids, grid(longer), usages, gold, RANKING)


def test_a_clear_lead_is_said_to_be_one() -> None:
    """Its interval leaves out zero."""
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
    assert found.told.startswith("Prefer strong: it agrees with 97.5% of 40 decided votes, more")
    assert "by 42.5 points (" in found.told
    assert "chance" not in found.told


def test_a_small_lead_may_be_chance() -> None:
    """The best is named, and so is the doubt."""
    found = advise({"one": 36, "two": 35}, Gold(votes=VOTES))
    assert found is not None
    assert (found.best, found.clear) == ("one", False)
    assert "but its lead over the next, two, may be chance: 2.5 points (" in found.told


def test_cheaper_methods_that_do_as_well_are_named() -> None:
    """The cheapest first; one that is clearly worse, or hardly cheaper, is not."""
    costs = {"best": 1000, "half": 500, "tenth": 100, "bad": 10, "dear": 900}
    right = {"best": 37, "half": 36, "tenth": 36, "bad": 21, "dear": 36}
    found = advise(right, Gold(votes=VOTES), costs)
    assert found is not None
    assert found.cheaper == ("tenth", "half")
    assert "tenth, half cost less and cannot be told apart from it here." in found.told


def test_tokens_from_a_cache_cost_nothing() -> None:
    """What the judge has to compute is what counts, and what it writes."""
    grids = {"many": grid(36), "long": grid(37)}
    usages = {"many": Usage(9, 9000, 8900, 9), "long": Usage(1, 900, 0, 400)}
    found = advise_method(grids, grid(20), usages, Gold(votes=VOTES), RANKING)
    assert found is not None
    assert found.cheaper == ("many",)


def test_a_method_no_better_than_length_is_warned_of() -> None:
    """Also when it beats all other methods."""
    found = advise({"one": 38, "two": 20}, Gold(votes=VOTES), longer=38)
    assert found is not None
    assert found.rule == LONGER
    assert found.clear
    assert (
        f"It is not clearly better than '{LONGER}', which reads nothing: 0.0 points" in found.told
    )
    assert found.told.startswith("one does best: ")
    assert found.told.endswith("Trust none of them here yet.")


def test_votes_that_are_all_ties_decide_with_ties() -> None:
    """Who calls a tie where people do is best."""
    ties = [Vote(query, "a", "b", "tie") for query in QUERIES]
    equal = ScoreGrid(QUERIES, ("a", "b"), np.full((40, 2), 5.0))
    grids = {"apart": grid(20), "equal": equal}
    found = advise_method(grids, grid(20), dict.fromkeys(grids), Gold(votes=ties), RANKING)
    assert found is not None
    assert (found.best, found.by, found.figure) == ("equal", "votes", 1.0)


def test_labels_decide_where_there_are_no_votes() -> None:
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
    assert "its Spearman is 1.00 over 80 labelled responses" in found.told


def test_ratings_alone_settle_nothing() -> None:
    """A handful of candidates gives no interval, so that no lead is clear."""
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
    assert found.told.endswith("but its lead over the next, x, may be chance.")


def test_one_method_is_compared_with_nothing_but_rules() -> None:
    """It is not called the best of one."""
    found = advise({"only": 39}, Gold(votes=VOTES))
    assert found is not None
    assert found.next is None
    assert found.told.startswith("Only only is compared: it agrees with 97.5%")


@pytest.mark.parametrize("gold", [Gold(), Gold(votes=[Vote("?", "a", "b", "a")])])
def test_without_gold_there_is_no_advice(gold: Gold) -> None:
    """Votes on other responses are none."""
    assert advise({"one": 30, "two": 20}, gold) is None


def test_methods_whose_tokens_nobody_tells_are_not_called_cheaper() -> None:
    """Nothing is not less than nothing."""
    costs = {"one": 0, "two": 0}
    found = advise({"one": 36, "two": 35}, Gold(votes=VOTES), costs)
    assert found is not None
    assert found.cheaper == ()


def test_two_that_do_the_same_have_no_lead() -> None:
    """Not even one by chance."""
    found = advise({"one": 36, "two": 36}, Gold(votes=VOTES))
    assert found is not None
    assert "40 decided votes, and two does just the same." in found.told
    assert "chance" not in found.told


@pytest.mark.parametrize("by_votes", [True, False])
def test_the_best_of_many_must_be_surer_than_one(by_votes: bool) -> None:
    """Of many methods one is always the best: its interval above a rule is wider for that."""
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
