"""Checks of items by the judge's answers, and the ranking without flagged items."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rocketeval.arrays import Floats
from rocketeval.explain.items import (
    NO_TO_ALL,
    REDUNDANT,
    YES_TO_ALL,
    item_verdicts,
    number_or_none,
    why_dead,
)
from rocketeval.lint.findings import ItemFinding, make_finding
from rocketeval.records import Checklist
from rocketeval.scoring.answers import AnswerTable, QueryRows
from rocketeval.stats.correlation import (
    paired_correlations,
    permutation_skewness,
    surely_negative,
)

UNSURE = 0.1
"""The judge is unsure of an item if the mean distance of `p_yes` from 0.5 is below this."""
LOW_MASS = 0.5
"""An answer is weak if yes and no together have less probability than this,"""
WIDE = 0.2
"""or its proven bounds are wider than this, or it is missing."""
MANY_WEAK = 0.25
"""The judge is unsure of an item with at least this share of weak answers."""
MOST_MISSING = 0.5
"""An item with more than this share of missing answers is unanswered."""


@dataclass(frozen=True, eq=False)
class JudgedAnswers:
    """The answers of a run with their mass and bounds, in the layout of `table.p_yes`."""

    table: AnswerTable
    mass: Floats
    """Probability of yes and no together; NaN if unknown."""
    width: Floats
    """Distance between the proven bounds; NaN if unknown."""


@dataclass(frozen=True, slots=True)
class ItemBehavior:
    """The figures of one item over all responses to its query, from the judge's own answers."""

    query_id: str
    item: int
    """Item number in the checklist, from 1."""
    responses: int
    answered: int
    mean: float | None
    """Mean `p_yes`."""
    spread: float | None
    """Standard deviation of `p_yes`."""
    sureness: float | None
    """Mean distance of `p_yes` from 0.5: 0.5 is certain, 0 is a coin flip."""
    weak: float
    """Share of answers that are missing, have low mass or wide bounds."""
    discrimination: float | None
    """Correlation of yes with the mean of the other items, where 1 is always better (a penalty is
    turned around); None with few responses."""
    with_labels: float | None
    """Correlation of yes with labels; None with too few labeled responses."""
    labelled: int
    """Responses with a label and an answer."""


def item_behaviors(
    answers: JudgedAnswers, checklists: Mapping[str, Checklist], labels: Floats
) -> Iterator[tuple[ItemBehavior, list[ItemFinding]]]:
    """Yield the figures and findings of each item.

    `labels` has one value per response, NaN if missing.
    """
    table = answers.table
    items = sum(len(checklist.items) for checklist in checklists.values())
    for block in table.blocks():
        checklist = checklists.get(block.query_id)
        # A query without judged responses has no answers.
        if checklist is None or not block.p_yes.shape[1]:
            continue
        sides = (answers.mass, answers.width, table.shown)
        mass, width, given = (_laid_out(table, block, side) for side in sides)
        yield from _of_block(block, mass, width, given, labels[block.rows], checklist, items)


