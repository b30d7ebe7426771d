"""What a plan lets a stage expect: only of the work it was made for."""

from __future__ import annotations

from typing import Any

from rocketeval.stages.bill import expected_use
from rocketeval.stages.work import identity

WANTED = [b"a", b"b", b"c", b"d"]


def plan(**changes: Any) -> dict[str, Any]:
    """A plan for four judgments."""
    return {
        "made_for": identity(WANTED),
        "to_judge": 4,
        "prompt_tokens": 1000,
        "cost": 0.4,
        "cost_with_reuse": None,
        "tokens_known": "exact",
        **changes,
    }


def test_a_plan_for_this_work_is_expected() -> None:
    """Tokens and money as planned, and exact if they were counted."""
    found = expected_use(plan(), WANTED, 4)
    assert found is not None
    assert (found.prompt_tokens, found.cost, found.exact) == (1000, 0.4, True)
    sampled = expected_use(plan(tokens_known="sampled"), WANTED, 4)
    assert sampled is not None
    assert not sampled.exact


def test_of_a_run_that_goes_on_the_share_is_expected() -> None:
    """A quarter of the judgments is about a quarter of the plan."""
    found = expected_use(plan(), WANTED, 1)
    assert found is not None
    assert (found.prompt_tokens, found.cost, found.exact) == (250, 0.1, False)


def test_a_plan_for_other_work_is_not_used() -> None:
    """Other judgments, more of them, or none left: nothing is expected."""
    assert expected_use(None, WANTED, 4) is None
    assert expected_use(plan(made_for="x"), WANTED, 4) is None
    assert expected_use(plan(to_judge=3), WANTED, 4) is None
    assert expected_use(plan(), WANTED, 0) is None
