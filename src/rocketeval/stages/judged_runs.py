"""Runs of several judges that are to be combined: opened, named, and checked to fit together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rocketeval.config import RunConfig, load_config
from rocketeval.errors import BenchmarkError, ConfigError
from rocketeval.ranking.ensemble import Common
from rocketeval.stages.evaluate.given import as_graded
from rocketeval.store.run import RunStore


@dataclass(frozen=True)
class JudgedRun:
    """A run that takes part."""

    store: RunStore
    config: RunConfig


def open_run(path: Path) -> JudgedRun:
    """Return the run in a run directory, or the run that a config file describes."""
    if not path.is_dir():
        config = as_graded(load_config(path))
        return JudgedRun(RunStore(config.run_path), config)
    if not (path / "run.yaml").exists():
        raise ConfigError(
            f"{path} is not a run directory: it has no run.yaml.",
            hint="Give a run directory, such as runs/my-run, or its config file.",
        )
    return JudgedRun(RunStore(path), load_config(path / "run.yaml"))


def judge_names(runs: Sequence[JudgedRun]) -> tuple[str, ...]:
    """Return a name for each run's judge: its model, with the run where models are the same."""
    models = [run.store.judge().model for run in runs]
    named = [f"{model} ({run.store.path.name})" for model, run in zip(models, runs, strict=True)]
    alone = Counter(models)
    names = [
        model if alone[model] == 1 else name for model, name in zip(models, named, strict=True)
    ]
    if len(set(names)) < len(names):
        raise ConfigError(
            f"The same run is given twice, or two runs have the same name: {', '.join(names)}.",
            hint="Give each judge's run once.",
        )
    return tuple(names)


def refuse_other_scales(runs: Sequence[JudgedRun]) -> None:
    """Raise ConfigError where runs do not score on one scale."""
    first = runs[0].config
    for run in runs[1:]:
        if run.config.scorer.scale != first.scorer.scale:
            raise ConfigError(
                f"{run.store.path} scores from {_span(run)}, {runs[0].store.path} from "
                f"{_span(runs[0])}: a mean of the two means nothing.",
                hint="Score them on one scale: set `scorer.scale`, then `rocketeval score`.",
            )


def _span(run: JudgedRun) -> str:
    low, high = run.config.scorer.scale
    return f"{low:g} to {high:g}"


def refuse_other_responses(runs: Sequence[JudgedRun], common: Common) -> None:
    """Raise BenchmarkError where two runs mean different texts by the same names."""
    grid = common.grids[0]
    queries, candidates = set(grid.query_ids), set(grid.candidates)
    seen: dict[tuple[str, str], tuple[bytes, bytes]] = {}
    for run in runs:
        texts = run.store.inputs.queries
        for head in run.store.inputs.heads():
            if head.query_id not in queries or head.candidate not in candidates:
                continue
            cell = (head.query_id, head.candidate)
            content = (texts[head.query_id].content_hash, head.hash)
            if seen.setdefault(cell, content) != content:
                raise BenchmarkError(
                    f"Query {cell[0]!r}, or the response of {cell[1]!r} to it, is another text in "
                    f"{run.store.path} than in the runs before.",
                    hint="Judges can be combined only where they judged the same responses.",
                )
