"""Analyses are read from a cot run, by the content of query and response."""

from __future__ import annotations

from pathlib import Path

import pytest

import rocketeval
from rocketeval.config import RunConfig
from rocketeval.engines.scripted import ScriptedEngine
from rocketeval.errors import BenchmarkError, ConfigError, StageMissing
from rocketeval.grading.ask import AnalysisOptions, analysis_prompt
from rocketeval.pipeline import Run
from rocketeval.prompts.render import Template
from rocketeval.records import Checklist, Query, Response
from support.make import make_config, write_benchmark

CHECKLIST = Checklist("sky", ("How good?",))


def written(prompt: str) -> str:
    """Return an analysis that names its response."""
    name = "left" if "left explains" in prompt else "right"
    return f'{{"strengths": "what {name} says", "score": "8"}}'


def cot_config(tmp_path: Path, name: str = "cot") -> RunConfig:
    """Return the config of a run that writes analyses."""
    return make_config(tmp_path, name, method={"kind": "cot"})


def shown(run: Path, query: Query, response: Response) -> str:
    """Return the prompt about one response."""
    prompt = analysis_prompt(Template.load("analysis"), AnalysisOptions(run=run))
    return prompt.render(query, response, CHECKLIST, b"").prefix


async def test_each_response_gets_its_own_analysis(tmp_path: Path) -> None:
    """The analysis has no score, and does not depend on names."""
    config = cot_config(tmp_path)
    await Run(config, judge=ScriptedEngine(text=written)).to_judgments()
    query = Query("renamed", "Why the sky?")
    text = shown(config.run_path, query, Response("renamed", "me", "right explains the sky"))
    assert '{"strengths": "what right says"\n<<<end of turn>>>' in text
    assert '"score"' not in text


async def test_identical_responses_share_an_analysis(tmp_path: Path) -> None:
    """A judgment is made for one of two identical responses, and used for both."""
    write_benchmark(tmp_path / "benchmark", texts={"sky": "left explains the same"})
    config = cot_config(tmp_path)
    await Run(config, judge=ScriptedEngine(text=written)).to_judgments()
    query = Query("sky", "Why the sky?")
    for name in ("left", "right"):
        response = Response("sky", name, "left explains the same")
        assert "what left says" in shown(config.run_path, query, response)


async def test_changed_response_has_no_analysis(tmp_path: Path) -> None:
    """The old analysis is about another text."""
    config = cot_config(tmp_path)
    await Run(config, judge=ScriptedEngine(text=written)).to_judgments()
    with pytest.raises(BenchmarkError, match="no analysis"):
        shown(config.run_path, Query("sky", "Why the sky?"), Response("sky", "left", "changed"))


def test_only_a_graded_cot_run_has_analyses(tmp_path: Path) -> None:
    """A folder, another method and an ungraded run have different errors."""
    with pytest.raises(ConfigError, match="is not a run directory"):
        shown(tmp_path, Query("q", "?"), Response("q", "c", "x"))
    outcome = rocketeval.run(make_config(tmp_path, "plain"), judge=ScriptedEngine())
    with pytest.raises(ConfigError, match="'checklist', which writes no analyses"):
        shown(outcome.path, Query("q", "?"), Response("q", "c", "x"))
    config = cot_config(tmp_path, "ungraded")
    Run(config, judge=ScriptedEngine()).load()
    with pytest.raises(StageMissing, match="has not been graded"):
        shown(config.run_path, Query("q", "?"), Response("q", "c", "x"))


async def test_writer_is_part_of_the_judge(tmp_path: Path) -> None:
    """Another writer makes another judge."""
    hashes = set()
    for name in ("one", "two"):
        config = cot_config(tmp_path, name)
        await Run(config, judge=ScriptedEngine(text=written, model=name)).to_judgments()
        options = AnalysisOptions(run=config.run_path)
        hashes.add(analysis_prompt(Template.load("analysis"), options).hash)
    assert len(hashes) == 2
