"""MAD-Eval: the study follows from the stored answers, without a judge."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pytest
from mad_eval import prepare, study
from mad_eval.planted_benchmark import OVERALL, judge_says, optimizer_writes
from mad_eval.spread import in_turn, lay_out

from rocketeval.config import EngineConfig, RunConfig, load_config
from rocketeval.engines.base import EngineAnswers
from rocketeval.engines.scripted import ScriptedEngine
from rocketeval.evolve.ask import PerspectiveAsker
from rocketeval.evolve.cases import Case, CaseTable
from rocketeval.evolve.forest import SPACES, ForestSettings
from rocketeval.evolve.history import split_cases
from rocketeval.evolve.rounds import SEEN
from rocketeval.evolve.stage import HELD_OUT
from rocketeval.evolve.validate import SINGLE_FITTED
from rocketeval.observer import Observer
from rocketeval.pipeline import Run
from rocketeval.records import Answer, GradingTask, Status
from support.planted_run import planted_config

stored_cases = study.stored_cases
STUDY = Path(study.__file__).parent
SHARED_DATA = Path(os.environ.get("ROCKETEVAL_SHARED_DATA", STUDY.parents[2] / "shared" / "data"))
needs_data = pytest.mark.skipif(
    not (SHARED_DATA / "mt_bench").is_dir(), reason="the shared data are not next to this checkout"
)


class Judge(ScriptedEngine):
    """Judge and optimizer of the planted benchmark; every third prompt has one missing answer."""

    async def grade(self, task: GradingTask, known: Mapping[int, Answer]) -> EngineAnswers:
        graded = await super().grade(task, known)
        if len(task.prefix) % 3:
            return graded
        return replace(graded, answers=(Answer(Status.HIDDEN, None), *graded.answers[1:]))


def make_engine(config: EngineConfig, home: Path | None = None) -> ScriptedEngine:
    """Return a scripted judge or optimizer."""
    return Judge(judge_says, optimizer_writes, model=config.model, labels=config.labels)


@contextmanager
def small() -> Iterator[None]:
    """Use forests of a few trees, and force two experts only."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(SPACES, "short", (ForestSettings(5, 3, 2, 5),))
        patch.setattr(study, "FORCED", (2,))
        yield


@pytest.fixture
def small_forests() -> Iterator[None]:
    """Use small forests in one test."""
    with small():
        yield


@dataclass(frozen=True)
class Finished:
    """A finished evolution, what was stored of it, and its tables as the judge answers them."""

    config: RunConfig
    path: Path
    stored: Any
    answers: pa.Table
    seen: CaseTable
    held_out: CaseTable


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """A run of one round on the planted benchmark."""
    folder = tmp_path_factory.mktemp("finished")
    config = planted_config(folder)
    run = Run(config)
    with small():
        asyncio.run(run.evolve(make_engine=make_engine))
    path = folder / "stored.parquet"
    stored, answers = stored_cases.keep(config, path)
    split = split_cases(run.store.inputs, config.evolve)

    async def ask(cases: tuple[Case, ...], part: str) -> CaseTable:
        context = (run.store, config, Observer(), asyncio.Event())
        asker = PerspectiveAsker(*context, asking="each", folder=part, make_engine=make_engine)
        return (await asker.ask(stored.perspectives, cases)).table

    with run.store.locked():
        tables = [
            asyncio.run(ask(cases, part))
            for cases, part in ((split.seen, SEEN), (split.held_out, HELD_OUT))
        ]
    return Finished(config, path, stored, answers, *tables)


