"""Scores of weighted items: penalties, applicability, the `points` rule, and proven bounds.

Each answer has a value in [0, 1] and an applicability in [0, 1], one minus the probability of "not
applicable". The default rule is the mean of the values, weighted by |weight| times applicability; a
penalty (negative weight) counts one minus its value. With weights 1 it is the plain mean.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rocketeval.arrays import Floats
from rocketeval.items import Checklist, ItemDetail, ItemKind
from rocketeval.records import Answer, Status
from rocketeval.scoring.answers import AnswerTable, RubricColumns, sum_rows
from rocketeval.scoring.mean import MeanScorer

POINTS = "points"
"""The kind of the scorer whose means are clipped to the scale."""
PROBABILITY, GRADE = "Probability of yes", "Grade, from worst (0) to best (1)"
_ANSWERS = {
    ItemKind.YES_NO: PROBABILITY,
    ItemKind.SCALE: "expected level (0 to 1)",
    ItemKind.CHECK: "result of a check",
}


@dataclass(frozen=True, slots=True)
class Rubric:
    """What the items of a run have besides plain yes/no questions."""

    kinds: frozenset[ItemKind] = frozenset({ItemKind.YES_NO})
    weights: bool = False
    """Whether items of a checklist differ in weight; the sign does not count."""
    penalties: bool = False
    na: bool = False
    """Whether some item may not apply."""
    grades: bool = False
    """Whether the judge gives grades instead of answers to items."""

    @classmethod
    def of(cls, checklists: Mapping[str, Checklist]) -> Rubric:
        """Return the rubric of a run's checklists."""
        details = [made.every_detail for made in checklists.values() if made.items]
        every = [detail for own in details for detail in own]
        return cls(
            kinds=frozenset(detail.kind for detail in every) or frozenset({ItemKind.YES_NO}),
            weights=any(len({abs(detail.weight) for detail in own}) > 1 for own in details),
            penalties=any(detail.weight < 0 for detail in every),
            na=any(detail.na for detail in every),
        )

    @property
    def mixed(self) -> bool:
        """Whether some items are no yes/no questions."""
        return self.kinds != {ItemKind.YES_NO}

    @property
    def rule(self) -> str:
        """How unequal items count in a mean, in one sentence; empty if they count the same."""
        parts = []
        if self.weights:
            parts.append("items count by their weights")
        if self.penalties:
            parts.append("a penalty counts one minus its answer")
        if self.na:
            parts.append("an item that may not apply counts as far as it applies")
        return f"{_capital(_joined(parts, 'and'))}." if parts else ""


def answers_are(rubric: Rubric) -> str:
    """Return the heading for answers.

    >>> answers_are(Rubric(kinds=frozenset({ItemKind.YES_NO, ItemKind.CHECK})))
    'Probability of yes or result of a check'
    """
    if rubric.grades:
        return GRADE
    names = [name for kind, name in _ANSWERS.items() if kind in rubric.kinds]
    return _capital(_joined(names, "or"))


def _joined(parts: Sequence[str], word: str) -> str:
    *first, last = parts
    comma = "," if len(first) > 1 else ""
    return f"{', '.join(first)}{comma} {word} {last}" if first else last


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def rubric_columns(
    checklists: Mapping[str, Checklist],
    query_ids: Sequence[str],
    offsets: NDArray[np.int64],
    values: Floats,
    p_na: Floats,
) -> RubricColumns | None:
    """Return the weights and applicability of answers; None if all items are plain."""
    if all(checklist.details is None for checklist in checklists.values()):
        return None
    known = {
        query_id: np.array([each.weight for each in made.every_detail])
        for query_id, made in checklists.items()
    }
    weights = np.ones(len(values))
    for query_id, start, stop in zip(query_ids, offsets[:-1], offsets[1:], strict=True):
        own = known.get(query_id)
        if own is not None and stop - start == len(own):
            weights[start:stop] = own
    return RubricColumns(values, weights, np.where(np.isnan(p_na), 1.0, 1.0 - p_na))


def credits(columns: RubricColumns, offsets: NDArray[np.int64]) -> Floats:
    """Return what each answer contributes, so that |weight| times it averages to the score.

    A penalty contributes one minus its value. An answer that may not apply is mixed with the
    response's score in proportion. NaN for a missing answer, and if nothing applies.
    """
    turned = columns.turned
    if (columns.applicable == 1.0).all():
        return turned
    means = np.repeat(weighted_mean(columns, offsets), np.diff(offsets))
    return columns.applicable * turned + (1.0 - columns.applicable) * means


def weighted_mean(columns: RubricColumns, offsets: NDArray[np.int64]) -> Floats:
    """Return the default rule for each response, from 0 to 1; NaN without anything applicable."""
    known = ~np.isnan(columns.values)
    shares = np.where(known, np.abs(columns.weights) * columns.applicable, 0.0)
    turned = columns.turned
    total, share = (
        sum_rows(each, offsets) for each in (shares * np.where(known, turned, 0.0), shares)
    )
    return _ratio(total, share)


