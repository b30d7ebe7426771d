"""RocketEval's own grading path: tasks from a run's inputs, the grading loop, a ledger on disk."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterable
from itertools import count
from pathlib import Path

from harness.measured import Measured, Stopwatch, timed
from harness.workload import Workload
from rocketeval.config import EngineConfig
from rocketeval.engines.base import Engine, EngineIdentity, create_engine
from rocketeval.engines.readout import sigmoid
from rocketeval.grading.loop import fingerprint, grade
from rocketeval.grading.schedule import unfinished_tasks
from rocketeval.observer import Observer
from rocketeval.prompts.render import GradingPrompt
from rocketeval.records import Answer, GradingTask, Judgment
from rocketeval.store.ledger import Ledger


class Ours:
    """The grade stage, once per run, each time into a new ledger.

    The engine is probed or loaded once, before the clock starts.
    """

    def __init__(self, config: EngineConfig, workload: Workload) -> None:
        self._scratch = tempfile.TemporaryDirectory()
        self._folder = Path(self._scratch.name)
        self._inputs = workload.save(self._folder / "inputs")
        self._places = {
            (response.query_id, response.candidate): place
            for place, response in enumerate(workload.responses)
        }
        self._ledgers = count()
        self._prompt = GradingPrompt()
        self._runner = asyncio.Runner()
        self.engine: Engine = create_engine(config, self._folder / "engine")
        self.identity: EngineIdentity = self._runner.run(self.engine.identify())
        self._judge = fingerprint(self.identity, self._prompt).digest

    def run(self) -> Measured:
        """Grade the whole workload, rendering included."""
        tasks = unfinished_tasks(self._inputs, self._prompt, self._judge, lambda _: False)
        judgments, watch = self.grade(tasks)
        if len(judgments) != len(self._places):
            raise RuntimeError(f"{len(judgments)} judgments of {len(self._places)} responses")
        judgments.sort(key=lambda made: self._places[made.query_id, made.candidate])
        return Measured(
            [_p_yes(answer) for judgment in judgments for answer in judgment.answers],
            sum(judgment.usage.prompt_tokens for judgment in judgments),
            watch.seconds,
            watch.cpu_seconds,
        )

    def grade(self, tasks: Iterable[GradingTask]) -> tuple[list[Judgment], Stopwatch]:
        """Grade tasks in their order into a new ledger; raise if one fails."""
        return self._runner.run(self._grade(tasks))

    def close(self) -> None:
        """Release the engine and remove the ledgers."""
        self._runner.run(self.engine.aclose())
        self._runner.close()
        self._scratch.cleanup()

    async def _grade(self, tasks: Iterable[GradingTask]) -> tuple[list[Judgment], Stopwatch]:
        judgments: list[Judgment] = []
        with timed() as watch:
            ledger = Ledger(self._folder / f"ledger-{next(self._ledgers)}", self._judge)

            def record(judgment: Judgment) -> None:
                ledger.append(judgment)
                judgments.append(judgment)

            grading = await grade(
                iter(tasks),
                self.engine,
                record,
                concurrency=self.engine.in_flight,
                known={},
                observer=Observer(),
                stop=asyncio.Event(),
            )
            ledger.close()
        if grading.failures:
            raise RuntimeError(f"not judged: {grading.failures[0].reason}")
        return judgments, watch


def _p_yes(answer: Answer) -> float | None:
    """Return the probability, even if RocketEval would reject it for lack of mass."""
    if answer.p_yes is not None or answer.logp_yes is None or answer.logp_no is None:
        return answer.p_yes
    return sigmoid(answer.logp_yes - answer.logp_no)
