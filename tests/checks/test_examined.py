"""Patterns, schemas and arguments are examined before a run, in bounded time."""

from __future__ import annotations

import time
from typing import Any

import pytest

from rocketeval.checks import runner
from rocketeval.checks.runner import CheckSettings, passes_all
from rocketeval.items import CheckCall, parse_item


@pytest.mark.parametrize(
    ("fn", "args", "part"),
    [
        ("regex", {"pattern": "("}, "pattern of a regex is invalid"),
        ("regex", {"pattern": "(?<n>a)"}, "pattern of a regex is invalid"),
        ("json_schema", {"schema": {"type": "objekt"}}, "not a JSON schema at type"),
        ("json_schema", {"schema": {"properties": {"a": {"pattern": "("}}}}, "at properties.a"),
        ("json_schema", {"schema": {"required": "a"}}, "not a JSON schema at required"),
        ("number", {"value": 10**400}, "at most 1e\\+18"),
        ("words", {"max": 10**30}, "from 0 to 1e\\+18"),
    ],
)
def test_wrong_arguments_are_refused_before_a_run(fn: str, args: dict[str, Any], part: str) -> None:
    """What would fail for every response is refused when the checklist is bound."""
    with pytest.raises(ValueError, match=part):
        CheckSettings().bind(CheckCall(fn, args))


@pytest.mark.parametrize(
    "args",
    [{"pattern": "a+", "flags": "is"}, {"pattern": "a", "negate": True}],
)
def test_right_arguments_are_accepted(args: dict[str, Any]) -> None:
    """Valid patterns are bound, with any flags."""
    assert CheckSettings().bind(CheckCall("regex", args)).source == "library 1"


SLOW = "".join(f"[\x00-{chr(0xFFF0 - n)}x]" for n in range(300))
"""A pattern that takes long to compile if it ignores case."""


def test_slow_patterns_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pattern that is slow to compile, or slow on no text at all, does not hold up anything."""
    examiner = runner.CheckRunner(CheckSettings(seconds=1.0))
    monkeypatch.setattr(runner, "_examiner", lambda: examiner)
    began = time.monotonic()
    with pytest.raises(ValueError, match="longer than 1 s"):
        CheckSettings().bind(CheckCall("regex", {"pattern": SLOW, "flags": "i"}))
    assert not passes_all(CheckCall("regex", {"pattern": "(?:a?|b?){60}(?=c)"}), [""])
    examiner.close()
    assert time.monotonic() - began < 10


@pytest.mark.parametrize(
    ("args", "part"),
    [
        ({"schema": {"properties": {1: {}}}}, "the key 1 must be a text"),
        ({"value": 10**400}, "beyond 1e\\+18"),
        ({"max": 10**30}, "beyond 1e\\+18"),
        ({"value": float("nan")}, "not finite"),
        ({"day": time.gmtime}, "is not JSON"),
        ({"text": "\ud800"}, "not valid Unicode"),
    ],
)
def test_arguments_must_be_json(args: dict[str, Any], part: str) -> None:
    """What YAML allows beyond JSON is refused, with the check's name and what to do."""
    with pytest.raises(ValueError, match=f"args of check 'words': .*{part}"):
        parse_item({"text": "t", "check": {"fn": "words", "args": args}})


def test_deep_arguments_are_refused() -> None:
    """Arguments as deep as a parser allows are a message."""
    deep: dict[str, Any] = {}
    for _ in range(900):
        deep = {"properties": deep}
    with pytest.raises(ValueError, match="more than 64 levels deep"):
        parse_item({"text": "t", "check": {"fn": "json_schema", "args": {"schema": deep}}})
