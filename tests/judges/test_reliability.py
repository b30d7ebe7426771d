"""Agreement of judges: hand-made answers, missing answers, and refusals."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rocketeval
from rocketeval.engines.base import EngineAnswers
from rocketeval.engines.scripted import ScriptedEngine
from rocketeval.errors import BenchmarkError, ConfigError, StageMissing
from rocketeval.grading.methods import DIGITS
from rocketeval.judges.reliability import JudgeReliability, compare_judges
from rocketeval.judges.runs import JudgedRun, open_run
from rocketeval.pipeline import Run
from rocketeval.records import Answer, GradingTask, Status
from rocketeval.store.run import RunStore
from support.make import QUERIES, as_json, make_config, write_benchmark, write_grid, write_jsonl

Judge = Callable[..., JudgedRun]


def likes(word: str) -> Callable[[str, str], float]:
    return lambda prefix, suffix: 0.9 if word in prefix else 0.4


class Silent(ScriptedEngine):
    """Judges everything without a yes or no."""

    async def grade(self, task: GradingTask, known: Any) -> EngineAnswers:
        """Hide every answer."""
        graded = await super().grade(task, known)
        return EngineAnswers(
            tuple(Answer(Status.HIDDEN) for _ in graded.answers), graded.usage, None
        )


@pytest.fixture
def judged(tmp_path: Path) -> Judge:
    """Grade the benchmark with one more judge."""

    def run(model: str, engine: ScriptedEngine, **changes: Any) -> JudgedRun:
        config = make_config(tmp_path, name=model, **changes)
        asyncio.run(Run(config, judge=engine).to_judgments())
        return open_run(config.run_path)

    return run


def says(model: str, script: Callable[[str, str], float], **settings: Any) -> ScriptedEngine:
    return ScriptedEngine(script, model=model, **settings)


def compared(*runs: JudgedRun) -> JudgeReliability:
    return compare_judges(runs, runs[0].config.ranking)


def test_figures_match_hand_computation(judged: Judge) -> None:
    """Two judges agree, the third answers the opposite."""
    scripts = (likes("left"), likes("left"), likes("right"))
    runs = [judged(name, says(name, script)) for name, script in zip("abc", scripts, strict=True)]
    found = compared(*runs)
    assert (found.judges, found.yes_no) == (("a", "b", "c"), True)
    assert (found.responses, found.left_out, found.other_items) == (6, 0, 0)
    assert [(pair.one, pair.two) for pair in found.pairs] == [("a", "b"), ("a", "c"), ("b", "c")]
    same, other, _ = found.pairs
    assert (same.items.items, same.items.largest) == (12, 0.0)
    assert same.kappa is not None
    assert same.kappa.value == 1.0
    assert other.kappa is not None
    assert other.kappa.value == -1.0
    assert other.items.differing is not None
    assert other.items.differing.value == 1.0
    assert other.items.difference is not None
    assert other.items.difference.value == pytest.approx(0.5)
    assert [(each.position, each.items) for each in other.items.by_position] == [(1, 6), (2, 6)]
    assert found.items.alpha is not None
    # Each unit has two of one kind and one of the other: 2/3 of its pairs differ, 18/35 of all.
    assert found.items.alpha.value == pytest.approx(1 - (2 / 3) / (18 / 35))
    assert found.scores.variance is not None
    assert found.scores.variance.value == pytest.approx(4.5**2 / 3)
    assert (found.orders.cells[0][1].reason or "").startswith("only 2 candidates have both")


def test_other_scale_does_not_matter(judged: Judge) -> None:
    """Scores are computed here, on the first run's scale."""
    one = judged("a", says("a", likes("left")))
    two = judged("b", says("b", likes("left")), scorer={"scale": [0, 100]})
    variance = compared(one, two).scores.variance
    assert variance is not None
    assert variance.value == pytest.approx(0.0)


def test_response_missing_from_one_judge_is_left_out(judged: Judge) -> None:
    """It is left out for every judge, and counted."""
    whole = judged("a", says("a", likes("left")))
    holed = judged("b", says("b", likes("left"), fail_on="left explains the sea"))
    found = compared(whole, holed)
    assert (found.responses, found.left_out, found.other_items) == (5, 1, 0)
    assert found.items.units == 10


def test_other_checklists_are_left_out(judged: Judge, tmp_path: Path) -> None:
    """Only queries with the same items are compared; runs without any are refused."""
    one = judged("a", says("a", likes("left")))
    checklists = tmp_path / "benchmark" / "checklists.jsonl"
    items = [
        {"query_id": q, "items": ["Is it right?", "Is it new?" if q == "sea" else "Is it clear?"]}
        for q in QUERIES
    ]
    write_jsonl(checklists, items)
    found = compared(one, judged("b", says("b", likes("left"))))
    assert (found.responses, found.left_out, found.other_items) == (4, 0, 2)
    write_jsonl(checklists, [{"query_id": q, "items": ["Is it fun?"]} for q in QUERIES])
    author = {"min_items": 1}
    other = judged("c", says("c", likes("left")), author=author)
    with pytest.raises(BenchmarkError, match="share no response that was judged with the same"):
        compared(one, other)


