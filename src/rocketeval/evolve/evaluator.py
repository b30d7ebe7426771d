"""The evaluator: turns a judge's answers about a case into a verdict or label with confidence.

Fitting proceeds in this order: the weights of perspectives, the settings of a single forest, the
number of experts, the router, then each expert's settings and forest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocketeval.arrays import Floats
from rocketeval.config import EvolveConfig
from rocketeval.errors import ArtifactError
from rocketeval.evolve.cases import (
    CaseTable,
    Task,
    answers_of,
    error_of_mean,
    filled,
    medians,
    query_numbers,
    traits_of,
)
from rocketeval.evolve.forest import (
    SPACES,
    Expert,
    ForestSettings,
    TrainingCases,
    best_settings,
    fit_expert,
)
from rocketeval.evolve.perspective import Asking, Perspective
from rocketeval.evolve.predictions import Predictions, joined, lead
from rocketeval.evolve.select import (
    PerspectiveWeight,
    PerspectiveWeights,
    Router,
    best,
    trait_weights,
    weigh_perspectives,
    weigh_traits,
    with_gold,
)
from rocketeval.hashing import content_hash
from rocketeval.records import JudgeFingerprint
from rocketeval.scoring.split import INNER_FOLDS, inner_folds
from rocketeval.stats.correlation import ranks

Picker = Callable[[TrainingCases, int], ForestSettings]
"""Chooses a forest's settings for training cases, with a seed."""


@dataclass(frozen=True, eq=False)
class Mixture:
    """Experts that use the same perspectives, with their router."""

    task: Task
    mirrored: bool
    """Whether every pair is learned and predicted in both orders, so that swapping a and b only
    swaps the verdict."""
    fill: Floats
    """Replacement for a missing answer to each perspective: the training median."""
    scale: tuple[float, float]
    """The smallest and the largest reference value in training."""
    router: Router
    experts: tuple[Expert, ...]

    def predict(self, answers: Floats, traits: Floats) -> Predictions:
        """Return the nearest expert's prediction for each case."""
        whole, chosen = filled(answers, self.fill), self.router.route(traits)
        outputs = np.zeros((len(whole), 1 if self.task == "scores" else 3))
        spread = np.zeros(len(whole))
        for place, expert in enumerate(self.experts):
            rows = chosen == place
            if not rows.any():
                continue
            outputs[rows] = self._outputs(expert, whole[rows])
            if self.task == "scores":
                spread[rows] = expert.spread(whole[rows])
        missing = int(np.isnan(answers).sum()), int(np.isnan(traits).sum())
        if self.task == "pairs":
            return Predictions(outputs, None, lead(outputs), chosen, *missing)
        low, high = self.scale
        # The standard deviation of numbers in a range is at most half of the range.
        sure = 1.0 - 2.0 * spread / (high - low) if high > low else np.ones(len(spread))
        return Predictions(None, outputs[:, 0], np.clip(sure, 0.0, 1.0), chosen, *missing)

    def _outputs(self, expert: Expert, answers: Floats) -> Floats:
        if not self.mirrored:
            return expert.predict(answers)
        return (expert.predict(answers) + expert.predict(-answers)[:, ::-1]) / 2.0


def training_cases(table: CaseTable, fill: Floats, *, mirrored: bool) -> TrainingCases:
    """Return the table's cases as training cases; if mirrored, each pair in both orders."""
    answers, gold = filled(table.answers, fill), table.gold
    queries = query_numbers(table.query_ids)
    if mirrored:
        answers, gold = np.vstack([answers, -answers]), np.concatenate([gold, -gold])
        queries = np.tile(queries, 2)
    return TrainingCases(table.task, answers, gold, np.ones(len(gold)), queries)


def fill_of(table: CaseTable, *, mirrored: bool) -> Floats:
    """Return the replacement for missing answers: the median, or 0 if mirrored."""
    return np.zeros(table.answers.shape[1]) if mirrored else medians(table.answers)


def fit_router(
    table: CaseTable, standings: Mapping[str, PerspectiveWeight], count: int, settings: EvolveConfig
) -> Router:
    """Return a router that uses the best of the table's perspectives about queries."""
    ids = [each.id for each in table.about_queries]
    kept = set(best(standings, settings.most_about_queries))
    # Perspectives that are not among the best get weight 0.
    weights = trait_weights(standings, ids) * np.array([name in kept for name in ids], dtype=float)
    return Router.fit(ids, table.traits, weights, count, settings.seed)


def fit_mixture(
    table: CaseTable, router: Router, pick: Picker, seed: int, *, mirrored: bool
) -> Mixture:
    """Fit each expert to all cases of the table, weighted by distance."""
    fill = fill_of(table, mirrored=mirrored)
    cases = training_cases(table, fill, mirrored=mirrored)
    weights = router.sample_weights(table.traits)
    experts = []
    for place in range(router.experts):
        own = np.tile(weights[:, place], 2 if mirrored else 1)
        chance = int.from_bytes(content_hash("expert", seed, place)[:4], "big")
        shared = replace(cases, weights=own)
        experts.append(fit_expert(shared, pick(shared, chance), chance))
    scale = float(table.gold.min()), float(table.gold.max())
    return Mixture(cases.task, mirrored, fill, scale, router, tuple(experts))


