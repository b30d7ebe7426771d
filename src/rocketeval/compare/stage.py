"""compare, estimate, advise: what a scored run says for sure, and what it takes to be surer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from rocketeval.arrays import Floats
from rocketeval.compare.labeling import Advice, advise
from rocketeval.compare.pair import Comparison, compare
from rocketeval.config import RunConfig
from rocketeval.errors import BenchmarkError, ConfigError, EvaluatedOnTraining
from rocketeval.grid import ScoreGrid
from rocketeval.ranking.rank import Ranking
from rocketeval.records import Basis
from rocketeval.scoring.learning import label_cells
from rocketeval.scoring.stage import read_grid
from rocketeval.stats.prediction_powered import Estimate, LabelTarget, column_of, estimate, samples
from rocketeval.store.run import RunStore


@dataclass(frozen=True, slots=True)
class LabelScope:
    """Whose mean label is asked for."""

    candidates: tuple[str, ...] = ()
    top: int | None = None
    """The so many best of the ranking, instead of names."""
    against: str | None = None
    """Ask for the difference of the one candidate to this one."""
    strata: int = 1
    """Groups by score; 1 for none."""
    by_category: bool = False
    """Keep categories apart in these groups."""

    @property
    def stratified(self) -> bool:
        """Whether queries are grouped at all."""
        return self.strata > 1 or self.by_category


@dataclass(frozen=True, slots=True)
class Estimates:
    """Estimates, and the labels they could not use."""

    rows: tuple[Estimate, ...]
    half_labelled: int
    """Queries on which only one side of a difference has a label."""
    without_score: int
    """Labelled responses of these candidates that have no score."""
    not_in_run: int
    """Labelled responses that the run does not have."""
    learned: bool
    """Whether the scores come from a scorer that learned from gold."""


def compare_candidates(
    store: RunStore,
    config: RunConfig,
    first: str,
    second: str,
    min_effect: float | None,
    level: float,
) -> Comparison:
    """Return whether the first candidate is better than the second."""
    return compare(
        read_grid(store),
        first,
        second,
        min_effect=min_effect,
        tie_margin=config.ranking.tie_margin,
        bootstrap=config.ranking.bootstrap,
        seed=config.ranking.seed,
        level=level,
    )


def estimate_labels(
    store: RunStore, config: RunConfig, choice: LabelScope, level: float
) -> Estimates:
    """Return the mean labels that labels and scores give; EvaluatedOnTraining if scores saw them.

    Without a choice, every candidate with labels is estimated.
    """
    grid = read_grid(store)
    labels, not_in_run = label_cells(grid, store.inputs.labels())
    named = _names(store, choice) or _labelled(grid, labels, choice)
    everyone = named if choice.against is None else (*named, choice.against)
    columns = [column_of(grid, name) for name in everyone]
    bases = _bases(store, everyone)
    bounds = _bounds(config.scorer.scale, labels[:, columns], choice.against is not None)
    # Unless they were chosen together, no candidate waits for a score of another.
    groups = [named] if choice.stratified else [(name,) for name in named]
    rows = [
        estimate(sample, against=choice.against, bounds=bounds, level=level)
        for group in groups
        for sample in samples(grid, labels, _target(store, choice, group))
    ]
    known = ~np.isnan(labels[:, columns])
    return Estimates(
        rows=tuple(rows),
        half_labelled=int((known.sum(axis=1) == 1).sum()) if choice.against else 0,
        without_score=int((known & np.isnan(grid.scores[:, columns])).sum()),
        not_in_run=not_in_run,
        learned=bool(bases - {Basis.UNSUPERVISED}),
    )


def advise_labels(
    store: RunStore, choice: LabelScope, more: int, seed: int, level: float
) -> Advice:
    """Return which responses to label next for the choice, and what that buys."""
    grid, given = read_grid(store), store.inputs.labels()
    named = _names(store, choice)
    if not named:
        raise ConfigError(
            "Nobody is named to get labels for.",
            hint="Give --candidate NAME (and --against NAME for a difference), or --top 3.",
        )
    target = _target(store, choice, named)
    return advise(
        samples(grid, label_cells(grid, given)[0], target),
        target,
        given={(label.query_id, label.candidate) for label in given},
        more=more,
        seed=seed,
        level=level,
    )


def _names(store: RunStore, choice: LabelScope) -> tuple[str, ...]:
    if choice.top is None:
        return choice.candidates
    if choice.candidates:
        raise ConfigError(
            "Candidates are named, and the best of the ranking asked for.",
            hint="Give names or --top, not both.",
        )
    return tuple(row.candidate for row in store.read(Ranking).rows[: choice.top])


def _labelled(grid: ScoreGrid, labels: Floats, choice: LabelScope) -> tuple[str, ...]:
    """Return every candidate with labels enough, when nobody is named."""
    if choice.stratified or choice.against is not None:
        raise ConfigError(
            "Nobody is named to estimate.",
            hint="Strata and --against belong to a target: give --candidate NAME or --top.",
        )
    counts = (~np.isnan(labels) & ~np.isnan(grid.scores)).sum(axis=0).tolist()
    named = tuple(name for name, n in zip(grid.candidates, counts, strict=True) if n > 1)
    if not named:
        raise BenchmarkError(
            "No candidate has two labelled responses with a score.",
            hint="Add labels to the benchmark (labels.jsonl) and run it again: `rocketeval labels "
            "next` chooses which responses to label.",
        )
    return named


def _target(store: RunStore, choice: LabelScope, named: tuple[str, ...]) -> LabelTarget:
    kinds = {query.id: query.category or "" for query in store.inputs.queries.values()}
    return LabelTarget(named, choice.against, choice.strata, kinds if choice.by_category else None)


def _bases(store: RunStore, candidates: Collection[str]) -> set[Basis]:
    """Return what the candidates' scores rest on; a score that saw its own label is refused."""
    scores = store.scores()
    if "basis" not in scores.column_names:
        return {Basis.UNSUPERVISED}
    pairs = zip(scores["candidate"].to_pylist(), scores["basis"].to_pylist(), strict=True)
    bases = Counter((name, Basis(basis)) for name, basis in pairs if name in candidates)
    for (name, basis), count in bases.items():
        if basis is Basis.FITTED:
            raise EvaluatedOnTraining(
                f"{count} scores of {name!r} come from a scorer that was fitted to their own gold.",
                hint="Such scores look right where there are labels and nowhere else. Fit a scorer "
                "in this run (it scores out of fold), or use `scorer: {kind: mean}`.",
            )
    return {basis for _, basis in bases}


def _bounds(
    scale: tuple[float, float], labels: Floats, difference: bool
) -> tuple[float, float] | None:
    """Return the least and most a mean can be; None when labels leave the scale themselves."""
    low, high = scale
    known = labels[~np.isnan(labels)]
    if known.size == 0 or known.min() < low or known.max() > high:
        return None
    return (low - high, high - low) if difference else scale
