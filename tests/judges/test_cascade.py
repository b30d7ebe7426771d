"""Cascades of two judges: what is drawn, asked, estimated and refused."""

from __future__ import annotations

import asyncio
import csv
import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rocketeval
from rocketeval.config import parse_config
from rocketeval.engines.scripted import ScriptedEngine
from rocketeval.errors import BenchmarkError, ConfigError, Stopped
from rocketeval.judges.cascade import Cascade, gains_in_words
from rocketeval.judges.draw import _refuse_few
from rocketeval.observer import Observer
from rocketeval.pipeline import Run
from rocketeval.records import Judgment
from rocketeval.scoring.stage import read_grid
from rocketeval.store.codec import decode_finding
from support.make import as_json, write_grid

QUERIES, CANDIDATES, ITEMS = 60, 3, 2


def noise(prefix: str, item: str, salt: str = "") -> float:
    """Return a number from -0.5 to 0.5 that depends on the texts alone."""
    return int(hashlib.md5((prefix + item + salt).encode()).hexdigest()[:8], 16) / 2**32 - 0.5


def number_of(prefix: str) -> int:
    """Return the candidate's number."""
    return int(prefix.partition("Answer ")[2][0])


def strong_answer(prefix: str, item: str) -> float:
    """Prefer candidates with a low number."""
    return min(0.99, max(0.01, 0.75 - 0.1 * number_of(prefix) + 0.5 * noise(prefix, item)))


def cheap_answer(prefix: str, item: str) -> float:
    """Follow the strong judge with noise, and prefer candidates with a high number."""
    biased = strong_answer(prefix, item) + 0.2 * number_of(prefix)
    return min(0.99, max(0.01, biased + 0.2 * noise(prefix, item, "cheap")))


def config_of(folder: Path, judge: str, **more: Any) -> dict[str, Any]:
    """Return the config of a run."""
    return {
        "name": judge,
        "benchmark": {"path": str(folder / "benchmark")},
        "judge": {"model": judge, "engine": "scripted"},
        "output": str(folder / "runs"),
        "cache": None,
        "ranking": {"bootstrap": 50},
        **more,
    }


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a benchmark and the cheap judge's run."""
    made = tmp_path_factory.mktemp("graded")
    write_grid(made / "benchmark", queries=QUERIES, candidates=CANDIDATES, items=ITEMS)
    rocketeval.run(config_of(made, "cheap"), judge=ScriptedEngine(cheap_answer, model="cheap"))
    return made


@pytest.fixture
def folder(graded: Path, tmp_path: Path) -> Path:
    """Return a copy of it."""
    return Path(shutil.copytree(graded, tmp_path / "copy"))


def strong_run(
    folder: Path, engine: ScriptedEngine, observer: Observer | None = None, **more: Any
) -> Run:
    """Return the strong judge's run."""
    config = parse_config(config_of(folder, "strong", **more))
    return Run(config, judge=engine, observer=observer)


def cascade(folder: Path, engine: ScriptedEngine | None = None, **more: Any) -> Cascade:
    """Return a cascade of both judges."""
    options = {key: more.pop(key) for key in ("share", "seed") if key in more}
    run = strong_run(folder, engine or ScriptedEngine(strong_answer, model="strong"), **more)
    return asyncio.run(run.cascade(folder / "runs" / "cheap", folder / "out", **options))


