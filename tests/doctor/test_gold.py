"""The reference items: balanced, distinct, and asked with the real prompt."""

from __future__ import annotations

import pytest

from rocketeval.doctor.quality import GOLD, GoldCase
from rocketeval.prompts.render import GradingPrompt, Template


def test_yes_and_no_are_balanced() -> None:
    """A judge that prefers yes or no has no advantage."""
    assert sum(len(case.items) for case in GOLD) == 24
    for case in GOLD:
        assert len(case.yes) == len(case.no), case.name


def test_items_and_cases_are_distinct() -> None:
    """There are no duplicate items or cases."""
    items = [item for case in GOLD for item in case.items]
    assert len(set(items)) == len(items)
    assert len({case.name for case in GOLD}) == len(GOLD)


@pytest.mark.parametrize("case", GOLD, ids=lambda case: case.name)
def test_case_is_asked_like_in_a_run(case: GoldCase) -> None:
    """Query and response are in the prefix, and every item begins its suffix."""
    task = case.task(GradingPrompt())
    assert case.query in task.prefix
    assert case.response in task.prefix
    assert [suffix.splitlines()[0] for suffix in task.suffixes] == list(case.items)
    assert task.neutralised == 0


def test_users_template_is_used() -> None:
    """A judge is examined with the user's grading prompt."""
    own = Template("grade", "{{history}}|{{query}}|{{response}}|{{item}} Oui ou non?")
    task = GOLD[1].task(GradingPrompt(own))
    assert task.prefix.startswith("(none: the query opens the conversation)|Name three")
    assert task.suffixes[0].endswith(" Oui ou non?")


def test_salt_makes_an_uncached_prompt() -> None:
    """Two salts differ before the query; without salt the prompt is always the same."""
    prompt = GradingPrompt()
    one, two = (GOLD[0].task(prompt, salt) for salt in ("a", "b"))
    assert one.prefix[: one.prefix.index("Plan a day")] != two.prefix[: two.prefix.index("Plan a")]
    assert one.suffixes == two.suffixes
    assert one.key != two.key
    assert GOLD[0].task(prompt) == GOLD[0].task(prompt)
