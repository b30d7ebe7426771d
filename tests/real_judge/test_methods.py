"""A real model with other methods: a digit, items in sequence, and written text."""

from __future__ import annotations

from pathlib import Path

import pytest

from rocketeval.pipeline import Run
from rocketeval.records import Status
from rocketeval.store.run import RunStore
from support.make import make_config

from .server import ServedJudge


@pytest.mark.parametrize(
    ("kind", "options"), [("direct", {}), ("sequential", {}), ("cot", {"max_tokens": 16})]
)
async def test_a_response_is_graded(
    judge_url: ServedJudge, tmp_path: Path, kind: str, options: dict[str, int]
) -> None:
    """The judgment exists with its usage; a text without a score is kept and marked."""
    config = make_config(
        tmp_path,
        benchmark={"path": str(tmp_path / "benchmark"), "limit": 1, "candidates": ["left"]},
        judge={"model": judge_url.name, "base_url": judge_url.base_url},
        method={"kind": kind, "options": options},
    )
    facts = await Run(config).to_judgments()
    assert (facts.judged, facts.failed) == (1, 0)
    found = RunStore(config.run_path)
    rows = [row for table in found.judgments() for row in table.to_pylist()]
    keys = [row["key"] for row in rows]
    for judgment in found.judgments_of(keys).values():
        assert judgment.usage.prompt_tokens > 0
        assert len(judgment.answers) == (2 if kind == "sequential" else 1)
        for answer in judgment.answers:
            if kind == "cot":
                assert answer.text
                assert answer.status in (Status.OK, Status.UNREADABLE)
                assert 1 < judgment.usage.completion_tokens <= 16
            if answer.p_yes is not None:
                assert 0.0 <= answer.p_yes <= 1.0
    if kind != "cot":
        # A judge this small may spread its probability so thinly that no answer counts.
        assert all(0.0 < mass <= 1.001 for row in rows for mass in row["mass"])
        bounds = [(row["p_low"][0], row["p_high"][0]) for row in rows]
        assert all(0.0 <= low <= high <= 1.0 for low, high in bounds)
    again = await Run(config).to_judgments()
    assert again.usage.requests == 0
