"""How good an evaluator is on queries that it never saw, beside simpler ways to judge.

Queries are cut into folds. For each fold everything is learned from the others alone: which
perspectives stay, the forests' settings, the number of experts, the router and the forests.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from rocketeval.arrays import Floats
from rocketeval.config import EvolveConfig
from rocketeval.errors import BenchmarkError
from rocketeval.evolve.cases import CaseTable, Task, filled, medians, query_numbers, stacked
from rocketeval.evolve.evaluator import ExpertChoice, fit_mixture, fit_router, prepare
from rocketeval.evolve.predictions import Predictions, joined
from rocketeval.evolve.select import weigh_perspectives, with_gold
from rocketeval.records import Interval
from rocketeval.scoring.split import group_folds
from rocketeval.stats.bootstrap import interval, resample_queries, sum_draws
from rocketeval.stats.correlation import (
    kendall_adds,
    resampled_rho,
    rho_of_counts,
    tau_b,
    tau_of_counts,
)

TIMES = 1000
"""How often queries are drawn anew."""
LEVEL = 0.95


@dataclass(frozen=True, eq=False)
class ResampledFigures:
    """Figures of the cases as they are, and again for every resample of their queries."""

    figures: Mapping[str, float]
    draws: Mapping[str, Floats]
    queries: int

    def intervals(self) -> dict[str, Interval]:
        """Return each figure with its 95 % interval."""
        return {name: self._sure(value, self.draws[name]) for name, value in self.figures.items()}

    def less(self, other: ResampledFigures, name: str) -> Interval:
        """Return by how much one figure is above that of another, on the same resamples."""
        value = self.figures[name] - other.figures[name]
        return self._sure(value, self.draws[name] - other.draws[name])

    def _sure(self, value: float, draws: Floats) -> Interval:
        if np.isnan(draws).any():
            # Some resamples have one verdict alone: those that are left would flatter it.
            return Interval(value, np.nan, np.nan)
        return interval(value, draws, queries=self.queries, level=LEVEL)


def verdict_figures(
    predicted: Floats, gold: Floats, query_ids: Sequence[str], seed: int, times: int = TIMES
) -> ResampledFigures:
    """Return accuracy, macro precision and F1, rho and tau of verdicts (-1, 0, 1).

    All of them are told by how often each verdict met each gold, query by query.
    """
    numbers = query_numbers(query_ids)
    cell = numbers * 9 + (gold + 1.0).astype(np.int64) * 3 + (predicted + 1.0).astype(np.int64)
    queries = int(numbers.max()) + 1
    met = np.bincount(cell, minlength=queries * 9).reshape(queries, 9).astype(np.float64)
    whole = {name: float(value[0]) for name, value in _of_meetings(met.sum(axis=0)[None]).items()}
    return ResampledFigures(whole, _of_meetings(sum_draws(met, times, seed)), queries)


def label_figures(
    predicted: Floats, gold: Floats, query_ids: Sequence[str], seed: int, times: int = TIMES
) -> ResampledFigures:
    """Return rho, tau and mean squared error of labels; tau's draws are right to first order."""
    numbers = query_numbers(query_ids)
    queries = int(numbers.max()) + 1
    varied = min(float(np.ptp(predicted)), float(np.ptp(gold))) > 0.0
    tau = tau_b(predicted, gold) if varied else float("nan")
    adds = kendall_adds(tau if varied else None, predicted, gold, numbers.astype(np.intp))
    squared = (predicted - gold) ** 2
    draws: dict[str, list[Floats]] = {"rho": [], "tau": [], "mse": []}
    for counts in resample_queries(queries, times, seed):
        draws["rho"].append(resampled_rho(predicted, gold, counts, numbers))
        draws["tau"].append(np.clip(tau + (counts - 1.0) @ adds, -1.0, 1.0))
        times_drawn = counts[:, numbers]
        draws["mse"].append(times_drawn @ squared / times_drawn.sum(axis=1))
    whole = {
        "rho": float(resampled_rho(predicted, gold, np.ones((1, queries)), numbers)[0]),
        "tau": tau,
        "mse": float(squared.mean()),
    }
    return ResampledFigures(
        whole, {name: np.concatenate(found) for name, found in draws.items()}, queries
    )


