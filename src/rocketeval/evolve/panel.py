"""A panel: experts, and the router that picks one of them for a case."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from rocketeval.config import EvolveConfig
from rocketeval.evolve.cases import CaseTable, Floats, Task
from rocketeval.evolve.experts import Expert, grow_expert
from rocketeval.evolve.groups import query_numbers
from rocketeval.evolve.grow import ForestSettings, Lessons
from rocketeval.evolve.missing import filled, medians
from rocketeval.evolve.predictions import Predictions, lead
from rocketeval.evolve.route import Router
from rocketeval.evolve.select import Standing, best, trait_weights
from rocketeval.hashing import content_hash

Picker = Callable[[Lessons, int], ForestSettings]
"""Finds the settings of a forest for lessons, with a seed."""


@dataclass(frozen=True, eq=False)
class Panel:
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


def lessons_of(table: CaseTable, fill: Floats, *, mirrored: bool) -> Lessons:
    """Return the table's cases as lessons; mirrored, every pair also the other way round."""
    answers, gold = filled(table.answers, fill), table.gold
    queries = query_numbers(table.query_ids)
    if mirrored:
        answers, gold = np.vstack([answers, -answers]), np.concatenate([gold, -gold])
        queries = np.tile(queries, 2)
    return Lessons(table.task, answers, gold, np.ones(len(gold)), queries)


def fill_of(table: CaseTable, *, mirrored: bool) -> Floats:
    """Return what stands for a missing answer: the median, of mirrored answers 0."""
    return np.zeros(table.answers.shape[1]) if mirrored else medians(table.answers)


def fit_router(
    table: CaseTable, worth: Mapping[str, Standing], count: int, settings: EvolveConfig
) -> Router:
    """Return a router by the table's perspectives about queries, the best of them."""
    ids = [each.id for each in table.about_queries]
    kept = set(best(worth, settings.most_about_queries))
    # What is worth nothing weighs 0, and what is not among the best as little.
    weights = trait_weights(worth, ids) * np.array([name in kept for name in ids], dtype=float)
    return Router.fit(ids, table.traits, weights, count, settings.seed)


def fit_panel(
    table: CaseTable, router: Router, pick: Picker, seed: int, *, mirrored: bool
) -> Panel:
    """Return a panel that learned from all cases of the table, near ones most."""
    fill = fill_of(table, mirrored=mirrored)
    lessons = lessons_of(table, fill, mirrored=mirrored)
    weights = router.sample_weights(table.traits)
    experts = []
    for place in range(router.experts):
        own = np.tile(weights[:, place], 2 if mirrored else 1)
        chance = int.from_bytes(content_hash("expert", seed, place)[:4], "big")
        shared = replace(lessons, weights=own)
        experts.append(grow_expert(shared, pick(shared, chance), chance))
    scale = float(table.gold.min()), float(table.gold.max())
    return Panel(lessons.task, mirrored, fill, scale, router, tuple(experts))
