"""The vllm engine with a real vLLM and a real model.

Needs vLLM and a Hugging Face folder of a small judge (studies/judges/convert_to_hf.py writes one):

    ROCKETEVAL_TEST_HF_JUDGE=FOLDER python -m pytest tests/real_judge/test_vllm_local.py
"""

from __future__ import annotations

import asyncio
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from contracts.engine_contract import EngineContract
from rocketeval.config import EngineConfig
from rocketeval.engines.vllm import VLLMEngine
from rocketeval.records import GradingTask, Status
from rocketeval.testing import EngineCase

from .test_walk import check_answers, judgments

FOLDER = os.environ.get("ROCKETEVAL_TEST_HF_JUDGE", "")
OPTIONS = {
    "dtype": "float32",
    "max_model_len": 2048,
    "engine_args": {"enforce_eager": True, "kv_cache_memory_bytes": 2**29},
}
TOO_LONG = "many words " * 2_000
SINGLE_PRECISION = 1e-4
TASK = GradingTask(
    b"k",
    "bees",
    "mine",
    "Query: What do bees make?\nResponse: Bees make honey from nectar, and wax. "
    + "They work all summer. " * 20
    + "\nQuestion: ",
    tuple(
        f"{item}\nAnswer with one word, Yes or No.\nAnswer:"
        for item in ("Is honey mentioned?", "Is the response in verse?", "Is it about cars?")
    ),
)

pytestmark = [
    pytest.mark.skipif(find_spec("vllm") is None, reason="vllm is not installed"),
    pytest.mark.skipif(not FOLDER, reason="ROCKETEVAL_TEST_HF_JUDGE names no judge's folder"),
    # Warnings of vLLM and torch are not ours to fix.
    pytest.mark.filterwarnings("ignore"),
]


def vllm_config(**options: Any) -> EngineConfig:
    """Return a config for a small judge in single precision."""
    return EngineConfig(engine="vllm", model=FOLDER, min_mass=0.0, options={**OPTIONS, **options})


@pytest.fixture
async def engine() -> AsyncIterator[VLLMEngine]:
    """Yield a separate judge, closed afterwards."""
    engine = VLLMEngine.create(vllm_config())
    yield engine
    await engine.aclose()


class TestVLLM(EngineContract):
    """A small model inside this process."""

    @pytest.fixture
    def case(self) -> EngineCase:
        return EngineCase(partial(VLLMEngine.create, vllm_config()), TOO_LONG, SINGLE_PRECISION)


async def test_answers_match_transformers(engine: VLLMEngine) -> None:
    """transformers, computing the whole distribution, gives the same p_yes and mass."""
    import torch
    from transformers import AutoModelForCausalLM

    graded = await engine.grade(TASK, {})
    prompts = await engine.tokenise([TASK.prefix + suffix for suffix in TASK.suffixes]) or []
    labels = (await engine._open()).labels
    assert labels is not None
    model = AutoModelForCausalLM.from_pretrained(FOLDER, dtype=torch.float32)
    for prompt, answer in zip(prompts, graded.answers, strict=True):
        with torch.no_grad():
            logits = model(torch.tensor([prompt])).logits[0, -1]
        result = torch.log_softmax(logits.double(), -1).tolist()
        yes, no = (
            math.fsum(math.exp(result[token]) for token in tokens) for tokens in labels.groups
        )
        assert answer.status is Status.OK
        assert answer.p_yes == pytest.approx(yes / (yes + no), abs=SINGLE_PRECISION)
        assert answer.mass == pytest.approx(yes + no, abs=SINGLE_PRECISION)


