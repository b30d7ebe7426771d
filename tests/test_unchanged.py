"""A second run leaves out the stages whose inputs are unchanged, and only those."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rocketeval
from rocketeval import unchanged
from rocketeval.engines.scripted import ScriptedEngine
from rocketeval.observer import Observer
from rocketeval.pipeline import Outcome
from rocketeval.registry import Registry
from rocketeval.store.codec import encode
from rocketeval.store.run import RunStore
from rocketeval.unchanged import STAGES, MadeFrom, installation
from support.make import make_config

ALL = set(STAGES)


class KeptStages(Observer):
    """Records which stages were left out."""

    def __init__(self) -> None:
        self.kept: set[str] = set()

    def stage_kept(self, stage: str) -> None:
        self.kept.add(stage)


def run(tmp_path: Path, **changes: Any) -> tuple[Outcome, set[str]]:
    """Run everything; return the outcome and the stages that were done."""
    observer = KeptStages()
    config = make_config(tmp_path, **changes)
    outcome = rocketeval.run(config, judge=ScriptedEngine(), observer=observer)
    return outcome, ALL - observer.kept


def edit(name: str, old: str, new: str) -> Callable[[Path], None]:
    """Return a change of one text in a file of the benchmark."""

    def apply(tmp_path: Path) -> None:
        path = tmp_path / "benchmark" / name
        content = path.read_text("utf-8")
        assert old in content
        path.write_text(content.replace(old, new, 1), "utf-8")

    return apply


def add_label(tmp_path: Path) -> None:
    """Add the first label."""
    row = {"query_id": "sky", "candidate": "left", "value": 7}
    (tmp_path / "benchmark" / "labels.jsonl").write_text(json.dumps(row), "utf-8")


def test_second_run_leaves_everything_out_and_gives_the_same(tmp_path: Path) -> None:
    """Nothing changed: no stage is done, the files keep their bytes, the outcome is the same."""
    first, done = run(tmp_path)
    assert done == ALL
    before = {path.name: path.read_bytes() for path in first.path.iterdir() if path.suffix}
    second, done = run(tmp_path)
    assert done == set()
    after = {path.name: path.read_bytes() for path in first.path.iterdir() if path.suffix}
    last_call = {"manifest.json", ".checksums.jsonl"}
    assert {k: v for k, v in after.items() if k not in last_call} == {
        k: v for k, v in before.items() if k not in last_call
    }
    assert encode(second.ranking) == encode(first.ranking)
    assert encode(second.audit) == encode(first.audit)
    assert second.report == first.report
    assert second.stages.report.seconds == 0.0


@pytest.mark.parametrize(
    ("change", "needed"),
    [
        (edit("responses/left.jsonl", "left explains the sea", "no"), ALL),
        (edit("checklists.jsonl", "Is it right?", "Is it good?"), ALL),
        (edit("queries.jsonl", "Why the sky?", "What sky?"), ALL),
        (edit("queries.jsonl", '"id": "sky"', '"category": "x", "id": "sky"'), {"report"}),
        (edit("votes.jsonl", '"winner": "a"', '"winner": "b"'), {"audit", "report"}),
        (add_label, {"audit", "report"}),
    ],
    ids=["response", "item", "query", "category", "vote", "label"],
)
def test_changed_data_is_noticed(
    tmp_path: Path, change: Callable[[Path], None], needed: set[str]
) -> None:
    """Every part of the benchmark is an input of the stages that read it."""
    run(tmp_path)
    change(tmp_path)
    assert run(tmp_path)[1] >= needed
    assert run(tmp_path)[1] == set()


@pytest.mark.parametrize(
    ("settings", "needed"),
    [
        ({"scorer": {"kind": "hard"}}, ALL),
        ({"ranking": {"seed": 5}}, {"rank", "report"}),
        ({"ranking": {"anchor": "left"}}, {"rank", "report"}),
    ],
)
def test_changed_setting_is_noticed(
    tmp_path: Path, settings: dict[str, Any], needed: set[str]
) -> None:
    """A setting of the config is an input."""
    run(tmp_path)
    assert run(tmp_path, **settings)[1] >= needed


@pytest.mark.parametrize(
    ("name", "stage"),
    [
        ("scores.jsonl", "score"),
        ("ranking.csv", "rank"),
        ("audit.json", "audit"),
        ("explain.json", "explain"),
        ("report.html", "report"),
    ],
)
def test_removed_result_is_made_again(tmp_path: Path, name: str, stage: str) -> None:
    """A stage without one of its files is done again, with the same bytes."""
    first, _ = run(tmp_path)
    path = first.path / name
    content = path.read_bytes()
    path.unlink()
    assert stage in run(tmp_path)[1]
    if name != "report.html":
        assert path.read_bytes() == content
    path.write_text("changed")
    assert stage in run(tmp_path)[1]


def test_finding_of_another_command_renews_only_the_report(tmp_path: Path) -> None:
    """A comparison made after the scores is kept, and the report that shows it is written again."""
    first, _ = run(tmp_path)
    (first.path / "reliability.json").write_text("{}")
    done = run(tmp_path)[1]
    assert "report" in done
    assert "score" not in done
    assert (first.path / "reliability.json").exists()


def test_another_version_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new version of RocketEval, of a library, or of a source file does every stage again."""
    run(tmp_path)
    known = installation()
    monkeypatch.setattr(unchanged, "installation", lambda: "another")
    assert run(tmp_path)[1] == ALL
    with monkeypatch.context() as patch:
        patch.setattr(unchanged, "__version__", "999")
        assert installation.__wrapped__() != known
    with monkeypatch.context() as patch:
        patch.setattr(unchanged, "version", lambda name: "999")
        assert installation.__wrapped__() != known
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    monkeypatch.setattr(unchanged, "__file__", str(package / "__init__.py"))
    moved = installation.__wrapped__()
    (package / "new.py").touch()
    assert installation.__wrapped__() != moved


def test_file_that_the_config_names_is_an_input(tmp_path: Path) -> None:
    """A saved scorer that changes is noticed, although its path does not."""
    first, _ = run(tmp_path)
    saved = tmp_path / "scorer.npz"
    saved.write_bytes(b"one")
    made_from = MadeFrom(RunStore(first.path), make_config(tmp_path, scorer={"fitted": saved}))
    before = made_from.inputs("score")
    saved.write_bytes(b"another")
    assert made_from.inputs("score") != before


def test_scorer_of_a_plugin_is_always_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plugin's code may change, so it scores again; the same scores are not ranked again."""
    run(tmp_path)
    monkeypatch.setattr(Registry, "has_plugin", lambda self, name: True)
    assert "score" in run(tmp_path)[1]


def test_damaged_record_is_no_record(tmp_path: Path) -> None:
    """Without a readable record, every stage is done again."""
    first, _ = run(tmp_path)
    (first.path / unchanged.NAME).write_text("{")
    assert run(tmp_path)[1] == ALL
