"""The mean of the answers on the label scale: missing answers are visible, never scored."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from rocketeval.config import ScorerConfig
from rocketeval.errors import ConfigError
from rocketeval.records import Gold
from rocketeval.scoring.answers import AnswerTable, sum_rows
from rocketeval.scoring.base import SCORERS, Scorer, check_scorer, create_scorer
from rocketeval.scoring.mean import HardMeanScorer, MeanScorer

NAN = float("nan")


def table(*rows: Sequence[float]) -> AnswerTable:
    """Return answers of one candidate per row to one query."""
    offsets = np.cumsum([0, *map(len, rows)])
    flat = np.array([answer for row in rows for answer in row], dtype=np.float64)
    names = [f"c{number}" for number in range(len(rows))]
    return AnswerTable(["q"] * len(rows), names, flat, offsets)


def scores(answers: AnswerTable, **settings: object) -> list[float]:
    """Return the scores of a config."""
    found = create_scorer(ScorerConfig.model_validate(settings)).predict(answers)
    return [float(score) for score in found]


@pytest.mark.parametrize("name", ["mean", "hard"])
@pytest.mark.parametrize("missing", ["skip", "drop"])
@pytest.mark.parametrize("scale", [(1.0, 10.0), (0.0, 1.0), (-5.0, 5.0)])
def test_contract(name: str, missing: str, scale: tuple[float, float]) -> None:
    """Both built-in scorers pass the public check with every setting."""
    config = ScorerConfig(kind=name, missing=missing, scale=scale)
    check_scorer(SCORERS.get(name), config)


def test_the_mean_is_put_on_the_label_scale() -> None:
    """1 + 9 * mean on the scale of ten; the ends are reached exactly."""
    answers = table([1.0, 1.0], [0.0, 0.0, 0.0], [0.5, 1.0], [0.25])
    assert scores(answers) == [10.0, 1.0, 7.75, 3.25]
    assert scores(answers, scale=[0, 1]) == [1.0, 0.0, 0.75, 0.25]


def test_missing_answer_is_left_out_of_the_mean() -> None:
    """skip: the mean of the others; nothing is imputed."""
    assert scores(table([1.0, NAN, 0.0, 1.0]), scale=[0, 3]) == [2.0]


def test_missing_answer_can_drop_the_response() -> None:
    """drop: a response with a missing answer has no score, others keep theirs."""
    dropped = scores(table([1.0, NAN], [1.0, 1.0]), missing="drop")
    assert np.isnan(dropped[0])
    assert dropped[1] == 10.0


@pytest.mark.parametrize("missing", ["skip", "drop"])
@pytest.mark.parametrize("kind", ["mean", "hard"])
def test_no_answers_give_no_score(missing: str, kind: str) -> None:
    """All answers missing, or no judgment: NaN, anywhere in the table."""
    answers = table([], [NAN, NAN], [1.0], [], [NAN], [0.0, 0.0], [])
    found = scores(answers, missing=missing, kind=kind)
    assert np.isnan([found[row] for row in (0, 1, 3, 4, 6)]).all()
    assert (found[2], found[5]) == (10.0, 1.0)


def test_empty_table_gives_no_scores() -> None:
    """Without a warning."""
    assert scores(table()) == []
    assert np.isnan(scores(table([], []))).all()


def test_the_hard_score_is_the_share_of_yes() -> None:
    """Probabilities are ignored; a missing answer stays missing."""
    assert scores(table([0.51, 0.99, 0.49, NAN]), kind="hard", scale=[0, 3]) == [2.0]


def test_options_are_refused() -> None:
    """The mean has no options; a typo is an error."""
    with pytest.raises(ConfigError, match=r"scorer\.options has a mistake"):
        create_scorer(ScorerConfig(options={"weights": [1]}))


def test_row_sum_depends_only_on_the_row() -> None:
    """The same answers give the same bits at the start, in the middle and at the end."""
    random = np.random.default_rng(1)
    row = random.uniform(size=37)
    alone = sum_rows(row, np.array([0, 37]))
    for before in range(1, 20):
        noise = random.uniform(size=before)
        offsets = np.array([0, before, before, before + 37, 2 * before + 37])
        assert sum_rows(np.concatenate([noise, row, noise]), offsets)[2] == alone[0]


class Good(MeanScorer):
    """A valid scorer, the base of the broken ones below."""


class Forgets(Good):
    def __init__(self, scale: tuple[float, float] = (1.0, 10.0), missing: str = "skip") -> None:
        super().__init__(scale, missing)
        del self.missing


class LearnsEarly(Good):
    def __init__(self, scale: tuple[float, float] = (1.0, 10.0), missing: str = "skip") -> None:
        super().__init__(scale, missing)
        self.weights_ = [1.0]


class FitsACopy(Good):
    def fit(self, answers: AnswerTable, gold: Gold) -> FitsACopy:
        return FitsACopy(self.scale, self.missing)


class ChangesItsSettings(Good):
    def fit(self, answers: AnswerTable, gold: Gold) -> ChangesItsSettings:
        self.scale = (0.0, 1.0)
        return self


class Remembers(Good):
    def predict(self, answers: AnswerTable) -> NDArray[np.float64]:
        self.last = answers
        return super().predict(answers)


class Scribbles(Good):
    def predict(self, answers: AnswerTable) -> NDArray[np.float64]:
        found = super().predict(answers)
        answers.p_yes[np.isnan(answers.p_yes)] = 0.5
        return found


class Imputes(Good):
    def predict(self, answers: AnswerTable) -> NDArray[np.float64]:
        return np.nan_to_num(super().predict(answers), nan=5.5)


class GivesUp(Good):
    def predict(self, answers: AnswerTable) -> NDArray[np.float64]:
        return np.full(len(answers), np.nan)


class OffScale(Good):
    def predict(self, answers: AnswerTable) -> NDArray[np.float64]:
        return super().predict(answers) + 100


class Short(Good):
    def predict(self, answers: AnswerTable) -> NDArray[np.float64]:
        return super().predict(answers)[:-1]


class Coarse(Good):
    def predict(self, answers: AnswerTable) -> NDArray[np.float64]:
        return super().predict(answers).astype(np.float32)


class Rolls(Good):
    chance = np.random.default_rng(0)

    def predict(self, answers: AnswerTable) -> NDArray[np.float64]:
        return np.clip(super().predict(answers) + self.chance.normal() / 1e6, 1.0, 10.0)


class LooksAtPlaces(Good):
    def predict(self, answers: AnswerTable) -> NDArray[np.float64]:
        shift = np.arange(len(answers)) / 1e6
        return np.clip(super().predict(answers) + shift, 1.0, 10.0)


class LooksAtOthers(Good):
    def predict(self, answers: AnswerTable) -> NDArray[np.float64]:
        return np.clip(super().predict(answers) + len(answers) / 1e6, 1.0, 10.0)


class CentresAnswers(Good):
    """A scorer whose fit keeps the mean of all answers."""

    def fit(self, answers: AnswerTable, gold: Gold) -> CentresAnswers:
        self.mean_ = float(np.nanmean(answers.p_yes))
        return self

    def predict(self, answers: AnswerTable) -> NDArray[np.float64]:
        return np.clip(super().predict(answers) - self.mean_, 1.0, 10.0)


class LearnsUnseen(Good):
    """A scorer that learns but lacks the methods of a `Learner`."""

    def fit(self, answers: AnswerTable, gold: Gold) -> LearnsUnseen:
        self.shift_ = len(gold.labels) / 1e6
        return self

    def predict(self, answers: AnswerTable) -> NDArray[np.float64]:
        return np.clip(super().predict(answers) + self.shift_, 1.0, 10.0)


BROKEN: dict[type[Scorer], str] = {
    Forgets: r"does not store \['missing'\]",
    LearnsEarly: r"the constructor sets \['weights_'\]",
    FitsACopy: "`fit` does not return self",
    ChangesItsSettings: "`fit` changed the constructor's settings",
    Remembers: "`predict` changed the scorer",
    Scribbles: "`predict` changed its input",
    Imputes: "a response without any answer has a score",
    GivesUp: "a response with every answer has no score",
    OffScale: "a score is outside the scale",
    Short: "scores for 32 responses",
    Coarse: "scores are float32",
    Rolls: "two calls of `predict` differ",
    LooksAtPlaces: "a score depends on the order of the queries",
    LooksAtOthers: "a score depends on the answers to other queries",
    CentresAnswers: "fitted on each part of a run",
    LearnsUnseen: "separately, without reference data",
}


def test_public_check_passes_a_valid_scorer() -> None:
    """The base of the broken ones passes with the default config."""
    check_scorer(Good)
    check_scorer(HardMeanScorer)


@pytest.mark.parametrize(
    ("kind", "expected"), BROKEN.items(), ids=[kind.__name__ for kind in BROKEN]
)
def test_public_check_catches_each_violation(kind: type[Scorer], expected: str) -> None:
    """Every rule of `check_scorer` can fail, with its own message."""
    with pytest.raises(AssertionError, match=expected):
        check_scorer(kind)
