"""The rank stage: saved rankings and the anchor setting."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import rocketeval
from rocketeval.engines.scripted import ScriptedEngine
from rocketeval.errors import ConfigError
from rocketeval.pipeline import Run
from rocketeval.ranking.stage import read_ranking
from support.make import make_config


def p_yes(prefix: str, suffix: str) -> float:
    return 0.9 if "left explains" in prefix else 0.5


def test_saved_ranking_reads_back_equal(tmp_path: Path) -> None:
    """ranking.json keeps unknown bounds and the win matrix."""
    config = make_config(tmp_path)
    outcome = rocketeval.run(config, judge=ScriptedEngine(p_yes))
    again = read_ranking(Run(config).store)
    assert repr(again) == repr(outcome.ranking)
    assert json.loads((outcome.path / "ranking.json").read_text())["wins"] == {
        "candidates": ["left", "right"],
        "shares": [[None, 1.0], [0.0, None]],
    }


def test_anchor_setting_fixes_a_rating(tmp_path: Path) -> None:
    """`ranking.anchor` fixes that candidate at `anchor_rating`, also in the report."""
    ranking = {"bootstrap": 50, "anchor": "right", "anchor_rating": 1234}
    outcome = rocketeval.run(make_config(tmp_path, ranking=ranking), judge=ScriptedEngine(p_yes))
    left, right = outcome.ranking.rows
    assert right.rating.value == right.rating.low == right.rating.high == 1234
    assert left.rating.value > 1234
    assert "at 1234" in outcome.report.read_text()


def test_unknown_anchor_is_refused_before_grading(tmp_path: Path) -> None:
    """The load stage refuses it, so no item is asked."""
    engine = ScriptedEngine(p_yes)
    config = make_config(tmp_path, ranking={"bootstrap": 50, "anchor": "rigth"})
    with pytest.raises(ConfigError, match="not one of the 2 candidates") as caught:
        rocketeval.run(config, judge=engine)
    assert caught.value.hint == "Did you mean 'right'?"
    assert engine.items_asked == 0


def test_ranking_again_keeps_the_report_unless_the_ranking_changes(tmp_path: Path) -> None:
    """An unchanged ranking removes nothing; another tie margin removes what depends on it."""
    outcome = rocketeval.run(make_config(tmp_path), judge=ScriptedEngine(p_yes))
    made = [outcome.path / name for name in ("audit.json", "explain.json", "report.html")]
    assert all(path.exists() for path in made)
    Run(make_config(tmp_path)).rank()
    assert all(path.exists() for path in made)
    Run(make_config(tmp_path, ranking={"bootstrap": 50, "tie_margin": 9})).rank()
    assert not any(path.exists() for path in made)
