"""Two ensembles of judges: the mean of their scores, or one fit to all their comparisons.

**Mean** (`ensemble_mean`): each response gets the mean of the judges' scores on the label scale,
without standardization. The mean stays on the scale of the tie margin and the labels, and a judge
that spreads its scores more has more weight.
**Pooled** (`rank.rank_pooled`): each judge compares its own scores, and every comparison has the
same weight, so a judge's spread does not matter. It rates candidates and gives responses no score.

Both are the ensembles of the RocketEval paper (appendix A.3.2).
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rocketeval.config import RunConfig, load_config
from rocketeval.errors import BenchmarkError, ConfigError
from rocketeval.evolve.apply_setup import as_graded
from rocketeval.grid import ScoreGrid
from rocketeval.scoring.stage import refuse_other_scorer
from rocketeval.store.run import RunStore

Missing = Literal["drop", "skip"]
"""drop: a response that not every judge scored has no mean; skip: the mean of those that did.

drop is the default, because a lenient judge alone would lift a response above its rivals."""


@dataclass(frozen=True, slots=True)
class CommonGrids:
    """Grids of several judges, restricted to the queries and candidates that all of them have."""

    grids: tuple[ScoreGrid, ...]
    """In the order of the judges, each with the same names in the same order."""
    queries_left_out: int
    """Queries that some judge does not have."""
    candidates_left_out: tuple[str, ...]
    """Candidates that some judge does not have, sorted."""

    @property
    def partly_scored(self) -> int:
        """Responses scored by some judges but not all."""
        scored = np.sum([~np.isnan(grid.scores) for grid in self.grids], axis=0)
        return int(((scored > 0) & (scored < len(self.grids))).sum())


def common_grids(grids: Sequence[ScoreGrid]) -> CommonGrids:
    """Restrict the grids to shared queries and candidates; BenchmarkError if there are none."""
    queries = set.intersection(*(set(grid.query_ids) for grid in grids))
    candidates = set.intersection(*(set(grid.candidates) for grid in grids))
    if not queries or not candidates:
        lacking = "candidate" if queries else "query"
        raise BenchmarkError(
            f"The {len(grids)} runs have no {lacking} in common.",
            hint="Judges are combined on the responses that all of them judged: use runs of the "
            "same benchmark.",
        )
    every_query = set[str]().union(*(grid.query_ids for grid in grids))
    every_candidate = set[str]().union(*(grid.candidates for grid in grids))
    query_ids = tuple(query for query in grids[0].query_ids if query in queries)
    names = tuple(name for name in grids[0].candidates if name in candidates)
    return CommonGrids(
        grids=tuple(_cut(grid, query_ids, names) for grid in grids),
        queries_left_out=len(every_query - queries),
        candidates_left_out=tuple(sorted(every_candidate - candidates)),
    )


def ensemble_mean(grids: Sequence[ScoreGrid], missing: Missing = "drop") -> ScoreGrid:
    """Return the mean of the judges' scores for each response.

    >>> one, other = (ScoreGrid(("q",), ("a", "b"), np.array([s])) for s in ([4, 9], [5, np.nan]))
    >>> ensemble_mean([one, other]).scores.tolist()
    [[4.5, nan]]
    >>> ensemble_mean([one, other], "skip").scores.tolist()
    [[4.5, 9.0]]
    """
    scores = np.stack([grid.scores for grid in grids])
    present = ~np.isnan(scores)
    scored = present.sum(axis=0)
    usable = scored > 0 if missing == "skip" else scored == len(grids)
    total = np.where(present, scores, 0.0).sum(axis=0)
    mean = np.divide(total, scored, out=np.full(total.shape, np.nan), where=usable)
    return grids[0].with_scores(mean)


def _cut(grid: ScoreGrid, query_ids: Sequence[str], candidates: Sequence[str]) -> ScoreGrid:
    rows, columns = _places(grid.query_ids, query_ids), _places(grid.candidates, candidates)
    return grid.take(rows.tolist(), columns.tolist())


def _places(names: Sequence[str], wanted: Sequence[str]) -> NDArray[np.intp]:
    places = {name: place for place, name in enumerate(names)}
    return np.array([places[name] for name in wanted], dtype=np.intp)


@dataclass(frozen=True)
class JudgedRun:
    """A run directory with its config."""

    store: RunStore
    config: RunConfig


def open_run(path: Path) -> JudgedRun:
    """Return the run in a run directory, or the run that a config file describes."""
    if not path.exists():
        raise ConfigError(
            f"There is no run directory or config file {path}.",
            hint="Give a run directory, such as runs/my-run, or its config file.",
        )
    if path.is_dir() and not (path / "run.yaml").exists():
        raise ConfigError(
            f"{path} is not a run directory: it has no run.yaml.",
            hint="Give a run directory, such as runs/my-run, or its config file.",
        )
    config = load_config(path / "run.yaml") if path.is_dir() else as_graded(load_config(path))
    store = RunStore(path if path.is_dir() else config.run_path)
    store.command = shlex.join(["rocketeval", "run", str(path)])
    return JudgedRun(store, config)


def judge_names(runs: Sequence[JudgedRun]) -> tuple[str, ...]:
    """Return a name for each run's judge: its model, plus the run name if models repeat."""
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
    """Raise ConfigError if the runs score on different scales, or one not as its config says."""
    for run in runs:
        refuse_other_scorer(run.store, run.config)
    first = runs[0].config
    for run in runs[1:]:
        if run.config.scorer.scale != first.scorer.scale:
            raise ConfigError(
                f"{run.store.path} scores from {_span(run)}, {runs[0].store.path} from "
                f"{_span(runs[0])}: scores on different scales cannot be averaged.",
                hint="Set the same `scorer.scale` for both, then `rocketeval run --only score`.",
            )


def _span(run: JudgedRun) -> str:
    low, high = run.config.scorer.scale
    return f"{low:g} to {high:g}"


def refuse_other_responses(runs: Sequence[JudgedRun], common: CommonGrids) -> None:
    """Raise BenchmarkError if runs have different texts under the same names."""
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
                    f"Query {cell[0]!r}, or the response of {cell[1]!r} to it, has a different "
                    f"text in {run.store.path} than in the earlier runs.",
                    hint="Combine only runs whose judges judged the same responses.",
                )