FEWEST_QUERIES = 2 * INNER_FOLDS
"""Minimum number of queries to compare numbers of experts."""
_TREES = 50
"""Number of trees in the forests that are compared."""


@dataclass(frozen=True)
class ExpertChoice:
    """A number of experts, with the scores it was chosen by."""

    count: int
    found: Mapping[int, float]
    """Out-of-fold accuracy or rank correlation, by number of experts."""
    errors: Mapping[int, float]
    """Standard error of the gain over a single expert, by number of experts."""


def choose_experts(
    table: CaseTable, settings: EvolveConfig, forest: ForestSettings, *, mirrored: bool
) -> ExpertChoice:
    """Return the number of experts with the best out-of-fold mean; the smallest if tied.

    More than one expert is chosen only if its gain exceeds the standard error over queries. With
    fewer than `FEWEST_QUERIES` queries the smallest number is chosen.
    """
    counts = sorted({1, *settings.experts})
    if counts == [1] or len(set(table.query_ids)) < FEWEST_QUERIES:
        return ExpertChoice(min(settings.experts), {}, {})
    credit = {
        count: credit_of(predictions, table.gold)
        for count, predictions in _left_out(
            table, settings, forest, counts, mirrored=mirrored
        ).items()
    }
    found = {count: float(given.mean()) for count, given in credit.items()}
    errors = {count: error_of_mean(credit[count] - credit[1], table.query_ids) for count in counts}
    allowed = [
        count
        for count in sorted(set(settings.experts))
        if count == 1 or found[count] - found[1] > errors[count]
    ]
    count = max(allowed, key=lambda one: found[one], default=min(settings.experts))
    return ExpertChoice(count, found, errors)


def credit_of(predictions: Predictions, gold: Floats) -> Floats:
    """Return each case's contribution to the metric; the mean is the metric.

    For pairs, whether the verdict is right (accuracy). For labels, the product of the standardized
    ranks (Spearman's rho).
    """
    if predictions.values is None:
        return np.asarray(predictions.verdict == gold, dtype=np.float64)
    ranked = [ranks(side) for side in (predictions.values, gold)]
    if min(float(np.ptp(side)) for side in ranked) == 0.0:
        return np.zeros(len(gold))
    one, two = ((side - side.mean()) / side.std() for side in ranked)
    return np.asarray(one * two, dtype=np.float64)


def _left_out(
    table: CaseTable,
    settings: EvolveConfig,
    forest: ForestSettings,
    counts: list[int],
    *,
    mirrored: bool,
) -> dict[int, Predictions]:
    """Return out-of-fold predictions of mixtures of each size."""
    folds = inner_folds(query_numbers(table.query_ids), settings.seed)
    small = replace(forest, n_estimators=min(_TREES, forest.n_estimators))
    parts: dict[int, list[tuple[NDArray[np.intp], Predictions]]] = {one: [] for one in counts}
    for fold in range(int(folds.max()) + 1):
        learned, asked = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        seen, new = table.take(learned), table.take(asked)
        standings = weigh_traits(seen, settings)
        for count in counts:
            router = fit_router(seen, standings, count, settings)
            mixture = fit_mixture(seen, router, lambda *_: small, settings.seed, mirrored=mirrored)
            parts[count].append((asked, mixture.predict(new.answers, new.traits)))
    return {count: joined(found) for count, found in parts.items()}


