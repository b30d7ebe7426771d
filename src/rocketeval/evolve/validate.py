"""Cross-validation of an evaluator against simpler baselines.

Folds are split by query. For each fold, everything is learned from the other folds: the selected
perspectives, the forests' settings, the number of experts, the router and the forests.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rocketeval.arrays import Floats
from rocketeval.config import EvolveConfig
from rocketeval.errors import BenchmarkError
from rocketeval.evolve.cases import (
    CaseTable,
    Task,
    by_query,
    filled,
    in_both_orders,
    medians,
    query_numbers,
    stacked,
)
from rocketeval.evolve.evaluator import (
    ExpertChoice,
    fit_mixture,
    fit_router,
    is_mirrored,
    prepare,
)
from rocketeval.evolve.predictions import LinearFit, Predictions, Thresholds, joined
from rocketeval.evolve.select import weigh_perspectives, with_gold
from rocketeval.records import Interval
from rocketeval.scoring.split import group_folds
from rocketeval.stats.bootstrap import (
    known_interval,
    mean_interval,
    resample_queries,
    sum_draws,
)
from rocketeval.stats.correlation import (
    kendall_adds,
    resampled_rho,
    rho_of_counts,
    tau_b,
    tau_of_counts,
    within_queries,
)

RHO_WITHIN = "rho_within"
"""Name of the mean rank correlation among responses to the same query."""
_ENDS = {"accuracy": (0.0, 1.0), RHO_WITHIN: (-1.0, 1.0)}
"""Metrics that are a mean over cases or queries, with its ends."""
TIMES = 1000
"""Number of bootstrap resamples of queries."""
LEVEL = 0.95


@dataclass(frozen=True, eq=False)
class ResampledFigures:
    """Metrics of the cases, and of every bootstrap resample of their queries."""

    figures: Mapping[str, float]
    draws: Mapping[str, Floats]
    queries: int

    def intervals(self) -> dict[str, Interval]:
        """Return each metric with its 95% interval."""
        return {
            name: self._with_interval(value, self.draws[name], _ENDS.get(name))
            for name, value in self.figures.items()
        }

    def difference_from(self, other: ResampledFigures, name: str) -> Interval:
        """Return the paired-bootstrap difference of one metric from that of `other`."""
        value = self.figures[name] - other.figures[name]
        draws = self.draws[name] - other.draws[name]
        if not value and not draws.any():
            return Interval(0.0, 0.0, 0.0)
        return self._with_interval(value, draws, (-1.0, 1.0) if name in _ENDS else None)

    def _with_interval(
        self, value: float, draws: Floats, ends: tuple[float, float] | None
    ) -> Interval:
        """Return a metric with its interval; `ends` are given for a mean.

        If resamples do not vary, the interval of a mean is exact, and others are unknown.
        """
        if np.isnan(draws).any():
            # Resamples with a single verdict are NaN; the others alone would be too optimistic.
            return Interval(value, np.nan, np.nan)
        if ends is None:
            return known_interval(value, draws, queries=self.queries, level=LEVEL)
        return mean_interval(value, draws, queries=self.queries, level=LEVEL, ends=ends)


def verdict_figures(
    predicted: Floats, gold: Floats, query_ids: Sequence[str], seed: int, times: int = TIMES
) -> ResampledFigures:
    """Return accuracy, macro precision and F1, rho and tau of verdicts (-1, 0, 1).

    All are computed from per-query confusion matrices.
    """
    numbers = query_numbers(query_ids)
    cell = numbers * 9 + (gold + 1.0).astype(np.int64) * 3 + (predicted + 1.0).astype(np.int64)
    queries = int(numbers.max()) + 1
    confusion = np.bincount(cell, minlength=queries * 9).reshape(queries, 9).astype(np.float64)
    whole = {
        name: float(value[0])
        for name, value in _confusion_metrics(confusion.sum(axis=0)[None]).items()
    }
    return ResampledFigures(whole, _confusion_metrics(sum_draws(confusion, times, seed)), queries)


def label_figures(
    predicted: Floats, gold: Floats, query_ids: Sequence[str], seed: int, times: int = TIMES
) -> ResampledFigures:
    """Return rho, tau and mean squared error of labels; tau's resamples are first-order."""
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


