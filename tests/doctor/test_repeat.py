"""Comparison of two passes over the same items."""

from __future__ import annotations

import pytest

from rocketeval.doctor.examine import Repeat, compare, repeat_finding
from rocketeval.engines.scripted import exact_answer
from rocketeval.records import Answer, Status


def test_largest_difference_counts() -> None:
    """The largest difference in either direction is used, not the mean."""
    first = [exact_answer(p) for p in (0.5, 0.2, 0.9)]
    again = [exact_answer(p) for p in (0.51, 0.05, 0.9)]
    assert compare(first, again).moved == pytest.approx(0.15)


def test_items_answered_only_once_are_counted() -> None:
    """An item that loses its probability is counted separately."""
    missing = Answer(Status.LOW_MASS)
    assert compare([exact_answer(0.5), missing], [missing, missing]) == Repeat(None, 1)
    assert "no item" in repeat_finding("again", Repeat(None, 1), "").told
    assert "1 item answered only once" in repeat_finding("again", Repeat(0.0, 1), "").told


@pytest.mark.parametrize(
    ("moved", "level", "advice"),
    [(0.0, "good", False), (2e-6, "good", False), (0.02, "note", False), (0.3, "note", True)],
)
def test_only_large_differences_have_advice(moved: float, level: str, advice: bool) -> None:
    """Differences of low precision are a note; larger ones have advice."""
    finding = repeat_finding("again", Repeat(moved, 0), "vllm 0.32.0")
    assert finding.level == level
    assert bool(finding.advice) == advice


@pytest.mark.parametrize(
    ("server", "why"),
    [
        ("vllm 0.32.0", "batch)"),
        ("llamacpp b1", "llama.cpp"),
        ("unknown", "caches)"),
    ],
)
def test_reason_depends_on_the_server(server: str, why: str) -> None:
    """Answers of llama.cpp depend on its cache, those of others on the batch."""
    assert why in repeat_finding("again", Repeat(0.02, 0), server).told