def _of_block(
    block: QueryRows,
    mass: Floats,
    width: Floats,
    given: Floats,
    labels: Floats,
    checklist: Checklist,
    all_items: int,
) -> Iterator[tuple[ItemBehavior, list[ItemFinding]]]:
    judged = ~np.isnan(block.p_yes).all(axis=1)
    sides = (block.p_yes, mass, width, given, labels)
    p_yes, mass, width, given, labels = (each[judged] for each in sides)
    known = ~np.isnan(p_yes)
    rest, (means, spreads) = _mean_of_other_items(p_yes), _moments(given)
    gold = np.broadcast_to(labels[:, None], p_yes.shape)
    (with_rest, compared), (with_gold, labelled) = (
        paired_correlations(p_yes, side) for side in (rest, gold)
    )
    # A penalty counts turned around, but is described by the judge's own answers.
    discrimination, with_labels = (paired_correlations(given, side)[0] for side in (rest, gold))
    skewed = permutation_skewness(p_yes, rest), permutation_skewness(p_yes, gold)
    distance, _ = _moments(np.abs(given - 0.5))
    weak = (~known | (mass < LOW_MASS) | (width > WIDE)).sum(axis=0) / max(1, len(p_yes))
    verdicts = item_verdicts(
        given, np.nan_to_num(p_yes).sum(axis=1) / np.maximum(known.sum(axis=1), 1), None
    )
    for place in range(min(p_yes.shape[1], len(checklist.items))):
        own = ItemBehavior(
            query_id=block.query_id,
            item=place + 1,
            responses=len(p_yes),
            answered=int(known[:, place].sum()),
            mean=number_or_none(means[place]),
            spread=number_or_none(spreads[place]),
            sureness=number_or_none(distance[place]),
            weak=float(weak[place]),
            discrimination=number_or_none(discrimination[place]),
            with_labels=number_or_none(with_labels[place]),
            labelled=int(labelled[place]),
        )
        detail = checklist.detail(place)
        dead = why_dead(given[~np.isnan(given[:, place]), place])
        again = verdicts[place].why if verdicts[place].verdict == REDUNDANT else None
        backwards, against = (
            not np.isnan(value[place])
            and surely_negative(value[place], int(count[place]), all_items, skew[place])
            for value, count, skew in (
                (with_rest, compared, skewed[0]),
                (with_gold, labelled, skewed[1]),
            )
        )
        reasons = _reasons(
            own, dead, again, backwards=backwards, against=against, penalty=detail.weight < 0
        )
        if detail.check is not None:
            reasons = _check_reasons(dead, own)
        text = checklist.items[place]
        yield (
            own,
            [make_finding(block.query_id, place + 1, text, kind, why) for kind, why in reasons],
        )


def _reasons(
    own: ItemBehavior,
    dead: str | None,
    again: str | None,
    *,
    backwards: bool,
    against: bool,
    penalty: bool,
) -> Iterator[tuple[str, str]]:
    missing = 1.0 - own.answered / max(1, own.responses)
    if own.responses and missing > MOST_MISSING:
        yield (
            "unanswered",
            f"The judge answered it for {own.answered} of {own.responses} responses; ask it more "
            "plainly, or use another judge.",
        )
        return
    if dead is not None:
        yield _dead(dead, own)
        return
    if again is not None:
        yield "redundant", f"It {again}, and counts twice; drop it, or ask what is different."
    if own.responses >= 2 and own.sureness is not None and own.sureness < UNSURE:
        yield (
            "unsure",
            f"On average, p_yes is only {own.sureness:.2f} away from 0.5: the judge is guessing. "
            "Ask for something it can see in the response.",
        )
    elif own.weak >= MANY_WEAK:
        yield (
            "unsure",
            f"{own.weak:.0%} of the answers are missing, hardly yes or no at all, or between wide "
            "bounds; ask it more plainly.",
        )
    if penalty:
        who, other, level = "yes here, which costs points,", "yes elsewhere, too", "higher"
        see = "see whether it is a penalty"
    else:
        who, other, level = "yes here", "no elsewhere", "lower"
        see = "see whether yes is the better answer"
    if backwards:
        yield (
            "backwards",
            f"Responses that get {who} get {other} (correlation with the other items "
            f"{own.discrimination:.2f}); {see}.",
        )
    if against:
        yield (
            "against_labels",
            f"Responses that get {who} have {level} labels (correlation {own.with_labels:.2f} "
            f"over {own.labelled}); {see}.",
        )


def _check_reasons(dead: str | None, own: ItemBehavior) -> Iterator[tuple[str, str]]:
    """Yield what a check's results show: one that always has the same result says nothing."""
    every = f"all {own.answered} responses"
    if dead == YES_TO_ALL:
        yield "check_always", f"The check passes for {every}; make it stricter, or drop it."
    elif dead == NO_TO_ALL:
        yield "check_never", f"The check fails for {every}; see whether its arguments are right."
    missing = own.responses - own.answered
    if missing:
        yield (
            "check_failed",
            f"The check has no result for {missing} of {own.responses} responses: it raised an "
            "error or could not decide.",
        )


def _dead(dead: str, own: ItemBehavior) -> tuple[str, str]:
    every = f"all {own.answered} responses"
    if dead == YES_TO_ALL:
        return "always_yes", f"The judge says yes to {every}; ask for more, or drop it."
    if dead == NO_TO_ALL:
        return "never_yes", f"The judge says no to {every}; ask for less, or drop it."
    return (
        "same_for_all",
        f"The judge gives {every} the same answer (about {own.mean:.2f}); ask for something in "
        "which responses differ, or drop it.",
    )


