"""Length bias and self-preference of a judge, measured against reference data within queries."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np

from rocketeval.arrays import Bools, Floats, Places
from rocketeval.audit.figures import find_voted
from rocketeval.config import RankingConfig
from rocketeval.grid import ScoreGrid, compare, vote_outcomes
from rocketeval.records import Interval, Vote
from rocketeval.stats.bootstrap import Resampling, renumbered, sum_draws, without_zero_width
from rocketeval.stats.correlation import spearman_by_row

FEWEST_RESPONSES = 3
"""Minimum number of responses to a query for a correlation."""
CORRELATION, DIFFERENCE = (-1.0, 1.0), (-2.0, 2.0)
"""Ends of a correlation, and of the difference of two."""


@dataclass(frozen=True, slots=True)
class LengthBias:
    """Correlation of scores with response length, compared with that of labels and votes."""

    scores: Interval | None
    """Mean over queries of the Spearman correlation of score and length; None without queries."""
    gold: Interval | None
    """The same for label and length, on responses that also have scores."""
    scores_with_gold: Interval | None
    """The same for score and length, on the responses of `gold`."""
    excess: Interval | None
    """`scores_with_gold` minus `gold`, query by query."""
    lost_to_longer: Interval | None
    """Share of lost votes that went to the longer response. Below 0.5, the judge overrates length;
    above, it underrates length."""
    queries: int
    """Queries of `scores`."""
    gold_queries: int
    """Queries of `gold`, `scores_with_gold` and `excess`."""
    left_out: int
    """Queries with fewer than three scored responses, or with identical scores or lengths."""
    lost: int
    """Votes whose loser has the higher score, for responses of different length."""


def length_bias(
    grid: ScoreGrid,
    lengths: ScoreGrid,
    gold: Floats | None = None,
    votes: Sequence[Vote] = (),
    *,
    bootstrap: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> LengthBias:
    """Correlate scores with lengths (`figures.length_grid`).

    `gold` has the layout of the scores, with NaN for missing labels.
    """
    refuse_other_shape(grid, lengths.scores)
    resampling = Resampling(bootstrap, seed, level)
    plain = spearman_by_row(grid.scores, lengths.scores)
    of_gold, of_scores = np.zeros(0), np.zeros(0)
    clusters = grid.places()
    both = np.zeros(len(clusters), bool)
    if gold is not None:
        refuse_other_shape(grid, gold)
        of_gold = spearman_by_row(np.where(np.isnan(grid.scores), np.nan, gold), lengths.scores)
        of_scores = spearman_by_row(np.where(np.isnan(gold), np.nan, grid.scores), lengths.scores)
        both = ~np.isnan(of_gold - of_scores)
        of_gold, of_scores = of_gold[both], of_scores[both]
    known = plain[~np.isnan(plain)]
    every, labeled = (renumbered(clusters[rows]) for rows in (~np.isnan(plain), both))
    longer, lost_on = _lost_votes(grid, lengths, votes)
    return LengthBias(
        scores=resampling.mean(known, every, CORRELATION),
        gold=resampling.mean(of_gold, labeled, CORRELATION),
        scores_with_gold=resampling.mean(of_scores, labeled, CORRELATION),
        excess=resampling.mean(of_scores - of_gold, labeled, DIFFERENCE),
        lost_to_longer=resampling.share(longer, lost_on),
        queries=len(known),
        gold_queries=len(of_scores),
        left_out=len(plain) - len(known),
        lost=len(longer),
    )


def _lost_votes(
    grid: ScoreGrid, lengths: ScoreGrid, votes: Sequence[Vote]
) -> tuple[Floats, Places]:
    """Return, per vote that the scores lost, whether the longer response won, and its query."""
    known, row, a, b = find_voted(grid, votes)
    voted = vote_outcomes(known)
    scored = compare(grid.scores[row, a], grid.scores[row, b], 0.0)
    longer = compare(lengths.scores[row, a], lengths.scores[row, b], 0.0)
    lost = (voted * scored == -1) & (longer != 0)
    return (voted[lost] == longer[lost]).astype(np.float64), renumbered(grid.places()[row[lost]])


def refuse_other_shape(grid: ScoreGrid, table: Floats) -> None:
    """Raise ValueError if the table does not have the shape of the scores."""
    if table.shape != grid.scores.shape:
        raise ValueError(f"table shape {table.shape} differs from score shape {grid.scores.shape}")


NO_OTHERS = "it takes candidates of the judge's family and of other families"
NO_QUERY = "no query has differing scores and labels for the family and for others"

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class SelfPreference:
    """How much higher a judge scores its own family than labels do."""

    preference: Interval | None
    """Score minus label, standardized within the query, averaged over the family minus the average
    over the others; None without a usable query. A judge that hardly follows the labels scores all
    alike, so a family with the lowest labels looks preferred."""
    at_equal_gold: Interval | None
    """Score of the family minus that of the others at equal labels, by regression within queries;
    None if the labels alone separate the two. Noisy labels favor a family with the highest labels.
    A preference is significant if both figures are, as long as labels are less noisy than the
    judge."""
    family: tuple[str, ...]
    """Candidates of the judge's family, sorted."""
    queries: int
    left_out: int
    """Queries without scores and labels on both sides, or with identical scores or labels."""
    reason: str | None
    """The reason for missing figures, if any."""


