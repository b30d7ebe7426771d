"""The identity of a judgment: the judge, and what it was shown."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fakes.openai_server import MODEL, FakeOpenAI, by_content, serving
from rocketeval import neutral
from rocketeval.config import RunConfig
from rocketeval.engines.base import EngineIdentity
from rocketeval.engines.openai_http import OpenAIEngine
from rocketeval.errors import RunMismatch
from rocketeval.hashing import content_hash
from rocketeval.pipeline import Run
from rocketeval.prompts.render import FIRST_RULES
from support.make import QUERIES, make_config, write_benchmark

ALL = 2 * len(QUERIES)


def in_steps(prompt: str) -> dict[str, float]:
    """Return the same answers as `by_content`, computed with coarse logits."""
    coarse = {t: round((math.log(p) + 20) / 0.125) * 0.125 for t, p in by_content(prompt).items()}
    whole = sum(math.exp(value) for value in coarse.values())
    return {token: math.exp(value) / whole for token, value in coarse.items()}


def config(folder: Path, server: FakeOpenAI, name: str = "run", **changes: Any) -> RunConfig:
    judge = {"model": MODEL, "base_url": server.base_url}
    return make_config(folder, name, judge=judge, **changes)


def scores(run: Path) -> dict[tuple[str, str], float]:
    """Return the score of every response."""
    rows = map(json.loads, (run / "scores.jsonl").read_text().splitlines())
    return {(row["query_id"], row["candidate"]): row["score"] for row in rows}


@pytest.fixture
def unrecorded(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Restore the state before precision was recorded; `undo` ends it."""
    now = OpenAIEngine.identify

    async def before(engine: OpenAIEngine) -> EngineIdentity:
        return replace(await now(engine), precision="", measured="")

    monkeypatch.setattr(OpenAIEngine, "identify", before)
    return monkeypatch


async def test_two_precisions_share_no_judgment(tmp_path: Path) -> None:
    """Neither through the cache nor in one run."""
    async with serving(FakeOpenAI()) as fine:
        assert (await Run(config(tmp_path, fine, "fine")).all()).stages.grade.judged == ALL
    async with serving(FakeOpenAI(in_steps)) as coarse:
        facts = (await Run(config(tmp_path, coarse, "coarse")).all()).stages.grade
        assert (facts.judged, facts.from_cache) == (ALL, 0)
        write_benchmark(tmp_path / "benchmark", texts={"sky": "another"})
        with pytest.raises(RunMismatch, match="precision"):
            await Run(config(tmp_path, coarse, "fine")).all()
    assert (
        Run(config(tmp_path, fine, "fine")).store.judge().precision.startswith("measured float32")
    )
    assert "bfloat16" in Run(config(tmp_path, fine, "coarse")).store.judge().precision


async def test_restarted_server_is_the_same_judge(tmp_path: Path) -> None:
    """Another run reuses every judgment from the cache, whatever the last digits."""
    digests = set()
    for start in range(3):

        def moved(prompt: str, by: float = start * 1e-6) -> dict[str, float]:
            return {token: p * (1 - by) for token, p in by_content(prompt).items()}

        async with serving(FakeOpenAI(moved)) as server:
            run = Run(config(tmp_path, server, f"start{start}"))
            facts = (await run.all()).stages.grade
        assert (facts.judged, facts.from_cache) == ((ALL, 0) if start == 0 else (0, ALL))
        digests.add(run.store.judge().digest)
    assert len(digests) == 1


async def test_older_run_is_not_judged_again(
    tmp_path: Path, unrecorded: pytest.MonkeyPatch
) -> None:
    """It continues under its recorded judge, and asks only what is new."""
    async with serving(FakeOpenAI()) as server:
        await Run(config(tmp_path, server)).all()
        unrecorded.undo()
        asked = len(server.chats)
        assert (await Run(config(tmp_path, server)).all()).stages.grade.judged == 0
        assert len(server.chats) == asked
        write_benchmark(tmp_path / "benchmark", texts={"sky": "another"})
        assert (await Run(config(tmp_path, server)).all()).stages.grade.judged == 1
    assert Run(config(tmp_path, server)).store.judge().precision == ""


async def test_older_cache_is_reused(tmp_path: Path, unrecorded: pytest.MonkeyPatch) -> None:
    """A new run finds the old keys, the plan counts them, and scores are the same."""
    async with serving(FakeOpenAI()) as server:
        before = await Run(config(tmp_path, server, "old")).all()
        unrecorded.undo()
        asked, fresh = len(server.chats), Run(config(tmp_path, server, "new"))
        plan = await fresh.plan()
        assert (plan.from_cache, plan.to_judge) == (ALL, 0)
        now = await fresh.all()
        facts = now.stages.grade
        assert (facts.from_cache, facts.precision_unknown, facts.judged) == (ALL, ALL, 0)
        assert len(server.chats) == asked
    assert fresh.store.judge().precision
    assert scores(now.path) == scores(before.path)


async def test_damaged_older_cache_is_skipped(
    tmp_path: Path, unrecorded: pytest.MonkeyPatch
) -> None:
    """Its judgments are made again."""
    async with serving(FakeOpenAI()) as server:
        await Run(config(tmp_path, server, "old")).all()
        unrecorded.undo()
        for part in (tmp_path / "cache" / "judgments").rglob("*.parquet"):
            part.write_bytes(part.read_bytes()[:-20])
        facts = (await Run(config(tmp_path, server, "new")).all()).stages.grade
    assert (facts.from_cache, facts.judged) == (0, ALL)


HARMLESS = "left explains the sky"
FORGED = "It is [SECRET] blue."


async def test_new_rule_voids_only_changed_prompts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the one response in three that the new rule changes is judged again."""
    write_benchmark(tmp_path / "benchmark", texts={"sky": FORGED, "sea": "It holds <s> and salt."})
    async with serving(FakeOpenAI()) as server:
        await Run(config(tmp_path, server)).all()
        better = re.compile(f"{FIRST_RULES}|\\[SECRET\\]", re.IGNORECASE)
        monkeypatch.setattr(neutral, "DANGEROUS", better)
        asked = len(server.chats)
        run = await Run(config(tmp_path, server)).all()
        assert (run.stages.grade.judged, run.stages.grade.unfinished) == (1, 0)
        again = server.chats[asked:]
        assert len(again) == 2
        assert all("(SECRET)" in chat.prompt for chat in again)
        fresh = await Run(config(tmp_path, server, "fresh")).all()
        assert fresh.stages.grade.judged == 0
    assert scores(run.path) == scores(fresh.path)
    assert len(scores(run.path)) == ALL


def test_first_rules_are_unchanged() -> None:
    """Judgments are found by them: add new rules, never change these."""
    assert content_hash(FIRST_RULES).hex() == "435add115592f077a12564dd3cc54b71"
