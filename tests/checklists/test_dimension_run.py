"""A run whose checklist is made from dimensions: by a real server, within a budget, resumed."""

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
    """Three queries, graded by a script, with a checklist that `server` writes."""
    (tmp_path / "own.yaml").write_text(TWO_PARTS)
    author = {
        "kind": "dimension",
        "engine": {"model": MODEL, "base_url": server.base_url, "patience": 1},
        "options": {"file": str(tmp_path / "own.yaml"), **changes.pop("options", {})},
        **changes.pop("author", {}),
    }
    return make_config(tmp_path, name, author=author, **changes)


def provenance(run: Run) -> dict[str, Any] | None:
    """What the run tells of how its checklist was composed."""
    path = run.store.inputs.folder / "checklist_provenance.json"
    return json.loads(path.read_text()) if path.exists() else None


async def test_one_checklist_for_all_queries(tmp_path: Path, server: AuthorServer) -> None:
    """Written once, kept with its groups and its provenance, and graded like any other."""
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
    told = provenance(run)
    assert told is not None
    assert [row["question"] for row in told["questions"] if row["item"]] == list(made["sky"].items)
    assert Counter(row["dropped"] for row in told["questions"]) == {None: 21, "alignment": 4}
    assert encode(facts.composition.counts) == told["counts"]


async def test_another_run_pays_nothing_and_knows_the_same(
    tmp_path: Path, server: AuthorServer
) -> None:
    """The cache that runs share holds every step, so that provenance is whole there too."""
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
    """And another author removes it: it would tell of a checklist that is gone."""
    run = Run(settings(tmp_path, server))
    await run.to_checklists()
    run.load()
    assert provenance(run) is not None
    await Run(make_config(tmp_path)).to_checklists()
    assert provenance(run) is None


async def test_a_failing_step_is_named_and_the_rest_is_not_lost(
    tmp_path: Path, server: AuthorServer
) -> None:
    """The run has no checklist; once the author is better, only that step is asked again."""
    server.unreadable = "Does it sound glad?"
    with pytest.raises(ChecklistError, match="2 of 7 steps") as failed:
        await Run(settings(tmp_path, server)).to_checklists()
    assert "diversify warmth: tone: " in failed.value.message
    server.unreadable = None
    server.seen.clear()
    facts = await Run(settings(tmp_path, server)).to_checklists()
    assert server.kinds == {"diversify": 1, "elaborate": 1, "filter": 2}
    assert facts.composition.reused_steps == 5


async def test_skip_tells_what_it_went_on_without(tmp_path: Path, server: AuthorServer) -> None:
    """In the facts, in the provenance; grading goes on."""
    server.unreadable = "Does it sound glad?"
    run = Run(settings(tmp_path, server, options={"on_failure": "skip"}))
    facts = await run.to_checklists()
    # The filter of the dimension holds the same seed.
    assert set(facts.composition.failed_steps) == {
        "diversify warmth: tone",
        "elaborate warmth: tone (Does it sound glad?)",
        "filter warmth",
    }
    assert all("refused 3 times" in why for why in facts.composition.failed_steps.values())


@pytest.mark.parametrize("options", [{}, {"on_failure": "skip"}], ids=["stop", "skip"])
async def test_an_author_of_no_use_is_given_up(
    tmp_path: Path, server: AuthorServer, options: dict[str, str]
) -> None:
    """Where no step can be read, twelve calls are enough to be sure."""
    server.unreadable = "greeting"
    with pytest.raises(EngineRefused, match="in 12 calls"):
        await Run(settings(tmp_path, server, options=options)).to_checklists()
    assert sum(server.kinds.values()) == 12


async def test_a_server_that_dies_between_steps_loses_nothing(
    tmp_path: Path, server: AuthorServer
) -> None:
    """What it answered is kept; the same command goes on from there."""
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
async def test_a_budget_stops_between_steps_and_is_never_passed(
    tmp_path: Path, server: AuthorServer, limit: float, most: int
) -> None:
    """What was paid for is kept; with more money the run goes on, and pays for the rest alone."""
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


async def test_the_plan_says_what_the_author_costs_at_most(
    tmp_path: Path, server: AuthorServer
) -> None:
    """Once for the run, not once a query."""
    config = settings(tmp_path, server, author={"price": PRICE})
    plan = await Run(config).plan_offline()
    assert plan.checklists_to_write == len(QUERIES)
    facts = await Run(config).to_checklists()
    assert plan.author_cost is not None
    assert 0 < facts.usage.cost < plan.author_cost


async def test_all_items_in_one_prompt_by_sub_dimension(
    tmp_path: Path, server: AuthorServer
) -> None:
    """The paper's way to ask: one request a response, questions under their sub-dimension."""
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
