"""The vllm engine in front of a fake vLLM: contract, faults, settings and errors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from contracts.engine_contract import EngineContract
from fakes.vllm_package import CONTEXT, FakeParams, FakeVLLM, OldParams, installed
from rocketeval.config import EngineConfig
from rocketeval.engines import base as local
from rocketeval.engines.base import create_engine, offline_identity
from rocketeval.engines.vllm import VLLMEngine
from rocketeval.errors import ConfigError, EngineRefused, EngineUnavailable, RequestRejected
from rocketeval.items import AnswerLabels
from rocketeval.records import Answer, GradingTask, Status
from rocketeval.testing import EngineCase

SCALE = tuple("54321")
TOO_LONG = "many words " * CONTEXT
TASK = GradingTask(b"k", "q1", "mine", "a response ", ("Is it good?", "Is it short?"))


def vllm_config(model: str = "judge", **options: Any) -> EngineConfig:
    """Return a config for the vllm engine."""
    return EngineConfig(engine="vllm", model=model, options=options)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeVLLM:
    """An installed fake vLLM."""
    return installed(monkeypatch)


@pytest.fixture
async def engine(fake: FakeVLLM) -> AsyncIterator[VLLMEngine]:
    """An engine in front of it."""
    engine = VLLMEngine.create(vllm_config())
    yield engine
    await engine.aclose()


class TestExact(EngineContract):
    """A vLLM that reports chosen tokens."""

    @pytest.fixture
    def case(self, fake: FakeVLLM) -> EngineCase:
        return EngineCase(partial(VLLMEngine.create, vllm_config()), TOO_LONG)


class TestTopK(EngineContract):
    """A vLLM that lists only the most likely tokens."""

    @pytest.fixture
    def case(self, monkeypatch: pytest.MonkeyPatch) -> EngineCase:
        installed(monkeypatch, OldParams)
        return EngineCase(partial(VLLMEngine.create, vllm_config()), TOO_LONG)


class TestScale(EngineContract):
    """A vLLM that reports chosen tokens, on a scale of grades."""

    @pytest.fixture
    def case(self, fake: FakeVLLM) -> EngineCase:
        config = vllm_config().model_copy(update={"labels": SCALE})
        return EngineCase(partial(VLLMEngine.create, config), TOO_LONG, labels=SCALE)


async def test_exact_and_top_k_give_the_same_answer(
    fake: FakeVLLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exact tokens give a point interval; a list gives the same p_yes within its bounds."""
    exact_engine = VLLMEngine.create(vllm_config())
    exact, mode = (await exact_engine.grade(TASK, {})).answers, await exact_engine.identify()
    await exact_engine.aclose()
    installed(monkeypatch, OldParams)
    listed_engine = VLLMEngine.create(vllm_config())
    listed, other = (await listed_engine.grade(TASK, {})).answers, await listed_engine.identify()
    await listed_engine.aclose()
    assert mode.logprobs.startswith("exact[0, ")
    assert other.logprobs == "top20"
    for one, two in zip(exact, listed, strict=True):
        assert one.p_yes == pytest.approx(two.p_yes, abs=1e-9)
        assert one.p_low == one.p_high


async def test_model_loads_at_first_use(fake: FakeVLLM) -> None:
    """Creating and closing load nothing; the first use loads once."""
    engine = VLLMEngine.create(vllm_config())
    await engine.aclose()
    assert not fake.engines
    await asyncio.gather(*(engine.grade(TASK, {}) for _ in range(5)))
    assert len(fake.engines) == 1
    await engine.aclose()


@pytest.mark.parametrize("params", [FakeParams, OldParams])
async def test_identity_is_known_before_loading(
    monkeypatch: pytest.MonkeyPatch, params: type
) -> None:
    """The offline identity equals that of the loaded model."""
    fake = installed(monkeypatch, params)
    engine = VLLMEngine.create(vllm_config(engine_args={"enforce_eager": True}))
    foretold = await offline_identity(engine)
    assert not fake.engines
    assert await engine.identify() == foretold
    await engine.aclose()


async def test_unknown_model_is_refused_before_loading(fake: FakeVLLM) -> None:
    """The error contains vLLM's message."""
    engine = VLLMEngine.create(vllm_config("unknown"))
    with pytest.raises(EngineRefused, match="vLLM cannot load 'unknown': ValueError"):
        await engine.identify_offline()
    assert not fake.engines


async def test_tokenizing_does_not_load_the_model(engine: VLLMEngine, fake: FakeVLLM) -> None:
    """The tokenizer counts the tokens that vLLM gets."""
    tokens = await engine.tokenise([TASK.prefix + suffix for suffix in TASK.suffixes])
    assert not fake.engines
    await engine.grade(TASK, {})
    assert [asked for _, asked in fake.engines[0].asked] == tokens