def test_other_responses_under_the_same_names_are_refused(judged: Judge, tmp_path: Path) -> None:
    """A response that changed between two runs is detected by its text."""
    one = judged("a", says("a", likes("left")))
    write_benchmark(tmp_path / "benchmark", texts={"sea": "something new"})
    other = judged("b", says("b", likes("left")))
    with pytest.raises(BenchmarkError, match="'sea', or the response of 'left'"):
        compared(one, other)


def test_judge_without_answers_is_refused(judged: Judge) -> None:
    """Hidden answers do not count, and judges of different responses share nothing."""
    one = judged("a", says("a", likes("left")))
    silent = judged("b", Silent(model="b"))
    with pytest.raises(BenchmarkError, match=r"runs/b answered none of the items") as caught:
        compared(one, silent)
    assert "Leave this run out" in (caught.value.hint or "")
    left = judged("c", says("c", likes("left"), fail_on="right explains"))
    right = judged("d", says("d", likes("left"), fail_on="left explains"))
    with pytest.raises(BenchmarkError, match="share no response"):
        compared(left, right)


def test_single_repeated_and_ungraded_runs_are_refused(judged: Judge, tmp_path: Path) -> None:
    """A comparison needs two different graded runs."""
    one = judged("a", says("a", likes("left")))
    with pytest.raises(ConfigError, match="at least two runs"):
        compared(one)
    with pytest.raises(ConfigError, match="given twice"):
        compared(one, one)
    config = make_config(tmp_path, name="empty")
    with pytest.raises(StageMissing, match="has not been graded yet"):
        compared(one, JudgedRun(RunStore(config.run_path), config))


def test_grades_are_compared_as_numbers(judged: Judge) -> None:
    """Grades have no kappa, and alpha uses distances."""
    method = {"kind": "direct"}
    runs = [
        judged(name, says(name, likes("left"), labels=DIGITS), method=method) for name in ("a", "b")
    ]
    found = compared(*runs)
    assert not found.yes_no
    assert found.items.level == "interval"
    assert found.items.alpha is not None
    assert found.items.alpha.value == pytest.approx(1.0)
    assert [pair.kappa for pair in found.pairs] == [None]


def test_same_judge_in_two_runs_is_named(judged: Judge, tmp_path: Path) -> None:
    """It is recognized by its fingerprint, whatever the runs are called."""
    one = judged("a", says("a", likes("left")))
    config = make_config(tmp_path, name="again")
    rocketeval.run(config, judge=says("a", likes("left")))
    words = "\n".join(compared(one, open_run(config.run_path)).advice)
    assert "a (a) and a (again) are the same judge" in words


def test_reliability_is_dropped_when_scores_change(judged: Judge, tmp_path: Path) -> None:
    """reliability.json is removed together with the scores it is based on."""
    other = judged("b", says("b", likes("right")))
    run = Run(make_config(tmp_path, name="a"), judge=says("a", likes("left")))
    rocketeval.run(run.config, judge=says("a", likes("left")))
    found = run.compare_judges([other.store.path])
    path = run.store.path / "reliability.json"
    kept = json.loads(path.read_text())
    assert kept["judges"] == ["a", "b"]
    assert kept["pairs"][0]["items"]["differing"]["value"] == 1.0
    assert kept["advice"] == list(found.advice)
    assert as_json(run.store.read(JudgeReliability)) == as_json(found)
    assert not (other.store.path / "reliability.json").exists()
    run.score()
    assert not path.exists()


def test_penalties_count_against_a_score(judged: Judge, tmp_path: Path) -> None:
    """To one judge later candidates are ruder, to the other they are righter."""
    folder = write_grid(tmp_path / "benchmark", queries=2, candidates=3, items=1)
    items = ["Is it right?", {"text": "Is it rude?", "weight": -5}]
    rows = [{"query_id": query, "items": items} for query in ("q0", "q1")]
    write_jsonl(folder / "checklists.jsonl", rows)

    def rises(word: str) -> Callable[[str, str], float]:
        place = re.compile(r"Answer (\d) to")

        def answer(prefix: str, suffix: str) -> float:
            found = place.search(prefix)
            assert found is not None
            return 0.3 + 0.2 * int(found[1]) * (word in suffix)

        return answer

    found = compared(*(judged(word, says(word, rises(word))) for word in ("rude", "right")))
    spearman = found.orders.cells[0][1].spearman
    assert spearman is not None
    assert spearman.value == -1.0


def test_turns_of_a_conversation_are_resampled_together(judged: Judge, tmp_path: Path) -> None:
    """Intervals need several conversations, not several turns."""
    folder = write_benchmark(tmp_path / "benchmark")
    scripts = (likes("left"), likes("right"))
    apart = compared(*(judged(name, says(name, s)) for name, s in zip("ab", scripts, strict=True)))
    rows = [{"id": q, "text": f"Why the {q}?", "cluster": "one"} for q in QUERIES]
    write_jsonl(folder / "queries.jsonl", rows)
    runs = [judged(name, says(name, s)) for name, s in zip("cd", scripts, strict=True)]
    assert (apart.items.queries, compared(*runs).items.queries) == (3, 1)
