"""One forest per query, fitted on its labeled responses (section 3.3 of the paper).

`score = (1 - alpha) * mean + alpha * forest`: alpha is high if the query's labels are spread over
the scale (`weight`). A query with too few or identical labels is scored by the mean, with a reason.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from rocketeval.arrays import Bools, Floats
from rocketeval.config import ScorerConfig, Section, parse_options
from rocketeval.hashing import content_hash
from rocketeval.records import Gold
from rocketeval.scoring.answers import AnswerTable, QueryRows, filled_rows
from rocketeval.scoring.base import State
from rocketeval.scoring.forest import (
    Forest,
    all_rows,
    forest_of,
    grow_trees,
    importances_of,
    pack_forests,
    unpack_forests,
)
from rocketeval.scoring.learning import (
    SIZED,
    joined,
    label_column,
    read_reasons,
    read_sizes,
    reading_state,
    refuse_other_checklist,
    refuse_votes,
    split_numbers,
)
from rocketeval.scoring.mean import HardMeanScorer, MeanScorer

FRACTION_LEVELS = 10
"""Number of levels for labels that are neither whole numbers nor the two ends of the scale."""
MOST_WHOLE_LEVELS = 20
"""A scale with more whole numbers than this has `FRACTION_LEVELS` levels."""


@dataclass(frozen=True, slots=True)
class LabelScale:
    """A label scale and its levels."""

    low: float
    high: float
    levels: int

    @classmethod
    def of(cls, labels: Floats, scale: tuple[float, float]) -> LabelScale:
        """Return the scale with levels by the labels: whole numbers, the two ends, or ten.

        If all labels given are on the two ends, they are taken for yes and no, with two levels.

        >>> LabelScale.of(np.array([3.0, 7.0]), (1.0, 10.0)).levels
        10
        >>> LabelScale.of(np.array([0.0, 1.0, 1.0]), (0.0, 1.0)).levels
        2
        >>> LabelScale.of(np.array([0.25, 0.5]), (0.0, 1.0)).levels
        10
        """
        low, high = scale
        steps = high - low
        if set(labels.tolist()) <= {low, high}:
            return cls(low, high, 2)
        whole = bool(np.equal(labels, np.round(labels)).all()) and low == round(low)
        if whole and steps == round(steps) and steps < MOST_WHOLE_LEVELS:
            return cls(low, high, int(steps) + 1)
        return cls(low, high, FRACTION_LEVELS)

    def level(self, labels: Floats) -> NDArray[np.int64]:
        """Return the nearest level of each label, from 0; levels are evenly spaced."""
        place = (labels - self.low) / (self.high - self.low)
        nearest = np.floor(place * (self.levels - 1) + 0.5)
        return np.clip(nearest, 0, self.levels - 1).astype(np.int64)


def label_weight(labels: Floats, scale: LabelScale) -> float:
    """Return alpha of one query's labels: 0 if all are on one level, 1 if spread evenly.

    >>> ten = LabelScale(1.0, 10.0, 10)
    >>> round(label_weight(np.arange(1.0, 11.0), ten), 9), label_weight(np.array([8.0, 8.0]), ten)
    (1.0, 0.0)
    """
    if len(labels) == 0:
        return 0.0
    counts = np.bincount(scale.level(labels), minlength=scale.levels)
    shares = counts[counts > 0] / len(labels)
    entropy = -float((shares * np.log(shares)).sum())
    return min(1.0, max(0.0, entropy / math.log(scale.levels)))


class ForestOptions(Section):
    """Settings of the per-query forests."""

    trees: Annotated[int, Field(ge=1)] = 100
    """Trees per forest. The paper's code grows 10 of depth 2: `{trees: 10, depth: 2}`."""
    depth: Annotated[int, Field(ge=1)] | None = None
    """Maximum depth of a tree; default: until each leaf holds `min_samples_leaf` responses."""
    weight: Literal["kl", "none"] = "kl"
    """kl: blend with the mean by the spread of the labels; none: use only the forest."""
    answers: Literal["probabilities", "hard"] = "probabilities"
    """hard: use only yes and no, not the probabilities, in the trees and in the mean."""
    min_labels: Annotated[int, Field(ge=2)] = 4
    """A query with fewer labeled responses is scored by the mean."""
    min_samples_leaf: Annotated[int, Field(ge=1)] = 1
    """Minimum labeled responses per leaf."""


