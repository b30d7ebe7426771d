"""RocketEval with its in-process vLLM engine, in an interpreter that has both."""

from __future__ import annotations

from typing import Any

from harness.child import serve
from harness.orders import ORDERS
from harness.ours import Ours
from harness.workload import make_workload
from rocketeval.config import EngineConfig
from rocketeval.engines.vllm import VLLMEngine

COMPUTED = "vllm:prompt_tokens_by_source"
PREEMPTED = "vllm:num_preemptions"


class OursVLLM(Ours):
    """The grading path around an engine whose counters can be read."""

    def reset(self) -> None:
        """Empty the prefix cache."""
        if not self._vllm.reset_prefix_cache():
            raise RuntimeError("vLLM does not empty its prefix cache.")

    def reuse(self, order: str) -> dict[str, Any]:
        """Grade in that order; return the change of vLLM's counters."""
        self.reset()
        before = self._counted()
        judgments, watch = self.grade(ORDERS[order](list(self._workload.tasks())))
        after = self._counted()
        return {
            **{name: after[name] - before[name] for name in after},
            "answers": sum(len(judgment.answers) for judgment in judgments),
            "seconds": watch.seconds,
        }

    def __init__(self, settings: dict[str, Any]) -> None:
        self._workload = make_workload(*settings["size"])
        options = {
            "dtype": settings["dtype"],
            "max_model_len": settings["max_model_len"],
            "engine_args": settings.get("engine_args", {}),
        }
        config = EngineConfig(engine="vllm", model=settings["folder"], options=options)
        super().__init__(config, self._workload)
        assert isinstance(self.engine, VLLMEngine)
        assert self.engine._driver is not None
        # RocketEval has no command that empties the cache; between two passes the engine is idle.
        self._vllm = self.engine._driver.engine

    def _counted(self) -> dict[str, float]:
        result = self._vllm.get_metrics()
        sources = {
            metric.labels["source"]: metric.value for metric in result if metric.name == COMPUTED
        }
        (preempted,) = (metric.value for metric in result if metric.name == PREEMPTED)
        return {"computed": sources["local_compute"], "preempted": preempted}


def prepare(settings: dict[str, Any]) -> tuple[OursVLLM, dict[str, Any]]:
    """Load the engine."""
    method = OursVLLM(settings)
    return method, {"version": method.identity.version}


if __name__ == "__main__":
    serve(prepare)
