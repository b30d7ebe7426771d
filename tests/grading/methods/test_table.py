"""Every method by name: its effect on the config, and what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rocketeval.config import RunConfig, parse_config
from rocketeval.criteria import criteria
from rocketeval.errors import ConfigError
from rocketeval.grading.methods import DIGITS, KINDS, LIKERT, YES_NO, create_method, with_method

OPTIONS = {"criterion": {"criterion": "fluency"}, "rubric": {"criterion": "fluency"}}
ALONE = sorted(set(KINDS) - {"analysis"})
"""Methods that need no other run."""


def config_for(kind: str, options: dict[str, Any] | None = None, **judge: Any) -> RunConfig:
    """Return a config with this method, before the method has changed it."""
    method = {"kind": kind, "options": OPTIONS.get(kind, {}) if options is None else options}
    given = {"benchmark": {"path": "x"}, "judge": {"model": "m", **judge}, "method": method}
    return parse_config({**given, "author": {"max_items": 40}})


@pytest.mark.parametrize("kind", ALONE)
def test_every_method_can_be_created(kind: str) -> None:
    """Minimal settings are enough, and creating it twice gives the same judge."""
    method = create_method(with_method(config_for(kind)))
    assert method.name == kind
    assert method.hash == create_method(with_method(config_for(kind))).hash
    assert KINDS[kind].summary


def test_methods_with_other_prompts_are_other_judges() -> None:
    """Only methods that differ in their items alone share a judge."""
    shared = {
        frozenset({"checklist", "fixed"}),
        frozenset({"direct", "reference"}),
        frozenset({"generic", "criterion", "rubric"}),
    }
    found: dict[str, set[str]] = {}
    for kind in ALONE:
        found.setdefault(create_method(with_method(config_for(kind))).hash, set()).add(kind)
    assert {frozenset(kinds) for kinds in found.values() if len(kinds) > 1} == shared


@pytest.mark.parametrize(
    ("kind", "labels", "items"),
    [
        ("checklist", YES_NO, None),
        ("sequential", YES_NO, None),
        ("multi_item", YES_NO, None),
        ("fixed", YES_NO, 6),
        ("direct", DIGITS, 1),
        ("cot", YES_NO, 1),
        ("generic", LIKERT, 1),
        ("perplexity", YES_NO, 1),
    ],
)
def test_labels_and_items_follow_the_method(
    kind: str, labels: tuple[str, ...], items: int | None
) -> None:
    """The best label is first; the user's author stays if its checklists are used."""
    config = with_method(config_for(kind))
    assert config.judge.labels == labels
    if items is None:
        assert (config.author.kind, config.author.max_items) == ("imported", 40)
    else:
        assert config.author.kind == "fixed"
        assert len(config.author.options["items"]) == items
    assert config == with_method(config)


def test_rubric_is_the_question() -> None:
    """A criterion by name only, with its grades, or defined by the user."""
    fluency = criteria()["fluency"]
    assert with_method(config_for("criterion")).author.options["items"] == ["Fluency"]
    assert with_method(config_for("rubric")).author.options["items"] == [fluency.rubric]
    own = {"name": "wit", "definition": "Is it funny?", "grades": ["a", "b", "c", "d", "e"]}
    asked = with_method(config_for("rubric", {"criterion": own})).author.options["items"][0]
    assert asked == "Wit: Is it funny?\n1: a\n2: b\n3: c\n4: d\n5: e"


@pytest.mark.parametrize(
    ("kind", "options", "expected"),
    [
        ("checklst", {}, "There is no grading method 'checklst'"),
        ("rubric", {}, "criterion: this setting is"),
        ("rubric", {"criterion": "fluancy"}, "There is no criterion 'fluancy'"),
        ("criterion", {"criterion": {"name": "x", "definition": "y", "grades": ["a"]}}, "grades"),
        ("cot", {"max_tokens": 0}, "max_tokens"),
        ("cot", {"max_token": 9}, "max_token: there is no such setting"),
        ("fixed", {"items": []}, "items"),
        ("analysis", {}, "run: this setting is"),
        ("direct", {"x": 1}, "x: there is no such setting"),
    ],
)
def test_mistakes_are_named(kind: str, options: dict[str, Any], expected: str) -> None:
    """The error names the wrong setting before anything is asked."""
    with pytest.raises(ConfigError) as refused:
        create_method(with_method(config_for(kind, options)))
    assert expected in str(refused.value)


def test_conflicting_labels_are_refused() -> None:
    """The method decides the labels; other labels are refused."""
    with pytest.raises(ConfigError, match=r"judge\.labels: the method 'checklist'"):
        with_method(config_for("checklist", labels=["Ja", "Nein"]))
    assert with_method(config_for("direct", labels=list(DIGITS))).judge.labels == DIGITS


def test_user_template_replaces_the_methods(tmp_path: Path) -> None:
    """A method without a prompt refuses a template."""
    path = tmp_path / "own.txt"
    path.write_text("{{history}}{{query}}{{response}}{{item}} Grade:")
    method = create_method(with_method(config_for("direct", template=str(path))))
    assert method.hash != create_method(with_method(config_for("direct"))).hash
    with pytest.raises(ConfigError, match="asks nothing"):
        create_method(with_method(config_for("perplexity", template=str(path))))


def test_most_written_follows_max_tokens() -> None:
    """Plans and budgets use it."""
    assert create_method(with_method(config_for("cot", {"max_tokens": 60}))).most_written == 60
    assert create_method(with_method(config_for("direct"))).most_written == 1