async def test_tasks_reach_vllm_in_order(engine: VLLMEngine, fake: FakeVLLM) -> None:
    """Tasks arrive in the order of the `grade` calls, items together."""
    await engine.identify()
    tasks = [replace(TASK, prefix=f"response {number} ") for number in range(30)]
    await asyncio.gather(*(engine.grade(task, {}) for task in tasks))
    prompts = [task.prefix + suffix for task in tasks for suffix in task.suffixes]
    assert [asked for _, asked in fake.engines[0].asked] == await engine.tokenise(prompts)


async def test_dead_engine_is_unavailable(engine: VLLMEngine, fake: FakeVLLM) -> None:
    """The task keeps known answers, and reports that others will fail too."""
    await engine.identify()
    fake.engines[0].dies = True
    known = {1: Answer(Status.HIDDEN, mass=0.0)}
    graded = await engine.grade(TASK, known)
    assert graded.unavailable
    assert not graded.rejected
    assert graded.answers == (Answer(Status.ERROR), known[1])
    assert str(graded.failure).startswith("item 1: ")
    assert "RuntimeError: the engine core died" in str(graded.failure)
    with pytest.raises(EngineUnavailable):
        await engine.identify()
    with pytest.raises(EngineUnavailable):
        await engine.write("hello", max_tokens=3)