def _laid_out(table: AnswerTable, block: QueryRows, side: Floats) -> Floats:
    """Return a column in the shape of the block's matrix; NaN for missing answers."""
    start, stop = block.start, block.start + len(block.candidates)
    lengths = np.diff(table.offsets[start : stop + 1])
    shape = block.p_yes.shape
    flat = side[table.offsets[start] : table.offsets[stop]]
    if bool((lengths == shape[1]).all()):
        return flat.reshape(shape)
    laid_out = np.full(shape, np.nan)
    laid_out[np.arange(shape[1]) < lengths[:, None]] = flat
    return laid_out


def _mean_of_other_items(p_yes: Floats) -> Floats:
    known = ~np.isnan(p_yes)
    filled = np.where(known, p_yes, 0.0)
    others = known.sum(axis=1, keepdims=True) - known
    totals = filled.sum(axis=1, keepdims=True) - filled
    none = np.full(p_yes.shape, np.nan)
    means: Floats = np.divide(totals, others, out=none, where=others > 0)
    return means


def _moments(values: Floats) -> tuple[Floats, Floats]:
    """Return each column's mean and standard deviation, ignoring NaN; NaN for an empty column."""
    known = ~np.isnan(values)
    count = known.sum(axis=0)
    least = np.maximum(count, 1)
    mean = np.where(known, values, 0.0).sum(axis=0) / least
    square = np.where(known, (values - mean) ** 2, 0.0).sum(axis=0) / least
    return np.where(count > 0, mean, np.nan), np.where(count > 0, np.sqrt(square), np.nan)


Ints = NDArray[np.intp]
Item = tuple[str, int]
"""Query id and number of the item, from 1."""

_STILL = 1e-12
"""Weights that sum to less are zero but for rounding."""
_ROUNDING = 10
"""Decimals of mean scores; smaller differences are ties."""


@dataclass(frozen=True, slots=True)
class ItemInfluence:
    """Effect of leaving one item out."""

    query_id: str
    item: int
    shift: float
    """Largest change of the gap between two candidates' mean scores, on the score scale."""
    places: int
    """Largest number of places that a candidate moves."""


@dataclass(frozen=True, slots=True)
class RankingWithout:
    """The ranking by mean score without some items, compared with the full ranking."""

    dropped: int
    kept_after_all: int
    """Items kept because their query has no other items."""
    candidates: int
    swapped_pairs: int
    """Pairs of candidates that swap places."""
    pairs: int
    tau: float | None
    """Kendall's tau of the two rankings; None with fewer than two candidates."""
    largest_move: int
    """Largest number of places that a candidate moves."""
    moved: str | None
    """The candidate that moves most; None if none moves."""


@dataclass(frozen=True, eq=False)
class MeanScores:
    """Mean answers of responses, summed by candidate."""

    names: tuple[str, ...]
    columns: Ints
    """Candidate index of each response."""
    totals: Floats
    counts: Floats
    """Number of responses with an answer, by candidate."""

    @classmethod
    def of(cls, table: AnswerTable) -> MeanScores:
        """Compute the means of known answers; responses without answers are skipped."""
        names, columns = np.unique(np.asarray(table.candidates, dtype=object), return_inverse=True)
        means = response_means(table)
        known = ~np.isnan(means)
        size = len(names)
        return cls(
            tuple(names.tolist()),
            columns.astype(np.intp),
            np.bincount(columns, np.where(known, means, 0.0), size).astype(np.float64),
            np.bincount(columns, known, size).astype(np.float64),
        )

    @property
    def means(self) -> Floats:
        """Return each candidate's mean; NaN without answers."""
        none = np.full(len(self.names), np.nan)
        means: Floats = np.divide(self.totals, self.counts, out=none, where=self.counts > 0)
        return means


def response_means(table: AnswerTable) -> Floats:
    """Return the weighted mean answer of each response; NaN without answers."""
    weights = np.where(np.isnan(table.p_yes), 0.0, table.item_weights)
    rows = np.repeat(np.arange(len(table)), table.items)
    totals = np.bincount(rows, weights * np.nan_to_num(table.p_yes, nan=0.0), len(table))
    counts = np.bincount(rows, weights, len(table))
    none = np.full(len(table), np.nan)
    means: Floats = np.divide(totals, counts, out=none, where=counts > 0)
    return means


