"""The page shows weights only if the scorer uses them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from rocketeval.ranking.rank import Ranking
from rocketeval.report.cells import ScorerWeights, weighing
from rocketeval.report.content import figures_of
from rocketeval.report.findings import Findings
from rocketeval.store.manifest import LearnedFacts, Manifest, ScoreFacts, Stages
from support.make import make_config

NOBODY = Ranking((), (), 0.1, 50, 0, 0.95, 9, 1)


def found(
    tmp_path: Path, kind: str, learned: dict[str, Any], weights: dict[str, tuple[float, ...]]
) -> ScorerWeights:
    score = ScoreFacts(scorer=kind, learned=LearnedFacts(**learned))
    manifest = Manifest(stages=Stages(score=score))
    findings = Findings(pa.table({}), NOBODY, weights=weights, manifest=manifest)
    return weighing(findings, make_config(tmp_path))


@pytest.mark.parametrize(
    ("kind", "learned", "weights", "expected"),
    [
        ("mean", {}, {}, ("equal", "", True)),
        ("hard", {}, {}, ("equal", "", True)),
        ("isotonic", {"labels": 80}, {}, ("equal", "labels", True)),
        ("extra_trees", {"labels": 80}, {"q": (0.7, 0.3)}, ("learned", "labels", True)),
        ("pooled_ridge", {"labels": 80}, {"q": (0.7, -0.3)}, ("learned", "labels", False)),
        ("pooled_ridge", {"labels": 3, "queries_by_mean": 9}, {}, ("equal", "", True)),
        ("pooled_logistic", {"votes": 60}, {}, ("none", "votes", False)),
        ("pooled_logistic", {"queries_by_mean": 0}, {}, ("none", "votes", False)),
        ("select", {"labels": 80, "queries_by_mean": 0}, {}, ("none", "labels", False)),
        ("select", {"labels": 80, "queries_by_mean": 20}, {}, ("equal", "", True)),
        ("somebody's own", {}, {}, ("none", "", False)),
    ],
)
def test_weights_of_each_scorer(
    tmp_path: Path,
    kind: str,
    learned: dict[str, Any],
    weights: dict[str, tuple[float, ...]],
    expected: tuple[str, str, bool],
) -> None:
    """Weights are equal, learned, or absent for scorers without weights per item."""
    weighed = found(tmp_path, kind, learned, weights)
    assert (weighed.weights, weighed.learned_from, weighed.else_equal) == expected


def test_weights_of_a_query_without_learned_weights(tmp_path: Path) -> None:
    """Forests fall back to the mean there; a pooled regression has no weights."""
    trees = found(tmp_path, "extra_trees", {"labels": 80}, {"q": (0.7, 0.3)})
    ridge = found(tmp_path, "pooled_ridge", {"labels": 80}, {"q": (0.7, 0.3)})
    equal = trees.of_items(2, None)
    assert equal is not None
    assert equal.tolist() == [0.5, 0.5]
    assert ridge.of_items(2, None) is None
    assert ridge.of_items(2, [0.7, 0.3]) is not None


def test_without_weights_there_is_no_influence() -> None:
    """Mean and correlation do not need weights; influence does."""
    answers = np.array([[0.1, 0.9], [0.9, 0.8], [0.4, 0.1], [0.6, 0.3]])
    figures = figures_of(answers, answers[:, 0], None, learned=False)
    assert [item["influence"] for item in figures] == [None, None]
    assert figures[0]["correlation"] == 1.0
    assert [item["verdict"] for item in figures] == ["", ""]
