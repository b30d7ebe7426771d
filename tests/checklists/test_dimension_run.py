"""Runs with a dimension checklist: with a real server, within a budget, and resumed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from fakes.openai_server import MODEL, FakeOpenAI, serving, status
from rocketeval.config import RunConfig
from rocketeval.errors import BudgetSpent, ChecklistError, EngineRefused, EngineUnavailable
from rocketeval.pipeline import Run
from rocketeval.store.codec import encode
from support.dimension_author import AUGMENTING, FILTERING, TWO_PARTS, AuthorServer
from support.make import QUERIES, make_config

STEPS = AUGMENTING + FILTERING
PRICE = {"prompt": 1000.0, "completion": 2000.0}


@pytest.fixture
async def server() -> AsyncIterator[AuthorServer]:
    """The author's server."""
    async with serving(AuthorServer()) as running:
        yield running


def settings(tmp_path: Path, server: FakeOpenAI, name: str = "run", **changes: Any) -> RunConfig:
    """Three queries, graded by a script, with a checklist written by `server`."""
    (tmp_path / "own.yaml").write_text(TWO_PARTS)
    author = {
        "kind": "dimension",
        "engine": {"model": MODEL, "base_url": server.base_url, "patience": 1},
        "options": {"file": str(tmp_path / "own.yaml"), **changes.pop("options", {})},
        **changes.pop("author", {}),
    }
    return make_config(tmp_path, name, author=author, **changes)


def provenance(run: Run) -> dict[str, Any] | None:
    """The run's record of how its checklist was composed."""
    path = run.store.inputs.folder / "checklist_provenance.json"
    return json.loads(path.read_text()) if path.exists() else None


async def test_one_checklist_for_all_queries(tmp_path: Path, server: AuthorServer) -> None:
    """Written once, stored with groups and provenance, and graded like any other."""
    run = Run(settings(tmp_path, server))
    outcome = await run.all()
    facts = outcome.stages.checklist
    assert facts.checklists == len(QUERIES)
    assert facts.usage.requests == STEPS == len(server.chats)
    made = run.store.inputs.checklists()
    assert len({checklist.content_hash for checklist in made.values()}) == 1
    groups = made["sky"].groups
    assert groups is not None
    assert Counter(groups) == {"warmth: words": 9, "warmth: tone": 6, "length: brevity": 6}
    stored = provenance(run)
    assert stored is not None
    assert [row["question"] for row in stored["questions"] if row["item"]] == list(
        made["sky"].items
    )
    assert Counter(row["dropped"] for row in stored["questions"]) == {None: 21, "alignment": 4}
    assert encode(facts.composition.counts) == stored["counts"]


async def test_second_run_reuses_all_steps(tmp_path: Path, server: AuthorServer) -> None:
    """The shared cache holds every step, so the provenance is complete too."""
    first = Run(settings(tmp_path, server))
    await first.to_checklists()
    paid = len(server.chats)
    second = Run(settings(tmp_path, server, "other"))
    facts = await second.to_checklists()
    assert len(server.chats) == paid
    assert (facts.reused, facts.usage.requests) == (len(QUERIES), 0)
    assert provenance(second) == provenance(first)
    plan = await second.plan_offline()
    assert (plan.checklists_to_write, plan.items) == (0, 2 * len(QUERIES) * 21)


async def test_loading_again_keeps_the_provenance(tmp_path: Path, server: AuthorServer) -> None:
    """Another author removes it, because it would describe another checklist."""
    run = Run(settings(tmp_path, server))
    await run.to_checklists()
    run.load()
    assert provenance(run) is not None
    await Run(make_config(tmp_path)).to_checklists()
    assert provenance(run) is None


async def test_failed_step_is_named_and_retried_alone(tmp_path: Path, server: AuthorServer) -> None:
    """The run has no checklist; with a better author only that step is requested again."""
    server.unreadable = "Does it sound glad?"
    with pytest.raises(ChecklistError, match="2 of 7 steps") as failed:
        await Run(settings(tmp_path, server)).to_checklists()
    assert "diversify warmth: tone: " in failed.value.message
    server.unreadable = None
    server.seen.clear()
    facts = await Run(settings(tmp_path, server)).to_checklists()
    assert server.kinds == {"diversify": 1, "elaborate": 1, "filter": 2}
    assert facts.composition.reused_steps == 5


