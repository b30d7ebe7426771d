"""The scorer interface, as in scikit-learn: the constructor stores settings, `predict` is pure."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from rocketeval.config import ScorerConfig
from rocketeval.records import Gold, Label, Vote, Winner
from rocketeval.registry import Registry
from rocketeval.scoring.answers import AnswerTable

__all__ = ["Learner", "Saveable", "Scorer", "State", "create_scorer"]


class Scorer(Protocol):
    """Scores each response of an answer table on the label scale."""

    @classmethod
    def create(cls, config: ScorerConfig) -> Scorer:
        """Return an unfitted scorer."""
        ...

    def fit(self, answers: AnswerTable, gold: Gold) -> Self:
        """Fit on the labels or votes of `gold` and return self.

        Reference data on responses that are not in `answers` is ignored.
        """
        ...

    def predict(self, answers: AnswerTable) -> NDArray[np.float64]:
        """Return one score per response; NaN if missing.

        The scores of a query must depend only on the fit and on that query's answers, because large
        runs are scored in parts.
        """
        ...


@runtime_checkable
class Learner(Protocol):
    """A scorer that is fitted on reference data."""

    def fallbacks(self) -> Mapping[str, str]:
        """Return the queries that are scored by the mean instead, each with the reason."""
        ...

    def item_weights(self) -> Mapping[str, NDArray[np.float64]]:
        """Return item weights by query, if it has its own; absolute values sum to one.

        A weight is negative if yes lowers the score.
        """
        ...


@dataclass(frozen=True)
class State:
    """A fitted scorer as plain data."""

    header: Mapping[str, Any]
    """JSON values."""
    arrays: Mapping[str, NDArray[Any]]
    """Arrays of numbers and strings, never objects."""


@runtime_checkable
class Saveable(Protocol):
    """A scorer that can be saved to a file and restored."""

    def state(self) -> State:
        """Return the fitted state."""
        ...

    @classmethod
    def restore(cls, config: ScorerConfig, state: State) -> Scorer:
        """Restore a fitted scorer; raise ArtifactError for an invalid state."""
        ...


SCORERS: Registry[Scorer] = Registry(
    "scorer",
    {
        "mean": "rocketeval.scoring.mean:MeanScorer",
        "hard": "rocketeval.scoring.mean:HardMeanScorer",
        "points": "rocketeval.scoring.rubric:PointsScorer",
        "extra_trees": "rocketeval.scoring.extra_trees:ExtraTreesScorer",
        "random_forest": "rocketeval.scoring.extra_trees:RandomForestScorer",
        "pooled_ridge": "rocketeval.scoring.ridge:PooledRidgeScorer",
        "pooled_logistic": "rocketeval.scoring.votes:PooledLogisticScorer",
        "isotonic": "rocketeval.scoring.mean:IsotonicScorer",
        "select": "rocketeval.scoring.select:SelectScorer",
    },
)


def create_scorer(config: ScorerConfig) -> Scorer:
    """Create the scorer that `config` names."""
    return SCORERS.get(config.kind).create(config)


def learns_from_run(config: ScorerConfig) -> bool:
    """Return whether the scorer is fitted to the whole run that it scores."""
    return config.fitted is None and isinstance(create_scorer(config), Learner)


def check_scorer(kind: type[Scorer], config: ScorerConfig | None = None) -> None:
    """Raise AssertionError unless the scorer class `kind` fulfills the interface."""
    settings = config or ScorerConfig()
    answers, gold = _example_answers()
    scorer = kind.create(settings)
    parameters = _stored_parameters(scorer)
    learned = [name for name in vars(scorer) if name.endswith("_") and not name.startswith("_")]
    _require(not learned, f"the constructor sets {learned}; only `fit` may")
    _require(scorer.fit(answers, gold) is scorer, "`fit` does not return self")
    _require(_stored_parameters(scorer) == parameters, "`fit` changed the constructor's settings")
    scores = _check_purity(scorer, answers)
    _check_values(scores, answers, settings.scale)
    _check_order(scorer, answers, scores)
    _check_parts(scorer, answers, scores)
    if not isinstance(scorer, Learner):
        _check_fits(lambda: kind.create(settings), answers, scores)


def _stored_parameters(scorer: Scorer) -> dict[str, Any]:
    names = list(inspect.signature(type(scorer)).parameters)
    absent = [name for name in names if not hasattr(scorer, name)]
    _require(not absent, f"the constructor does not store {absent} under their own names")
    return {name: getattr(scorer, name) for name in names}


def _check_purity(scorer: Scorer, answers: AnswerTable) -> NDArray[np.float64]:
    kept = answers.p_yes.copy(), answers.offsets.copy()
    held = dict(vars(scorer))
    first = scorer.predict(answers)
    _require(
        kept[0].tobytes() == answers.p_yes.tobytes()
        and kept[1].tobytes() == answers.offsets.tobytes(),
        "`predict` changed its input",
    )
    unchanged = all(vars(scorer).get(name) is value for name, value in held.items())
    _require(unchanged and len(vars(scorer)) == len(held), "`predict` changed the scorer")
    second = scorer.predict(answers)
    _require(first.tobytes() == second.tobytes(), "two calls of `predict` differ")
    return first


def _check_values(
    scores: NDArray[np.float64], answers: AnswerTable, scale: tuple[float, float]
) -> None:
    _require(scores.shape == (len(answers),), f"{scores.shape} scores for {len(answers)} responses")
    _require(scores.dtype == np.float64, f"scores are {scores.dtype}, not float64")
    empty, full = answers.answered == 0, answers.answered == answers.items
    _require(bool(np.isnan(scores[empty]).all()), "a response without any answer has a score")
    complete = scores[full & ~empty]
    _require(bool(np.isfinite(complete).all()), "a response with every answer has no score")
    low, high = scale
    inside = (complete >= low) & (complete <= high)
    _require(bool(inside.all()), f"a score is outside the scale {low}..{high}")


def _check_order(scorer: Scorer, answers: AnswerTable, scores: NDArray[np.float64]) -> None:
    """Check that the order of queries does not change scores, to the last bit."""
    names = list(dict.fromkeys(answers.query_ids))[::-1]
    order = [
        row for name in names for row, query_id in enumerate(answers.query_ids) if query_id == name
    ]
    again = scorer.predict(answers.take(order))
    _require(
        again.tobytes() == scores[order].tobytes(), "a score depends on the order of the queries"
    )


def _check_parts(scorer: Scorer, answers: AnswerTable, scores: NDArray[np.float64]) -> None:
    """Check that a query scored separately gets the same scores, to the last bit."""
    for own in _rows_by_query(answers):
        alone = scorer.predict(answers.take(own))
        _require(
            alone.tobytes() == scores[own].tobytes(),
            "a score depends on the answers to other queries",
        )


def _check_fits(
    create: Callable[[], Scorer], answers: AnswerTable, scores: NDArray[np.float64]
) -> None:
    """Check that a scorer that is not a `Learner` does not depend on what it is fitted on."""
    for own in _rows_by_query(answers):
        alone = answers.take(own)
        again = create().fit(alone, Gold()).predict(alone)
        _require(
            again.tobytes() == scores[own].tobytes(),
            "`fit` learns, but the scorer is not a `Learner`: it is fitted on each part of a run "
            "separately, without reference data",
        )


def _rows_by_query(answers: AnswerTable) -> Iterator[list[int]]:
    for query_id in dict.fromkeys(answers.query_ids):
        yield [row for row, name in enumerate(answers.query_ids) if name == query_id]


def _example_answers() -> tuple[AnswerTable, Gold]:
    """Return answers with all kinds of missing values, and labels and votes for most."""
    random = np.random.default_rng(0)
    query_ids, candidates, parts, labels, votes = [], [], [], [], []
    for query, items in {"q1": 3, "q2": 12, "q3": 1, "q4": 5}.items():
        for number in range(8):
            p_yes = random.uniform(size=items)
            if number == 5:
                p_yes[0] = np.nan
            if number == 6:
                p_yes[:] = np.nan
            query_ids.append(query)
            candidates.append(f"c{number}")
            parts.append(p_yes[:0] if number == 7 else p_yes)
            if number < 4:
                labels.append(Label(query, f"c{number}", float(random.integers(1, 11))))
                votes.append(Vote(query, f"c{number}", f"c{number + 1}", _WINNERS[number % 3]))
    offsets = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
    return AnswerTable(query_ids, candidates, np.concatenate(parts), offsets), Gold(labels, votes)


_WINNERS: tuple[Winner, ...] = ("a", "b", "tie")


def _require(kept: bool, broken: str) -> None:
    if not kept:
        raise AssertionError(broken)
