"""The items with known answers: balanced, distinct, and asked with the real prompt."""

from __future__ import annotations

import pytest

from rocketeval.doctor.quality import GOLD, GoldCase
from rocketeval.prompts.render import GradingPrompt, Template


def test_yes_and_no_are_balanced() -> None:
    """A judge that prefers yes, no, or one of the responses gains nothing by it."""
    assert sum(len(case.items) for case in GOLD) == 24
    for case in GOLD:
        assert len(case.yes) == len(case.no), case.name


def test_no_item_or_case_is_there_twice() -> None:
    """Every item counts once."""
    items = [item for case in GOLD for item in case.items]
    assert len(set(items)) == len(items)
    assert len({case.name for case in GOLD}) == len(GOLD)


@pytest.mark.parametrize("case", GOLD, ids=lambda case: case.name)
def test_a_case_is_asked_as_a_run_would_ask_it(case: GoldCase) -> None:
    """Query and response stand in the prefix, every item begins its suffix, nothing is disarmed."""
    task = case.task(GradingPrompt())
    assert case.query in task.prefix
    assert case.response in task.prefix
    assert [suffix.splitlines()[0] for suffix in task.suffixes] == list(case.items)
    assert task.neutralised == 0


def test_the_users_own_template_is_used() -> None:
    """A judge is examined with the prompt it will be asked with."""
    own = Template("grade", "{{history}}|{{query}}|{{response}}|{{item}} Oui ou non?")
    task = GOLD[1].task(GradingPrompt(own))
    assert task.prefix.startswith("(none: the query opens the conversation)|Name three")
    assert task.suffixes[0].endswith(" Oui ou non?")


def test_salt_makes_a_prompt_that_is_not_in_a_cache() -> None:
    """Two salts part before the query; without salt the prompt is always the same."""
    prompt = GradingPrompt()
    one, two = (GOLD[0].task(prompt, salt) for salt in ("a", "b"))
    assert one.prefix[: one.prefix.index("Plan a day")] != two.prefix[: two.prefix.index("Plan a")]
    assert one.suffixes == two.suffixes
    assert one.key != two.key
    assert GOLD[0].task(prompt) == GOLD[0].task(prompt)