async def test_skip_reports_skipped_steps(tmp_path: Path, server: AuthorServer) -> None:
    """In the facts and in the provenance; grading continues."""
    server.unreadable = "Does it sound glad?"
    run = Run(settings(tmp_path, server, options={"on_failure": "skip"}))
    facts = await run.to_checklists()
    # The filter's prompt contains the same seed.
    assert set(facts.composition.failed_steps) == {
        "diversify warmth: tone",
        "elaborate warmth: tone (Does it sound glad?)",
        "filter warmth",
    }
    assert all("refused 3 times" in why for why in facts.composition.failed_steps.values())


@pytest.mark.parametrize("options", [{}, {"on_failure": "skip"}], ids=["stop", "skip"])
async def test_unreadable_author_is_given_up(
    tmp_path: Path, server: AuthorServer, options: dict[str, str]
) -> None:
    """After twelve calls without a readable step."""
    server.unreadable = "greeting"
    with pytest.raises(EngineRefused, match="in 12 calls"):
        await Run(settings(tmp_path, server, options=options)).to_checklists()
    assert sum(server.kinds.values()) == 12


async def test_server_failure_between_steps_loses_nothing(
    tmp_path: Path, server: AuthorServer
) -> None:
    """Its answers are kept; the same command continues."""
    config = settings(tmp_path, server)
    author = config.author.model_copy(
        update={"engine": config.author.engine.model_copy(update={"concurrency": 1})}  # type: ignore[union-attr]
    )
    config = config.model_copy(update={"author": author})
    await Run(settings(tmp_path, server, "probe", options={"steps": ["elaborate"]})).to_checklists()
    server.seen.clear()
    server.fail(status(503), times=100)
    with pytest.raises(EngineUnavailable):
        await Run(config).to_checklists()
    server._faults.clear()
    server.seen.clear()
    await Run(config).to_checklists()
    assert server.kinds == {"diversify": 3, "filter": 2}


@pytest.mark.parametrize(("limit", "most"), [(10.0, 0), (25.0, STEPS - 1), (300.0, STEPS)])
async def test_budget_stops_between_steps(
    tmp_path: Path, server: AuthorServer, limit: float, most: int
) -> None:
    """It is never exceeded; with more budget the run pays only for the rest."""
    prices = {
        "author": {"price": PRICE},
        "judge": {"engine": "scripted", "model": "m", "price": PRICE},
    }
    run = Run(settings(tmp_path, server, max_cost=limit, **prices))
    if most < STEPS:
        with pytest.raises(BudgetSpent, match="3 checklists are not written"):
            await run.to_checklists()
    else:
        await run.to_checklists()
    assert run.budget is not None
    assert run.budget.spent <= limit
    before = len(server.chats)
    assert bool(most) <= before <= most
    await Run(settings(tmp_path, server)).to_checklists()
    assert len(server.chats) == STEPS


async def test_plan_shows_maximum_author_cost(tmp_path: Path, server: AuthorServer) -> None:
    """Once per run, not per query."""
    config = settings(tmp_path, server, author={"price": PRICE})
    plan = await Run(config).plan_offline()
    assert plan.checklists_to_write == len(QUERIES)
    facts = await Run(config).to_checklists()
    assert plan.author_cost is not None
    assert 0 < facts.usage.cost < plan.author_cost


async def test_all_items_in_one_prompt_by_sub_dimension(
    tmp_path: Path, server: AuthorServer
) -> None:
    """The paper's method: one request per response, questions grouped by sub-dimension."""
    await Run(settings(tmp_path, server)).to_checklists()
    server.seen.clear()
    judge = {"model": MODEL, "base_url": server.base_url}
    run = Run(
        settings(
            tmp_path,
            server,
            "together",
            judge=judge,
            method={"kind": "multi_item"},
            scorer={"kind": "hard"},
        )
    )
    await run.to_judgments()
    asked = [seen.prompt for seen in server.chats]
    assert len(asked) == 2 * len(QUERIES)
    assert "## warmth: tone\nQ10. Does it sound glad?" in asked[0]
    run.score()
    assert set(run.store.scores(["score"])["score"].to_pylist()) == {10.0}