def item_influences(table: AnswerTable, scale: tuple[float, float]) -> Iterator[ItemInfluence]:
    """Yield the effect of leaving out each item; a query's only item is skipped."""
    scores = MeanScores.of(table)
    before = scores.means
    places = _places(before)
    least = np.maximum(scores.counts, 1.0)
    for block in table.blocks():
        items = block.p_yes.shape[1]
        if items < 2:
            continue
        change = _change_without_each(block.p_yes, block.weights)
        columns = scores.columns[block.rows]
        moves = np.zeros((items, len(scores.names)))
        moves[:, columns] = (change / least[columns, None]).T
        after = _places(before + moves)
        shifts = (scale[1] - scale[0]) * np.ptp(moves, axis=1)
        moved = np.abs(after - places).max(axis=1)
        for place in range(items):
            yield ItemInfluence(block.query_id, place + 1, float(shifts[place]), int(moved[place]))


def drop_items(table: AnswerTable, dropped: Collection[Item]) -> tuple[AnswerTable, int]:
    """Return the answers without some items, and how many were kept as their query's only ones.

    >>> table = AnswerTable(["q"], ["c"], np.array([1.0, 0.5]), np.array([0, 2]))
    >>> drop_items(table, {("q", 2)})[0].p_yes.tolist(), drop_items(table, {("q", 1), ("q", 2)})[1]
    ([1.0, nan], 2)
    """
    by_query: dict[str, list[int]] = {}
    for query_id, item in dropped:
        by_query.setdefault(query_id, []).append(item - 1)
    p_yes = table.p_yes.copy()
    kept = 0
    for block in table.blocks():
        own = np.array(by_query.get(block.query_id, ()), dtype=np.intp)
        if not own.size:
            continue
        if own.size >= block.p_yes.shape[1]:
            kept += own.size
            continue
        starts, lengths = table.offsets[block.rows], table.items[block.rows]
        there = own < lengths[:, None]
        p_yes[(starts[:, None] + own)[there]] = np.nan
    return replace(table, p_yes=p_yes), kept


def ranking_without(table: AnswerTable, dropped: Collection[Item]) -> RankingWithout:
    """Return how the ranking by mean score changes when items are dropped."""
    fewer, kept = drop_items(table, dropped)
    names = MeanScores.of(table).names
    before, after = (np.round(MeanScores.of(each).means, _ROUNDING) for each in (table, fewer))
    both = ~(np.isnan(before) | np.isnan(after))
    before, after = before[both], after[both]
    ranked = [name for name, there in zip(names, both.tolist(), strict=True) if there]
    first, second = (np.sign(side[:, None] - side[None, :]) for side in (before, after))
    pairs = len(ranked) * (len(ranked) - 1) // 2
    swapped = int((first * second < 0).sum()) // 2
    moves = np.abs(_places(before) - _places(after))
    largest = int(moves.max(initial=0))
    return RankingWithout(
        dropped=len(dropped) - kept,
        kept_after_all=kept,
        candidates=len(ranked),
        swapped_pairs=swapped,
        pairs=pairs,
        tau=float((first * second).sum() / 2 / pairs) if pairs else None,
        largest_move=largest,
        moved=ranked[int(moves.argmax())] if largest else None,
    )


def _change_without_each(p_yes: Floats, weights: Floats | None = None) -> Floats:
    """Return the change of each response's mean without each item; 0 for missing answers."""
    known = ~np.isnan(p_yes)
    shares = known.astype(np.float64) if weights is None else known * weights
    filled = shares * np.where(known, p_yes, 0.0)
    share = shares.sum(axis=1, keepdims=True)
    total = filled.sum(axis=1, keepdims=True)
    mean = np.divide(total, share, out=np.zeros_like(total), where=share > 0)
    left = share - shares
    without = np.divide(
        total - filled, left, out=np.broadcast_to(mean, p_yes.shape).copy(), where=left > _STILL
    )
    return np.where(known, without - mean, 0.0)


def _places(means: Floats) -> NDArray[np.intp]:
    """Return each candidate's place in the last axis, best first; ties keep their order."""
    order = np.argsort(
        -np.round(np.nan_to_num(means, nan=-np.inf), _ROUNDING), axis=-1, kind="stable"
    )
    return np.argsort(order, axis=-1, kind="stable")
