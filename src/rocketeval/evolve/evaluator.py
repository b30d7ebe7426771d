"""The evaluator: from a judge's answers about a case to a verdict, a label and how sure they are.

It learns in this order: what each perspective is worth, the settings of a forest without experts,
the number of experts, the router, and for each expert its own settings and forest.
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
"""Finds the settings of a forest for training cases, with a seed."""


@dataclass(frozen=True, eq=False)
class Mixture:
    """Experts that share what they are asked about."""

    task: Task
    mirrored: bool
    """Whether a case and the same with a and b swapped are one: both were learned from, and both
    are asked about, so that swapping swaps the verdict and changes nothing else."""
    fill: Floats
    """What stands for a missing answer of each perspective: its median in training."""
    scale: tuple[float, float]
    """The least and the largest gold learned from."""
    router: Router
    experts: tuple[Expert, ...]

    def predict(self, answers: Floats, traits: Floats) -> Predictions:
        """Return what the nearest expert says about each case."""
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
        # Numbers between two ends are never farther from their mean than half of the way.
        sure = 1.0 - 2.0 * spread / (high - low) if high > low else np.ones(len(spread))
        return Predictions(None, outputs[:, 0], np.clip(sure, 0.0, 1.0), chosen, *missing)

    def _outputs(self, expert: Expert, answers: Floats) -> Floats:
        if not self.mirrored:
            return expert.predict(answers)
        return (expert.predict(answers) + expert.predict(-answers)[:, ::-1]) / 2.0


def training_cases(table: CaseTable, fill: Floats, *, mirrored: bool) -> TrainingCases:
    """Return the table's cases as training cases; mirrored, every pair also the other way round."""
    answers, gold = filled(table.answers, fill), table.gold
    queries = query_numbers(table.query_ids)
    if mirrored:
        answers, gold = np.vstack([answers, -answers]), np.concatenate([gold, -gold])
        queries = np.tile(queries, 2)
    return TrainingCases(table.task, answers, gold, np.ones(len(gold)), queries)


def fill_of(table: CaseTable, *, mirrored: bool) -> Floats:
    """Return what stands for a missing answer: the median, of mirrored answers 0."""
    return np.zeros(table.answers.shape[1]) if mirrored else medians(table.answers)


def fit_router(
    table: CaseTable, standings: Mapping[str, PerspectiveWeight], count: int, settings: EvolveConfig
) -> Router:
    """Return a router by the table's perspectives about queries, the best of them."""
    ids = [each.id for each in table.about_queries]
    kept = set(best(standings, settings.most_about_queries))
    # What is worth nothing weighs 0, and what is not among the best as little.
    weights = trait_weights(standings, ids) * np.array([name in kept for name in ids], dtype=float)
    return Router.fit(ids, table.traits, weights, count, settings.seed)


def fit_mixture(
    table: CaseTable, router: Router, pick: Picker, seed: int, *, mirrored: bool
) -> Mixture:
    """Return a mixture that learned from all cases of the table, near ones most."""
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
"""Queries without which numbers of experts cannot be compared."""
_TREES = 50
"""Trees of the forests that are compared."""


@dataclass(frozen=True)
class ExpertChoice:
    """A number of experts, and what speaks for it."""

    count: int
    found: Mapping[int, float]
    """For each number tried, the accuracy, or the rank correlation, on left-out queries."""
    errors: Mapping[int, float]
    """The standard error of each one's gain over a single expert."""


