"""What the judge's answers show of each item: whether it tells responses apart, and rightly."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rocketeval.explain.items import NO_TO_ALL, YES_TO_ALL, why_dead
from rocketeval.explain.verdicts import REDUNDANT, item_verdicts
from rocketeval.lint.columns import paired_correlations, surely_negative
from rocketeval.lint.finding import Finding, make_finding
from rocketeval.records import Checklist
from rocketeval.scoring.answers import AnswerTable, QueryBlock

Floats = NDArray[np.float64]

UNSURE = 0.1
"""Mean distance of `p_yes` from a half below which the judge is unsure of an item."""
LOW_MASS = 0.5
"""An answer is weak when yes and no together have less probability than this,"""
WIDE = 0.2
"""or its proven bounds are wider than this, or it is missing."""
MANY_WEAK = 0.25
"""Share of weak answers from which the judge is unsure of an item."""
MOST_MISSING = 0.5
"""Share of missing answers from which an item counts as unanswered."""


@dataclass(frozen=True, eq=False)
class JudgedAnswers:
    """The answers of a run, with how sure each is; all in the layout of `table.p_yes`."""

    table: AnswerTable
    mass: Floats
    """Probability of yes and no together; NaN where it is not known."""
    width: Floats
    """Between the proven bounds; NaN where there are none."""


@dataclass(frozen=True, slots=True)
class ItemBehaviour:
    """The figures of one item over all responses to its query."""

    query_id: str
    item: int
    """Its number in the checklist, from 1."""
    responses: int
    answered: int
    mean: float | None
    """Mean `p_yes`."""
    spread: float | None
    """Standard deviation of `p_yes`."""
    sureness: float | None
    """Mean distance of `p_yes` from a half: 0.5 is sure, 0 is a coin."""
    weak: float
    """Share of answers that are missing, of low mass, or between wide bounds."""
    discrimination: float | None
    """Correlation with the mean of the other items; None on few responses."""
    with_labels: float | None
    """Correlation with labels; None without enough labelled responses."""
    labelled: int
    """Responses with a label and an answer."""


def item_behaviours(
    answers: JudgedAnswers, checklists: Mapping[str, Checklist], labels: Floats
) -> Iterator[tuple[ItemBehaviour, list[Finding]]]:
    """Yield the figures of every item, and what is wrong with it.

    `labels` has one per response, NaN without one.
    """
    table = answers.table
    items = sum(len(checklist.items) for checklist in checklists.values())
    for block in table.blocks():
        checklist = checklists.get(block.query_id)
        # A query that nobody was judged on has answers to no item.
        if checklist is None or not block.p_yes.shape[1]:
            continue
        mass, width = (_laid_out(table, block, side) for side in (answers.mass, answers.width))
        yield from _of_block(block, mass, width, labels[block.rows], checklist, items)


def _of_block(
    block: QueryBlock,
    mass: Floats,
    width: Floats,
    labels: Floats,
    checklist: Checklist,
    all_items: int,
) -> Iterator[tuple[ItemBehaviour, list[Finding]]]:
    judged = ~np.isnan(block.p_yes).all(axis=1)
    p_yes, mass, width, labels = (each[judged] for each in (block.p_yes, mass, width, labels))
    known = ~np.isnan(p_yes)
    rest, (means, spreads) = _mean_of_other_items(p_yes), _moments(p_yes)
    discrimination, compared = paired_correlations(p_yes, rest)
    gold = np.broadcast_to(labels[:, None], p_yes.shape)
    with_labels, labelled = paired_correlations(p_yes, gold)
    distance, _ = _moments(np.abs(p_yes - 0.5))
    weak = (~known | (mass < LOW_MASS) | (width > WIDE)).sum(axis=0) / max(1, len(p_yes))
    verdicts = item_verdicts(p_yes, _row_means(p_yes), None)
    for place in range(min(p_yes.shape[1], len(checklist.items))):
        own = ItemBehaviour(
            query_id=block.query_id,
            item=place + 1,
            responses=len(p_yes),
            answered=int(known[:, place].sum()),
            mean=_number(means[place]),
            spread=_number(spreads[place]),
            sureness=_number(distance[place]),
            weak=float(weak[place]),
            discrimination=_number(discrimination[place]),
            with_labels=_number(with_labels[place]),
            labelled=int(labelled[place]),
        )
        dead = why_dead(p_yes[known[:, place], place])
        again = verdicts[place].why if verdicts[place].verdict == REDUNDANT else None
        reasons = _reasons(own, dead, again, int(compared[place]), all_items)
        text = checklist.items[place]
        yield (
            own,
            [make_finding(block.query_id, place + 1, text, kind, why) for kind, why in reasons],
        )


def _reasons(
    own: ItemBehaviour, dead: str | None, again: str | None, compared: int, items: int
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
            f"The judge's answers lie {own.sureness:.2f} from a half on average: it guesses. Ask "
            "for something it can see in the response.",
        )
    elif own.weak >= MANY_WEAK:
        yield (
            "unsure",
            f"{own.weak:.0%} of the answers are missing, hardly yes or no at all, or between wide "
            "bounds; ask it more plainly.",
        )
    if own.discrimination is not None and surely_negative(own.discrimination, compared, items):
        yield (
            "backwards",
            f"Responses that get yes here get no elsewhere (correlation with the other items "
            f"{own.discrimination:.2f}); see whether yes is the better answer.",
        )
    if own.with_labels is not None and surely_negative(own.with_labels, own.labelled, items):
        yield (
            "against_labels",
            f"Responses that get yes here have lower labels (correlation {own.with_labels:.2f} "
            f"over {own.labelled}); see whether yes is the better answer.",
        )


def _dead(dead: str, own: ItemBehaviour) -> tuple[str, str]:
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


def _laid_out(table: AnswerTable, block: QueryBlock, side: Floats) -> Floats:
    """Return a column in the shape of the block's matrix; NaN where there is no answer."""
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


def _row_means(p_yes: Floats) -> Floats:
    known = ~np.isnan(p_yes)
    means: Floats = np.where(known, p_yes, 0.0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    return means


def _moments(values: Floats) -> tuple[Floats, Floats]:
    """Return each column's mean and standard deviation without gaps; NaN for an empty one."""
    known = ~np.isnan(values)
    count = known.sum(axis=0)
    least = np.maximum(count, 1)
    mean = np.where(known, values, 0.0).sum(axis=0) / least
    square = np.where(known, (values - mean) ** 2, 0.0).sum(axis=0) / least
    return np.where(count > 0, mean, np.nan), np.where(count > 0, np.sqrt(square), np.nan)


def _number(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
