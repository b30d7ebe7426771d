"""An edited checklist: only new items are asked, with the answers of a fresh run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from rocketeval.checklists.export import export_checklists
from rocketeval.config import RunConfig
from rocketeval.engines.scripted import ScriptedEngine
from rocketeval.grading.methods import create_method
from rocketeval.grading.work import known_answers
from rocketeval.pipeline import Run
from rocketeval.records import Checklist
from rocketeval.store.run import RunStore
from support.make import CANDIDATES, QUERIES, make_config

RESPONSES = len(QUERIES) * len(CANDIDATES)


def edited(tmp_path: Path, name: str = "run", **changes: Any) -> RunConfig:
    """Return a run with the checklists of the edited file."""
    author = {"kind": "file", "options": {"file": str(tmp_path / "mine.yaml")}}
    return make_config(tmp_path, name, author=author, cache=None, **changes)


async def judge(config: RunConfig, **settings: Any) -> tuple[int, list[tuple[float | None, ...]]]:
    """Grade; return the number of items asked, and all current answers."""
    engine = ScriptedEngine(**settings)
    run = Run(config, judge=engine)
    await run.to_judgments()
    run.score()
    keys = run.store.scores(["judgment"])["judgment"].to_pylist()
    judged = run.store.judgments_of(keys)
    return engine.items_asked, [tuple(a.p_yes for a in judged[key].answers) for key in keys]


async def start(tmp_path: Path) -> dict[str, Any]:
    """Grade a first time, export, and return the content of the file."""
    config = make_config(tmp_path, cache=None)
    asked, _ = await judge(config)
    assert asked == 2 * RESPONSES
    export_checklists(Run(config).store, tmp_path / "mine.yaml")
    content: dict[str, Any] = yaml.safe_load((tmp_path / "mine.yaml").read_text())
    assert content["for_all"]["items"] == ["Is it right?", "Is it clear?"]
    return content


@pytest.mark.parametrize(
    ("items", "new"),
    [
        (["Is it right?", "Is it clear?"], 0),
        (["Is it clear?", "Is it right?"], 0),
        (["Is it clear?"], 0),
        (["Is it right?", "Is it plain?"], 1),
        (["Is it new?", "Is it right?", "Is it clear?", "Is it old?"], 2),
        (["Is it other?"], 1),
    ],
)
async def test_only_new_items_are_asked(tmp_path: Path, items: list[str], new: int) -> None:
    """Items are reordered, removed, changed and added; answers equal a fresh run's."""
    await start(tmp_path)
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump({"for_all": {"items": items}}))
    plan = await Run(edited(tmp_path)).plan_offline()
    assert plan.items == new * RESPONSES
    asked, answers = await judge(edited(tmp_path))
    assert asked == new * RESPONSES
    fresh, wanted = await judge(edited(tmp_path, "fresh"))
    assert fresh == len(items) * RESPONSES
    assert answers == wanted


async def test_editing_one_query_leaves_the_others(tmp_path: Path) -> None:
    """Judgments of other queries are not written again."""
    content = await start(tmp_path)
    content["queries"] = {"sea": {"items": ["Is it right?", "Is it wet?"]}}
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(content))
    asked, _ = await judge(edited(tmp_path))
    assert asked == len(CANDIDATES)


async def test_answers_survive_two_edits(tmp_path: Path) -> None:
    """An item that was removed and comes back is not paid for again."""
    await start(tmp_path)
    for items, new in ((["Is it wet?"], 1), (["Is it wet?", "Is it right?"], 0)):
        (tmp_path / "mine.yaml").write_text(yaml.safe_dump({"for_all": {"items": items}}))
        asked, _ = await judge(edited(tmp_path))
        assert asked == new * RESPONSES


async def test_dependent_answers_are_asked_again(tmp_path: Path) -> None:
    """With earlier answers in the prompt, an item in another position is a new question."""
    method = {"kind": "all_yes"}
    config = make_config(tmp_path, cache=None, method=method)
    await judge(config)
    text = yaml.safe_dump({"for_all": {"items": ["Is it clear?", "Is it right?"]}})
    (tmp_path / "mine.yaml").write_text(text)
    asked, _ = await judge(edited(tmp_path, method=method))
    assert asked == 2 * RESPONSES


async def test_failed_task_and_edit_together(tmp_path: Path) -> None:
    """Answers of an interrupted task and of the earlier checklist are both kept."""
    await start(tmp_path)
    items = ["Is it right?", "Is it first?", "Is it bad?"]
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump({"for_all": {"items": items}}))
    asked, _ = await judge_failing(tmp_path)
    assert asked == RESPONSES
    asked, answers = await judge(edited(tmp_path))
    assert asked == RESPONSES
    assert answers == (await judge(edited(tmp_path, "fresh")))[1]


async def judge_failing(tmp_path: Path) -> tuple[int, Run]:
    """Grade with a judge that fails on the last item."""
    engine = ScriptedEngine(fail_on="Is it bad?")
    run = Run(edited(tmp_path), judge=engine)
    await run.to_judgments()
    return engine.items_asked, run


@pytest.mark.parametrize(
    ("items", "places"),
    [
        (("Is it right?", "Is it clear?"), {0, 1}),
        (("Is it new?", "Is it clear?"), {1}),
        (("Is it new?",), set()),
    ],
)
async def test_answers_of_another_run_are_reused(
    tmp_path: Path, items: tuple[str, ...], places: set[int]
) -> None:
    """Answers of the same judge to the same items, also of changed checklists, are reused."""
    await start(tmp_path)
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump({"for_all": {"items": ["Is it wet?"]}}))
    await judge(edited(tmp_path))
    config = make_config(tmp_path, cache=None)
    other, here = Run(config).store, RunStore(tmp_path / "here")
    checklists = {query_id: Checklist(query_id, items) for query_id in QUERIES}
    method, them = create_method(config), other.judge()
    found = known_answers(here, method, them, checklists, set(), also=[other])
    assert len(found) == (RESPONSES if places else 0)
    assert all(set(answers) == places for answers in found.values())
    another = replace(them, model="another")
    assert not known_answers(here, method, another, checklists, set(), also=[other])
    assert not known_answers(here, method, them, checklists, set(found), also=[other])
    assert not known_answers(here, method, them, checklists, set())
