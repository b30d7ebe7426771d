"""Every check of the library: what passes, what fails, and which arguments are valid."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest

from rocketeval.checks.library import LIBRARY, NotCheckable, check_arguments, run_library

CASES: list[tuple[str, dict[str, Any], str, str | None, bool]] = [
    ("regex", {"pattern": r"\bcat\b"}, "a cat sat", None, True),
    ("regex", {"pattern": r"\bCAT\b"}, "a cat sat", None, False),
    ("regex", {"pattern": r"\bCAT\b", "flags": "i"}, "a cat sat", None, True),
    ("contains", {"text": "Paris"}, "It is Paris.", None, True),
    ("contains", {"text": "paris"}, "It is Paris.", None, False),
    ("contains", {"text": "paris", "ignore_case": True}, "It is Paris.", None, True),
    ("contains", {"text": "Paris", "negate": True}, "It is Paris.", None, False),
    ("equals", {"text": "Paris"}, " Paris\n", None, True),
    ("equals", {"text": "Paris"}, "In Paris", None, False),
    ("contains_all", {"texts": ["a", "b"]}, "b and a", None, True),
    ("contains_all", {"texts": ["a", "c"]}, "b and a", None, False),
    ("contains_any", {"texts": ["x", "a"]}, "b and a", None, True),
    ("starts_with", {"text": "Dear"}, "  Dear Ann,", None, True),
    ("starts_with", {"text": "Dear"}, "Hi Ann,", None, False),
    ("ends_with", {"text": "bye."}, "Good bye.\n", None, True),
    ("words", {"min": 2, "max": 3}, "one two three", None, True),
    ("words", {"max": 2}, "one two three", None, False),
    ("characters", {"min": 4}, "abc", None, False),
    ("json", {}, '{"a": [1, 2]}', None, True),
    ("json", {}, 'Here you are:\n```json\n{"a": 1}\n```\nEnjoy.', None, True),
    ("json", {}, "{'a': 1}", None, False),
    ("json", {}, '{"a": NaN}', None, False),
    ("json_schema", {"schema": {"type": "object", "required": ["a"]}}, '{"a": 1}', None, True),
    ("json_schema", {"schema": {"type": "object", "required": ["b"]}}, '{"a": 1}', None, False),
    ("number", {"value": 42}, "The answer is 42.", None, True),
    ("number", {"value": 42}, "Not 42 but 43", None, False),
    ("number", {"value": 42, "which": "any"}, "Not 42 but 43", None, True),
    ("number", {"value": 3.14, "tolerance": 0.01}, "about 3.1416", None, True),
    ("number", {"value": 1000, "relative": 0.01}, "about 1,005", None, True),
    ("number", {}, "It is 7 apples", "7", True),
    ("number", {"value": 1}, "no figures here", None, False),
    ("equals_reference", {}, " Paris\n", "Paris", True),
    ("equals_reference", {"ignore_case": True}, "PARIS", "Paris", True),
    ("equals_reference", {"ignore_space": False}, "Paris ", "Paris", False),
    ("code_parses", {}, "```python\ndef f():\n    return 1\n```", None, True),
    ("code_parses", {}, "```python\ndef f(:\n```", None, False),
    ("code_parses", {}, "x = 1", None, True),
]


@pytest.mark.parametrize(("name", "args", "response", "reference", "passes"), CASES)
def test_check(
    name: str, args: dict[str, Any], response: str, reference: str | None, passes: bool
) -> None:
    """A check with valid arguments decides as documented."""
    check_arguments(name, args)
    assert run_library(name, args, response, reference) is passes


@pytest.mark.skipif(find_spec("py3langid") is None, reason="needs the extra `checks`")
@pytest.mark.parametrize(
    ("code", "passes"), [("de", True), ("en", False)], ids=["German", "not English"]
)
def test_language(code: str, passes: bool) -> None:
    """The language of a sentence is recognized."""
    text = "Die Katze schläft auf dem warmen Sofa, und draußen regnet es seit heute Morgen."
    assert run_library("language", {"code": code}, text, None) is passes


def test_every_check_has_a_case() -> None:
    """No check of the library is untested."""
    assert {name for name, *_ in CASES} | {"language"} == set(LIBRARY)


def test_missing_reference_is_no_failure_of_the_response() -> None:
    """Without a reference there is nothing to compare with, which is not the same as false."""
    with pytest.raises(NotCheckable, match="no reference"):
        run_library("equals_reference", {}, "Paris", None)
    with pytest.raises(NotCheckable, match="no number"):
        run_library("number", {}, "7", "seven")


@pytest.mark.parametrize(
    ("name", "args", "part"),
    [
        ("regex", {}, "needs the argument 'pattern'"),
        ("regex", {"pattern": "x" * 2001}, "2000 characters"),
        ("regex", {"pattern": "a", "flags": "x"}, "flags"),
        ("contains", {"text": ""}, "must be a text"),
        ("contains", {"text": "a", "txet": "b"}, "no argument 'txet'"),
        ("contains_all", {"texts": []}, "list of texts"),
        ("words", {}, "needs min or max"),
        ("words", {"min": 5, "max": 2}, "above"),
        ("words", {"min": True}, "whole number"),
        ("number", {"value": "7"}, "finite number"),
        ("number", {"value": 7, "which": "middle"}, "first, last or any"),
        ("starts_with", {"text": " "}, "must not be blank"),
    ],
)
def test_wrong_arguments_are_named(name: str, args: dict[str, Any], part: str) -> None:
    """A wrong argument is refused before anything runs."""
    with pytest.raises(ValueError, match=part):
        check_arguments(name, args)


def test_space_around_both_texts_is_ignored() -> None:
    """Space before a start and after an end does not count, in either text."""
    assert run_library("starts_with", {"text": " Dear"}, "\nDear all", None)
    assert run_library("ends_with", {"text": "end. \n"}, "The end.", None)
