"""Checks of an author's new questions, by the same rules as lint."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rocketeval.config import AuthorConfig, EngineConfig
from rocketeval.engines.base import WrittenText
from rocketeval.engines.scripted import ScriptedEngine
from rocketeval.errors import ChecklistError, EngineRefused, UnusableReply
from rocketeval.items import PLAIN, parse_item
from rocketeval.lint.findings import KINDS, make_finding
from rocketeval.lint.item_text import Context
from rocketeval.lint.rewrite import (
    OFFERED,
    RewriteAttempts,
    Rewriter,
    RewriteRequest,
    find_problems,
    gather_requests,
    rewrite_all,
    with_rewrites,
)
from rocketeval.observer import Observer
from rocketeval.records import Checklist, Query, Usage
from rocketeval.store.journal import AuthoredJournal

ITEMS = (
    "Does the response name Paris?",
    "Does the response fail to name the river?",
    "Does the response say when the tower was built?",
    "How well is it explained?",
)


def request(*numbers: int, items: tuple[str, ...] = ITEMS) -> RewriteRequest:
    """Return a request to rewrite these items."""
    findings = {
        number: [make_finding("q", number, items[number - 1], "vague", "why")] for number in numbers
    }
    return RewriteRequest(
        Checklist("q", items), Query("q", "Tell me about Paris."), ("q",), findings
    )


def problems(asked: RewriteRequest, *new: str | None) -> dict[int, str]:
    """Return the problems of new questions, in item order."""
    return find_problems(asked, dict(zip(asked.numbers, new, strict=True)), Context())


def test_good_question_and_drop_have_no_problem() -> None:
    """Both are used unchanged."""
    assert problems(request(2, 4), "Does the response name the river?", None) == {}


def test_flagged_question_is_rejected_by_kind() -> None:
    """By the checks of lint, for any kind of the old item."""
    found = problems(request(2, 4), "Does the response avoid?", "What is the river's name?")
    assert "not_yes_no" in found[4]


def test_question_may_name_the_reference_that_its_item_uses() -> None:
    """The checks that do not apply to an item do not apply to its new question."""
    asked = request(2)
    detail = parse_item({"text": ITEMS[1], "uses": ["reference"]}).detail
    details = (PLAIN, detail, PLAIN, PLAIN)
    seen = replace(asked, checklist=replace(asked.checklist, details=details))
    new = "Does the response agree with the reference answer?"
    assert "reference" in problems(asked, new)[2]
    assert problems(seen, new) == {}


def test_unchanged_question_is_rejected() -> None:
    """Also with different spaces, even if its text alone would not be flagged."""
    found = problems(request(1), "Does the  response name Paris?")
    assert found == {1: "it is the old question unchanged"}


def test_duplicate_question_is_rejected() -> None:
    """Of an earlier item, a later unchanged one, and another new one."""
    assert "item 1" in problems(request(2), "Does the response mention Paris?")[2]
    later = problems(request(2), "Does the response say when the tower was built?")
    assert later == {2: "it asks the same as item 3"}
    both = problems(request(2, 4), "Is the river Seine named?", "Is the river Seine named?")
    assert both == {4: "it asks the same as item 2"}


def test_checklist_keeps_at_least_one_item() -> None:
    """Not all items can be dropped."""
    asked = request(1, 2, items=ITEMS[:2])
    attempts = RewriteAttempts(asked, Context())
    with pytest.raises(ChecklistError, match="one must stay at least"):
        attempts.read("1. DROP\n2. DROP")
    salvaged = attempts.salvage()
    assert salvaged is not None
    assert salvaged.new == {}
    assert "lose all its items" in salvaged.left[1]
    assert RewriteAttempts(asked, Context()).read("1. DROP\n2. Is the river named?").new[1] is None


def test_best_of_several_attempts_is_used() -> None:
    """Good questions of the best reply are used; the others stay, with the reason."""
    attempts = RewriteAttempts(request(2, 4), Context())
    for text in (
        "2. Does the response name the river?\n4. How well?",
        "2. Does the response fail to name it?\n4. How well is it explained?",
        "nonsense",
    ):
        with pytest.raises(ChecklistError):
            attempts.read(text)
    salvaged = attempts.salvage()
    assert salvaged is not None
    assert salvaged.new == {2: "Does the response name the river?"}
    assert list(salvaged.left) == [4]
    assert "scale" in salvaged.left[4]


def test_restored_item_can_invalidate_another() -> None:
    """The new item 2 would duplicate item 1, which stays after all."""
    attempts = RewriteAttempts(request(1, 2), Context())
    with pytest.raises(ChecklistError):
        attempts.read("1. How good is it?\n2. Does the response name Paris?")
    salvaged = attempts.salvage()
    assert salvaged is not None
    assert salvaged.new == {}
    assert "asks the same as item 1" in salvaged.left[2]


def test_no_readable_reply_gives_no_result() -> None:
    """The whole checklist has failed."""
    attempts = RewriteAttempts(request(2), Context())
    with pytest.raises(ChecklistError):
        attempts.read("Sorry.")
    assert attempts.salvage() is None


def test_groups_and_metadata_are_kept() -> None:
    """The description of the checklist, its author, and each item's group."""
    old = Checklist("q", ("a", "b", "c"), "me", ("x", "y", "z"), "about it")
    new = with_rewrites(old, {1: "A", 2: None})
    assert new == Checklist("q", ("A", "c"), "me", ("x", "z"), "about it")