async def test_usage_is_reported_by_vllm(engine: VLLMEngine) -> None:
    """Prompt, cached and written tokens of all items are summed."""
    tokens = await engine.tokenise([TASK.prefix + suffix for suffix in TASK.suffixes]) or []
    usage = (await engine.grade(TASK, {})).usage
    assert usage.requests == 2
    assert usage.prompt_tokens == sum(map(len, tokens))
    assert usage.cached_tokens == sum(len(prompt) // 2 for prompt in tokens)
    assert usage.completion_tokens == 2


async def test_too_long_text_is_rejected(engine: VLLMEngine) -> None:
    """The error names the limit."""
    with pytest.raises(RequestRejected, match="longer than"):
        await engine.write(TOO_LONG, max_tokens=3)


async def test_too_long_prompt_is_rejected_for_good(engine: VLLMEngine) -> None:
    """Retrying it is useless, unlike a task that found the engine dead."""
    graded = await engine.grade(replace(TASK, suffixes=("Is it good?", TOO_LONG)), {})
    assert (graded.failure or "").startswith("item 2: ")
    assert graded.rejected
    assert not (await engine.grade(TASK, {})).rejected


async def test_settings_reach_vllm(fake: FakeVLLM) -> None:
    """Unset options keep vLLM's defaults, except the block size on a CPU."""
    engine = VLLMEngine.create(
        vllm_config(dtype="float32", engine_args={"enforce_eager": True}, max_model_len=99)
    )
    await engine.ready()
    await engine.aclose()
    arguments = fake.engines[0].arguments
    assert arguments["enable_prefix_caching"] is True
    assert arguments["enforce_eager"] is True
    assert (arguments["dtype"], arguments["max_model_len"]) == ("float32", 99)
    assert arguments["block_size"] == 32
    assert "gpu_memory_utilization" not in arguments


@pytest.mark.parametrize(
    ("changed", "same"),
    [
        ({"chat_template_kwargs": {"enable_thinking": False}}, False),
        ({"engine_args": {"quantization": "fp8"}}, False),
        ({"tensor_parallel_size": 2}, False),
        ({"engine_args": {"max_num_seqs": 7}}, True),
        ({"gpu_memory_utilization": 0.5}, True),
    ],
)
async def test_identity_covers_what_changes_probabilities(
    fake: FakeVLLM, changed: dict[str, Any], same: bool
) -> None:
    """Settings that only change the speed are not part of it."""
    identities = []
    for options in ({}, changed):
        engine = VLLMEngine.create(vllm_config(**options))
        identities.append(await engine.identify())
        await engine.aclose()
    assert (identities[0] == identities[1]) is same


async def test_other_weights_in_the_same_folder_are_another_judge(
    fake: FakeVLLM, tmp_path: Path
) -> None:
    """A retrained checkpoint keeps its path, not its identity."""
    versions = []
    for weights in (b"one", b"two"):
        (tmp_path / "model.safetensors").write_bytes(weights)
        engine = VLLMEngine.create(vllm_config(str(tmp_path)))
        versions.append((await engine.identify()).version)
        await engine.aclose()
    assert versions[0] != versions[1]


async def test_findings_name_precision_and_logprobs(engine: VLLMEngine) -> None:
    """The findings say how exact the answers are."""
    reported = {finding.name: finding.told for finding in await engine.findings()}
    assert "exact for 6 tokens" in reported["logprobs"]
    assert "float32" in reported["precision"]
    assert str(CONTEXT) in reported["context"]


async def test_model_that_does_not_load_is_refused(engine: VLLMEngine, fake: FakeVLLM) -> None:
    """The error has vLLM's message, and the hint says where to look."""
    fake.cannot_load = RuntimeError("Engine core initialization failed.")
    with pytest.raises(EngineRefused, match="Engine core initialization failed") as caught:
        await engine.identify()
    assert "memory" in caught.value.hint


async def test_missing_model_is_refused_in_one_line(fake: FakeVLLM) -> None:
    """The message has one line and no traceback."""
    engine = VLLMEngine.create(vllm_config("missing"))
    with pytest.raises(EngineRefused) as caught:
        await engine.identify()
    assert "missing is not a local folder" in caught.value.message
    assert "\n" not in caught.value.message
    await engine.aclose()


async def test_unknown_engine_argument_is_named(fake: FakeVLLM) -> None:
    """A mistake in engine_args is a config error."""
    engine = VLLMEngine.create(vllm_config(engine_args={"no_such_argument": 1}))
    with pytest.raises(ConfigError, match="no_such_argument"):
        await engine.identify()
    await engine.aclose()


def test_missing_package_names_the_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error comes before anything is written or loaded."""
    monkeypatch.setattr(local, "find_spec", lambda _: None)
    with pytest.raises(ConfigError) as caught:
        create_engine(vllm_config())
    assert "pip install 'rocketeval[vllm]'" in caught.value.hint


@pytest.mark.parametrize(
    ("options", "reported"),
    [
        ({"dtypes": "float32"}, "Did you mean 'dtype'"),
        ({"tensor_parallel_size": 0}, "tensor_parallel_size"),
        ({"gpu_memory_utilization": 1.5}, "gpu_memory_utilization"),
        ({"engine_args": {"model": "other"}}, "model cannot be set here"),
        ({"engine_args": {"dtype": "float32"}}, "dtype cannot be set here"),
    ],
)
def test_bad_options_are_refused(fake: FakeVLLM, options: dict[str, Any], reported: str) -> None:
    """Every mistake in `options` is named before the model is loaded."""
    with pytest.raises(ConfigError, match=reported):
        create_engine(vllm_config(**options))


@pytest.mark.parametrize(
    "setting", [{"base_url": "http://127.0.0.1:1/v1"}, {"extra_body": {"a": 1}}]
)
def test_server_settings_are_refused(fake: FakeVLLM, setting: dict[str, Any]) -> None:
    """They would otherwise be ignored silently."""
    with pytest.raises(ConfigError, match=next(iter(setting))):
        create_engine(EngineConfig(engine="vllm", model="judge", **setting))


async def test_likelihood_covers_only_the_text(engine: VLLMEngine, fake: FakeVLLM) -> None:
    """Prompt and text are sent as tokens; missing tokens are refused."""
    reported = await engine.likelihood("Name a city.", " Paris of course")
    (prompt,) = await engine.tokenise(["Name a city."]) or []
    (_, asked), params = fake.engines[0].asked[0], fake.engines[0].params[0]
    assert asked[: len(prompt)] == prompt
    assert len(reported.logprobs) == len(asked) - len(prompt) == 3
    assert (params.prompt_logprobs, params.max_tokens) == (0, 1)
    assert reported.usage.prompt_tokens == len(asked)
    fake.engines[0].swallowed = 2
    with pytest.raises(RequestRejected, match="left out the log-probabilities of 2 of"):
        await engine.likelihood("Name a city.", " Paris of course")
    with pytest.raises(RequestRejected, match="longer than"):
        await engine.likelihood("Name a city.", TOO_LONG)


async def test_samples_have_a_seed(engine: VLLMEngine, fake: FakeVLLM) -> None:
    """A greedy request has no seed; a sample has its temperature and seed."""
    await engine.write("List.", max_tokens=9)
    await engine.write("List.", max_tokens=9, temperature=0.7, seed=3)
    greedy, drawn = fake.engines[0].params
    assert greedy == FakeParams(max_tokens=9, temperature=0.0)
    assert drawn == FakeParams(max_tokens=9, temperature=0.7, seed=3)


async def test_labels_that_start_alike_are_refused(fake: FakeVLLM) -> None:
    """If one label's first token is another label, answers are ambiguous."""
    config = vllm_config().model_copy(update={"labels": ("a b", "a", "c")})
    engine = VLLMEngine.create(config)
    with pytest.raises(EngineRefused, match="'a b' begins with the token of 'a'"):
        await engine.identify()
    await engine.aclose()


async def test_items_with_their_own_labels(engine: VLLMEngine) -> None:
    """Levels and NA are requested by their own tokens, in separate batches."""
    labels = (None, AnswerLabels(("3", "2", "1")), AnswerLabels(("Yes", "No"), "NA"))
    task = replace(TASK, suffixes=("Is it good?", "How good?", "Is it new?"), labels=labels)
    graded = await engine.grade(task, {})
    plain, scale, maybe = graded.answers
    assert graded.failure is None
    assert plain.p_na is scale.p_na is None
    assert {answer.status for answer in graded.answers} <= set(Status)
    assert maybe.status in (Status.OK, Status.LOW_MASS)
    assert graded.usage.requests == 3
