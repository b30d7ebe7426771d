"""Checklists that come with the benchmark are handed out, or their absence is named."""

from __future__ import annotations

import pytest

from rocketeval.checklists.base import create_author
from rocketeval.config import AuthorConfig
from rocketeval.errors import ChecklistError
from rocketeval.records import Checklist, Query, Usage

GIVEN = {
    "q1": Checklist("q1", ("Is it?",)),
    "empty": Checklist("empty", ()),
    "blank": Checklist("blank", ("Is it?", "  ")),
}


async def test_a_checklist_is_handed_out_unchanged() -> None:
    """The very record of the benchmark, for nothing."""
    author = create_author(AuthorConfig(), GIVEN)
    await author.prepare()
    assert await author.write(Query("q1", "text")) is GIVEN["q1"]
    assert author.usage == Usage()
    assert not author.costly
    await author.aclose()


@pytest.mark.parametrize(
    ("query_id", "said"),
    [
        ("absent", "the benchmark has no checklist for it."),
        ("empty", "its checklist is empty or has an empty item."),
        ("blank", "its checklist is empty or has an empty item."),
    ],
)
async def test_what_cannot_be_graded_is_named(query_id: str, said: str) -> None:
    """A blank item would be graded as a question about nothing."""
    with pytest.raises(ChecklistError) as refused:
        await create_author(AuthorConfig(), GIVEN).write(Query(query_id, "text"))
    assert refused.value.message == said


async def test_a_benchmark_without_any_checklist_says_what_to_do() -> None:
    """The first thing a new user meets: the hint names the setting that helps."""
    with pytest.raises(ChecklistError, match="no checklists") as refused:
        await create_author(AuthorConfig(), {}).prepare()
    assert "author.kind: instance" in refused.value.hint
