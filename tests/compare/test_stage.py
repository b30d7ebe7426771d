"""The stages compare, estimate and advise on a run's files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rocketeval.compare.pair import ComparisonVerdict
from rocketeval.compare.stage import LabelScope
from rocketeval.errors import BenchmarkError, ConfigError, EvaluatedOnTraining, StageMissing
from rocketeval.pipeline import Run
from rocketeval.records import Label
from support.make import make_config
from support.scored import scored_run, scores_and_labels


def test_compare_reads_the_scores(tmp_path: Path) -> None:
    """The better candidate is found with the config's margin and resamples; nothing is written."""
    scores, labels = scores_and_labels(60, 0)
    run = Run(scored_run(tmp_path, scores, labels))
    before = sorted(run.store.path.rglob("*"))
    found = run.compare("new", "old")
    assert found.verdict is ComparisonVerdict.BETTER
    assert (found.bootstrap, found.tie_margin) == (200, 0.1)
    assert sorted(run.store.path.rglob("*")) == before


def test_missing_scores_name_the_stage_to_run(tmp_path: Path) -> None:
    """All three say what to run first."""
    run = Run(make_config(tmp_path))
    with pytest.raises(StageMissing):
        run.compare("left", "right")
    with pytest.raises(StageMissing):
        run.estimate(LabelScope())
    with pytest.raises(StageMissing):
        run.advise(LabelScope(("left",)))


def test_every_labeled_candidate_is_estimated_by_default(tmp_path: Path) -> None:
    """Labels correct a judge that is one point too strict."""
    scores, labels = scores_and_labels(300, 40)
    found = Run(scored_run(tmp_path, scores, labels)).estimate(LabelScope())
    assert [row.candidate for row in found.rows] == ["new", "old"]
    assert found.rows[0].with_scores.low < 7.0 < found.rows[0].with_scores.high
    assert all(row.effective_labels > 60 for row in found.rows)
    assert not found.learned


def test_difference_counts_unusable_labels(tmp_path: Path) -> None:
    """Half-labeled queries, labels without a score and unknown labels are counted."""
    scores, labels = scores_and_labels(100, 30)
    asked = [label.query_id for label in labels if label.candidate == "old"]
    scores["old"][int(asked[0][1:])] = None
    labels = [label for label in labels if (label.query_id, label.candidate) != (asked[1], "new")]
    labels.append(Label("q1", "stranger", 5.0))
    found = Run(scored_run(tmp_path, scores, labels)).estimate(LabelScope(("new",), against="old"))
    (row,) = found.rows
    assert (row.labelled, row.queries) == (28, 99)
    assert (found.half_labelled, found.without_score, found.not_in_run) == (1, 1, 1)
    assert row.with_scores.low < 1.0 < row.with_scores.high


def test_fitted_scores_are_refused(tmp_path: Path) -> None:
    """Fitted scores on either side raise an error; out-of-fold and unseen ones do not."""
    scores, labels = scores_and_labels(50, 20)
    honest = {"new": "unseen", "old": "out_of_fold"}
    run = Run(scored_run(tmp_path / "honest", scores, labels, basis=honest))
    assert run.estimate(LabelScope(("new",), against="old")).learned
    run = Run(scored_run(tmp_path / "fitted", scores, labels, basis={**honest, "old": "fitted"}))
    assert run.estimate(LabelScope(("new",))).rows
    with pytest.raises(EvaluatedOnTraining, match="50 scores of 'old'"):
        run.estimate(LabelScope(("new",), against="old"))


def test_labels_off_the_scale_remove_the_bounds(tmp_path: Path) -> None:
    """A label of 50 on a scale of 1 to 10 is used unchanged."""
    scores, labels = scores_and_labels(60, 20)
    labels = [replace(label, value=label.value + 40) for label in labels]
    (row,) = Run(scored_run(tmp_path, scores, labels)).estimate(LabelScope(("new",))).rows
    assert row.with_scores.value > 40


def test_advice_and_estimate_use_the_same_strata(tmp_path: Path) -> None:
    """Chosen labels are estimated in the strata they were drawn from."""
    scores, truth = scores_and_labels(200, 200)
    choice = LabelScope(top=2, strata=4, by_category=True)
    kinds = ["code", "math"] * 100
    empty = Run(scored_run(tmp_path / "before", scores, categories=kinds))
    advice = empty.advise(choice, more=80)
    assert {row.candidate for row in advice.wanted} == {"new", "old"}
    assert max(row.stratum for row in advice.wanted) == 7
    asked = {(row.query_id, row.candidate) for row in advice.wanted}
    labels = [label for label in truth if (label.query_id, label.candidate) in asked]
    after = Run(scored_run(tmp_path / "after", scores, labels, categories=kinds))
    found = after.estimate(choice)
    assert [row.strata for row in found.rows] == [8, 8]
    assert not asked & {(row.query_id, row.candidate) for row in after.advise(choice).wanted}


def test_missing_target_is_an_error(tmp_path: Path) -> None:
    """Advice and strata need a target; names and --top exclude each other; labels must exist."""
    scores, labels = scores_and_labels(30, 12)
    run = Run(scored_run(tmp_path, scores, labels))
    with pytest.raises(ConfigError, match="No candidate is given"):
        run.advise(LabelScope())
    with pytest.raises(ConfigError, match="No candidate is given"):
        run.estimate(LabelScope(strata=3))
    with pytest.raises(ConfigError, match="Both --candidate and --top"):
        run.advise(LabelScope(("new",), top=1))
    with pytest.raises(BenchmarkError, match="No candidate has two labeled"):
        Run(scored_run(tmp_path / "unlabelled", scores)).estimate(LabelScope())
