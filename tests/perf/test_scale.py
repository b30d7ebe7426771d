"""Cost by size: only figures of the same experiment are compared."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

PERF = Path(__file__).parents[2] / "perf"


@pytest.fixture
def scale(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return the script as a module; its own imports are removed again."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(PERF))
    import scale

    yield scale
    for name in set(sys.modules) - before:
        if name == "scale" or name.split(".")[0] == "harness":
            del sys.modules[name]


def cost(scale: Any, answers: int, seconds: float, **others: Any) -> Any:
    """Return a cost of scoring."""
    figures = {
        "candidates": 250,
        "queries": answers // 2000,
        "items": 8,
        "scorer": "mean",
        "scattered": False,
        "stage": "score",
        "seconds": seconds,
        "cpu_seconds": seconds,
        "peak_mb": 100.0,
        "disk_mb": 1.0,
        "load": 0.0,
        "bootstrap": 200,
    }
    return scale.Cost(answers=answers, **{**figures, **others})


OTHER = [
    {"scorer": "pooled_ridge"},
    {"candidates": 10},
    {"items": 3},
    {"bootstrap": 1000},
    {"scattered": True},
]


@pytest.mark.parametrize("other", OTHER, ids=lambda other: next(iter(other)))
def test_other_experiment_changes_no_exponent(scale: Any, other: dict[str, Any]) -> None:
    """It has a separate table, and replaces no figure of the same size."""
    own = [cost(scale, 10**5, 1.0), cost(scale, 10**6, 10.0)]
    alone = scale.describe(scale.by_experiment(own))
    strange = cost(scale, 10**6, 500.0, **other)
    groups = scale.by_experiment(scale.together(own, [strange]))
    assert scale.describe(groups)[: len(alone)] == alone
    assert [len(group) for group in groups.values()] == [2, 1]
    headings = {str(experiment) for experiment in groups}
    assert len(headings) == 2


def test_exponents_between_neighboring_sizes_and_overall(scale: Any) -> None:
    """The growth line has an exponent per pair of sizes and one over all sizes."""
    costs = [cost(scale, 10**5, 1.0), cost(scale, 10**6, 1.0), cost(scale, 10**7, 10.0)]
    result = scale.growth(costs)
    assert result[1] == (
        "score  CPU seconds 0.50: 0.00 from 100,000 to 1,000,000, 1.00 from 1,000,000 to 10,000,000"
    )
    assert scale.growth(costs[:1]) == []


def test_record_without_resamples_is_read_and_replaced(scale: Any, tmp_path: Path) -> None:
    """It is a separate experiment until the size is measured again."""
    rows = [asdict(cost(scale, size, 1.0)) for size in (10**5, 10**6)]
    for row in rows:
        del row["bootstrap"]
    (tmp_path / "scale.json").write_text(json.dumps(rows))
    earlier = scale.read_costs(tmp_path / "scale.json")
    again = cost(scale, 10**5, 2.0)
    assert "resamples unknown" in scale.describe(scale.by_experiment(earlier))[0]
    assert scale.together(earlier, [again]) == [earlier[1], again]
    assert scale.read_costs(tmp_path / "absent.json") == []


def test_plot_shows_one_experiment(scale: Any, tmp_path: Path) -> None:
    """The plot shows the experiment with the most sizes, by its name."""
    pytest.importorskip("matplotlib")
    own = [cost(scale, 10**5, 1.0), cost(scale, 10**6, 10.0)]
    groups = scale.by_experiment([cost(scale, 10**4, 9.0, bootstrap=50), *own])
    scale.draw(groups, tmp_path / "scale.svg")
    text = (tmp_path / "scale.svg").read_text()
    assert str(own[0].experiment) in text
    assert "score, exponent 1.00" in text
