"""The stages compare, estimate and advise, on a scored run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from rocketeval.arrays import Floats
from rocketeval.benchmarks.collected import CollectedLabels
from rocketeval.compare.labeling import Advice, WantedVote, advise, draw_pairs
from rocketeval.compare.pair import Comparison, ComparisonVerdict, compare, find_verdict
from rocketeval.config import RunConfig
from rocketeval.errors import BenchmarkError, ConfigError, EvaluatedOnTraining
from rocketeval.grid import ScoreGrid
from rocketeval.ranking.rank import Ranking
from rocketeval.records import Basis, Label
from rocketeval.scoring.learning import label_cells
from rocketeval.scoring.stage import read_grid, refuse_other_scorer
from rocketeval.stats.prediction_powered import (
    Estimate,
    LabelTarget,
    column_of,
    estimate,
    refuse_repeated,
    samples,
)
from rocketeval.stopping.race import RaceResult
from rocketeval.stopping.summary import over_looks, widen_interval
from rocketeval.store.run import RunStore
from rocketeval.text import LABELS_NEXT


@dataclass(frozen=True, slots=True)
class LabelScope:
    """The candidates whose mean label is estimated, and the grouping of queries."""

    candidates: tuple[str, ...] = ()
    top: int | None = None
    """The number of top candidates of the ranking, instead of names."""
    against: str | None = None
    """Estimate the difference to this candidate."""
    strata: int = 1
    """Number of query groups by score; 1 for no grouping."""
    by_category: bool = False
    """Also group queries by category."""

    @property
    def stratified(self) -> bool:
        """Return whether queries are grouped."""
        return self.strata > 1 or self.by_category


@dataclass(frozen=True, slots=True)
class Estimates:
    """Estimates of mean labels, and counts of unusable labels."""

    rows: tuple[Estimate, ...]
    half_labelled: int
    """Queries where only one candidate of a difference has a label."""
    without_score: int
    """Labeled responses of these candidates without a score."""
    not_in_run: int
    """Labeled responses that are not in the run."""
    learned: bool
    """True if the scorer was fitted on reference data."""


def compare_candidates(
    store: RunStore,
    config: RunConfig,
    first: str,
    second: str,
    min_effect: float | None,
    level: float,
) -> Comparison:
    """Test whether the first candidate is better than the second."""
    refuse_other_scorer(store, config)
    found = compare(
        read_grid(store),
        first,
        second,
        min_effect=min_effect,
        tie_margin=config.ranking.tie_margin,
        bootstrap=config.ranking.bootstrap,
        seed=config.ranking.seed,
        level=level,
        scale=config.scorer.scale,
    )
    race = store.read_if_made(RaceResult)
    if race is not None:
        # A run that stopped early was looked at several times.
        effect = widen_interval(found.effect, race, level, first, second)
        p_value = over_looks(race, found.p_value, first, second)
        verdict = find_verdict(effect, p_value, min_effect, level, found.unseen)
        found = replace(found, effect=effect, p_value=p_value, verdict=verdict)
    ranking = store.read_if_made(Ranking)
    tests = ranking.tests if ranking else None
    if ranking is None or tests is None or not {first, second} <= set(tests.candidates):
        return found
    tied = tests.tied(first, second, ranking.level)
    ranks = {row.candidate: row.rank for row in ranking.rows}
    against = not tied and (
        (found.verdict is ComparisonVerdict.BETTER and ranks[first] > ranks[second])
        or (found.verdict is ComparisonVerdict.WORSE and ranks[first] < ranks[second])
    )
    return replace(found, tied_in_ranking=tied, contradicts_ranking=against)


def estimate_labels(
    store: RunStore,
    config: RunConfig,
    choice: LabelScope,
    level: float,
    given: Sequence[Label] | None = None,
) -> Estimates:
    """Estimate mean labels from scores and labels: the `given` ones, or else those of the run.

    Without a choice, every candidate with labels is estimated. Raise EvaluatedOnTraining if the
    scorer was fitted on these labels.
    """
    refuse_other_scorer(store, config)
    grid = read_grid(store)
    labels, not_in_run = label_cells(grid, store.inputs.labels() if given is None else given)
    named = _names(store, choice) or _labelled(grid, labels, choice)
    everyone = named if choice.against is None else (*named, choice.against)
    columns = [column_of(grid, name) for name in everyone]
    bases = _bases(store, everyone)
    bounds = _bounds(config.scorer.scale, labels[:, columns], choice.against is not None)
    # Unless sampled together, candidates do not need the same scored queries.
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
    """Choose responses to label next, and forecast the interval's width."""
    grid, given = read_grid(store), store.inputs.labels()
    named = _names(store, choice)
    if not named:
        raise ConfigError(
            "No candidate is given.",
            hint="Give --candidate NAME (with --against NAME for a difference), or --top 3.",
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


def advise_pairs(
    store: RunStore, config: RunConfig, choice: LabelScope, more: int, seed: int
) -> tuple[WantedVote, ...]:
    """Choose pairs of responses to vote on next; skip pairs with a vote."""
    named = _names(store, choice)
    if len(named) < 2:
        raise ConfigError(
            "A pair needs two candidates.", hint="Give two or more --candidate NAME, or --top 3."
        )
    grid = read_grid(store)
    refuse_repeated(named)
    for name in named:
        column_of(grid, name)
    collected = config.benchmark.collected
    votes = chain(
        store.inputs.votes(), () if collected is None else CollectedLabels(collected).votes()
    )
    voted = {(vote.query_id, frozenset((vote.candidate_a, vote.candidate_b))) for vote in votes}
    return draw_pairs(grid, named, voted=voted, more=more, seed=seed)


def _names(store: RunStore, choice: LabelScope) -> tuple[str, ...]:
    if choice.top is None:
        return choice.candidates
    if choice.candidates:
        raise ConfigError(
            "Both --candidate and --top are given.",
            hint="Give one of them.",
        )
    return tuple(row.candidate for row in store.read(Ranking).rows[: choice.top])


def _labelled(grid: ScoreGrid, labels: Floats, choice: LabelScope) -> tuple[str, ...]:
    """Return every candidate with enough labels."""
    if choice.stratified or choice.against is not None:
        raise ConfigError(
            "No candidate is given.",
            hint="--strata, --by-category and --against need --candidate NAME or --top.",
        )
    counts = (~np.isnan(labels) & ~np.isnan(grid.scores)).sum(axis=0).tolist()
    named = tuple(name for name, n in zip(grid.candidates, counts, strict=True) if n > 1)
    if not named:
        raise BenchmarkError(
            "No candidate has two labeled responses with a score.",
            hint=f"Choose responses to label: {LABELS_NEXT}. It says what to do next.",
        )
    return named


def _target(store: RunStore, choice: LabelScope, named: tuple[str, ...]) -> LabelTarget:
    kinds = {query.id: query.category or "" for query in store.inputs.queries.values()}
    return LabelTarget(named, choice.against, choice.strata, kinds if choice.by_category else None)


def _bases(store: RunStore, candidates: Collection[str]) -> set[Basis]:
    """Return the bases of the candidates' scores; raise if a score was fitted on its own label."""
    scores = store.scores(["candidate", "basis"])
    pairs = zip(scores["candidate"].to_pylist(), scores["basis"].to_pylist(), strict=True)
    bases = Counter((name, Basis(basis)) for name, basis in pairs if name in candidates)
    for (name, basis), count in bases.items():
        if basis is Basis.FITTED:
            raise EvaluatedOnTraining(
                f"{count} scores of {name!r} come from a scorer fitted on the same reference data.",
                hint="Such scores match the labels better than unlabeled responses. Fit a scorer "
                "in this run (it scores out-of-fold), or use `scorer: {kind: mean}`.",
            )
    return {basis for _, basis in bases}


def _bounds(
    scale: tuple[float, float], labels: Floats, difference: bool
) -> tuple[float, float] | None:
    """Return the bounds of a mean; None if labels lie outside the scale."""
    low, high = scale
    known = labels[~np.isnan(labels)]
    if known.size == 0 or known.min() < low or known.max() > high:
        return None
    return (low - high, high - low) if difference else scale
