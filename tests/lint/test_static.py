"""Static checks: bad items are found, good ones and other languages are not flagged."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from lint.bad_items import ALONE, TWINS
from lint.good_items import DIFFERENT, ITEMS
from lint.held_back_items import BAD
from rocketeval.lint.findings import KINDS, ItemFinding, Severity
from rocketeval.lint.static import CHECKS, check_checklists
from rocketeval.records import Checklist, Query, Turn


def findings(*items: str, query: str | None = None, **settings: object) -> tuple[ItemFinding, ...]:
    """Return the findings on a checklist of these items."""
    queries = None if query is None else {"q": Query("q", query)}
    candidates = settings.get("candidates", ())
    assert isinstance(candidates, tuple)
    return check_checklists([Checklist("q", items)], queries, candidates).findings


def kinds(*items: str, query: str | None = None) -> set[str]:
    """Return the kinds of the findings."""
    return {found.kind for found in findings(*items, query=query)}


def test_there_are_enough_bad_and_good_items() -> None:
    """At least 60 of each, of at least eight kinds with five items each."""
    every = {**ALONE, **TWINS}
    assert sum(map(len, every.values())) >= 60
    assert len(every) >= 8
    assert all(len(items) >= 5 for items in every.values())
    assert len(ITEMS) >= 60
    assert {*CHECKS, "duplicate", "near_duplicate"} == every.keys()


@pytest.mark.parametrize("kind", ALONE)
def test_bad_item_has_the_finding_of_its_kind(kind: str) -> None:
    """Every item has a finding of that kind, with advice."""
    for item in ALONE[kind]:
        found = {each.kind: each for each in findings(item)}
        assert kind in found, item
        assert found[kind].severity is KINDS[kind].severity
        assert found[kind].why.endswith((".", "?`"))


@pytest.mark.parametrize("kind", TWINS)
def test_duplicate_is_found_and_names_the_first(kind: str) -> None:
    """The second of two is flagged, the first is not."""
    for pair in TWINS[kind]:
        found = findings(*pair)
        assert [(each.item, each.kind) for each in found] == [(2, kind)], pair
        assert "item 1" in found[0].why


@pytest.mark.parametrize("item", ITEMS)
def test_good_item_is_not_flagged(item: str) -> None:
    """Also one that resembles a bad one, and one in another language."""
    assert not findings(item)


@pytest.mark.parametrize("pair", DIFFERENT)
def test_similar_but_different_items_are_not_flagged(pair: tuple[str, str]) -> None:
    """One different word on each side makes two questions."""
    assert not findings(*pair)


def test_checks_generalize_to_new_items() -> None:
    """Of bad items written after the checks, at least 85% are found."""
    every = [item for items in BAD.values() for item in items]
    assert sum(bool(findings(item)) for item in every) >= 0.85 * len(every)


@pytest.mark.parametrize(
    ("item", "query", "kind"),
    [
        ("Does the story contain three contradictions?", "Write a story with contradictions.", ""),
        ("Does the reply contain lies?", "Play a politician who tells lies.", ""),
        ("Does the reply contain lies?", "Answer, without lies.", "yes_is_worse"),
        ("Does the response quote the reference?", "Use the reference below: ...", ""),
        ("Does the response quote the reference?", "Who wrote Faust?", "reference"),
        ("Does the response call GPT-4 a language model?", "What is GPT-4?", ""),
        ("Is the question hard to guess?", "Write a question for a quiz.", ""),
        ("Does the response keep {name} as it is?", "Translate, but keep {name}.", ""),
    ],
)
def test_items_may_mention_what_the_query_mentions(item: str, query: str, kind: str) -> None:
    """A task about references, lies or models has items about them."""
    assert kinds(item, query=query) == ({kind} if kind else set())


def test_history_counts_as_part_of_the_query() -> None:
    """Earlier turns are context, too."""
    query = Query("q", "Go on.", history=(Turn("user", "Use the reference I sent."),))
    checklist = Checklist("q", ("Does the response quote the reference?",))
    assert not check_checklists([checklist], {"q": query}).findings


def test_candidate_names_are_flagged() -> None:
    """Names of the run's candidates are flagged; short ones may be other words."""
    item = "Does solid-v2 name the capital?"
    assert not findings(item)
    assert {each.kind for each in findings(item, candidates=("solid-v2", "is"))} == {"candidate"}


def test_non_english_items_are_counted() -> None:
    """Skipped checks are counted, and language-independent checks still run."""
    items = ("\u5bf9\u5417\uff1f", "\u5bf9\u5417\uff1f", "Is the tone formal?", "")
    found = check_checklists([Checklist("q", items)])
    assert found.not_english == 2
    assert [(each.item, each.kind) for each in found.findings] == [(2, "duplicate"), (4, "empty")]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "\u56de\u7b54\u662f\u5426\u63d0\u5230\u4e86\u6625\u5929\u7684\u82b1\uff1f",
            "\u56de\u7b54\u662f\u5426\u63d0\u5230\u4e86\u79cb\u5929\u7684\u82b1\uff1f",
        ),
        (
            "\u56de\u7b54\u306f\u6771\u4eac\u306e\u4eba\u53e3\u3092\u8ff0\u3079\u3066\u3044\u307e\u3059\u304b\uff1f",
            "\u56de\u7b54\u306f\u5927\u962a\u306e\u4eba\u53e3\u3092\u8ff0\u3079\u3066\u3044\u307e\u3059\u304b\uff1f",
        ),
    ],
    ids=["spring or autumn", "Tokyo or Osaka"],
)
def test_questions_without_spaces_are_not_compared_as_words(one: str, other: str) -> None:
    """A sentence is one long word there: only exact duplicates are found."""
    assert not findings(one, other)
    assert [(each.item, each.kind) for each in findings(one, other, one)] == [(3, "duplicate")]


def test_one_cause_is_one_finding() -> None:
    """A statement has no question mark, but that is not a second finding."""
    assert kinds("The response names Paris.") == {"not_yes_no"}
    assert kinds("Polite") == {"too_short"}


@pytest.mark.parametrize(
    "item",
    [
        "does the and the " * 170,
        "is it too " * 280,
        "is the response " + "a, " * 900 + "and b?",
        "(" * 2_900,
        "are there " + "any or " * 400 + "?",
        "does the \x1b[31m\u202e\x00 response?",
        "x" * 1_000_000,
    ],
)
def test_hostile_item_is_checked_fast(item: str) -> None:
    """No text makes the patterns search for long."""
    started = time.process_time()
    findings(item, item + "?")
    assert time.process_time() - started < 10.0


def test_severity_follows_the_kind() -> None:
    """Errors are items that measure nothing or the wrong thing."""
    assert KINDS["yes_is_worse"].severity is Severity.ERROR
    assert KINDS["double_barrelled"].severity is Severity.WARNING


def test_docs_list_every_kind() -> None:
    """docs/howto/lint.md has a row for each kind, with its severity."""
    page = (Path(__file__).parents[2] / "docs" / "howto" / "lint.md").read_text(encoding="utf-8")
    for kind, about in KINDS.items():
        assert f"| `{kind}` | {about.severity} |" in page