class PerQueryForest:
    """Scores by one forest per query, blended with the mean."""

    random_thresholds: ClassVar[bool]
    """True for random thresholds, False for the best thresholds on resampled labels."""

    def __init__(
        self,
        scale: tuple[float, float] = (1.0, 10.0),
        missing: str = "skip",
        options: ForestOptions | None = None,
        seed: int = 0,
    ) -> None:
        self.scale = scale
        self.missing = missing
        self.options = options or ForestOptions()
        self.seed = seed

    @classmethod
    def create(cls, config: ScorerConfig) -> Self:
        """Return an unfitted scorer; raise ConfigError if it should learn from votes."""
        refuse_votes(config)
        options = parse_options(config.options, ForestOptions, "scorer.options")
        return cls(config.scale, config.missing, options, config.seed)

    def fit(self, answers: AnswerTable, gold: Gold) -> Self:
        """Grow a forest for each query with enough labels."""
        labels = label_column(answers, gold.labels, self.scale)
        levels = LabelScale.of(labels[~np.isnan(labels)], self.scale)
        self.forests_: dict[str, Forest] = {}
        self.importances_: dict[str, Floats] = {}
        self.weights_: dict[str, float] = {}
        self.sizes_: dict[str, Floats] = {}
        self.fallbacks_: dict[str, str] = {}
        for block in answers.blocks():
            p_yes, usable = self._filled(block)
            given = usable & ~np.isnan(labels[block.rows])
            self._fit_query(block.query_id, p_yes[given], labels[block.rows][given], levels)
            if block.query_id in self.forests_:
                self.sizes_[block.query_id] = block.sizes
        return self

    def predict(self, answers: AnswerTable) -> Floats:
        """Return the blended score of each response; NaN without usable answers."""
        kind = HardMeanScorer if self.options.answers == "hard" else MeanScorer
        scores = kind(self.scale, self.missing).predict(answers)
        for block in answers.blocks():
            forest = self.forests_.get(block.query_id)
            if forest is None:
                continue
            p_yes, usable = self._filled(block)
            if not usable.any():
                continue
            known = len(self.importances_[block.query_id])
            refuse_other_checklist(block.query_id, p_yes.shape[1], known)
            weight, own = self.weights_[block.query_id], scores[block.rows]
            blend = (1.0 - weight) * own[usable] + weight * forest.predict(p_yes[usable])
            # Rounding can move the blend slightly off the scale.
            own[usable] = np.clip(blend, *self.scale)
        return scores

    def fallbacks(self) -> Mapping[str, str]:
        """Return the queries scored by the mean, each with the reason."""
        return dict(self.fallbacks_)

    def item_weights(self) -> Mapping[str, Floats]:
        """Return each item's share in its query's score: importance blended with its weight."""
        return {
            query_id: (1.0 - alpha) * sizes / sizes.sum() + alpha * self.importances_[query_id]
            for (query_id, alpha), sizes in zip(
                self.weights_.items(), self.sizes_.values(), strict=True
            )
        }

    def state(self) -> State:
        """Return the forests as concatenated arrays."""
        sizes, arrays = pack_forests(self.forests_.values())
        header = {
            **sizes,
            "queries": list(self.forests_),
            "weights": list(self.weights_.values()),
            "items": [len(found) for found in self.importances_.values()],
            "fallbacks": self.fallbacks_,
            SIZED: True,
        }
        importances = joined(list(self.importances_.values()))
        sizes_of_items = joined(list(self.sizes_.values()))
        return State(header, {**arrays, "importances": importances, "sizes": sizes_of_items})

    @classmethod
    def restore(cls, config: ScorerConfig, state: State) -> Self:
        """Restore the fitted scorer."""
        scorer = cls.create(config)
        header, arrays = state.header, state.arrays
        with reading_state(config.kind):
            queries = [str(query_id) for query_id in header["queries"]]
            weights = [float(weight) for weight in header["weights"]]
            importances = split_numbers(arrays["importances"], header["items"])
            sizes = read_sizes(header, arrays)
            _require_shares(np.array(weights))
            _require_shares(arrays["importances"])
            forests = unpack_forests(header, arrays)
            columns = list(zip(queries, weights, importances, forests, strict=True))
            scorer.fallbacks_ = read_reasons(header["fallbacks"])
        for *_, importance, forest in columns:
            forest.check(len(importance))
        scorer.forests_ = {query_id: forest for query_id, _, _, forest in columns}
        scorer.importances_ = {query_id: importance for query_id, _, importance, _ in columns}
        scorer.weights_ = {query_id: weight for query_id, weight, _, _ in columns}
        scorer.sizes_ = dict(zip(queries, sizes, strict=True))
        return scorer

    def _fit_query(self, query_id: str, p_yes: Floats, labels: Floats, levels: LabelScale) -> None:
        reason = self._why_mean(labels)
        if reason is not None:
            self.fallbacks_[query_id] = reason
            return
        alpha = label_weight(labels, levels) if self.options.weight == "kl" else 1.0
        # Seed by query id, so that a forest does not depend on other queries.
        seed = int.from_bytes(content_hash("forest", self.seed, query_id)[:4], "big")
        grown = grow_trees(
            p_yes,
            labels[:, None],
            self.options.trees,
            np.random.RandomState(seed),
            all_rows if self.random_thresholds else partial(_resample, len(labels)),
            random_thresholds=self.random_thresholds,
            max_features=1.0,
            min_samples_leaf=self.options.min_samples_leaf,
            max_depth=self.options.depth,
        )
        self.forests_[query_id], self.weights_[query_id] = forest_of(grown), alpha
        shares = importances_of(grown)
        # Identical answers grow trees without splits: use equal importances.
        equal = np.full(len(shares), 1.0 / len(shares))
        self.importances_[query_id] = shares if shares.any() else equal

    def _why_mean(self, labels: Floats) -> str | None:
        if len(labels) < self.options.min_labels:
            return f"{len(labels)} labels; {self.options.min_labels} are needed"
        if np.ptp(labels) == 0.0:
            return f"all {len(labels)} labels are {labels[0]:g}"
        return None

    def _filled(self, block: QueryRows) -> tuple[Floats, Bools]:
        """Return the answers that the forests see, and which rows are usable."""
        p_yes = block.p_yes
        if self.options.answers == "hard":
            p_yes = np.where(np.isnan(p_yes), np.nan, p_yes >= 0.5)
        return filled_rows(p_yes, self.missing, block.weights)


class ExtraTreesScorer(PerQueryForest):
    """Extremely randomized trees, the paper's choice."""

    random_thresholds = True


class RandomForestScorer(PerQueryForest):
    """Best splits on resampled labels."""

    random_thresholds = False


def _resample(rows: int, random: np.random.RandomState) -> tuple[Any, None]:
    return random.randint(rows, size=rows), None


def _require_shares(values: Floats) -> None:
    if not bool(((values >= 0.0) & (values <= 1.0)).all()):
        raise ValueError("a weight is not between 0 and 1")