def test_one_request_per_checklist_in_order() -> None:
    """One per query, or one without a query for a shared checklist."""
    made = {name: Checklist(name, ITEMS) for name in ("a", "b", "c")}
    queries = {name: Query(name, "?") for name in made}
    findings = [
        make_finding("c", 4, ITEMS[3], "scale", "why"),
        make_finding("a", 3, ITEMS[2], "vague", "why"),
        make_finding("a", 2, ITEMS[1], "vague", "why"),
    ]
    own = gather_requests(findings, made, queries, shared=False)
    assert [(each.name, each.numbers) for each in own] == [("a", (2, 3)), ("c", (4,))]
    [one] = gather_requests(findings[1:], made, queries, shared=True)
    assert (one.query, one.query_ids, one.name) == (None, ("a", "b", "c"), "all 3 queries")


def test_findings_on_candidates_and_labels_are_not_offered_by_default() -> None:
    """Findings that depend on candidates, judge or labels need `--kind`; words fix no weight."""
    unasked = {kind for kind in set(KINDS) - set(OFFERED) if KINDS[kind].wording}
    assert unasked == {
        "check_always",
        "check_failed",
        "check_never",
        "against_labels",
        "always_yes",
        "never_yes",
        "same_for_all",
        "redundant",
        "unsure",
    }


class Broken(ScriptedEngine):
    """An engine whose server answers nothing usable after some texts."""

    def __init__(self, good: int) -> None:
        super().__init__(in_flight=1)
        self.asked, self.good = 0, good

    async def write(self, prompt: str, **settings: Any) -> WrittenText:
        self.asked += 1
        if self.asked > self.good:
            raise UnusableReply("the answer was not JSON (6 times).")
        return WrittenText("2. Is the river named?", Usage(requests=1), finished=True)


async def test_a_server_that_dies_stops_the_rewriting(tmp_path: Path) -> None:
    """After 16 failures in a row no more requests are sent; finished rewrites are kept."""
    requests = [replace(request(2), query=Query("q", f"Question {n}?")) for n in range(60)]
    requests = [
        replace(each, checklist=replace(each.checklist, query_id=f"q{n}"), query_ids=(f"q{n}",))
        for n, each in enumerate(requests)
    ]
    engine = Broken(good=3)
    journal = AuthoredJournal(tmp_path / "authored.jsonl")
    rewriter = Rewriter(AuthorConfig(), EngineConfig(model="m"), engine, journal, ())
    with pytest.raises(EngineRefused, match="16 times in a row") as caught:
        await rewrite_all(requests, rewriter, engine, Observer(), asyncio.Event(), None)
    assert engine.asked == 3 + 16
    assert "no usable reply" in caught.value.message
    assert len(journal.known()) == 3
