"""Items as texts or objects: parsing, mistakes, and what is part of their identity."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from rocketeval.items import Checklist, ItemDetail, ItemKind, parse_item
from rocketeval.prompts.render import shown_checklist, shown_query, shown_response
from rocketeval.records import Query, Response

FULL = {
    "text": "How complete is it?",
    "weight": -2.5,
    "kind": "scale",
    "levels": ["nothing", "half", "all"],
    "na": True,
    "uses": ["context", "response", "reference"],
    "group": "content",
    "tags": ["axis:completeness"],
}


def test_object_has_every_field() -> None:
    """Each field of an object reaches the record, and material is in prompt order."""
    found = parse_item(FULL)
    assert found.text == "How complete is it?"
    assert found.group == "content"
    assert found.detail == ItemDetail(
        -2.5,
        ItemKind.SCALE,
        ("nothing", "half", "all"),
        True,
        ("context", "reference"),
        None,
        ("axis:completeness",),
    )


@pytest.mark.parametrize("given", [FULL, "Is it short?", {"text": "x", "check": {"fn": "json"}}])
def test_items_survive_a_round_trip(given: object) -> None:
    """Written and read again, an item is the same."""
    made = Checklist.from_items("q", [parse_item(given)])
    again = Checklist.from_items(
        "q", [parse_item(item) for item in json.loads(json.dumps(made.to_json()))]
    )
    assert again == made


MISTAKES = {
    "a number": (7, "a text or an object"),
    "blank": ("  ", "empty"),
    "no text": ({"weight": 2}, "'text' is missing"),
    "typo": ({"text": "x", "wieght": 2}, "unknown field 'wieght'. Did you mean 'weight'?"),
    "name of another format": ({"question": "x"}, "Did you mean 'text'?"),
    "unquoted colon": ({"Is the ratio 3": "4 given?"}, "In YAML, a colon followed by a space"),
    "weight in words": ({"text": "x", "weight": "high"}, "weight must be a number"),
    "infinite weight": ({"text": "x", "weight": float("inf")}, "between 1e-06 and 1e"),
    "huge weight": ({"text": "x", "weight": -(10**400)}, "weight must be 0, or between"),
    "tiny weight": ({"text": "x", "weight": 5e-324}, "but is 5e-324"),
    "true as weight": ({"text": "x", "weight": True}, "weight must be a number"),
    "unknown kind": ({"text": "x", "kind": "stars"}, "Valid: yes_no, scale, check"),
    "scale without levels": ({"text": "x", "kind": "scale"}, "levels"),
    "levels without scale": ({"text": "x", "kind": "yes_no", "levels": ["a", "b"]}, "scale"),
    "one level": ({"text": "x", "levels": ["a"]}, "2 to 10 levels"),
    "eleven levels": ({"text": "x", "levels": [f"l{n}" for n in range(11)]}, "2 to 10 levels"),
    "equal levels": ({"text": "x", "levels": ["Good", " good"]}, "same description"),
    "unknown material": ({"text": "x", "uses": ["internet"]}, "uses 'internet' is unknown"),
    "na in words": ({"text": "x", "na": "yes"}, "na must be true or false"),
    "material as text": ({"text": "x", "uses": "context"}, "write [context]"),
    "levels and check": (
        {"text": "x", "levels": ["a", "b"], "check": {"fn": "json"}},
        "'levels' or a 'check', not both",
    ),
    "check as text": ({"text": "x", "check": "regex"}, "such as {fn: words"),
    "check without fn": ({"text": "x", "check": {"args": {}}}, "without 'fn'"),
    "misplaced argument": (
        {"text": "x", "check": {"fn": "words", "max": 5}},
        "{fn: words, args: {max: ...}}",
    ),
    "python function": (
        {"text": "x", "check": {"fn": "os.system"}},
        "cannot name a Python function",
    ),
    "import path": ({"text": "x", "check": {"fn": "os:system"}}, "cannot name a Python function"),
    "forged source": (
        {"text": "x", "check": {"fn": "a", "source": "os:system"}},
        "unknown field 'source' of check",
    ),
    "check with na": ({"text": "x", "na": True, "check": {"fn": "json"}}, "a check has no 'na'"),
}


@pytest.mark.parametrize(("given", "part"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes_are_named(given: object, part: str) -> None:
    """A wrong item is refused with the field and what is valid."""
    with pytest.raises(ValueError, match=re.escape(part)):
        parse_item(given)


def test_plain_items_keep_their_identity() -> None:
    """Plain texts hash as before objects existed; weights and tags change no identity."""
    plain = Checklist("q", ("Is it short?", "Is it right?"))
    assert shown_checklist(plain).hex() == "86c8109baab3aa11b7071ccbb1190451"
    weighed = replace(plain, details=(ItemDetail(3.0), ItemDetail(-1.0, tags=("a",))))
    assert weighed.content_hash == plain.content_hash
    assert shown_checklist(weighed) == shown_checklist(plain)
    assert weighed.scoring_hash != plain.scoring_hash


@pytest.mark.parametrize(
    "detail",
    [
        ItemDetail(na=True),
        ItemDetail(kind=ItemKind.SCALE, levels=("a", "b")),
        ItemDetail(uses=("reference",)),
        parse_item({"text": "x", "check": {"fn": "json"}}).detail,
    ],
)
def test_what_changes_an_answer_changes_the_identity(detail: ItemDetail) -> None:
    """Kind, levels, na, material and check are part of the judgment's identity."""
    plain = Checklist("q", ("Is it short?",))
    assert shown_checklist(replace(plain, details=(detail,))) != shown_checklist(plain)


def test_material_is_part_of_an_identity_only_if_used() -> None:
    """A reference, context or system prompt that no item shows changes nothing."""
    bare = Query("q", "Why?")
    full = Query(
        "q", "Why?", reference="r", context=("c",), system="s", tags=("t",), metadata={"a": 1}
    )
    assert shown_query(bare) == shown_query(full)
    for name in ("reference", "context", "system"):
        assert shown_query(bare, (name,)) != shown_query(full, (name,))
        changed = replace(full, **{name: ("x",) if name == "context" else "x"})
        assert shown_query(changed, (name,)) != shown_query(full, (name,))
    plain, own = Response("q", "c", "Because."), Response("q", "c", "Because.", context=("p",))
    assert shown_response(plain) == shown_response(own)
    assert shown_response(plain, context=True) != shown_response(own, context=True)
