"""Registries: built-in names, plugins, and errors for unknown names."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from rocketeval import registry
from rocketeval.benchmarks.base import BENCHMARKS
from rocketeval.checklists.base import AUTHORS
from rocketeval.engines.base import ENGINES
from rocketeval.errors import ConfigError
from rocketeval.registry import Registry, nearest
from rocketeval.scoring.base import SCORERS

MEAN = "rocketeval.scoring.mean:MeanScorer"


def install(monkeypatch: pytest.MonkeyPatch, group: str, **plugins: str | list[str]) -> None:
    """Simulate installed packages with these entry points."""
    points = [
        EntryPoint(name, value, group)
        for name, values in plugins.items()
        for value in ([values] if isinstance(values, str) else values)
    ]
    monkeypatch.setattr(
        registry, "entry_points", lambda *, group: [p for p in points if p.group == group]
    )


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of an importable module that is not imported yet."""
    (tmp_path / "lazy_plugin.py").write_text("class Thing: ...\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "lazy_plugin", raising=False)
    return "lazy_plugin"


def test_built_ins_are_imported_on_use(module: str) -> None:
    """Listing names imports nothing; getting a class imports its module."""
    things: Registry[object] = Registry("thing", {"lazy": f"{module}:Thing"})
    assert things.names() == ["lazy"]
    assert module not in sys.modules
    assert things.get("lazy").__name__ == "Thing"
    assert module in sys.modules


@pytest.mark.parametrize("seam", [BENCHMARKS, AUTHORS, ENGINES, SCORERS], ids=lambda s: s.seam)
def test_every_built_in_name_leads_to_a_class(seam: Registry[object]) -> None:
    """Every built-in name refers to an existing class."""
    for name in seam.names():
        assert isinstance(seam.get(name), type)


def test_unknown_name_suggests_the_nearest() -> None:
    """The hint has the nearest name and all valid ones."""
    with pytest.raises(ConfigError, match="There is no benchmark 'mtbench'") as refused:
        BENCHMARKS.get("mtbench")
    assert "Did you mean 'mt_bench'?" in refused.value.hint
    for name in ("jsonl", "mt_bench", "rocketeval", "table"):
        assert name in refused.value.hint


def test_nearest_without_a_match_lists_all() -> None:
    """A name without a near match gets only the list."""
    assert nearest("zzz", ["mean", "hard"]) == "Valid: hard, mean."


def test_installed_plugin_is_found(monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    """An entry point of the group is listed, and imported on use."""
    install(monkeypatch, "rocketeval.scorers", mine=f"{module}:Thing")
    assert {"hard", "mean", "mine"} <= set(SCORERS.names())
    assert module not in sys.modules
    assert SCORERS.get("mine").__name__ == "Thing"


def test_plugins_of_other_groups_are_not_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scorer is not listed as an engine."""
    install(monkeypatch, "rocketeval.scorers", mine=MEAN)
    assert "mine" not in ENGINES.names()


def test_plugin_cannot_replace_a_built_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plugin with a built-in name is an error that names the plugin."""
    install(monkeypatch, "rocketeval.scorers", mean="rogue.module:Scorer")
    with pytest.raises(ConfigError, match="which is built in") as refused:
        SCORERS.get("mean")
    assert "rogue.module:Scorer" in refused.value.hint


def test_two_plugins_with_one_name_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The result must not depend on the order of installation."""
    install(monkeypatch, "rocketeval.scorers", mine=["one:Scorer", "two:Scorer"])
    with pytest.raises(ConfigError, match=r"Two plugins.*one:Scorer and two:Scorer"):
        SCORERS.get("mine")


def test_duplicate_entry_point_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that is on the path twice registers the same class twice."""
    install(monkeypatch, "rocketeval.scorers", mine=[MEAN, MEAN])
    assert SCORERS.get("mine").__name__ == "MeanScorer"


@pytest.mark.parametrize("value", ["no_such_module_here:Scorer", "rocketeval.scoring.mean:Nothing"])
def test_broken_plugin_is_named(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    """A plugin that cannot be imported is a ConfigError that names it."""
    install(monkeypatch, "rocketeval.scorers", mine=value)
    with pytest.raises(ConfigError, match="cannot be imported") as refused:
        SCORERS.get("mine")
    assert value in refused.value.message