def _of_meetings(met: Floats) -> dict[str, Floats]:
    """Figures from rows of nine counts: gold b, tie, a by verdict b, tie, a."""
    table = met.reshape(-1, 3, 3)
    total = table.sum(axis=(1, 2))
    right = np.diagonal(table, axis1=1, axis2=2)
    given, predicted = table.sum(axis=2), table.sum(axis=1)
    # An outcome that neither side names is no class; one that was never said has precision 0.
    classes = np.maximum(((given + predicted) > 0.0).sum(axis=1), 1)
    precision = right / np.where(predicted > 0.0, predicted, 1.0)
    f1 = 2.0 * right / np.where(given + predicted > 0.0, given + predicted, 1.0)
    return {
        "accuracy": right.sum(axis=1) / total,
        "f1": f1.sum(axis=1) / classes,
        "precision": precision.sum(axis=1) / classes,
        "rho": rho_of_counts(table),
        "tau": tau_of_counts(table),
    }


@dataclass(frozen=True)
class Thresholds:
    """Two cut points."""

    low: float
    """Below it b wins."""
    high: float
    """Above it a wins."""

    @classmethod
    def learn(cls, numbers: Floats, gold: Floats) -> Self:
        """Return the cut points with the most right verdicts; of equals the lowest.

        >>> Thresholds.learn(np.array([-0.8, -0.1, 0.1, 0.9]), np.array([-1.0, 0.0, 0.0, 1.0]))
        Thresholds(low=-0.45, high=0.5)
        """
        levels, place = np.unique(numbers, return_inverse=True)
        between = (levels[:-1] + levels[1:]) / 2.0
        ends = np.concatenate([[levels[0] - 1.0], between, [levels[-1] + 1.0]])
        lost, tied, won = (
            np.concatenate(
                [[0], np.cumsum(np.bincount(place[gold == side], minlength=len(levels)))]
            )
            for side in (-1.0, 0.0, 1.0)
        )
        # Right verdicts: losses below `low`, ties from there to `high`, wins above it.
        below, above = lost - tied, tied + won[-1] - won
        best_below = np.maximum.accumulate(below)
        high = int(np.argmax(best_below + above))
        low = int(np.argmax(below[: high + 1]))
        return cls(float(ends[low]), float(ends[high]))

    def verdicts(self, numbers: Floats) -> Floats:
        """Return 1, 0 or -1 for each case; 0 where there is no number."""
        wins, loses = numbers > self.high, numbers < self.low
        return wins.astype(np.float64) - loses.astype(np.float64)


@dataclass(frozen=True)
class LinearFit:
    """A straight line from an answer to a label."""

    slope: float
    start: float

    @classmethod
    def learn(cls, numbers: Floats, labels: Floats) -> Self:
        """Return the line of least squares; level where all numbers are alike."""
        centred = numbers - numbers.mean()
        spread = float(centred @ centred)
        slope = float(centred @ labels) / spread if spread > 0.0 else 0.0
        return cls(slope, float(labels.mean()) - slope * float(numbers.mean()))

    @classmethod
    def across(cls, labels: Floats) -> Self:
        """Return the line from 0 and 1 to the least and the largest label."""
        low, high = float(labels.min()), float(labels.max())
        return cls(high - low, low)

    def labels(self, numbers: Floats) -> Floats:
        """Return the label of each case."""
        return self.start + self.slope * numbers


SINGLE = "single prompt"
SINGLE_FITTED = {
    "pairs": "single prompt, cut points learned",
    "scores": "single prompt, line fitted",
}
"""What is learned of one prompt: two cut points between verdicts, or a line to the labels."""
SINGLE_PROMPTS = (SINGLE, *SINGLE_FITTED.values())
MEAN = "mean of perspectives"
COMMONEST = "always the commonest verdict"


def single_outcomes(seen: CaseTable, new: CaseTable, overall: str) -> dict[str, Floats]:
    """Return what one prompt says about new cases, as it is and with what the cases seen teach.

    A missing answer is filled with the median of the cases seen.
    """
    place = _place(seen, overall)
    before, now = _filled(seen, new)
    one, asked = before[:, place], now[:, place]
    fitted = SINGLE_FITTED[seen.task]
    return {SINGLE: _unlearned(asked, seen), fitted: _fitted(one, asked, seen)}