def points(columns: RubricColumns, offsets: NDArray[np.int64]) -> Floats:
    """Return weight times value over the sum of positive weights; NaN without a positive weight.

    It may be negative.
    """
    known = ~np.isnan(columns.values)
    shares = np.where(known, columns.weights * columns.applicable, 0.0)
    total = sum_rows(shares * np.where(known, columns.values, 0.0), offsets)
    return _ratio(total, sum_rows(np.maximum(shares, 0.0), offsets))


def _ratio(total: Floats, share: Floats) -> Floats:
    none = np.full(len(total), np.nan)
    found: Floats = np.divide(total, share, out=none, where=share > 0)
    return found


class PointsScorer(MeanScorer):
    """HealthBench's rule: points earned over the points that could be earned, on the scale.

    A response may score below the scale; means of candidates are clipped to it.

    >>> columns = RubricColumns(np.array([1.0, 1.0]), np.array([5.0, -2.0]), np.ones(2))
    >>> table = AnswerTable(["q"], ["c"], np.array([1.0, 0.0]), np.array([0, 2]), rubric=columns)
    >>> PointsScorer((0.0, 1.0)).predict(table)
    array([0.6])
    """

    def _means(self, answers: AnswerTable) -> Floats:
        columns = answers.rubric
        if columns is None:
            columns = RubricColumns.plain(answers.p_yes)
        return points(columns, answers.offsets)


@dataclass(frozen=True, eq=False)
class AnswerBounds:
    """Proven bounds of values and applicability, in the layout of `RubricColumns`."""

    value_low: Floats
    value_high: Floats
    applicable_low: Floats
    applicable_high: Floats

    @classmethod
    def of(
        cls, columns: RubricColumns, low: Floats, high: Floats, na_low: Floats, na_high: Floats
    ) -> AnswerBounds:
        """Return the bounds in a ledger; an exact figure is its own bound."""
        return cls(
            np.where(np.isnan(low), columns.values, low),
            np.where(np.isnan(high), columns.values, high),
            np.where(np.isnan(na_high), columns.applicable, 1.0 - na_high),
            np.where(np.isnan(na_low), columns.applicable, 1.0 - na_low),
        )


def score_bounds(
    rule: str, columns: RubricColumns, bounds: AnswerBounds, offsets: NDArray[np.int64]
) -> tuple[Floats, Floats]:
    """Return the smallest and largest score, from 0 to 1, that the bounds of all answers allow.

    They are the extremes of the whole ratio: value and applicability of every answer vary at once.
    Missing answers are left out. NaN if no allowed score is defined. A score of the rule `points`
    has no lowest value if all positive items may turn out not to apply while a penalty does.
    """
    low, high = np.full((2, len(offsets) - 1), np.nan)
    for row, (start, stop) in enumerate(pairwise(offsets)):
        known = start + np.flatnonzero(~np.isnan(columns.values[start:stop]))
        if known.size:
            weights, ends = columns.weights[known], _cut(bounds, known)
            high[row] = _highest(*_parts(rule, weights, ends))
            low[row] = -_highest(*_parts(rule, weights, ends, lowest=True))
    return low, high


def _cut(bounds: AnswerBounds, at: NDArray[np.int64]) -> tuple[Floats, Floats, Floats, Floats]:
    return (
        bounds.value_low[at],
        bounds.value_high[at],
        bounds.applicable_low[at],
        bounds.applicable_high[at],
    )


_Parts = tuple[Floats, Floats, Floats, float]


def _parts(
    rule: str,
    weights: Floats,
    ends: tuple[Floats, Floats, Floats, Floats],
    *,
    lowest: bool = False,
) -> _Parts:
    """Return best values, and least and most shares of the denominator, and a constant.

    The score is the sum of share times value, plus the constant, over the sum of shares. With
    `lowest` they are those of the negated score, whose largest value is the smallest score.
    """
    low, high, least, most = ends
    penalty, sizes, sign = weights < 0, np.abs(weights), -1.0 if lowest else 1.0
    if rule != POINTS:
        best, kept, cost = np.where(penalty, 1.0 - low, high), np.ones(len(weights), bool), 0.0
        if lowest:
            best = np.where(penalty, 1.0 - high, low)
    else:
        # A penalty has no share of the denominator; at best it costs its least.
        best, kept = low if lowest else high, weights > 0
        costs = sizes * (most * high if lowest else least * low)
        cost = float(costs[penalty].sum())
    return sign * best[kept], (sizes * least)[kept], (sizes * most)[kept], -sign * cost