def drawn_in(folder: Path) -> set[tuple[str, str]]:
    """Return the responses that draw.csv names as drawn."""
    with (folder / "out" / "draw.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == QUERIES * CANDIDATES
    assert np.mean([float(row["probability"]) for row in rows]) == pytest.approx(0.3, abs=1e-6)
    return {(row["query_id"], row["candidate"]) for row in rows if row["drawn"] == "True"}


def test_estimate_corrects_the_cheap_judge(folder: Path) -> None:
    """The cheap judge turns the order around; the cascade finds the strong judge's means."""
    engine = ScriptedEngine(strong_answer, model="strong")
    found = cascade(folder, engine)
    assert [row.candidate for row in found.rows] == ["c0", "c1", "c2"]
    assert [row.group for row in found.rows] == [1, 2, 3]
    assert engine.items_asked == ITEMS * found.drawn == ITEMS * found.asked
    assert found.responses == QUERIES * CANDIDATES
    assert found.drawn == pytest.approx(0.3 * found.responses, abs=6)
    full = rocketeval.run(
        config_of(folder, "full"), judge=ScriptedEngine(strong_answer, model="strong")
    )
    means = {row.candidate: row.mean_score.value for row in full.ranking.rows}
    for row in found.rows:
        assert row.mean.low < means[row.candidate] < row.mean.high
        assert row.cheap_off.low < row.cheap_mean - means[row.candidate] < row.cheap_off.high
    assert found.rows[2].cheap_off.low > 0.5
    assert found.width_to_share < 0.8
    assert 1.0 < found.width_to_all < 2.0


def test_files_and_words_say_what_it_is(folder: Path) -> None:
    """The draw and the estimate are written, and sentences name both judges."""
    found = cascade(folder)
    out = folder / "out"
    read = decode_finding(Cascade, json.loads((out / "cascade.json").read_text()), out)
    assert as_json(read) == as_json(found)
    assert (out / "ranking.csv").read_text().startswith("rank,")
    assert len(drawn_in(folder)) == found.drawn
    words = " ".join(gains_in_words(found))
    assert f"Estimated mean scores of strong over all responses; it graded {found.drawn}" in words
    assert "The means of cheap alone are off by" in words
    assert "(c2)" in words


def test_repeated_command_asks_for_nothing(folder: Path) -> None:
    """The draw is the same, and so is every figure except what was asked."""
    first = cascade(folder)
    engine = ScriptedEngine(strong_answer, model="strong")
    second = cascade(folder, engine)
    assert (engine.items_asked, second.asked) == (0, 0)
    assert second.rows == first.rows


def test_interrupted_cascade_continues(folder: Path) -> None:
    """What was graded before the interruption is not asked again."""
    engine = ScriptedEngine(strong_answer, model="strong")

    class Interrupting(Observer):
        count = 0

        def judged(self, judgment: Judgment) -> None:
            self.count += 1
            if self.count == 10:
                run.stop.set()

    run = strong_run(folder, engine, Interrupting())
    with pytest.raises(Stopped):
        asyncio.run(run.cascade(folder / "runs" / "cheap", folder / "out"))
    before = engine.items_asked
    assert before > 0
    assert not (folder / "out" / "cascade.json").exists()
    drawn = drawn_in(folder)
    found = cascade(folder, engine)
    assert engine.items_asked == ITEMS * found.drawn
    assert drawn_in(folder) == drawn


def test_larger_share_adds_to_the_draw_and_a_run_grades_the_rest(folder: Path) -> None:
    """Drawn responses stay drawn; the strong run is an ordinary one that can be finished."""
    engine = ScriptedEngine(strong_answer, model="strong")
    small = cascade(folder, engine, share=0.2)
    grade = strong_run(folder, engine).store.manifest().stages.grade
    assert (grade.unfinished, grade.not_needed) == (0, small.responses - small.drawn)
    large = cascade(folder, engine, share=0.6)
    assert engine.items_asked == ITEMS * large.drawn
    assert large.drawn > small.drawn
    assert large.rows[0].mean.high - large.rows[0].mean.low < (
        small.rows[0].mean.high - small.rows[0].mean.low
    )
    outcome = rocketeval.run(config_of(folder, "strong"), judge=engine)
    assert engine.items_asked == ITEMS * QUERIES * CANDIDATES
    cascade(folder, engine, share=0.2)
    assert strong_run(folder, engine).store.manifest().stages.grade.not_needed == 0
    whole = cascade(folder, engine, share=1.0)
    assert engine.items_asked == ITEMS * QUERIES * CANDIDATES
    for row in outcome.ranking.rows:
        (same,) = (one for one in whole.rows if one.candidate == row.candidate)
        assert same.mean.value == pytest.approx(row.mean_score.value, abs=1e-5)
    assert read_grid(strong_run(folder, engine).store).missing == 0


def test_failed_responses_are_counted_and_named(folder: Path) -> None:
    """A drawn response that fails is named, and the others of its candidate get its weight."""
    cascade(folder)
    query, candidate = sorted(drawn_in(folder))[0]
    text = f"Answer {candidate[1]} to {query}."
    engine = ScriptedEngine(strong_answer, model="strong", fail_on=text)
    found = cascade(folder, engine, name="again")
    assert found.failed == (f"{candidate} on {query}",)
    (row,) = (row for row in found.rows if row.candidate == candidate)
    assert row.scored == row.drawn - 1
    assert f"{candidate} on {query}" in " ".join(gains_in_words(found))


def test_unfit_runs_are_refused(folder: Path) -> None:
    """Other scales, benchmarks, checklists and settings are errors before anything is asked."""
    engine = ScriptedEngine(strong_answer, model="strong")
    with pytest.raises(ConfigError, match="different scales"):
        cascade(folder, engine, scorer={"scale": [0, 1]})
    limited = {"path": str(folder / "benchmark"), "limit": 50}
    with pytest.raises(BenchmarkError, match="10 queries and 0 candidates"):
        cascade(folder, engine, benchmark=limited)
    with pytest.raises(BenchmarkError, match="another checklist"):
        cascade(folder, engine, author={"kind": "fixed", "options": {"items": ["Is it short?"]}})
    with pytest.raises(ConfigError, match="stops early"):
        cascade(folder, engine, until="best")
    with pytest.raises(ConfigError, match="learns from a whole run"):
        cascade(folder, engine, scorer={"kind": "extra_trees"})
    with pytest.raises(ConfigError, match="needs 6") as caught:
        cascade(folder, engine, share=0.05)
    assert "--share 0.1" in caught.value.hint
    with pytest.raises(ConfigError, match="both judges"):
        cascade(folder, engine, name="cheap")
    assert engine.items_asked == 0


def test_another_seed_needs_another_folder(folder: Path) -> None:
    """A second draw in the same folder is refused."""
    cascade(folder)
    with pytest.raises(ConfigError, match="seed 0, not 1"):
        cascade(folder, seed=1)


def test_too_small_a_draw_is_shown_as_smaller() -> None:
    """A count that rounds to the minimum is not refused as if it were the minimum."""
    with pytest.raises(ConfigError, match=r"about 5\.98 responses of 'x'.*needs 6"):
        _refuse_few(np.full((20, 1), 0.299), ["x"], 0.299)
    _refuse_few(np.full((20, 1), 0.3) - 1e-16, ["x"], 0.3)