def self_preference(
    grid: ScoreGrid,
    gold: Floats,
    family: AbstractSet[str],
    *,
    bootstrap: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> SelfPreference:
    """Compare score minus label between the judge's family and other candidates.

    `gold` has the layout of the scores, with NaN for missing labels.
    """
    refuse_other_shape(grid, gold)
    own = np.array([candidate in family for candidate in grid.candidates], dtype=bool)
    named = tuple(sorted(family & set(grid.candidates)))
    both = ~(np.isnan(grid.scores) | np.isnan(gold))
    scored, labelled = (_standard(np.where(both, each, np.nan)) for each in (grid.scores, gold))
    surplus = scored - labelled
    gaps = _mean_by_row(surplus[:, own]) - _mean_by_row(surplus[:, ~own])
    usable = ~np.isnan(gaps)
    known, resampling = gaps[usable], Resampling(bootstrap, seed, level)
    places = renumbered(grid.places()[usable])
    preference, reason = resampling.mean(known, places), None
    if not named or own.all():
        reason = NO_OTHERS
    elif not len(known):
        reason = NO_QUERY
    return SelfPreference(
        preference=None if preference is None else without_zero_width(preference),
        at_equal_gold=_at_equal_gold(scored[usable], labelled[usable], own, places, resampling),
        family=named,
        queries=len(known),
        left_out=len(gaps) - len(known),
        reason=reason,
    )


def _at_equal_gold(
    scored: Floats, labelled: Floats, own: Bools, places: Places, resampling: Resampling
) -> Interval | None:
    """Return the score difference between the family and others at equal labels."""
    if not len(scored):
        return None
    here = ~np.isnan(scored)
    side = np.where(here, own.astype(np.float64), np.nan)
    side -= _mean_by_row(side)[:, None]
    x, y, z = (np.where(here, each, 0.0) for each in (scored, labelled, side))
    sums = np.stack([(a * b).sum(axis=1) for a, b in ((x, z), (x, y), (y, z), (y, y), (z, z))], 1)
    value = _slope(sums.sum(axis=0, keepdims=True))[0]
    if np.isnan(value):
        return None
    parts = [np.bincount(places, column) for column in sums.T]
    clusters: Floats = np.stack(parts, axis=1).astype(np.float64)
    draws = _slope(sum_draws(clusters, resampling.times, resampling.seed))
    return resampling.sure(float(value), draws, len(clusters))


def _slope(sums: Floats) -> Floats:
    """Return the family's coefficient in a regression on label and family; NaN if collinear."""
    xz, xy, yz, yy, zz = sums.T
    apart = zz * yy - yz * yz
    slopes = np.full(len(sums), np.nan)
    np.divide(xz * yy - xy * yz, apart, out=slopes, where=apart > _ROUNDING * zz * yy)
    return slopes


def _standard(values: Floats) -> Floats:
    """Standardize each row; NaN for a row without spread."""
    centred = values - _mean_by_row(values)[:, None]
    spread = np.sqrt(_mean_by_row(centred**2))[:, None]
    highest = np.where(np.isnan(values), -np.inf, values).max(axis=1, initial=-np.inf)
    lowest = np.where(np.isnan(values), np.inf, values).min(axis=1, initial=np.inf)
    scaled = np.full(values.shape, np.nan)
    np.divide(centred, spread, out=scaled, where=(highest > lowest)[:, None] & (spread > 0.0))
    return scaled


def _mean_by_row(values: Floats) -> Floats:
    """Return the mean of each row's known values; NaN for an empty row."""
    present = ~np.isnan(values)
    counts = present.sum(axis=1)
    means = np.full(len(values), np.nan)
    np.divide(np.where(present, values, 0.0).sum(axis=1), counts, out=means, where=counts > 0)
    return means


@dataclass(frozen=True, slots=True)
class Bias:
    """Length bias and self-preference of a judge."""

    length: LengthBias
    own_family: SelfPreference | None
    """None if no candidate's name suggests the judge's family."""
    queries: int
    """Queries on which length bias was measured."""
    queries_skipped: int
    """Queries skipped in a run with very many responses."""


def find_bias(
    grid: ScoreGrid,
    lengths: ScoreGrid,
    looked_at: AbstractSet[str],
    labels: Floats | None,
    votes: Sequence[Vote],
    family: AbstractSet[str],
    config: RankingConfig,
) -> Bias:
    """Measure both biases; length bias (`figures.length_grid`) only on the queries `looked_at`.

    `labels` have the layout of the grid, with NaN for missing labels; `family` names the candidates
    of the judge's family.
    """
    settings = {"bootstrap": config.bootstrap, "seed": config.seed}
    rows = np.array([query in looked_at for query in grid.query_ids], dtype=bool)
    some, long = (_rows_of(each, rows) for each in (grid, lengths))
    gold = None if labels is None else labels[rows]
    return Bias(
        length=length_bias(some, long, gold, votes, **settings),
        own_family=_own_family(grid, labels, family, settings),
        queries=int(rows.sum()),
        queries_skipped=int((~rows).sum()),
    )


def _own_family(
    grid: ScoreGrid, labels: Floats | None, family: AbstractSet[str], settings: Mapping[str, int]
) -> SelfPreference | None:
    named = family & set(grid.candidates)
    if not named:
        return None
    gold = np.full(grid.scores.shape, np.nan) if labels is None else labels
    rows = np.isfinite(gold).sum(axis=1) > 0
    return self_preference(_rows_of(grid, rows), gold[rows], named, **settings)


def _rows_of(grid: ScoreGrid, rows: Bools) -> ScoreGrid:
    return grid.take(np.flatnonzero(rows).tolist(), range(len(grid.candidates)))


_FAMILIES = {
    "claude": "claude",
    "command": "command",
    "deepseek": "deepseek",
    "falcon": "falcon",
    "gemini": "gemini",
    "gemma": "gemma",
    "glm": "(?:chat)?glm",
    "gpt": "(?:chat)?gpt(?!4all|-j|-neo)|o[134]|davinci",
    "granite": "granite",
    "grok": "grok",
    "llama": "(?:code)?llama",
    "mistral": "mistral|mixtral|ministral|codestral",
    "olmo": "olmo",
    "phi": "phi",
    "qwen": "(?:code)?qwen|qwq",
    "smollm": "smollm",
    "yi": "yi",
}


def guess_family(judge: str, candidates: Iterable[str]) -> frozenset[str] | None:
    """Guess from names which candidates belong to the judge's family; None if none does.

    A fine-tuned model with a new name is not found. A distilled model belongs to every family in
    its name.

    >>> sorted(guess_family("Qwen/Qwen2.5-1.5B-Instruct", ["qwen2-72b", "QwQ-32B", "gpt-4o"]))
    ['QwQ-32B', 'qwen2-72b']
    >>> guess_family("ollama/my-tune", ["llama-3-8b"]) is None
    True
    """
    own = _families(judge)
    found = frozenset(candidate for candidate in candidates if _families(candidate) & own)
    return found or None


def _families(name: str) -> set[str]:
    own_name = name.lower().rsplit("/", 1)[-1]
    return {
        family
        for family, words in _FAMILIES.items()
        if re.search(rf"(?<![a-z0-9])(?:{words})(?![a-z])", own_name)
    }