def _highest(values: Floats, least: Floats, most: Floats, constant: float) -> float:
    """Return the largest ratio: shares of the largest values are at their most, others least.

    A fraction of two linear functions has its extremes where the shares above some threshold are
    at one end and those below at the other, so trying every threshold is exact. With a positive
    constant the ratio has no limit if all shares may come near zero.
    """
    if constant > 0 and least.sum() == 0 < most.sum():
        return np.inf
    order = np.argsort(-values, kind="stable")
    values, least, most = values[order], least[order], most[order]
    best = np.nan
    for cut in range(len(values) + 1):
        shares = np.concatenate([most[:cut], least[cut:]])
        total = float(shares.sum())
        if total > 0:
            ratio = (float((shares * values).sum()) + constant) / total
            best = ratio if np.isnan(best) else max(best, ratio)
    return float(best)


def widen(low: Floats, high: Floats, scores: Floats) -> tuple[Floats, Floats]:
    """Return bounds that contain the scores; rounding may part them in the last bits."""
    return np.fmin(low, scores), np.fmax(high, scores)


def not_applicable(columns: RubricColumns | None) -> int:
    """Return the number of answers that are more likely "not applicable" than not."""
    if columns is None:
        return 0
    return int((~columns.applies & ~np.isnan(columns.values)).sum())


@dataclass(frozen=True, slots=True)
class GradedItem:
    """One item of a checklist with its answer."""

    text: str
    detail: ItemDetail
    answer: Answer

    @property
    def weight(self) -> float:
        """Weight in the score; negative for a penalty."""
        return self.detail.weight

    @property
    def value(self) -> float | None:
        """What the item contributes, from 0 to 1; a penalty counts one minus its answer."""
        p_yes = self.answer.p_yes
        return p_yes if p_yes is None or self.weight >= 0 else 1.0 - p_yes

    @property
    def title(self) -> str:
        """The text as shown to people, with weight and kind in brackets unless plain."""
        summary = self.detail.summary
        return f"{self.text} [{summary}]" if summary else self.text

    @property
    def shown_answer(self) -> str:
        """The answer as shown to people; that of a penalty is marked, because yes is worse.

        >>> GradedItem("Is it rude?", ItemDetail(-1.0), Answer(Status.OK, 0.9)).shown_answer
        'yes 0.90'
        """
        p_yes = self.answer.p_yes
        if p_yes is None:
            return str(self.answer.status)
        return f"yes {p_yes:.2f}" if self.weight < 0 and not self.detail.levels else f"{p_yes:.2f}"

    @property
    def not_applicable(self) -> bool:
        """Whether the item more likely does not apply."""
        return (self.answer.p_na or 0.0) > 0.5

    @property
    def passed(self) -> bool | None:
        """Whether the answer is more likely good than bad; None if the item is unanswered.

        An item that more likely does not apply is passed.
        """
        if self.not_applicable:
            return True
        return None if self.value is None else self.value >= 0.5


def score_of(
    items: Sequence[GradedItem],
) -> tuple[float | None, float | None, float | None]:
    """Return the score of a response from 0 to 1, and the bounds that its answers allow."""

    def column(name: str) -> Floats:
        return np.array([getattr(item.answer, name) for item in items], dtype=np.float64)

    na = column("p_na")
    columns = RubricColumns(
        column("p_yes"),
        np.array([item.weight for item in items]),
        np.where(np.isnan(na), 1.0, 1.0 - na),
    )
    offsets = np.array([0, len(items)])
    mean = weighted_mean(columns, offsets)
    if math.isnan(mean[0]):
        return None, None, None
    ends = [column(name) for name in ("p_low", "p_high", "na_low", "na_high")]
    if any(item.answer.status is Status.SAMPLED for item in items):
        return float(mean[0]), *sampled_bounds(columns, ends[0], ends[1], float(mean[0]))
    low, high = score_bounds("mean", columns, AnswerBounds.of(columns, *ends), offsets)
    low, high = widen(low, high, mean)
    return float(mean[0]), float(low[0]), float(high[0])


def sampled_bounds(
    columns: RubricColumns, low: Floats, high: Floats, mean: float
) -> tuple[float, float]:
    """Return the interval of a weighted mean of sampled answers.

    The items' own intervals are combined by squaring and adding (MOVER), because the samples of
    different items are independent; their worst cases do not happen at once.
    """
    sizes = np.where(np.isnan(columns.values), 0.0, np.abs(columns.weights) * columns.applicable)
    shares = sizes / sizes.sum()
    values = np.nan_to_num(columns.values)
    below, above = values - np.nan_to_num(low), np.nan_to_num(high) - values
    turned = columns.weights < 0
    down, up = np.where(turned, above, below), np.where(turned, below, above)
    least = mean - math.sqrt(float(((shares * down) ** 2).sum()))
    most = mean + math.sqrt(float(((shares * up) ** 2).sum()))
    return max(0.0, least), min(1.0, most)
