"""The evaluator: from a judge's answers about a case to a verdict, a label and how sure they are.

It learns in this order: what each perspective is worth, the settings of a forest without experts,
the number of experts, the router, and for each expert its own settings and forest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rocketeval.config import EvolveConfig
from rocketeval.errors import ArtifactError
from rocketeval.evolve.cases import CaseTable, Floats, Task
from rocketeval.evolve.choose import Choice, choose_experts
from rocketeval.evolve.columns import answers_of, traits_of
from rocketeval.evolve.experts import Expert
from rocketeval.evolve.grow import SPACES, ForestSettings, Lessons
from rocketeval.evolve.panel import Panel, fill_of, fit_panel, fit_router, lessons_of
from rocketeval.evolve.perspective import Perspective
from rocketeval.evolve.predictions import Predictions
from rocketeval.evolve.route import Router
from rocketeval.evolve.search import best_settings
from rocketeval.evolve.select import Standings, weigh_perspectives, with_gold
from rocketeval.evolve.sheets import Asking
from rocketeval.records import JudgeFingerprint


@dataclass(frozen=True, eq=False)
class Evaluator:
    """Everything that was learned from the gold of a table."""

    asking: Asking
    """How its judge was asked."""
    about_responses: tuple[Perspective, ...]
    """Perspectives that it needs answers of, in the order of columns."""
    about_queries: tuple[Perspective, ...]
    """Perspectives that it needs traits of, in the order of columns."""
    panel: Panel
    judges: Mapping[str, JudgeFingerprint] = field(default_factory=dict)
    """Whose answers it learned from, by the name of the sheet."""
    provenance: Mapping[str, Any] = field(default_factory=dict)
    """What it was made from, as JSON: config, counts, choices, and what a caller adds."""

    @property
    def task(self) -> Task:
        """What it predicts: pairs, or scores."""
        return self.panel.task

    @property
    def router(self) -> Router:
        """What picks an expert."""
        return self.panel.router

    @property
    def experts(self) -> tuple[Expert, ...]:
        """The experts, in the order of `Predictions.expert`."""
        return self.panel.experts

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
        return self.panel.scale

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
        return self.panel.predict(answers, traits)

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
class Course:
    """What is learned before the number of experts is fixed."""

    settings: EvolveConfig
    table: CaseTable
    """The cases with gold and the perspectives that were kept."""
    standings: Standings
    """What every perspective is worth, also those that were not kept."""
    forest: ForestSettings
    """Settings that suit a forest without experts."""
    mirrored: bool
    left_out: int
    """Cases without gold."""

    def choose(self) -> Choice:
        """Return how many experts there should be."""
        return choose_experts(self.table, self.settings, self.forest, mirrored=self.mirrored)

    def finish(self, choice: Choice) -> Evaluator:
        """Return the evaluator with that number of experts."""
        settings, table = self.settings, self.table
        router = fit_router(table, self.standings.about_queries, choice.count, settings)
        pick = self._searched if router.experts > 1 else self._as_found
        panel = fit_panel(table, router, pick, settings.seed, mirrored=self.mirrored)
        return Evaluator(
            settings.asking,
            table.about_responses,
            table.about_queries,
            panel,
            provenance=self._provenance(choice, panel),
        )

    def _as_found(self, lessons: Lessons, seed: int) -> ForestSettings:
        return self.forest

    def _searched(self, lessons: Lessons, seed: int) -> ForestSettings:
        return best_settings(lessons, SPACES[self.settings.search], seed)

    def _provenance(self, choice: Choice, panel: Panel) -> dict[str, Any]:
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
                "experts": len(panel.experts),
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
    course = prepare(table, settings, mirror=mirror)
    return course.finish(course.choose() if experts is None else Choice(experts, {}, {}))


def prepare(table: CaseTable, settings: EvolveConfig, *, mirror: bool | None = None) -> Course:
    """Return what is learned before the number of experts is fixed."""
    known = with_gold(table)
    mirrored = known.pairs and (settings.asking == "each" if mirror is None else mirror)
    standings = weigh_perspectives(known, settings)
    kept = known.narrow(standings.keep(settings.most_about_responses, settings.most_about_queries))
    lessons = lessons_of(kept, fill_of(kept, mirrored=mirrored), mirrored=mirrored)
    forest = best_settings(lessons, SPACES[settings.search], settings.seed)
    return Course(settings, kept, standings, forest, mirrored, len(table) - len(known))
