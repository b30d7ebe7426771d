"""Two times the same items: how far apart, and what that means."""

from __future__ import annotations

import pytest

from rocketeval.doctor.examine import Repeat, compare, repeat_finding
from rocketeval.engines.scripted import exact_answer
from rocketeval.records import Answer, Status


def test_the_largest_move_counts() -> None:
    """Not the mean, and in either direction."""
    first = [exact_answer(p) for p in (0.5, 0.2, 0.9)]
    again = [exact_answer(p) for p in (0.51, 0.05, 0.9)]
    assert compare(first, again).moved == pytest.approx(0.15)


def test_answers_that_come_only_once_are_counted() -> None:
    """An answer that loses its probability is no move, but is not forgotten."""
    gone = Answer(Status.LOW_MASS)
    assert compare([exact_answer(0.5), gone], [gone, gone]) == Repeat(None, 1)
    assert "no item" in repeat_finding("again", Repeat(None, 1), "").told
    assert "1 answers came only once" in repeat_finding("again", Repeat(0.0, 1), "").told


@pytest.mark.parametrize(
    ("moved", "level", "advice"),
    [(0.0, "good", False), (2e-6, "good", False), (0.02, "note", False), (0.3, "note", True)],
)
def test_only_large_moves_ask_for_care(moved: float, level: str, advice: bool) -> None:
    """What low precision always does is a note; more than that comes with advice."""
    finding = repeat_finding("again", Repeat(moved, 0), "vllm 0.32.0")
    assert finding.level == level
    assert bool(finding.advice) == advice


@pytest.mark.parametrize(
    ("server", "why"),
    [
        ("vllm 0.32.0", "computed beside it)"),
        ("llamacpp b1", "llama.cpp: an answer depends on what its cache held"),
        ("unknown", "and on caches)"),
    ],
)
def test_the_reason_fits_the_server(server: str, why: str) -> None:
    """llama.cpp moves with its cache, others with what is computed beside."""
    assert why in repeat_finding("again", Repeat(0.02, 0), server).told
