"""How many experts there are: as many as predict left-out queries best, and one unless more gain.

Everything that more experts rest on, also what each trait is worth, is learned within the fold.
The forests' settings are the same for every number, and found without experts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rocketeval.config import EvolveConfig
from rocketeval.evolve.cases import CaseTable, Floats
from rocketeval.evolve.groups import error_of_mean, query_numbers
from rocketeval.evolve.grow import ForestSettings
from rocketeval.evolve.panel import fit_panel, fit_router
from rocketeval.evolve.predictions import Predictions, joined
from rocketeval.evolve.search import INNER_FOLDS, inner_folds
from rocketeval.evolve.select import weigh_traits

FEWEST_QUERIES = 2 * INNER_FOLDS
"""Queries without which numbers of experts cannot be compared."""
_TREES = 50
"""Trees of the forests that are compared."""


@dataclass(frozen=True)
class Choice:
    """A number of experts, and what speaks for it."""

    count: int
    found: Mapping[int, float]
    """For each number tried, the accuracy, or the rank correlation, on left-out queries."""
    errors: Mapping[int, float]
    """The standard error of each one's gain over a single expert."""


def choose_experts(
    table: CaseTable, settings: EvolveConfig, forest: ForestSettings, *, mirrored: bool
) -> Choice:
    """Return the number with the best mean on left-out queries; of equals the smallest.

    More than one only if the gain over one exceeds its standard error over queries. With very few
    queries nothing is compared, and the smallest number is taken.
    """
    counts = sorted({1, *settings.experts})
    if counts == [1] or len(set(table.query_ids)) < FEWEST_QUERIES:
        return Choice(min(settings.experts), {}, {})
    credit = {
        count: credit_of(said, table.gold)
        for count, said in _left_out(table, settings, forest, counts, mirrored=mirrored).items()
    }
    found = {count: float(given.mean()) for count, given in credit.items()}
    errors = {count: error_of_mean(credit[count] - credit[1], table.query_ids) for count in counts}
    allowed = [
        count
        for count in sorted(set(settings.experts))
        if count == 1 or found[count] - found[1] > errors[count]
    ]
    count = max(allowed, key=lambda one: found[one], default=min(settings.experts))
    return Choice(count, found, errors)


def credit_of(said: Predictions, gold: Floats) -> Floats:
    """Return what each case adds to the figure, whose mean it is.

    Of pairs, whether the verdict is right: the mean is the accuracy. Of labels, the product of the
    standardised ranks: the mean is Spearman's rho.
    """
    if said.values is None:
        return np.asarray(said.verdict == gold, dtype=np.float64)
    from scipy.stats import rankdata

    ranks = [rankdata(side) for side in (said.values, gold)]
    if min(float(np.ptp(side)) for side in ranks) == 0.0:
        return np.zeros(len(gold))
    one, two = ((side - side.mean()) / side.std() for side in ranks)
    return np.asarray(one * two, dtype=np.float64)


def _left_out(
    table: CaseTable,
    settings: EvolveConfig,
    forest: ForestSettings,
    counts: list[int],
    *,
    mirrored: bool,
) -> dict[int, Predictions]:
    """What panels of each size say about cases that they did not learn from."""
    folds = inner_folds(query_numbers(table.query_ids), settings.seed)
    small = replace(forest, n_estimators=min(_TREES, forest.n_estimators))
    parts: dict[int, list[tuple[NDArray[np.intp], Predictions]]] = {one: [] for one in counts}
    for fold in range(int(folds.max()) + 1):
        learned, asked = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        seen, new = table.take(learned), table.take(asked)
        worth = weigh_traits(seen, settings)
        for count in counts:
            router = fit_router(seen, worth, count, settings)
            panel = fit_panel(seen, router, lambda *_: small, settings.seed, mirrored=mirrored)
            parts[count].append((asked, panel.predict(new.answers, new.traits)))
    return {count: joined(found) for count, found in parts.items()}