@pytest.fixture
def without_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail on any attempt to create a judge."""
    monkeypatch.setattr(ScriptedEngine, "create", None)


@pytest.mark.usefixtures("without_judge", "small_forests")
def test_study_from_the_file_is_that_of_the_run(finished: Finished, tmp_path: Path) -> None:
    """The same tables and the same printed lines, where no run is; missing answers included."""
    elsewhere = finished.config.model_copy(update={"output": tmp_path / "none"})
    cases = stored_cases.read(elsewhere, finished.path)
    assert not elsewhere.run_path.exists()
    asked = replace(cases, seen=finished.seen, held_out=finished.held_out)
    for mine, theirs in ((cases.seen, asked.seen), (cases.held_out, asked.held_out)):
        assert mine.cases == theirs.cases
        assert mine.about_responses == theirs.about_responses
        assert mine.about_queries == theirs.about_queries
        np.testing.assert_array_equal(mine.answers, theirs.answers)
        np.testing.assert_array_equal(mine.traits, theirs.traits)
        assert np.isnan(mine.answers).any()
    # A checklist of the overall question alone is the single prompt.
    about = [each.text for each in cases.seen.about_responses]
    single = {
        (row["query_id"], row["candidate"]): row["p_yes"][about.index(OVERALL)]
        for row in finished.answers.to_pylist()
        if row["question_set"] == "each-graded"
    }
    lines, found = study.study(cases, "planted", single)
    again, same = study.study(asked, "planted", single)
    assert lines == again
    assert study.as_json(found) == study.as_json(same)
    (plain,) = study.PLAIN
    assert any(line.startswith(plain) for line in lines)
    arms = next(found[name]["arms"] for name in ("seeds", "all of these") if name in found)
    assert study.as_json(arms[plain]) == study.as_json(arms[SINGLE_FITTED["pairs"]])
    assert found["evolution"]["rounds"][0]["round"] == 1


def test_no_text_and_no_vote_is_stored(finished: Finished) -> None:
    """Answers by id, and our own questions; nothing that people or candidates wrote."""
    assert finished.answers.column_names == ["question_set", "query_id", "candidate", "p_yes"]
    metadata = orjson.loads(finished.path.with_suffix(".json").read_bytes())
    assert {each["question_set"] for each in metadata["judges"]} == {"each-graded", "queries"}
    texts = {text for column in range(3) for text in finished.answers[column].to_pylist()}
    texts.add(finished.path.with_suffix(".json").read_text(encoding="utf-8"))
    benchmark = Path(finished.config.benchmark.path)
    for name in ("queries", "responses"):
        for line in (benchmark / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
            written = orjson.loads(line)["text"]
            assert not any(written in text for text in texts)
    assert not any("seem to look at the length" in text for text in texts)
    assert set(metadata) == {each.name for each in fields(finished.stored)}


@pytest.mark.usefixtures("without_judge")
def test_answers_of_other_cases_are_refused(finished: Finished) -> None:
    """Another split is another study."""
    evolve = finished.config.evolve.model_copy(update={"share": 0.6})
    other = finished.config.model_copy(update={"evolve": evolve})
    with pytest.raises(SystemExit, match="another benchmark"):
        stored_cases.read(other, finished.path)


def config_of(dataset: str, folder: Path) -> RunConfig:
    """Return a config of the study whose benchmark is laid out in `folder`."""
    config = load_config(STUDY / f"{dataset}.yaml")
    if dataset == "mt_bench":
        lay_out(SHARED_DATA / "mt_bench", folder / dataset, in_turn)
    else:
        prepare.convert(SHARED_DATA / "pandalm" / "testset_v1.jsonl.gz", folder / dataset)
    benchmark = config.benchmark.model_copy(update={"path": folder / dataset})
    return config.model_copy(update={"benchmark": benchmark, "output": folder, "cache": None})


@needs_data
@pytest.mark.usefixtures("small_forests")
def test_mt_bench_by_a_scripted_judge(tmp_path: Path) -> None:
    """From the config to the tables; the checklist's stored scores are those of its responses."""
    config = config_of("mt_bench", tmp_path)
    assert config.benchmark.limit is None
    judge = config.judge.model_copy(update={"engine": "scripted"})
    changes = {"seeds": ("prompts",), "rounds": 0, "optimizer": None, "folds": 2}
    evolve = config.evolve.model_copy(update=changes)
    benchmark = config.benchmark.model_copy(update={"limit": 10})
    some = config.model_copy(update={"judge": judge, "evolve": evolve, "benchmark": benchmark})
    asyncio.run(Run(some).evolve(make_engine=make_engine))
    path = tmp_path / "stored.parquet"
    stored_cases.keep(some, path)
    cases = stored_cases.read(some, path)
    scores = study.checklist_scores("mt_bench", cases.stored.model)
    assert scores is not None
    lines, _ = study.study(cases, "mt_bench", scores)
    assert sum(line.startswith("plain checklist, cut points learned") for line in lines) == 1
    # A response of every case of the whole benchmark has a score.
    split = stored_cases.load_split(config)
    wanted = {(case.query_id, name) for case in split.cases for name in case.candidates}
    assert wanted <= scores.keys()
    assert len({case.query_id for case in split.cases}) == 80


def test_a_checklist_of_another_judge_is_left_out() -> None:
    """It would be compared with answers that are not its own judge's."""
    assert study.checklist_scores("mt_bench", "another judge") is None
    assert study.checklist_scores("pandalm", "qwen2.5-coder-1.5b-instruct-int8") is None


@needs_data
@pytest.mark.parametrize("dataset", ["pandalm", "mt_bench"])
def test_recorded_study_follows_from_the_stored_answers(
    dataset: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planned comparisons and all else about the whole pool, but not forced experts.

    study.py computes these and the seeds alone, too; that takes several times as long.
    """
    path = stored_cases.stored_path(STUDY / f"{dataset}.yaml")
    if not path.exists():
        pytest.skip("the judge's answers are not stored yet")
    monkeypatch.setattr(study, "FORCED", ())
    cases = stored_cases.read(config_of(dataset, tmp_path), path)
    checklist = study.checklist_scores(dataset, cases.stored.model)
    lines, found = study.study(cases, dataset, checklist, whole_pool_only=True)
    recorded = (study.RECORDED / f"{dataset}.txt").read_text(encoding="utf-8")
    assert not set("\n".join(lines).splitlines()) - set(recorded.splitlines())
    kept = orjson.loads((study.RECORDED / f"{dataset}.json").read_bytes())
    (name,) = {"all of these", "seeds"} & found.keys()
    for count in (2, 3, 4):
        del kept[name]["arms"][f"{count} experts"]
    again = orjson.loads(study.as_json(found))
    assert again == {each: kept[each] for each in again}
