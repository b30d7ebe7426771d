"""The llamacpp engine with a real model: contract, a whole run, errors from llama.cpp itself."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from runpy import run_path
from unittest.mock import patch

import pytest
import yaml

from rocketeval.config import EngineConfig
from rocketeval.engines import llamacpp
from rocketeval.engines.llamacpp import LlamaCppEngine
from rocketeval.engines.openai_http import OpenAIEngine
from rocketeval.errors import EngineRefused
from rocketeval.records import GradingTask
from rocketeval.testing import ENGINE_CHECKS, EngineCase
from support.make import write_benchmark

from .server import SCRIPTS, SLOTS, ServedJudge
from .test_walk import check_answers, judgments, run_cli

TOO_LONG = "many words " * 10_000
CACHE_STATE = 0.06
"""llama.cpp answers slightly differently on a cold and on a cached prefix."""
OWN = [
    check
    for check in ENGINE_CHECKS
    if check.__name__.removeprefix("check_")
    in {"identity", "probabilities", "failure", "write", "likelihood", "close"}
]
"""The remaining rules concern the HTTP engine and are tested there with the same server."""
TASK = GradingTask(
    b"k",
    "bees",
    "mine",
    "Query: What do bees make?\nResponse: Bees make honey from nectar.\nQuestion: ",
    tuple(
        f"{item}\nAnswer with one word, Yes or No.\nAnswer:"
        for item in ("Is honey mentioned?", "Is the response in verse?")
    ),
)


def gguf_config(gguf: Path, **settings: object) -> EngineConfig:
    """Return a config for a small judge."""
    options = {"context": 2048, "threads": 1}
    return EngineConfig(
        engine="llamacpp", model=str(gguf), min_mass=0.0, options=options, **settings
    )


@pytest.fixture(scope="class")
def loaded_once(judge_gguf: Path) -> Iterator[None]:
    """Load the model once for all engines, which start and stop and keep its prefixes."""
    start = run_path(str(SCRIPTS / "serve_llamacpp.py"))["start"]
    options = {"slots": SLOTS, "context": 2048, "threads": 1}
    running = start(judge_gguf, llamacpp.SERVED_AS, 0, **options)
    with patch.object(llamacpp, "_start", lambda *_: running):
        yield


@pytest.mark.usefixtures("loaded_once")
class TestLlamaCpp:
    """A small model in this process, tested like the engine in test_contract.py."""

    @pytest.mark.parametrize("check", OWN, ids=lambda check: check.__name__)
    async def test_contract(
        self, judge_gguf: Path, check: Callable[[EngineCase], Awaitable[None]]
    ) -> None:
        """Check one rule of the engine contract."""
        # One after the other, because batching would change the last digits.
        create = partial(LlamaCppEngine.create, gguf_config(judge_gguf, concurrency=1))
        await check(EngineCase(create, TOO_LONG, CACHE_STATE))


async def test_it_answers_like_the_served_file(judge_gguf: Path, judge_url: ServedJudge) -> None:
    """The same file behind a separate server gives the same probabilities and reports its hash."""
    if "ROCKETEVAL_TEST_JUDGE_URL" in os.environ:
        pytest.skip("ROCKETEVAL_TEST_JUDGE_URL may serve another file")
    inside = LlamaCppEngine.create(gguf_config(judge_gguf, concurrency=1))
    served = OpenAIEngine(
        EngineConfig(model=judge_url.name, base_url=judge_url.base_url, concurrency=1, min_mass=0.0)
    )
    try:
        mine = [await inside.grade(TASK, {}) for _ in range(2)][-1]
        identity = await inside.identify()
        theirs = [await served.grade(TASK, {}) for _ in range(2)][-1]
    finally:
        await inside.aclose()
        await served.aclose()
    for one, other in zip(mine.answers, theirs.answers, strict=True):
        assert one.p_yes == pytest.approx(other.p_yes, abs=CACHE_STATE)
    assert mine.usage.cached_tokens > mine.usage.prompt_tokens / 2
    assert (identity.engine, identity.model) == ("llamacpp", str(judge_gguf))
    assert "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53" in identity.version


async def test_control_tokens_of_its_vocabulary_are_neutralized(judge_gguf: Path) -> None:
    """SmolLM2 reads <filename> as one control token, which no list of chat tokens contains."""
    engine = LlamaCppEngine.create(gguf_config(judge_gguf, concurrency=1))
    task = replace(TASK, prefix=TASK.prefix.replace("honey", "<filename>"))
    try:
        tokenizer = (await engine._probe()).wire.tokenizer
        (control,) = await tokenizer.encode("<filename>") or ()
        (prompt,) = await engine.tokenise([task.prefix]) or ()
        graded = await engine.grade(task, {})
        identity = await engine.identify()
        (told,) = [one.told for one in await engine.findings() if one.name == "control tokens"]
    finally:
        await engine.aclose()
    assert control not in prompt
    assert graded.failure is None
    assert graded.neutralised == 1
    assert identity.control_tokens
    assert told.startswith("17 tokens, all neutralized; 14 for this judge only")


async def test_damaged_file_is_refused(judge_gguf: Path, tmp_path: Path) -> None:
    """A truncated download is a readable error, not a crash."""
    damaged = tmp_path / "damaged.gguf"
    with judge_gguf.open("rb") as whole:
        damaged.write_bytes(whole.read(10_000_000))
    engine = LlamaCppEngine.create(gguf_config(damaged))
    with pytest.raises(EngineRefused, match=r"cannot load damaged\.gguf"):
        await engine.identify()
    await engine.aclose()


def test_whole_run_without_a_server(judge_gguf: Path, tmp_path: Path) -> None:
    """Two responses judged by a file, from the command line to the report."""
    write_benchmark(tmp_path / "benchmark")
    judge = gguf_config(judge_gguf).model_dump(include={"engine", "model", "min_mass", "options"})
    config = tmp_path / "rocketeval.yaml"
    run = {"name": "demo", "benchmark": {"path": "benchmark"}, "judge": judge}
    config.write_text(yaml.safe_dump(run))
    shown = run_cli(config, "--limit", "1")
    assert "left" in shown
    rows = judgments(tmp_path / "runs" / "demo-first-1")
    assert len(rows) == 2
    check_answers(rows)
    assert (tmp_path / "runs" / "demo-first-1" / "report.html").stat().st_size > 10_000
