"""The same items for every query, optionally with the query's reference."""

from __future__ import annotations

from typing import Any

import pytest

from rocketeval.checklists.base import create_author
from rocketeval.checklists.simple import REFERENCE, FixedAuthor
from rocketeval.config import AuthorConfig
from rocketeval.errors import ConfigError
from rocketeval.records import Query, Usage


def author(**options: Any) -> FixedAuthor:
    """The author described by a config."""
    made = create_author(AuthorConfig(kind="fixed", options=options), {})
    assert isinstance(made, FixedAuthor)
    return made


async def test_every_query_gets_the_items() -> None:
    """In order, at no cost."""
    fixed = author(items=["Is it right?", "Is it short?"])
    await fixed.prepare()
    for name in ("one", "two"):
        checklist = await fixed.write(Query(name, "text", reference="Because."))
        assert (checklist.query_id, checklist.items) == (name, ("Is it right?", "Is it short?"))
        assert checklist.author == "fixed"
    assert fixed.usage == fixed.most(Query("one", "text")) == Usage()
    assert not fixed.costly
    await fixed.aclose()


async def test_reference_follows_every_item() -> None:
    """The query's own; a query without a reference gets the items alone."""
    fixed = author(items=["How good is it?"], reference=True)
    shown = await fixed.write(Query("q", "text", reference="Because of scattering."))
    assert shown.items == (f"How good is it?\n\n{REFERENCE}\nBecause of scattering.",)
    plain = await fixed.write(Query("p", "text"))
    assert plain.items == ("How good is it?",)


def test_digest_depends_on_all_settings() -> None:
    """Items, their order, and whether references are shown."""
    digests = {
        author(items=["a", "b"]).digest,
        author(items=["b", "a"]).digest,
        author(items=["a", "b"], reference=True).digest,
    }
    assert len(digests) == 3


@pytest.mark.parametrize("options", [{}, {"items": []}, {"items": ["a", " "]}, {"itms": ["a"]}])
def test_items_are_required(options: dict[str, Any]) -> None:
    """No items, an empty item and a misspelled setting are refused."""
    with pytest.raises(ConfigError, match="items"):
        author(**options)