def commonest_outcome(seen: CaseTable, new: CaseTable) -> Floats:
    """Return the verdict that most of the pairs seen have, for every new case."""
    verdicts, counts = np.unique(seen.gold, return_counts=True)
    return np.full(len(new), verdicts[counts.argmax()])


def mean_outcome(seen: CaseTable, new: CaseTable) -> Floats:
    """Return what the mean of all answers says about new cases, gaps filled likewise."""
    before, now = _filled(seen, new)
    return _fitted(before.mean(axis=1), now.mean(axis=1), seen)


def _filled(seen: CaseTable, new: CaseTable) -> tuple[Floats, Floats]:
    fill = medians(seen.answers)
    return filled(seen.answers, fill), filled(new.answers, fill)


def _unlearned(asked: Floats, seen: CaseTable) -> Floats:
    """The sign of the answer; of labels, the answer stretched to the labels seen."""
    return np.sign(asked) if seen.pairs else LinearFit.across(seen.gold).labels(asked)


def _fitted(numbers: Floats, asked: Floats, seen: CaseTable) -> Floats:
    if seen.pairs:
        return Thresholds.learn(numbers, seen.gold).verdicts(asked)
    return LinearFit.learn(numbers, seen.gold).labels(asked)


def _place(table: CaseTable, overall: str) -> int:
    ids = [each.id for each in table.about_responses]
    if overall not in ids:
        raise BenchmarkError(
            f"The overall perspective {overall!r} is not among the {len(ids)} about responses.",
            hint="Ask the judge about it too, or leave the single prompt out of the comparison.",
        )
    return ids.index(overall)


WITHOUT = "without experts"
WITH = "with experts"
Parts = list[tuple[NDArray[np.intp], Predictions]]


@dataclass(frozen=True, eq=False)
class EvaluatorArm:
    """One way to judge, and how it did on queries it did not learn from."""

    name: str
    figures: Mapping[str, Interval]
    """Of pairs accuracy, f1 and precision (macro), rho and tau; of labels rho, tau and mse."""
    gain: Interval
    """Its accuracy, of labels its rho, less that of `WITHOUT`, on the same resamples."""
    lead: Interval
    """That of `WITH` less its own, likewise: what the evaluator gains over it."""
    outcome: Floats
    """Its verdict (-1, 0, 1) or label of each case in `Validation.rows`."""
    predictions: Predictions | None
    """Of the two learned arms, with probabilities, confidence and expert."""


@dataclass(frozen=True, eq=False)
class Validation:
    """Arms on the same cases."""

    task: Task
    rows: NDArray[np.intp]
    """Places in the table of the cases that have gold; all else is in their order."""
    gold: Floats
    query_ids: tuple[str, ...]
    folds: NDArray[np.int64]
    """The fold in which each case was left out."""
    experts: tuple[int, ...]
    """How many experts each fold chose."""
    arms: Mapping[str, EvaluatorArm]
    without_gold: int
    """Cases that count for nothing because nobody judged them."""
    learned_also: int
    """Cases of `learn_also` that could be learned from, each in one fold or more."""

    @property
    def measure(self) -> str:
        """The figure by which arms are compared."""
        return measure_of(self.task)


