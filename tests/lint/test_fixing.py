"""What is taken of an author's new questions: the rules that flag items hold for them too."""

from __future__ import annotations

import pytest

from rocketeval.errors import ChecklistError
from rocketeval.lint.findings import KINDS, make_finding
from rocketeval.lint.item_text import Context
from rocketeval.lint.rewrite import (
    OFFERED,
    RewriteAttempts,
    RewriteRequest,
    find_problems,
    gather_requests,
    with_rewrites,
)
from rocketeval.records import Checklist, Query

ITEMS = (
    "Does the response name Paris?",
    "Does the response fail to name the river?",
    "Does the response say when the tower was built?",
    "How well is it explained?",
)


def request(*numbers: int, items: tuple[str, ...] = ITEMS) -> RewriteRequest:
    """A request to rewrite these items."""
    findings = {
        number: [make_finding("q", number, items[number - 1], "vague", "why")] for number in numbers
    }
    return RewriteRequest(
        Checklist("q", items), Query("q", "Tell me about Paris."), ("q",), findings
    )


def problems(asked: RewriteRequest, *new: str | None) -> dict[int, str]:
    """What is wrong with new questions, in the items' order."""
    return find_problems(asked, dict(zip(asked.numbers, new, strict=True)), Context())


def test_a_good_question_and_a_drop_have_no_problem() -> None:
    """Both are taken as they are."""
    assert problems(request(2, 4), "Does the response name the river?", None) == {}


def test_a_flagged_question_is_refused_for_its_kind() -> None:
    """By the rules of lint, whatever the old item was flagged for."""
    found = problems(request(2, 4), "Does the response avoid?", "What is the river's name?")
    assert "not_yes_no" in found[4]


def test_the_old_question_is_refused() -> None:
    """Also with other blanks; what answers show would never be seen in its words."""
    found = problems(request(1), "Does the  response name Paris?")
    assert found == {1: "it is the old question unchanged"}


def test_a_question_that_repeats_another_is_refused() -> None:
    """An earlier item, a later one that stays, and another new one."""
    assert "item 1" in problems(request(2), "Does the response mention Paris?")[2]
    later = problems(request(2), "Does the response say when the tower was built?")
    assert later == {2: "it asks the same as item 3"}
    both = problems(request(2, 4), "Is the river Seine named?", "Is the river Seine named?")
    assert both == {4: "it asks the same as item 2"}


def test_a_checklist_keeps_an_item() -> None:
    """Nobody can drop them all."""
    asked = request(1, 2, items=ITEMS[:2])
    attempts = RewriteAttempts(asked, Context())
    with pytest.raises(ChecklistError, match="one must stay at least"):
        attempts.read("1. DROP\n2. DROP")
    salvaged = attempts.salvage()
    assert salvaged is not None
    assert salvaged.new == {}
    assert "lose all its items" in salvaged.left[1]
    assert RewriteAttempts(asked, Context()).read("1. DROP\n2. Is the river named?").new[1] is None


def test_the_best_of_several_attempts_is_taken() -> None:
    """Good questions of the list with fewest flagged ones; the others stay, with the reason."""
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


def test_an_item_that_goes_back_can_take_another_with_it() -> None:
    """Item 2 would have taken the words of item 1, which stays after all."""
    attempts = RewriteAttempts(request(1, 2), Context())
    with pytest.raises(ChecklistError):
        attempts.read("1. How good is it?\n2. Does the response name Paris?")
    salvaged = attempts.salvage()
    assert salvaged is not None
    assert salvaged.new == {}
    assert "asks the same as item 1" in salvaged.left[2]


def test_nothing_readable_leaves_nothing() -> None:
    """Then the checklist has failed as a whole."""
    attempts = RewriteAttempts(request(2), Context())
    with pytest.raises(ChecklistError):
        attempts.read("Sorry.")
    assert attempts.salvage() is None


def test_groups_and_the_rest_stay_with_their_items() -> None:
    """What the checklist is about, its author, and each item's group."""
    old = Checklist("q", ("a", "b", "c"), "me", ("x", "y", "z"), "about it")
    new = with_rewrites(old, {1: "A", 2: None})
    assert new == Checklist("q", ("A", "c"), "me", ("x", "z"), "about it")


def test_requests_are_by_checklist_and_in_order() -> None:
    """One a query, or one without any query where all share."""
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


def test_labels_and_candidates_do_not_write_checklists_unasked() -> None:
    """What answers of these candidates, this judge or labels show is offered only if named."""
    unasked = set(KINDS) - set(OFFERED)
    assert unasked == {
        "against_labels",
        "always_yes",
        "never_yes",
        "same_for_all",
        "redundant",
        "unsure",
    }
