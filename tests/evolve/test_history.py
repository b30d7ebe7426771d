"""Stored rounds, and how the next command uses them."""

from __future__ import annotations

from pathlib import Path

import pytest

from rocketeval.errors import RunMismatch, StoreError
from rocketeval.evolve.history import (
    History,
    JudgeUse,
    OutOfFoldFigure,
    Round,
    Spending,
    best_round,
    rounds_without_gain,
)
from rocketeval.prices import PricedUsage
from rocketeval.records import Usage


def a_round(number: int, before: float, after: float, people: int = 0) -> Round:
    """A round with known figures."""
    return Round(
        round=number,
        split="s",
        pool=9,
        people=people,
        mistakes=4,
        proposed={"failures": 2},
        dropped={},
        failed={},
        analyses=("Because.",),
        kept=("a", "b"),
        before=OutOfFoldFigure(before, 0.1),
        after=OutOfFoldFigure(after, 0.1),
        judge=JudgeUse(questions=12, requests=3),
        optimizer=PricedUsage(requests=1),
        seconds=1.0,
    )


def test_rounds_are_restored(tmp_path: Path) -> None:
    """Also after a torn line."""
    history = History(tmp_path / "evolve" / "rounds.jsonl")
    assert history.read("s") == []
    history.append(a_round(1, 0.5, 0.6))
    assert history.path.read_text().count("\n") == 1
    with history.path.open("ab") as stream:
        stream.write(b'{"round": 2, "spl')
    history.append(a_round(2, 0.6, 0.7))
    assert history.read("s") == [a_round(1, 0.5, 0.6), a_round(2, 0.6, 0.7)]


def test_proposals_are_recorded_before_the_round_ends(tmp_path: Path) -> None:
    """The ids of all rounds, including unfinished ones."""
    history = History(tmp_path / "evolve" / "rounds.jsonl")
    assert history.proposed() == set()
    history.announce(1, ["a", "b"])
    history.announce(2, ["c"])
    assert history.proposed() == {"a", "b", "c"}
    assert history.read("s") == []


def test_rounds_on_another_split_are_refused(tmp_path: Path) -> None:
    """The queries they used could be held out now."""
    history = History(tmp_path / "rounds.jsonl")
    history.append(a_round(1, 0.5, 0.6))
    with pytest.raises(RunMismatch, match="mistakes on other queries") as error:
        history.read("t")
    assert "another `name`" in error.value.hint


def test_invalid_history_is_an_error(tmp_path: Path) -> None:
    """A line without the fields of a round."""
    path = tmp_path / "rounds.jsonl"
    path.write_text('{"round": 1}\n')
    with pytest.raises(StoreError, match="damaged"):
        History(path).read("s")


def test_best_round_is_the_first_if_tied() -> None:
    """Chance may lead back to the start; people's additions may help before a round."""
    assert best_round([]) == 0
    assert best_round([a_round(1, 0.5, 0.5)]) == 0
    assert best_round([a_round(1, 0.5, 0.6), a_round(2, 0.6, 0.55)]) == 1
    assert best_round([a_round(1, 0.5, 0.4), a_round(2, 0.7, 0.65)]) == 1


def test_patience_counts_rounds_since_the_best() -> None:
    """The count restarts when a person adds a perspective."""
    done = [a_round(1, 0.5, 0.6), a_round(2, 0.6, 0.55), a_round(3, 0.55, 0.58)]
    assert rounds_without_gain([], 0) == 0
    assert rounds_without_gain(done[:1], 0) == 0
    assert rounds_without_gain(done, 0) == 2
    assert rounds_without_gain(done, 1) == 0


def test_usage_adds_up_over_commands(tmp_path: Path) -> None:
    """By payee; calls are judge questions plus optimizer requests; no line without usage."""
    path = tmp_path / "spent.jsonl"
    Spending(path).judge_used("round 1", Usage(requests=5, prompt_tokens=50), 40)
    Spending(path).judge_used("round 1", Usage(), 0)
    Spending(path).optimizer_used("round 1", Usage(requests=2, completion_tokens=7))
    Spending(path).judge_used("round 2", Usage(requests=1, prompt_tokens=10), 8)
    spent = Spending(path)
    assert spent.total("judge") == Usage(requests=6, prompt_tokens=60)
    assert spent.questions == 48
    assert spent.calls == 50
    assert len([line for line in path.read_text().splitlines() if line]) == 3
