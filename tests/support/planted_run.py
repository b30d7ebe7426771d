"""Runs of the planted benchmark whose judge and optimizer store every prompt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mad_eval.planted_benchmark import Planted, judge_says, make_planted, optimizer_writes

from rocketeval.config import EngineConfig, RunConfig, parse_config
from rocketeval.engines.base import EngineAnswers, WrittenText
from rocketeval.engines.scripted import ScriptedEngine
from rocketeval.records import Answer, GradingTask

OPTIMIZER = "optimizer"


@dataclass
class Engines:
    """A factory of the engines of a run; equal prompts to one kind of judge count once."""

    asked: Counter[tuple[tuple[str, ...], str]] = field(default_factory=Counter)
    """The judge's prompts, by its allowed labels."""
    written: Counter[str] = field(default_factory=Counter)
    """The optimizer's prompts."""
    hears: Callable[[Engines], None] | None = None
    """Called before each prompt is answered."""

    def make(self, config: EngineConfig, home: Path | None = None) -> ScriptedEngine:
        """Return the optimizer, or a judge."""
        return _Counting(self, config)

    def heard(self) -> None:
        if self.hears is not None:
            self.hears(self)


class _Counting(ScriptedEngine):
    def __init__(self, engines: Engines, config: EngineConfig) -> None:
        super().__init__(
            judge_says, optimizer_writes, model=config.model, labels=config.labels, in_flight=2
        )
        self._engines = engines
        self._words = config.labels

    async def grade(self, task: GradingTask, known: Mapping[int, Answer]) -> EngineAnswers:
        for place, suffix in enumerate(task.suffixes):
            if place not in known:
                self._engines.asked[self._words, task.prefix + suffix] += 1
        self._engines.heard()
        return await super().grade(task, known)

    async def write(self, prompt: str, **settings: Any) -> WrittenText:
        self._engines.written[prompt] += 1
        self._engines.heard()
        return await super().write(prompt, **settings)


def planted_config(folder: Path, planted: Planted | None = None, **changes: Any) -> RunConfig:
    """Return a config for a small planted benchmark in `folder`; `changes` apply to `evolve`."""
    benchmark = folder / "benchmark"
    if not benchmark.exists():
        (planted or make_planted(20)).write(benchmark)
    own = {name: changes.pop(name) for name in ("judge", "max_cost", "name") if name in changes}
    section = {
        "seeds": [str(benchmark / "seeds.yaml")],
        "optimizer": {"engine": "scripted", "model": OPTIMIZER},
        "rounds": 1,
        "folds": 2,
        "experts": [1, 2],
        **changes,
    }
    return parse_config(
        {
            "name": own.pop("name", "planted"),
            "benchmark": {"path": str(benchmark)},
            "judge": {"engine": "scripted", "model": "judge", **own.pop("judge", {})},
            "output": str(folder / "runs"),
            "cache": None,
            "evolve": section,
            **own,
        }
    )