def figures_within_queries(
    predicted: Floats, table: CaseTable, seed: int, times: int = TIMES
) -> ResampledFigures:
    """Return the mean rank correlation within queries; empty if most have a single response.

    Equal predictions for different labels count as no correlation. Queries with equal labels are
    left out, and queries of one group are resampled together.
    """
    own = query_numbers([case.query_id for case in table.cases])
    if 2 * int((np.bincount(own)[own] > 1).sum()) < len(own):
        return ResampledFigures({}, {}, 0)
    order = np.argsort(own, kind="stable")
    places = own[order].astype(np.intp)
    gold, starts = table.gold[order], np.flatnonzero(np.diff(places, prepend=-1))
    rho = within_queries(predicted[order], gold, places)[:, 1]
    told = np.maximum.reduceat(gold, starts) > np.minimum.reduceat(gold, starts)
    groups = np.array(table.query_ids)[order[starts]]
    if not told.any():
        return ResampledFigures({RHO_WITHIN: np.nan}, {RHO_WITHIN: np.full(times, np.nan)}, 0)
    columns = np.stack([np.nan_to_num(rho[told]), np.ones(int(told.sum()))], axis=1)
    sums = by_query(columns, groups[told].tolist())
    total, drawn = sums.sum(axis=0), sum_draws(sums, times, seed)
    return ResampledFigures(
        {RHO_WITHIN: float(total[0] / total[1])}, {RHO_WITHIN: drawn[:, 0] / drawn[:, 1]}, len(sums)
    )


def _confusion_metrics(confusion: Floats) -> dict[str, Floats]:
    """Return metrics from flattened confusion matrices: gold (b, tie, a) by verdict (b, tie, a)."""
    table = confusion.reshape(-1, 3, 3)
    total = table.sum(axis=(1, 2))
    right = np.diagonal(table, axis1=1, axis2=2)
    given, predicted = table.sum(axis=2), table.sum(axis=1)
    # An outcome absent from both sides is no class; one never predicted has precision 0.
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


SINGLE = "single prompt"
SINGLE_FITTED = {
    "pairs": "single prompt, cut points learned",
    "scores": "single prompt, line fitted",
}
"""Name of the fitted single-prompt arm: cut points for pairs, a line for labels."""
SINGLE_PROMPTS = (SINGLE, *SINGLE_FITTED.values())
MEAN = "mean of perspectives"
COMMONEST = "always the commonest verdict"


def single_outcomes(seen: CaseTable, new: CaseTable, overall: str) -> dict[str, Floats]:
    """Return the single prompt's outcomes for new cases, as answered and fitted to `seen`.

    A missing answer is replaced by the median over `seen`.
    """
    asked = _filled(seen, new)[1][:, _place(seen, overall)]
    fitted = SINGLE_FITTED[seen.task]
    return {SINGLE: _unlearned(asked, seen), fitted: fitted_outcome(seen, new, overall)}


def fitted_outcome(seen: CaseTable, new: CaseTable, column: str) -> Floats:
    """Return the outcomes of one column for new cases, with cut points or a line fitted to `seen`.

    A missing answer is replaced by the median over `seen`.
    """
    place = _place(seen, column)
    before, now = _filled(seen, new)
    return _fitted(before[:, place], now[:, place], seen)


def commonest_outcome(seen: CaseTable, new: CaseTable) -> Floats:
    """Return the most common verdict of `seen` for every new case."""
    verdicts, counts = np.unique(seen.gold, return_counts=True)
    return np.full(len(new), verdicts[counts.argmax()])


def mean_outcome(seen: CaseTable, new: CaseTable) -> Floats:
    """Return the outcomes of the mean of all answers, with missing answers replaced likewise."""
    before, now = _filled(seen, new)
    return _fitted(before.mean(axis=1), now.mean(axis=1), seen)


def _filled(seen: CaseTable, new: CaseTable) -> tuple[Floats, Floats]:
    fill = medians(seen.answers)
    return filled(seen.answers, fill), filled(new.answers, fill)


def _unlearned(asked: Floats, seen: CaseTable) -> Floats:
    """Return the sign of the answer; for labels, the answer scaled to the range of labels."""
    return np.sign(asked) if seen.pairs else LinearFit.across(seen.gold).labels(asked)


def _fitted(numbers: Floats, asked: Floats, seen: CaseTable) -> Floats:
    if seen.pairs:
        return Thresholds.learn(numbers, seen.gold).verdicts(asked)
    return LinearFit.learn(numbers, seen.gold).labels(asked)


def _place(table: CaseTable, column: str) -> int:
    ids = [each.id for each in table.about_responses]
    if column not in ids:
        raise BenchmarkError(
            f"The perspective {column!r} is not among the {len(ids)} about responses.",
            hint="Ask the judge about it too, or leave its arm out of the comparison.",
        )
    return ids.index(column)


WITHOUT = "without experts"
WITH = "with experts"
Parts = list[tuple[NDArray[np.intp], Predictions]]