async def test_a_list_holds_the_exact_answer(
    engine: VLLMEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the most likely tokens instead, vLLM gives an interval that contains the value."""
    exact = (await engine.grade(TASK, {})).answers
    await engine.aclose()
    monkeypatch.setattr("rocketeval.engines.vllm_worker._reports_chosen_tokens", lambda: False)
    listing = VLLMEngine.create(vllm_config())
    try:
        listed = (await listing.grade(TASK, {})).answers
        assert (await listing.identify()).logprobs == "top20"
    finally:
        await listing.aclose()
    for one, other in zip(exact, listed, strict=True):
        assert one.p_yes is not None
        assert other.p_low is not None
        assert other.p_high is not None
        assert other.p_low - SINGLE_PRECISION <= one.p_yes <= other.p_high + SINGLE_PRECISION


async def test_writing_during_grading_changes_no_answer(engine: VLLMEngine) -> None:
    """Requests with and without label tokens in one batch do not affect each other."""
    alone = (await engine.grade(TASK, {})).answers
    texts, graded = await asyncio.gather(
        asyncio.gather(*(engine.write(f"Count to {n}.", max_tokens=12) for n in range(4))),
        asyncio.gather(*(engine.grade(TASK, {}) for _ in range(4))),
    )
    assert all(written.text and not written.finished for written in texts)
    for one in graded:
        for mine, yours in zip(one.answers, alone, strict=True):
            assert mine.p_yes == pytest.approx(yours.p_yes, abs=SINGLE_PRECISION)


async def test_the_prefix_is_computed_once(engine: VLLMEngine) -> None:
    """All items but the first find most of their prompt in the cache, within one task."""
    usage = (await engine.grade(TASK, {})).usage
    tokens = await engine.tokenise([TASK.prefix + suffix for suffix in TASK.suffixes]) or []
    assert usage.prompt_tokens == sum(map(len, tokens))
    assert usage.cached_tokens >= 2 * (len(tokens[0]) - 96)
    assert usage.completion_tokens == 3


async def test_prompt_has_one_beginning_of_text(engine: VLLMEngine) -> None:
    """The tokens equal those of the model's own template."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(FOLDER)
    chat = [{"role": "user", "content": "Hello there"}]
    expected = tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_dict=False)
    assert await engine.tokenise(["Hello there"]) == [expected]


def test_ctrl_c_stops_a_run_that_resumes_later(tmp_path: Path) -> None:
    """SIGINT to the whole process group, as from a terminal: stop cleanly, then resume."""
    folder = tmp_path / "demo"
    rocketeval = [sys.executable, "-m", "rocketeval.cli.main"]
    subprocess.run([*rocketeval, "init", str(folder), "--model", FOLDER], check=True)
    config = folder / "rocketeval.yaml"
    settings = yaml.safe_load(config.read_text())
    settings["judge"] = {
        "engine": "vllm",
        "model": FOLDER,
        "min_mass": 0.0,
        "concurrency": 1,
        "options": OPTIONS,
    }
    config.write_text(yaml.safe_dump(settings))
    command = [*rocketeval, "run", str(config), "--limit", "2"]
    run = folder / "runs" / "quickstart-first-2"
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True, text=True
    ) as process:
        _wait_for_a_judgment(run, process)
        assert not _children(process.pid), "a child process would outlive a kill"
        os.killpg(process.pid, signal.SIGINT)
        shown, _ = process.communicate(timeout=120)
    assert process.returncode == 130, shown
    assert "Stopping" in shown
    assert 0 < len(judgments(run)) < 10
    finished = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert finished.returncode in (0, 3), finished.stdout + finished.stderr
    rows = judgments(run)
    assert len(rows) == 10
    check_answers(rows)


def _wait_for_a_judgment(run: Path, process: subprocess.Popen[str]) -> None:
    give_up = time.monotonic() + 300
    while not any(path.stat().st_size for path in (run / "ledger").glob("*journal-*.jsonl")):
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < give_up
        time.sleep(0.05)


def _children(pid: int) -> list[str]:
    found = subprocess.run(["ps", "--ppid", str(pid), "-o", "cmd="], stdout=-1, text=True)
    return [line for line in found.stdout.splitlines() if "vllm" in line.lower()]
