"""Ensembles of several judges' runs: figures, refusals, and what is left out."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import rocketeval
from rocketeval.engines.scripted import ScriptedEngine
from rocketeval.errors import BenchmarkError, ConfigError
from rocketeval.judges.ensemble import Ensemble, make_ensemble, save_ensemble
from rocketeval.judges.runs import JudgedRun, open_run
from rocketeval.scoring.stage import read_grid
from rocketeval.store.codec import decode_finding
from support.make import as_json, make_config, write_benchmark, write_jsonl

Script = Callable[[str, str], float]


def likes(word: str) -> Script:
    return lambda prefix, suffix: 0.9 if word in prefix else 0.4


@pytest.fixture
def judged(tmp_path: Path) -> Callable[..., JudgedRun]:
    """Run the benchmark with one more judge."""

    def run(model: str, script: Script, **changes: object) -> JudgedRun:
        engine = ScriptedEngine(script, model=model, fail_on=changes.pop("fail_on", None))
        config = make_config(tmp_path, name=model, **changes)
        rocketeval.run(config, judge=engine)
        return open_run(config.run_path)

    return run


def make(*runs: JudgedRun) -> Ensemble:
    return make_ensemble(runs, runs[0].config.ranking)


def test_mean_and_pooled_rankings(judged: Callable[..., JudgedRun]) -> None:
    """Two judges prefer left and one right: left wins both ways, by the right shares."""
    runs = [judged("j1", likes("left")), judged("j2", likes("left")), judged("j3", likes("right"))]
    found = make(*runs)
    assert found.judges == ("j1", "j2", "j3")
    assert [row.candidate for row in found.mean.rows] == ["left", "right"]
    assert found.pooled.wins is not None
    assert found.pooled.wins.shares[0][1] == pytest.approx(2 / 3, abs=1e-6)
    expected = np.mean([read_grid(run.store).scores for run in runs], axis=0)
    assert found.mean.rows[0].mean_score.value == pytest.approx(expected[:, 0].mean())


def test_votes_are_compared_with_every_judge_and_both_ensembles(
    judged: Callable[..., JudgedRun], tmp_path: Path
) -> None:
    """All votes are for left: two judges agree, one never does, the majority agrees."""
    ratings = [{"candidate": "left", "value": 1100}, {"candidate": "right", "value": 900}]
    write_benchmark(tmp_path / "benchmark")
    write_jsonl(tmp_path / "benchmark" / "ratings.jsonl", ratings)
    runs = [judged("j1", likes("left")), judged("j2", likes("left")), judged("j3", likes("right"))]
    found = make(*runs)
    agreed = {name: one.with_ties and one.with_ties.value for name, one in found.agreement.items()}
    assert agreed == {"j1": 1, "j2": 1, "j3": 0, "mean of judges": 1, "pooled matches": 1}
    assert set(found.ratings) == set(agreed)
    assert all(one.n == 2 for one in found.ratings.values())


def test_files_are_written_for_both_ensembles(
    judged: Callable[..., JudgedRun], tmp_path: Path
) -> None:
    """Each ensemble has a folder with ranking.json and ranking.csv."""
    runs = [judged("j1", likes("left")), judged("j2", likes("right"))]
    found = make(*runs)
    save_ensemble(found, tmp_path / "out")
    for method in ("mean", "pooled"):
        assert json.loads((tmp_path / "out" / method / "ranking.json").read_text())["rows"]
        assert (tmp_path / "out" / method / "ranking.csv").read_text().startswith("rank,")
    facts = json.loads((tmp_path / "out" / "ensemble.json").read_text())
    assert (facts["judges"], facts["missing"]) == (["j1", "j2"], "drop")
    rankings = {
        method: json.loads((tmp_path / "out" / method / "ranking.json").read_text())
        for method in ("mean", "pooled")
    }
    read = decode_finding(Ensemble, {**facts, **rankings}, tmp_path / "out" / "ensemble.json")
    assert as_json(read) == as_json(found)
    with pytest.raises(ConfigError, match="is a run directory"):
        save_ensemble(make(*runs), runs[0].store.path)


def test_missing_score_of_one_judge_is_counted(judged: Callable[..., JudgedRun]) -> None:
    """Responses that only some judges scored are left out of the mean and counted."""
    whole = judged("j1", likes("left"))
    holed = judged("j2", likes("left"), fail_on="left explains the sea")
    found = make(whole, holed)
    assert found.partly_scored == 1
    assert {row.candidate: row.missing for row in found.mean.rows} == {"left": 1, "right": 0}
    assert {row.candidate: row.missing for row in found.pooled.rows} == {"left": 0, "right": 0}
    skipped = make_ensemble([whole, holed], whole.config.ranking, "skip")
    assert {row.missing for row in skipped.mean.rows} == {0}


def test_unshared_queries_are_left_out(judged: Callable[..., JudgedRun], tmp_path: Path) -> None:
    """Shared queries are ranked, the others counted."""
    write_benchmark(tmp_path / "benchmark")
    path = str(tmp_path / "benchmark")
    short = judged("j1", likes("left"), benchmark={"path": path, "limit": 2})
    found = make(short, judged("j2", likes("left")))
    assert (found.queries, found.queries_left_out, found.candidates_left_out) == (2, 1, ())


def test_run_is_a_directory_or_its_config(judged: Callable[..., JudgedRun]) -> None:
    """Both lead to the same run; any other folder is refused with a hint."""
    run = judged("j1", likes("left"))
    by_config = open_run(run.store.path / "run.yaml")
    assert by_config.store.path == run.store.path
    with pytest.raises(ConfigError, match="not a run directory") as caught:
        open_run(run.store.path / "inputs")
    assert "config file" in caught.value.hint


def test_single_or_repeated_run_is_refused(judged: Callable[..., JudgedRun]) -> None:
    """An ensemble needs two different runs."""
    run = judged("j1", likes("left"))
    with pytest.raises(ConfigError, match="at least two runs"):
        make(run)
    with pytest.raises(ConfigError, match="given twice"):
        make(run, run)


def test_same_model_in_two_runs_is_named_by_run(
    judged: Callable[..., JudgedRun], tmp_path: Path
) -> None:
    """The names differ, so that no row replaces another."""
    one = judged("j1", likes("left"))
    config = make_config(tmp_path, name="again")
    rocketeval.run(config, judge=ScriptedEngine(likes("left"), model="j1"))
    found = make(one, open_run(config.run_path))
    assert found.judges == ("j1 (j1)", "j1 (again)")


def test_other_scales_are_refused(judged: Callable[..., JudgedRun]) -> None:
    """Scores on different scales cannot be averaged."""
    one = judged("j1", likes("left"))
    other = judged("j2", likes("left"), scorer={"scale": [0, 100]})
    with pytest.raises(ConfigError, match=r"0 to 100.*1 to 10"):
        make(one, other)


def test_other_responses_under_the_same_names_are_refused(
    judged: Callable[..., JudgedRun], tmp_path: Path
) -> None:
    """A response that changed between two runs is detected by its text."""
    one = judged("j1", likes("left"))
    write_benchmark(tmp_path / "benchmark", texts={"sea": "something new"})
    other = judged("j2", likes("left"))
    with pytest.raises(BenchmarkError, match=r"'sea', or the response of 'left'"):
        make(one, other)
