"""Calls and tokens of a verdict, compared with hand counts."""

from __future__ import annotations

import pytest

from rocketeval.config import EvolveConfig, PriceConfig
from rocketeval.evolve.ask import most_questions, questions
from rocketeval.evolve.cases import Case
from rocketeval.evolve.perspective import AnswerFormat, Asking, Perspective, PerspectiveKind, Pool
from rocketeval.evolve.result import QuestionSetUsage, count_cost
from rocketeval.records import Usage

KEPT = [
    Perspective("Is it short?"),
    Perspective("Is it kind?", form=AnswerFormat.GRADED),
    Perspective("Is it good?", form=AnswerFormat.GRADED),
    Perspective("Is it a sum?", PerspectiveKind.QUERY),
]
PAIRS = [Case("q", pair, 1.0) for pair in (("x", "y"), ("x", "z"), ("y", "z"))]
USED = {
    "each-choice": QuestionSetUsage(Usage(requests=2, prompt_tokens=1000), 10),
    "each-graded": QuestionSetUsage(Usage(requests=2, prompt_tokens=2000), 10),
    "pairs-choice": QuestionSetUsage(Usage(requests=2, prompt_tokens=3000), 10),
    "pairs-graded": QuestionSetUsage(Usage(requests=2, prompt_tokens=4000), 10),
    "queries": QuestionSetUsage(Usage(requests=2, prompt_tokens=500), 10),
}


@pytest.mark.parametrize(
    ("asking", "alone", "here", "single"),
    [
        # Three questions per response, one about the query; three pairs share 3 responses.
        ("each", (7, 2 * 500 + 50), (10 / 3, (3 * 500 + 50) / 3), (2, 400)),
        # A pair with three questions, and one about the query; three pairs share the query.
        ("pairs", (4, 1100 + 50), (10 / 3, (3 * 1100 + 50) / 3), (1, 400)),
    ],
)
def test_pairs(
    asking: Asking,
    alone: tuple[float, float],
    here: tuple[float, float],
    single: tuple[float, float],
) -> None:
    """On its own, with shared responses and queries, and with a single prompt."""
    cost = count_cost(KEPT, KEPT[2], PAIRS, asking, USED, None)
    assert (cost.case, cost.about_responses, cost.about_queries) == ("pair", 3, 1)
    for load, expected in ((cost.alone, alone), (cost.here, here), (cost.single, single)):
        assert (load.calls, load.prompt_tokens) == pytest.approx(expected)
        assert load.money is None


def test_single_responses_at_a_price() -> None:
    """One response with three questions, with its cost."""
    cases = [Case("q", (name,), 1.0) for name in "xy"]
    price = PriceConfig(prompt=10.0, completion=0.0, currency="EUR")
    cost = count_cost(KEPT, KEPT[2], cases, "each", USED, price)
    assert cost.case == "response"
    assert cost.alone.calls == 4
    assert cost.here.calls == pytest.approx(3.5)
    assert cost.alone.money == pytest.approx(550 * 10 / 1e6)
    assert cost.currency == "EUR"


def test_judge_without_token_usage() -> None:
    """Calls are known; tokens and money are not."""
    cost = count_cost(KEPT, KEPT[2], PAIRS, "each", {}, PriceConfig(prompt=1.0, completion=1.0))
    assert cost.alone.calls == 7
    assert (cost.alone.prompt_tokens, cost.alone.money) == (None, None)


def test_questions_are_counted_in_advance() -> None:
    """Per response or pair, and once per query."""
    assert questions(KEPT, PAIRS, "each") == 3 * 3 + 1
    assert questions(KEPT, PAIRS, "pairs") == 3 * 3 + 1
    settings = EvolveConfig(most_about_responses=1, most_about_queries=0)
    assert most_questions(Pool(KEPT), PAIRS, settings) == 2 * 3
