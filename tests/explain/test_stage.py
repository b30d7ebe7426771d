"""The explain stage: its file, its effect on the report, and its limits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import rocketeval
from rocketeval.engines.scripted import ScriptedEngine
from rocketeval.errors import ConfigError, StageMissing
from rocketeval.explain import stage as module
from rocketeval.explain.stage import explain_candidate, explain_query, explain_run
from rocketeval.pipeline import Run
from rocketeval.scoring.stage import ItemWeights
from support.make import make_config


def p_yes(prefix: str, suffix: str) -> float:
    """Return answers in which `right` fails the first item and all pass the second."""
    if "clear" in suffix:
        return 0.95
    return 0.9 if "left explains" in prefix else 0.2


@pytest.fixture
def run(tmp_path: Path) -> Run:
    config = make_config(tmp_path)
    rocketeval.run(config, judge=ScriptedEngine(p_yes))
    return Run(config)


def test_run_explains_every_candidate(run: Run) -> None:
    """explain.json has each candidate's losses, traceable to a judgment in the ledger."""
    written = json.loads((run.store.path / "explain.json").read_text())
    left, right = written["candidates"]
    assert (left["candidate"], left["losses"], len(left["strengths"])) == ("left", [], 3)
    assert [loss["item"] for loss in right["losses"]] == [1, 1, 1]
    loss = right["losses"][0]
    assert loss["points"] == pytest.approx((0.9 - 0.2) / 2 * 9)
    judgment = run.store.judgments_of([loss["judgment"]])[loss["judgment"]]
    assert judgment.answers[loss["item"] - 1].p_yes == pytest.approx(loss["p_yes"])
    assert written["dead"] == {"yes to all": 3}
    assert written["dead_items"][0]["text"] == "Is it clear?"


def test_unchanged_explanation_keeps_the_report(run: Run) -> None:
    """Explaining again changes nothing; a changed explanation removes the report."""
    report = run.store.path / "report.html"
    explain_run(run.store, run.config)
    assert report.exists()
    run.store.save(ItemWeights({"sea": (0.9, 0.1)}))
    explain_run(run.store, run.config)
    assert not report.exists()


def test_another_ranking_removes_the_explanation(run: Run) -> None:
    """It depends on the ranking; the same ranking again keeps it."""
    run.rank()
    assert (run.store.path / "explain.json").exists()
    settings = run.config.ranking.model_copy(update={"anchor_rating": 1500.0})
    Run(run.config.model_copy(update={"ranking": settings})).rank()
    assert not (run.store.path / "explain.json").exists()


def test_learned_weights_are_read_from_the_run(run: Run) -> None:
    """item_weights.json weights the losses and the items."""
    run.store.save(ItemWeights({"sea": (0.9, 0.1)}))
    found = explain_candidate(run.store, run.config, "right", 1)
    assert [(one.query_id, one.weight) for one in found.losses] == [("sea", 0.9)]
    items = explain_query(run.store, run.config, "sea").items
    assert [(one.learned_weight, one.equal_weight) for one in items] == [(0.9, 0.5), (0.1, 0.5)]
    assert explain_query(run.store, run.config, "sky").items[0].learned_weight is None


def test_unjudged_response_is_no_neighbor(tmp_path: Path) -> None:
    """A response without a judgment is neither a neighbor nor a zero."""
    config = make_config(tmp_path)
    engine = ScriptedEngine(p_yes, fail_on="left explains the sea")
    rocketeval.run(config, judge=engine)
    store = Run(config).store
    found = explain_candidate(store, config, "right", 9)
    assert {loss.query_id for loss in found.losses} == {"sky", "sun"}
    assert found.not_compared == 2
    sea = explain_query(store, config, "sea")
    assert (sea.responses, [one.answered for one in sea.items]) == (1, [1, 1])


def test_unknown_names_suggest_the_nearest(run: Run) -> None:
    """A typo in a candidate or a query gives a suggestion."""
    with pytest.raises(ConfigError, match="candidate 'lefft'") as caught:
        explain_candidate(run.store, run.config, "lefft", 1)
    assert caught.value.hint == "Did you mean 'left'?"
    with pytest.raises(ConfigError, match="no query 'seaa'") as caught:
        explain_query(run.store, run.config, "seaa")
    assert caught.value.hint == "Did you mean 'sea'?"


def test_missing_ranking_names_the_stage(tmp_path: Path) -> None:
    """The error names the missing stage."""
    with pytest.raises(StageMissing, match="There is no run"):
        Run(make_config(tmp_path)).explain()


def test_number_of_kept_losses_is_bounded(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """With many candidates fewer losses are kept of each, but at least one."""
    monkeypatch.setattr(module, "MOST_KEPT", 2)
    monkeypatch.setattr(module, "MOST_DEAD", 1)
    found = explain_run(run.store, run.config)
    assert [len(one.losses) for one in found.candidates] == [0, 1]
    assert (len(found.dead_items), found.dead) == (1, {"yes to all": 3})