@dataclass(frozen=True, eq=False)
class EvaluatorArm:
    """One method and its out-of-fold results."""

    name: str
    figures: Mapping[str, Interval]
    """For pairs: accuracy, f1 and precision (macro), rho and tau; for labels: rho, tau and mse, and
    `RHO_WITHIN` unless most queries have a single response."""
    gain: Interval
    """Its accuracy (rho for labels) minus that of `WITHOUT`, by paired bootstrap."""
    lead: Interval
    """The accuracy (rho for labels) of `WITH` minus its own, by paired bootstrap."""
    outcome: Floats
    """Its verdict (-1, 0, 1) or label for each case in `Validation.rows`."""
    predictions: Predictions | None
    """Predictions with probabilities, confidence and expert; only for the two learned arms."""


@dataclass(frozen=True, eq=False)
class Validation:
    """Results of all arms on the same cases."""

    task: Task
    rows: NDArray[np.intp]
    """Row numbers of the cases with reference data; the other fields are in this order."""
    gold: Floats
    query_ids: tuple[str, ...]
    folds: NDArray[np.int64]
    """The fold in which each case was left out."""
    experts: tuple[int, ...]
    """Number of experts that each fold chose."""
    arms: Mapping[str, EvaluatorArm]
    without_gold: int
    """Number of cases left out because they have no reference data."""
    learned_also: int
    """Number of cases of `learn_also` used in at least one fold."""

    @property
    def measure(self) -> str:
        """Return the name of the metric that compares arms."""
        return measure_of(self.task)


def cross_validate(
    table: CaseTable,
    settings: EvolveConfig,
    *,
    learn_also: CaseTable | None = None,
    overall: str | None = None,
    columns: Mapping[str, str] | None = None,
    kept: Collection[str] | None = None,
) -> Validation:
    """Return out-of-fold results on the table's cases; folds are split by query.

    learn_also: extra training cases for every fold that are never measured, such as the seen cases
    of an evolution; those of a left-out query are dropped in its fold.
    overall: id of the perspective that asks for an overall judgment; without one, the single-prompt
    arms are left out.
    columns: more arms, by name: the id of a column about responses whose cut points (for labels,
    line) are learned, as for the single prompt.
    kept: ids of the perspectives that all other arms may use; all by default.

    If the evaluator is mirrored, arms that could use the order of a pair are fitted to and measured
    in both orders. Mirrored arms have the same accuracy in both.
    """
    known = with_gold(table)
    folds = group_folds(known.query_ids, settings.folds, settings.seed)
    both_orders = in_both_orders if is_mirrored(known, settings) else None
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
        fitted, measured = map(both_orders, (seen, new)) if both_orders else (seen, new)
        baselines = {COMMONEST: commonest_outcome(fitted, measured)} if known.pairs else {}
        if overall is not None:
            baselines |= single_outcomes(fitted, measured, overall)
        for name, column in (columns or {}).items():
            baselines[name] = fitted_outcome(fitted, measured, column)
        if kept is not None:
            seen, new = seen.narrow(kept), new.narrow(kept)
            fitted, measured = fitted.narrow(kept), measured.narrow(kept)
        orders = len(measured) // len(new)
        for name, outcome in {**baselines, MEAN: mean_outcome(fitted, measured)}.items():
            whole = simple.setdefault(name, np.zeros((orders, len(known))))
            whole[:, asked] = outcome.reshape(orders, -1)
        both, count = _learned(seen, new, settings)
        chosen.append(count)
        for name, found in both.items():
            learned[name].append((asked, found))
    predicted = {name: joined(parts) for name, parts in learned.items()}
    outcomes = {**simple, **{name: whole.outcome[None] for name, whole in predicted.items()}}
    if SINGLE in outcomes:
        outcomes[SINGLE] = outcomes[SINGLE][:1]
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
    """Return out-of-fold predictions for all cases, to find the mistakes.

    Cheaper than `cross_validate` and slightly optimistic: the number of experts and the forests'
    settings are chosen once, on all queries, with the short search. Cases without reference data
    are predicted too, but not used for training.
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
    """Return the name of the metric that compares arms."""
    return "accuracy" if task == "pairs" else "rho"


def _learned(
    seen: CaseTable, new: CaseTable, settings: EvolveConfig
) -> tuple[dict[str, Predictions], int]:
    """Return predictions without and with experts for new cases, and the number of experts."""
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
    """Return all arms; a second row of `outcomes` is for the pairs in the other order."""
    figures = verdict_figures if task == "pairs" else label_figures
    golds = [known.gold, -known.gold]
    within = {
        name: figures_within_queries(rows[0], known, seed).intervals() if task == "scores" else {}
        for name, rows in outcomes.items()
    }
    drawn = {
        name: figures(
            rows.ravel(), np.concatenate(golds[: len(rows)]), known.query_ids * len(rows), seed
        )
        for name, rows in outcomes.items()
    }
    return {
        name: EvaluatorArm(
            name,
            {**found.intervals(), **within[name]},
            found.difference_from(drawn[WITHOUT], measure_of(task)),
            drawn[WITH].difference_from(found, measure_of(task)),
            outcomes[name][0],
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
