"""An author that writes weights, penalties, levels and checks: strictly parsed, kept for later."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rocketeval.checklists.instance import InstanceAuthor
from rocketeval.config import AuthorConfig, EngineConfig
from rocketeval.engines.scripted import ScriptedEngine
from rocketeval.errors import ChecklistError
from rocketeval.items import ItemKind
from rocketeval.records import Query
from rocketeval.store.journal import AuthoredJournal

GOOD: list[dict[str, Any]] = [
    {"text": "Does the response name Paris?", "weight": 5},
    {"text": "Does the response name a wrong river?", "weight": -3},
    {"text": "How well is it explained?", "levels": ["not at all", "in part", "fully"]},
    {"text": "Has at most 50 words", "check": {"fn": "words", "args": {"max": 50}}},
    {"text": "Is the source a recent one?", "na": True},
]
ALL = {"weights": True, "penalties": True, "graded": True, "na": True, "checks": True}


def author(*texts: object, options: dict[str, bool] = ALL) -> tuple[InstanceAuthor, list[str]]:
    """Return an author whose LLM writes these texts in turn, and the prompts it was sent."""
    prompts: list[str] = []

    def write(prompt: str) -> str:
        prompts.append(prompt)
        given = texts[min(len(prompts), len(texts)) - 1]
        return given if isinstance(given, str) else json.dumps(given)

    config = AuthorConfig(
        kind="instance", engine=EngineConfig(engine="scripted", model="big"), options=options
    )
    return InstanceAuthor(config, ScriptedEngine(text=write), "big"), prompts


async def test_everything_asked_for_is_kept() -> None:
    """Weights, penalties, levels, NA and checks become items."""
    made = await author(GOOD)[0].write(Query("q", "Capital of France?"))
    assert [detail.weight for detail in made.every_detail] == [5.0, -3.0, 1.0, 1.0, 1.0]
    assert [detail.kind for detail in made.every_detail[2:4]] == [ItemKind.SCALE, ItemKind.CHECK]
    assert made.every_detail[4].na


async def test_prompt_has_only_the_rules_asked_for() -> None:
    """The prompt explains a field only if the author may use it."""
    plain, (_, prompts) = {"weights": True}, author(GOOD[:1] * 3, options={"weights": True})
    with pytest.raises(ChecklistError):
        await author(GOOD, options=plain)[0].write(Query("q", "x"))
    writer, prompts = author(
        [{"text": f"Is it {n}?", "weight": n} for n in (1, 2, 3)], options=plain
    )
    await writer.write(Query("q", "x"))
    assert '"weight"' in prompts[0]
    assert '"levels"' not in prompts[0]
    assert "{{" not in prompts[0]


MISTAKES: dict[str, tuple[Any, str]] = {
    "prose": ("Here are the items: ...", "not JSON"),
    "an object": ({"items": GOOD}, "not a JSON list"),
    "a text": (["Is it?"], "not a JSON object"),
    "a field": ([{"text": "Is it?", "importance": 3}], "importance"),
    "statement": ([{"text": "It is short."}], "not a question"),
    "open question": ([{"text": "What is it?"}], "Yes or No"),
    "too heavy": ([{"text": "Is it?", "weight": 100}], "weight 100"),
    "zero": ([{"text": "Is it?", "weight": 0}], "weight 0"),
    "unknown check": ([{"text": "x", "check": {"fn": "eval"}}], "no check 'eval'"),
    "wrong argument": ([{"text": "x", "check": {"fn": "words", "args": {"most": 3}}}], "most"),
    "one level": ([{"text": "x", "levels": ["a"]}], "2 to 10 levels"),
    "too few": (GOOD[:2], "2 items"),
    "the same": ([GOOD[0]] * 3, "are the same"),
}


@pytest.mark.parametrize(("text", "part"), MISTAKES.values(), ids=MISTAKES)
async def test_mistakes_are_named_to_the_author(text: Any, part: str) -> None:
    """A wrong list is refused with its mistake, and asked for again."""
    writer, prompts = author(text, GOOD)
    made = await writer.write(Query("q", "x"))
    assert len(made.items) == 5
    assert part in prompts[1]


async def test_paid_rubrics_are_reused(tmp_path: Path) -> None:
    """The journal keeps every detail, so that a list is never paid for twice."""
    made = await author(GOOD)[0].write(Query("q", "x"))
    journal = AuthoredJournal(tmp_path / "authored.jsonl")
    journal.append(b"k" * 16, made)
    assert journal.known()[b"k" * 16].checklist("q") == made


def test_options_are_part_of_the_identity() -> None:
    """Other options are another author; without any, the author is the one of earlier versions."""
    digests = {author(GOOD, options=options)[0].digest for options in ({}, {"weights": True}, ALL)}
    assert len(digests) == 3