@dataclass(frozen=True, eq=False)
class Evaluator:
    """A fitted evaluator."""

    asking: Asking
    """How the judge is asked: one response at a time, or pairs."""
    about_responses: tuple[Perspective, ...]
    """Perspectives about responses that it uses, in column order."""
    about_queries: tuple[Perspective, ...]
    """Perspectives about queries that it uses, in column order."""
    mixture: Mixture
    judges: Mapping[str, JudgeFingerprint] = field(default_factory=dict)
    """Fingerprint of the judge it learned from, by question set name."""
    provenance: Mapping[str, Any] = field(default_factory=dict)
    """Provenance as JSON: config, counts, choices, and notes that the caller adds."""

    @property
    def task(self) -> Task:
        """Return what it predicts: pairs or scores."""
        return self.mixture.task

    @property
    def router(self) -> Router:
        """Return the router that picks an expert."""
        return self.mixture.router

    @property
    def experts(self) -> tuple[Expert, ...]:
        """Return the experts, in the order of `Predictions.expert`."""
        return self.mixture.experts

    @property
    def asked(self) -> tuple[Perspective, ...]:
        """Return the perspectives a judge must answer.

        Questions about queries are included only if the router gives them weight; with a single
        expert, none are.
        """
        weighed = zip(self.about_queries, self.router.weights.tolist(), strict=True)
        routing = (each for each, weight in weighed if weight and self.router.experts > 1)
        return (*self.about_responses, *routing)

    @property
    def scale(self) -> tuple[float, float]:
        """Return the smallest and the largest reference value it learned from."""
        return self.mixture.scale

    def predict(self, answers: Floats, traits: Floats) -> Predictions:
        """Return a prediction for each case; columns must follow the order of its perspectives."""
        needed = len(self.about_responses), len(self.about_queries)
        given = answers.shape[1], traits.shape[1]
        if given != needed or len(answers) != len(traits):
            raise ArtifactError(
                f"The evaluator needs {needed[0]} answers and {needed[1]} traits of each case; "
                f"there are {given[0]} and {given[1]}, of {len(answers)} and {len(traits)} cases.",
                hint="Use `predict_table`, which finds the columns by perspective.",
            )
        return self.mixture.predict(answers, traits)

    def predict_table(self, table: CaseTable) -> Predictions:
        """Return a prediction for each case of a table that contains its perspectives."""
        return self.predict(
            answers_of(table, self.about_responses), traits_of(table, self.about_queries)
        )

    def documented(
        self, judges: Mapping[str, JudgeFingerprint], notes: Mapping[str, Any]
    ) -> Evaluator:
        """Return a copy with its judges, and with JSON notes added to its provenance."""
        return replace(self, judges=dict(judges), provenance={**self.provenance, **notes})


@dataclass(frozen=True, eq=False)
class FitPlan:
    """Everything that is fitted before the number of experts is chosen."""

    settings: EvolveConfig
    table: CaseTable
    """The cases with reference data and the selected perspectives."""
    standings: PerspectiveWeights
    """Weights of all perspectives, including those not selected."""
    forest: ForestSettings
    """Best settings of a single forest."""
    mirrored: bool
    left_out: int
    """Number of cases without reference data."""

    def choose(self) -> ExpertChoice:
        """Choose the number of experts."""
        return choose_experts(self.table, self.settings, self.forest, mirrored=self.mirrored)

    def finish(self, choice: ExpertChoice) -> Evaluator:
        """Fit the evaluator with the chosen number of experts."""
        settings, table = self.settings, self.table
        router = fit_router(table, self.standings.about_queries, choice.count, settings)
        space = SPACES[settings.search] if router.experts > 1 else ()
        mixture = fit_mixture(
            table,
            router,
            lambda cases, seed: best_settings(cases, space, seed) if space else self.forest,
            settings.seed,
            mirrored=self.mirrored,
        )
        return Evaluator(
            settings.asking,
            table.about_responses,
            table.about_queries,
            mixture,
            provenance=self._provenance(choice, mixture),
        )

    def _provenance(self, choice: ExpertChoice, mixture: Mixture) -> dict[str, Any]:
        table = self.table
        return {
            # Leave out paths and addresses of this machine.
            "config": self.settings.model_dump(
                mode="json", exclude={"seeds", "guidelines", "optimizer"}
            ),
            "counts": {
                "cases": len(table),
                "queries": len(set(table.query_ids)),
                "cases without gold": self.left_out,
                "missing answers": int(np.isnan(table.answers).sum()),
                "missing traits": int(np.isnan(table.traits).sum()),
                "experts asked for": choice.count,
                "experts": len(mixture.experts),
            },
            "experts tried": {str(count): value for count, value in choice.found.items()},
            "errors of their gains": {str(count): value for count, value in choice.errors.items()},
            "standings": {name: list(pair) for name, pair in self.standings.by_id().items()},
        }


def fit_evaluator(
    table: CaseTable,
    settings: EvolveConfig,
    *,
    experts: int | None = None,
    mirror: bool | None = None,
) -> Evaluator:
    """Fit an evaluator to a table's reference data.

    experts: number of experts, or None to choose from `settings.experts` by cross-validation.
    mirror: whether each pair is learned in both orders. By default only if the judge saw one
    response at a time; a judge that sees both may have a position bias to learn.
    """
    plan = prepare(table, settings, mirror=mirror)
    return plan.finish(plan.choose() if experts is None else ExpertChoice(experts, {}, {}))


def is_mirrored(table: CaseTable, settings: EvolveConfig) -> bool:
    """Return whether pairs are learned in both orders: if the judge saw one response at a time."""
    return table.pairs and settings.asking == "each"


def prepare(table: CaseTable, settings: EvolveConfig, *, mirror: bool | None = None) -> FitPlan:
    """Fit everything that comes before the number of experts."""
    known = with_gold(table)
    mirrored = is_mirrored(known, settings) if mirror is None else known.pairs and mirror
    standings = weigh_perspectives(known, settings)
    kept = known.narrow(standings.keep(settings.most_about_responses, settings.most_about_queries))
    cases = training_cases(kept, fill_of(kept, mirrored=mirrored), mirrored=mirrored)
    forest = best_settings(cases, SPACES[settings.search], settings.seed)
    return FitPlan(settings, kept, standings, forest, mirrored, len(table) - len(known))
