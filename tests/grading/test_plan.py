"""The plan matches the run: items, requests, tokens and cost."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from rocketeval.engines.base import EngineAnswers
from rocketeval.engines.scripted import ScriptedEngine
from rocketeval.errors import ConfigError, RunMismatch
from rocketeval.grading.plan import TYPICAL_BYTES, choose_evenly
from rocketeval.pipeline import Run
from rocketeval.records import Answer, GradingTask, Usage
from rocketeval.store.manifest import Plan
from support.make import make_config, write_jsonl

PRICE = {"prompt": 2.0, "cached": 0.5, "completion": 10.0, "currency": "USD"}
PRICED = {"engine": "scripted", "model": "scripted", "price": PRICE}


class Recording(ScriptedEngine):
    """Records every prompt, and uses bytes as tokens."""

    def __init__(self, **script: Any) -> None:
        super().__init__(**script)
        self.prompts: list[bytes] = []
        self.tokenised = 0

    async def tokenise(self, prompts: Sequence[str]) -> list[list[int]] | None:
        self.tokenised += len(prompts)
        return await super().tokenise(prompts)

    async def grade(self, task: GradingTask, known: Mapping[int, Answer]) -> EngineAnswers:
        graded = await super().grade(task, known)
        asked = [s for place, s in enumerate(task.suffixes) if place not in known]
        prompts = [(task.prefix + suffix).encode() for suffix in asked]
        self.prompts += prompts
        tokens = sum(map(len, prompts))
        usage = Usage(len(asked), tokens, tokens // 2, len(asked), seconds=0.5)
        return EngineAnswers(graded.answers, usage, graded.failure)


class Silent(ScriptedEngine):
    """Has no tokenizer."""

    async def tokenise(self, prompts: Sequence[str]) -> list[list[int]] | None:
        return None


async def plan_of(
    tmp_path: Path, engine: ScriptedEngine, name: str = "run", **changes: Any
) -> Plan:
    """Return the plan of the small benchmark."""
    return await Run(make_config(tmp_path, name, **changes), judge=engine).plan()


async def test_run_matches_the_plan(tmp_path: Path) -> None:
    """Items, requests, tokens and the minimum to compute match the actual prompts."""
    engine = Recording()
    plan = await plan_of(tmp_path, engine, judge=PRICED)
    assert not engine.prompts
    await Run(make_config(tmp_path, judge=PRICED), judge=engine).to_judgments()
    assert (plan.queries, plan.candidates, plan.responses, plan.tasks) == (3, 2, 6, 6)
    assert plan.items == plan.requests == len(engine.prompts) == 12
    assert plan.prompt_tokens == sum(map(len, engine.prompts))
    beginnings = {prompt[:end] for prompt in engine.prompts for end in range(1, len(prompt) + 1)}
    assert plan.computed_tokens == len(beginnings)
    assert plan.tokens_known == "exact"
    assert plan.cost == pytest.approx((plan.prompt_tokens * 2 + 12 * 10) / 1e6)
    reused = plan.prompt_tokens - plan.computed_tokens
    with_reuse = (plan.computed_tokens * 2 + reused * 0.5 + 12 * 10) / 1e6
    assert plan.cost_with_reuse == pytest.approx(with_reuse)
    assert (plan.seconds, plan.rate_from) == (None, None)


async def test_existing_judgments_are_not_counted(tmp_path: Path) -> None:
    """Judgments in the run and the cache, and known answers, are subtracted."""
    limited = {"path": str(tmp_path / "benchmark"), "limit": 1}
    await Run(make_config(tmp_path, "other", benchmark=limited)).to_judgments()
    plan = await plan_of(tmp_path, Recording())
    assert (plan.finished, plan.from_cache, plan.to_judge, plan.items) == (0, 2, 4, 8)
    failing = Recording(fail_on="Is it clear?")
    await Run(make_config(tmp_path), judge=failing).to_judgments()
    plan = await plan_of(tmp_path, Recording())
    assert (plan.finished, plan.from_cache, plan.to_judge, plan.items) == (2, 0, 4, 4)
    await Run(make_config(tmp_path), judge=Recording()).to_judgments()
    plan = await plan_of(tmp_path, Recording())
    assert (plan.finished, plan.to_judge, plan.items, plan.prompt_tokens) == (6, 0, 0, 0)


async def test_identical_responses_are_one_judgment(tmp_path: Path) -> None:
    """Responses with the same text are planned and judged once."""
    make_config(tmp_path)
    for candidate in ("left", "right"):
        rows = [{"query_id": "sky", "text": "the same"}]
        write_jsonl(tmp_path / "benchmark" / "responses" / f"{candidate}.jsonl", rows)
    plan = await plan_of(tmp_path, Recording())
    assert (plan.responses, plan.tasks, plan.items) == (2, 1, 2)


async def test_tokens_are_estimated_without_a_tokenizer(tmp_path: Path) -> None:
    """A quarter of the bytes, marked as an estimate."""
    exact = await plan_of(tmp_path, Recording())
    estimated = await plan_of(tmp_path, Silent())
    assert estimated.tokens_known == "estimated"
    assert estimated.prompt_tokens == round(exact.prompt_tokens / 4)
    assert estimated.computed_tokens == round(exact.computed_tokens / 4)


async def test_large_run_is_sampled_by_whole_queries(tmp_path: Path) -> None:
    """Some queries are tokenized and scaled by size; the plan counts those prompts."""
    write_jsonl(
        tmp_path / "benchmark" / "queries.jsonl",
        [{"id": f"q{n}", "text": f"Question {n:03d}?"} for n in range(60)],
    )
    for candidate in ("a", "b", "c"):
        rows = [{"query_id": f"q{n}", "text": f"{candidate}{n} " * (5 + n % 7)} for n in range(60)]
        write_jsonl(tmp_path / "benchmark" / "responses" / f"{candidate}.jsonl", rows)
    items = [{"query_id": f"q{n}", "items": ["Is it?", "Was it?"]} for n in range(60)]
    write_jsonl(tmp_path / "benchmark" / "checklists.jsonl", items)
    engine = Recording()
    run = Run(make_config(tmp_path), judge=engine)
    sampled = await run.plan(most_prompts=60)
    assert engine.tokenised == sampled.prompts_counted == 60
    exact = await run.plan(most_prompts=None)
    assert (sampled.tokens_known, exact.tokens_known) == ("sampled", "exact")
    assert sampled.items == exact.items == 360
    assert sampled.prompt_tokens == pytest.approx(exact.prompt_tokens, rel=0.01)
    assert sampled.computed_tokens == pytest.approx(exact.computed_tokens, rel=0.03)


def test_sample_is_evenly_spaced() -> None:
    """Queries are evenly spaced, at least one, and all if they fit."""
    sizes = {str(n): 10 for n in range(100)}
    assert choose_evenly(sizes, 1000) == choose_evenly(sizes, None) == set(sizes)
    assert sorted(map(int, choose_evenly(sizes, 100))) == list(range(5, 100, 10))
    assert len(choose_evenly(sizes, 3)) == 1
    assert choose_evenly({}, 10) == set()


async def test_requests_depend_on_items_per_call(tmp_path: Path) -> None:
    """An engine that takes all items at once makes one request per response."""
    for per_call, requests in ((None, 6), (2, 6), (64, 6), (1, 12)):
        engine = Recording()
        engine.items_per_call = per_call  # type: ignore[attr-defined]
        assert (await plan_of(tmp_path, engine)).requests == requests


async def test_counted_answers_are_planned_as_often_as_they_are_asked(tmp_path: Path) -> None:
    """Requests, tokens and cost count every written answer, also without contact."""
    plain = await plan_of(tmp_path, Recording(), judge=PRICED)
    engine = Recording()
    engine.requests_per_item, engine.most_written = 8, 4  # type: ignore[attr-defined]
    plan = await plan_of(tmp_path, engine, judge=PRICED)
    assert (plan.items, plan.requests) == (12, 96)
    assert plan.prompt_tokens == 8 * plain.prompt_tokens
    assert plan.computed_tokens == plain.computed_tokens
    assert plan.cost == pytest.approx((plan.prompt_tokens * 2 + 96 * 4 * 10) / 1e6)
    sampled = {"engine": "openai_sampled", "model": "m", "base_url": "http://x/v1", "price": PRICE}
    config = make_config(tmp_path, "sampled", judge=sampled)
    offline = await Run(config).plan_offline()
    assert offline.requests > offline.items == 12
    assert offline.cost is not None
    assert plain.cost is not None
    assert offline.cost > plain.cost
    options = {"samples": 8, "per_request": 8, "max_tokens": 1}
    for judge in (sampled | {"options": options}, sampled | {"options": {"max_tokens": 1}}):
        plan = await Run(make_config(tmp_path, "together", judge=judge)).plan_offline()
        assert plan.cost == pytest.approx((plan.prompt_tokens * 2 + 12 * 8 * 10) / 1e6)


async def test_prompts_of_all_items_together_are_counted_exactly(tmp_path: Path) -> None:
    """A method with one prompt per response counts prompts, not items."""
    plan = await plan_of(tmp_path, Recording(), method={"kind": "multi_item"})
    assert (plan.items, plan.prompts_counted, plan.tokens_known) == (12, 6, "exact")


async def test_unwritten_checklists_are_estimated_separately(tmp_path: Path) -> None:
    """Their judging is only in the estimate, based on typical checklists at first."""
    engine = {"engine": "scripted", "model": "big"}
    author = {"kind": "instance", "engine": engine, "price": PRICE, "max_items": 6}
    judge = {"engine": "scripted", "model": "scripted", "price": PRICE}
    plan = await plan_of(tmp_path, Recording(), author=author, judge=judge)
    assert (plan.items, plan.prompt_tokens, plan.cost) == (0, 0, 0.0)
    guess = plan.estimated
    assert guess is not None
    assert (guess.checklists, guess.responses, guess.items) == (3, 6, 6 * 6)
    assert (guess.items_per_checklist, guess.bytes_per_item) == (6, TYPICAL_BYTES)
    assert "typical" in guess.based_on
    assert guess.prompt_tokens > guess.computed_tokens > 0
    assert guess.cost is not None
    assert guess.cost > 0
    assert guess.seconds is None
    # Then based on the run's own checklists.
    limited = {"path": str(tmp_path / "benchmark"), "limit": 1}
    first = make_config(tmp_path, author=author, judge=judge, benchmark=limited)
    await Run(first, judge=Recording()).to_checklists()
    plan = await plan_of(tmp_path, Recording(), author=author, judge=judge)
    own = plan.estimated
    assert own is not None
    assert (own.checklists, own.items_per_checklist, own.items) == (2, 3, 4 * 3)
    assert own.based_on == "as in 1 checklist of this run"
    assert plan.items == 2 * 3
    await Run(make_config(tmp_path, author=author, judge=judge), judge=Recording()).to_checklists()
    plan = await plan_of(tmp_path, Recording(), author=author, judge=judge)
    assert plan.estimated is None
    assert (plan.items, plan.tokens_known) == (18, "exact")


async def test_unwritten_checklists_are_counted(tmp_path: Path) -> None:
    """Their number and maximum cost are known; the cost of judging them is not."""
    author = {"kind": "instance", "engine": {"engine": "scripted", "model": "big"}, "price": PRICE}
    plan = await plan_of(tmp_path, Recording(), author=author)
    assert (plan.checklists_to_write, plan.responses_waiting, plan.items) == (3, 6, 0)
    assert plan.author_cost is not None
    assert plan.author_cost > 3 * 1500 * 10 / 1e6
    await Run(make_config(tmp_path, author=author), judge=Recording()).to_checklists()
    plan = await plan_of(tmp_path, Recording(), author=author)
    assert (plan.checklists_to_write, plan.responses_waiting, plan.items) == (0, 0, 18)


async def test_time_comes_from_earlier_judgments(tmp_path: Path) -> None:
    """Two items in half a second, eight responses at once: 32 items per second."""
    limited = {"path": str(tmp_path / "benchmark"), "limit": 1}
    await Run(make_config(tmp_path, "try", benchmark=limited), judge=Recording()).to_judgments()
    plan = await plan_of(tmp_path, Recording())
    assert plan.items_per_second == pytest.approx(8 * 2 / 0.5)
    assert plan.seconds == pytest.approx(8 / 32)
    assert plan.rate_from == "from 2 earlier judgments"
    another = await plan_of(tmp_path, Recording(model="another"), "new")
    assert another.seconds is None


async def test_rate_can_be_given_or_probed(tmp_path: Path) -> None:
    """A given rate is used unchanged; a probe asks real items and counts them."""
    engine = Recording(delay=0.05)
    run = Run(make_config(tmp_path), judge=engine)
    assert (await run.plan(rate=6.0)).seconds == pytest.approx(2.0)
    assert not engine.prompts
    probed = await run.plan(probe=True)
    assert len(engine.prompts) == 12
    assert "12 real items" in (probed.rate_from or "")
    assert probed.items_per_second is not None
    assert 12 / 5 < probed.items_per_second <= 12 / 0.05
    failing = await Run(make_config(tmp_path), judge=Recording(fail_on="sky")).plan(probe=True)
    assert failing.seconds is None
    assert "the probe failed" in (failing.rate_from or "")


async def test_probe_heeds_the_cost_limit(tmp_path: Path) -> None:
    """A probe that may exceed `max_cost` sends nothing; another says what it cost."""
    engine = Recording()
    judge = {"engine": "scripted", "model": "scripted", "price": {"prompt": 1.0, "completion": 1.0}}
    config = make_config(tmp_path, judge=judge, max_cost=0.001)
    with pytest.raises(ConfigError, match=r"6 responses, which may cost up to 0\.\d+: more than"):
        await Run(config, judge=engine).plan(probe=True)
    assert not engine.prompts
    enough = config.model_copy(update={"max_cost": 1.0})
    plan = await Run(enough, judge=engine).plan(probe=True)
    assert re.search(r"12 real items \(12 requests for 0\.\d+, besides", plan.rate_from or "")


async def test_batch_engine_is_not_probed(tmp_path: Path) -> None:
    """A batch engine has no measurable rate."""
    engine = Recording()
    engine.durable = True
    with pytest.raises(ConfigError, match="no measurable rate"):
        await Run(make_config(tmp_path), judge=engine).plan(probe=True)
    assert not engine.prompts


async def test_plan_leaves_the_run_unchanged(tmp_path: Path) -> None:
    """Changed inputs are planned without touching existing inputs and scores."""
    run = Run(make_config(tmp_path), judge=ScriptedEngine())
    await run.all()
    before = {p: p.read_bytes() for p in run.store.path.rglob("[!.]*") if p.is_file()}
    left = tmp_path / "benchmark" / "responses" / "left.jsonl"
    left.write_text(left.read_text().replace("left explains the sea", "nothing"))
    plan = await run.plan()
    assert (plan.finished, plan.to_judge) == (5, 1)
    assert all(path.read_bytes() == content for path, content in before.items())
    with pytest.raises(RunMismatch):
        await Run(make_config(tmp_path), judge=ScriptedEngine(model="other")).plan()


async def test_offline_plan_contacts_and_writes_nothing(tmp_path: Path) -> None:
    """The judge recorded in the run decides what is finished; tokens are estimated."""
    config = make_config(tmp_path)
    plan = await Run(config).plan_offline()
    assert (plan.tokens_known, plan.items, plan.in_flight) == ("estimated", 12, None)
    assert plan.judge_digest is None
    assert not config.run_path.exists()
    await Run(config).to_judgments()
    plan = await Run(config).plan_offline()
    assert (plan.finished, plan.items) == (6, 0)


class TestBill:
    """The bill next to its plan."""

    async def grade(self, tmp_path: Path, engine: ScriptedEngine | None = None) -> Any:
        """Grade the small benchmark; return the bill."""
        run = Run(make_config(tmp_path, judge=PRICED), judge=engine or Recording())
        await run.to_judgments()
        return run.store.manifest().stages.grade.bill

    async def test_bill_is_shown_next_to_its_plan(self, tmp_path: Path) -> None:
        """Every planned figure has an actual one, also in the manifest."""
        plan = await plan_of(tmp_path, Recording(), judge=PRICED)
        found = await self.grade(tmp_path)
        assert found.plan.requests == found.bill.requests == 12
        assert found.plan.prompt_tokens == found.bill.prompt_tokens
        assert found.plan.completion_tokens == found.bill.completion_tokens == 12
        computed = found.bill.computed_tokens
        assert found.times_least == pytest.approx(computed / plan.computed_tokens)
        assert found.bill.cost < found.plan.cost
        assert found.currency == "USD"

    async def test_no_bill_without_a_plan(self, tmp_path: Path) -> None:
        """A run without a plan has no bill."""
        assert await self.grade(tmp_path) is None

    async def test_stale_plan_is_not_shown(self, tmp_path: Path) -> None:
        """A plan for another judge, other inputs or a partial run is not used."""
        await plan_of(tmp_path, Recording(), judge=PRICED)
        assert await self.grade(tmp_path, Recording(model="another")) is None
        await plan_of(tmp_path, Recording(), "two", judge=PRICED)
        left = tmp_path / "benchmark" / "responses" / "left.jsonl"
        left.write_text(left.read_text().replace("left explains the sea", "nothing"))
        run = Run(make_config(tmp_path, "two", judge=PRICED), judge=Recording())
        assert (await run.to_judgments()).bill is None
        assert (await run.to_judgments()).bill is None

    async def test_unreported_figures_are_none(self, tmp_path: Path) -> None:
        """Without reported cached tokens, the computed tokens are unknown."""

        class Untold(Recording):
            async def grade(self, task: GradingTask, known: Mapping[int, Answer]) -> EngineAnswers:
                graded = await super().grade(task, known)
                return EngineAnswers(graded.answers, Usage(requests=2), graded.failure)

        await plan_of(tmp_path, Recording(), judge=PRICED)
        found = await self.grade(tmp_path, Untold())
        assert found.bill.prompt_tokens is None
        assert found.bill.computed_tokens is None
        assert found.times_least is None
