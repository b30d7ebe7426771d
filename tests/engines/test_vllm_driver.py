"""The thread that drives vLLM: order, rejections, crashes and closing."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from typing import Any

import pytest

from fakes.vllm_package import CONTEXT, FakeEngine, FakeParams
from rocketeval.engines.vllm_worker import Driver
from rocketeval.errors import EngineUnavailable, RequestRejected

PARAMS = FakeParams(max_tokens=1, temperature=0.0, logprob_token_ids=[0, 1])
SECONDS = 10.0


@pytest.fixture
def engine() -> FakeEngine:
    """An engine that answers."""
    return FakeEngine()


@pytest.fixture
def driver(engine: FakeEngine) -> Iterator[Driver]:
    """A driver of this engine."""
    driver = Driver(lambda: engine)
    yield driver
    driver.close()


def prompts(outputs: list[Any]) -> list[list[int]]:
    """Return the prompts that were answered."""
    return [output.prompt_token_ids for output in outputs]


def test_outputs_are_in_prompt_order(driver: Driver) -> None:
    """Outputs are in prompt order, however the engine finishes them."""
    asked = [[5], [6, 7], [8]]
    assert prompts(driver.submit(asked, PARAMS).result(SECONDS)) == asked


def test_prompts_reach_the_engine_in_task_order(driver: Driver, engine: FakeEngine) -> None:
    """Waiting tasks are submitted first come, first served, items together."""
    futures = [driver.submit([[task, item] for item in range(3)], PARAMS) for task in range(20)]
    for future in futures:
        future.result(SECONDS)
    assert [tokens for _, tokens in engine.asked] == [[t, i] for t in range(20) for i in range(3)]


def test_rejected_prompt_affects_no_other(driver: Driver) -> None:
    """Its output is the error; a task with only rejected prompts finishes too."""
    too_long = [0] * CONTEXT
    first, rejected, last = driver.submit([[5], too_long, [6]], PARAMS).result(SECONDS)
    assert prompts([first, last]) == [[5], [6]]
    assert "longer than" in str(rejected)
    (alone,) = driver.submit([too_long], PARAMS).result(SECONDS)
    assert isinstance(alone, RequestRejected)


def test_dead_engine_fails_all_tasks(driver: Driver, engine: FakeEngine) -> None:
    """Tasks in flight and later ones fail instead of waiting forever."""
    engine.dies = True
    with pytest.raises(EngineUnavailable, match="the engine core died"):
        driver.submit([[5]], PARAMS).result(SECONDS)
    with pytest.raises(EngineUnavailable, match="the engine core died"):
        driver.submit([[5]], PARAMS)
    driver.close()
    assert engine.shut_down == 1


@pytest.mark.parametrize("accepted", [0, 1])
def test_engine_that_dies_of_a_prompt_fails_its_task(accepted: int) -> None:
    """The task that was being handed over fails too, whether or not one of its prompts was."""

    class Dying(FakeEngine):
        def add_request(self, name: str, prompt: Mapping[str, Any], params: Any) -> None:
            if len(self.asked) == accepted:
                raise RuntimeError("the engine core died")
            super().add_request(name, prompt, params)

    driver = Driver(Dying)
    driver.loaded.result(SECONDS)
    with pytest.raises(EngineUnavailable, match="the engine core died"):
        driver.submit([[5], [6]], PARAMS).result(SECONDS)
    driver.close()


def test_engine_is_shut_down_once(driver: Driver, engine: FakeEngine) -> None:
    """Closing twice shuts it down once, and later callers get an error."""
    driver.loaded.result(SECONDS)
    driver.close()
    driver.close()
    assert engine.shut_down == 1
    with pytest.raises(EngineUnavailable, match="closed"):
        driver.submit([[5]], PARAMS)


def test_engine_closed_while_loading_is_freed_later(engine: FakeEngine) -> None:
    """Closing does not wait for loading, and tasks submitted meanwhile fail."""
    go_on = threading.Event()

    def load() -> FakeEngine:
        assert go_on.wait(SECONDS)
        return engine

    driver = Driver(load)
    driver.close()
    asked = driver.submit([[5]], PARAMS)
    go_on.set()
    with pytest.raises(EngineUnavailable, match="closed"):
        asked.result(SECONDS)


def test_failed_load_is_reported() -> None:
    """Callers get the reason, and no task waits."""
    go_on = threading.Event()

    def load() -> None:
        assert go_on.wait(SECONDS)
        raise RuntimeError("too little memory")

    driver = Driver(load)
    asked = driver.submit([[5]], PARAMS)
    go_on.set()
    with pytest.raises(RuntimeError, match="too little memory"):
        driver.loaded.result(SECONDS)
    with pytest.raises(EngineUnavailable, match="could not be loaded"):
        asked.result(SECONDS)


def test_cancelled_task_is_not_asked(engine: FakeEngine) -> None:
    """A task cancelled while the engine loads costs nothing."""
    go_on = threading.Event()

    def load() -> FakeEngine:
        assert go_on.wait(SECONDS)
        return engine

    driver = Driver(load)
    dropped: Future[list[Any]] = driver.submit([[5]], PARAMS)
    kept = driver.submit([[6]], PARAMS)
    assert dropped.cancel()
    go_on.set()
    assert prompts(kept.result(SECONDS)) == [[6]]
    driver.close()
    assert [tokens for _, tokens in engine.asked] == [[6]]


def test_vllm_processes_ignore_ctrl_c(engine: FakeEngine) -> None:
    """SIGINT is blocked only in the loading thread, whose processes inherit that."""
    masks: list[set[signal.Signals | int]] = []

    def load() -> FakeEngine:
        masks.append(signal.pthread_sigmask(signal.SIG_BLOCK, []))
        return engine

    driver = Driver(load)
    driver.loaded.result(SECONDS)
    driver.close()
    assert signal.SIGINT in masks[0]
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])
