"""The benchmark's own checklists are returned, or their absence is reported."""

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


async def test_checklist_is_returned_unchanged() -> None:
    """The benchmark's record itself, at no cost."""
    author = create_author(AuthorConfig(), GIVEN)
    await author.prepare()
    assert await author.write(Query("q1", "text")) is GIVEN["q1"]
    assert author.usage == Usage()
    assert not author.costly
    await author.aclose()


@pytest.mark.parametrize(
    ("query_id", "problem"),
    [
        ("absent", "the benchmark has no checklist for it."),
        ("empty", "its checklist is empty or has an empty item."),
        ("blank", "its checklist is empty or has an empty item."),
    ],
)
async def test_unusable_checklists_are_named(query_id: str, problem: str) -> None:
    """A blank item would be graded as an empty question."""
    with pytest.raises(ChecklistError) as refused:
        await create_author(AuthorConfig(), GIVEN).write(Query(query_id, "text"))
    assert refused.value.message == problem


async def test_missing_checklists_give_a_hint() -> None:
    """The hint names the setting that helps."""
    with pytest.raises(ChecklistError, match="no checklists") as refused:
        await create_author(AuthorConfig(), {}).prepare()
    assert "author.kind: instance" in refused.value.hint