def cross_validate(
    table: CaseTable,
    settings: EvolveConfig,
    *,
    learn_also: CaseTable | None = None,
    overall: str | None = None,
    kept: Collection[str] | None = None,
) -> Validation:
    """Return figures on the table's cases, each judged by what never saw its query.

    learn_also: cases that are learned from in every fold and never measured, such as those that
    evolution saw; without those of a query that is left out.
    overall: id of the perspective that asks for the whole judgment; without one, the arms of a
    single prompt are left out.
    kept: ids of the perspectives that all other arms may use, where that is not every one.
    """
    known = with_gold(table)
    folds = group_folds(known.query_ids, settings.folds, settings.seed)
    learned: dict[str, Parts] = {WITHOUT: [], WITH: []}
    simple: dict[str, Floats] = {}
    chosen, also_rows = [], set[int]()
    for fold in range(int(folds.max()) + 1):
        asked = np.flatnonzero(folds == fold)
        seen = known.take(np.flatnonzero(folds != fold))
        if learn_also is not None:
            more = _of_other_queries(learn_also, {known.query_ids[row] for row in asked.tolist()})
            also_rows.update(more.tolist())
            seen = stacked(seen, learn_also.take(more))
        new = known.take(asked)
        baselines = {COMMONEST: commonest_outcome(seen, new)} if known.pairs else {}
        if overall is not None:
            baselines |= single_outcomes(seen, new, overall)
        if kept is not None:
            seen, new = seen.narrow(kept), new.narrow(kept)
        for name, outcome in {**baselines, MEAN: mean_outcome(seen, new)}.items():
            simple.setdefault(name, np.zeros(len(known)))[asked] = outcome
        both, count = _learned(seen, new, settings)
        chosen.append(count)
        for name, found in both.items():
            learned[name].append((asked, found))
    predicted = {name: joined(parts) for name, parts in learned.items()}
    outcomes = {**simple, **{name: whole.outcome for name, whole in predicted.items()}}
    return Validation(
        known.task,
        np.flatnonzero(~np.isnan(table.gold)),
        known.gold,
        tuple(known.query_ids),
        folds,
        tuple(chosen),
        _arms(known.task, outcomes, predicted, known, settings.seed),
        len(table) - len(known),
        len(also_rows),
    )


def out_of_fold(table: CaseTable, settings: EvolveConfig) -> Predictions:
    """Return what evaluators say about cases of queries that they did not learn from: for mistakes.

    Cheaper than `cross_validate`, and a little flattered: the number of experts and the forests'
    settings are found once, with all queries, by the short search. Cases without gold are judged
    too; they are learned from by nobody.
    """
    plan = prepare(table, settings.model_copy(update={"search": "short"}))
    count = plan.choose().count
    folds = group_folds(table.query_ids, settings.folds, settings.seed)
    parts: Parts = []
    for fold in range(int(folds.max()) + 1):
        asked = np.flatnonzero(folds == fold)
        seen = with_gold(table.take(np.flatnonzero(folds != fold)))
        standings = weigh_perspectives(seen, settings)
        kept = standings.keep(settings.most_about_responses, settings.most_about_queries)
        seen, new = seen.narrow(kept), table.take(asked).narrow(kept)
        router = fit_router(seen, standings.about_queries, count, settings)
        mixture = fit_mixture(
            seen, router, lambda *_: plan.forest, settings.seed, mirrored=plan.mirrored
        )
        parts.append((asked, mixture.predict(new.answers, new.traits)))
    return joined(parts)


def measure_of(task: Task) -> str:
    """Return the name of the figure by which arms are compared."""
    return "accuracy" if task == "pairs" else "rho"


def _learned(
    seen: CaseTable, new: CaseTable, settings: EvolveConfig
) -> tuple[dict[str, Predictions], int]:
    """What evaluators without and with experts say about new cases, and how many experts."""
    plan = prepare(seen, settings)
    one = plan.finish(ExpertChoice(1, {}, {}))
    choice = plan.choose()
    many = one if choice.count == 1 else plan.finish(choice)
    predicted = {WITHOUT: one.predict_table(new), WITH: many.predict_table(new)}
    return predicted, len(many.experts)


def _arms(
    task: Task,
    outcomes: Mapping[str, Floats],
    predicted: Mapping[str, Predictions],
    known: CaseTable,
    seed: int,
) -> dict[str, EvaluatorArm]:
    figures = verdict_figures if task == "pairs" else label_figures
    drawn = {
        name: figures(outcome, known.gold, known.query_ids, seed)
        for name, outcome in outcomes.items()
    }
    return {
        name: EvaluatorArm(
            name,
            found.intervals(),
            found.less(drawn[WITHOUT], measure_of(task)),
            drawn[WITH].less(found, measure_of(task)),
            outcomes[name],
            predicted.get(name),
        )
        for name, found in drawn.items()
    }


def _of_other_queries(table: CaseTable, left_out: set[str]) -> NDArray[np.intp]:
    usable = [
        place
        for place, (case, query_id) in enumerate(zip(table.cases, table.query_ids, strict=True))
        if case.gold is not None and query_id not in left_out
    ]
    return np.array(usable, dtype=np.intp)