def choose_experts(
    table: CaseTable, settings: EvolveConfig, forest: ForestSettings, *, mirrored: bool
) -> ExpertChoice:
    """Return the number with the best mean on left-out queries; of equals the smallest.

    More than one only if the gain over one exceeds its standard error over queries. With very few
    queries nothing is compared, and the smallest number is taken.
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
    """Return what each case adds to the figure, whose mean it is.

    Of pairs, whether the verdict is right: the mean is the accuracy. Of labels, the product of the
    standardised ranks: the mean is Spearman's rho.
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
    """What mixtures of each size say about cases that they did not learn from."""
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
    """Everything that was learned from the gold of a table."""

    asking: Asking
    """How its judge was asked."""
    about_responses: tuple[Perspective, ...]
    """Perspectives that it needs answers of, in the order of columns."""
    about_queries: tuple[Perspective, ...]
    """Perspectives that it needs traits of, in the order of columns."""
    mixture: Mixture
    judges: Mapping[str, JudgeFingerprint] = field(default_factory=dict)
    """Whose answers it learned from, by the name of the question set."""
    provenance: Mapping[str, Any] = field(default_factory=dict)
    """What it was made from, as JSON: config, counts, choices, and what a caller adds."""

    @property
    def task(self) -> Task:
        """What it predicts: pairs, or scores."""
        return self.mixture.task

    @property
    def router(self) -> Router:
        """What picks an expert."""
        return self.mixture.router

    @property
    def experts(self) -> tuple[Expert, ...]:
        """The experts, in the order of `Predictions.expert`."""
        return self.mixture.experts

    @property
    def asked(self) -> tuple[Perspective, ...]:
        """What a judge has to answer: of the questions about queries only what its router weighs.

        A single expert judges every query, so that nothing has to be known about it.
        """
        weighed = zip(self.about_queries, self.router.weights.tolist(), strict=True)
        routing = (each for each, weight in weighed if weight and self.router.experts > 1)
        return (*self.about_responses, *routing)

    @property
    def scale(self) -> tuple[float, float]:
        """The least and the largest gold that it learned from."""
        return self.mixture.scale

    def predict(self, answers: Floats, traits: Floats) -> Predictions:
        """Return a prediction for each case; columns are in the order of its perspectives."""
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
        """Return a prediction for each case of a table that has its perspectives, in any order."""
        return self.predict(
            answers_of(table, self.about_responses), traits_of(table, self.about_queries)
        )

    def documented(
        self, judges: Mapping[str, JudgeFingerprint], notes: Mapping[str, Any]
    ) -> Evaluator:
        """Return it with its judges, and with notes (as JSON) added to its provenance."""
        return replace(self, judges=dict(judges), provenance={**self.provenance, **notes})


@dataclass(frozen=True, eq=False)
class FitPlan:
    """What is learned before the number of experts is fixed."""

    settings: EvolveConfig
    table: CaseTable
    """The cases with gold and the perspectives that were kept."""
    standings: PerspectiveWeights
    """What every perspective is worth, also those that were not kept."""
    forest: ForestSettings
    """Settings that suit a forest without experts."""
    mirrored: bool
    left_out: int
    """Cases without gold."""

    def choose(self) -> ExpertChoice:
        """Return how many experts there should be."""
        return choose_experts(self.table, self.settings, self.forest, mirrored=self.mirrored)

    def finish(self, choice: ExpertChoice) -> Evaluator:
        """Return the evaluator with that number of experts."""
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
            # Paths and addresses of the machine it was made on stay there.
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
    """Return an evaluator that learned from the gold of a table.

    experts: how many, or None to choose among `settings.experts` by validation.
    mirror: whether a pair is also learned the other way round. None: when each response was asked
    about alone; a judge that saw both at once may favour a place, and where is then worth knowing.
    """
    plan = prepare(table, settings, mirror=mirror)
    return plan.finish(plan.choose() if experts is None else ExpertChoice(experts, {}, {}))


def prepare(table: CaseTable, settings: EvolveConfig, *, mirror: bool | None = None) -> FitPlan:
    """Return what is learned before the number of experts is fixed."""
    known = with_gold(table)
    mirrored = known.pairs and (settings.asking == "each" if mirror is None else mirror)
    standings = weigh_perspectives(known, settings)
    kept = known.narrow(standings.keep(settings.most_about_responses, settings.most_about_queries))
    cases = training_cases(kept, fill_of(kept, mirrored=mirrored), mirrored=mirrored)
    forest = best_settings(cases, SPACES[settings.search], settings.seed)
    return FitPlan(settings, kept, standings, forest, mirrored, len(table) - len(known))
