"""What moves scores beside quality: the length of a response, and whose response it is.

How far scores follow the length of responses, beside how far gold does.
Whether a judge scores candidates of its own family higher than gold does.
Whose model a name tells of.
"""

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
from rocketeval.stats.bootstrap import Resampling, renumbered, sum_draws
from rocketeval.stats.correlation import spearman_by_row

FEWEST_RESPONSES = 3
"""Responses to a query below which it says nothing about a correlation."""


@dataclass(frozen=True, slots=True)
class LengthBias:
    """How far scores follow the length of responses."""

    scores: Interval | None
    """Mean over queries of Spearman's correlation of score and length; None without queries."""
    gold: Interval | None
    """The same of gold and length, on queries and responses that have scores too."""
    scores_with_gold: Interval | None
    """The same of score and length, on the queries and responses of `gold`."""
    excess: Interval | None
    """What scores follow length beyond what gold does, on the queries of `gold`."""
    lost_to_longer: Interval | None
    """Of the votes lost, the share that went to the longer response. Below a half, the judge errs
    towards length; above, against it."""
    queries: int
    """Queries of `scores`."""
    gold_queries: int
    """Queries of `gold`, `scores_with_gold` and `excess`."""
    left_out: int
    """Queries with fewer than three scored responses, or with all scores or lengths the same."""
    lost: int
    """Votes whose loser has the higher score, the two responses not being equally long."""


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
    """Correlate scores with lengths, which are laid out alike (`baselines.length_grid`).

    `gold` is laid out like the scores, with NaN where there is none.
    """
    refuse_other_shape(grid, lengths.scores)
    resampling = Resampling(bootstrap, seed, level)
    plain = spearman_by_row(grid.scores, lengths.scores)
    of_gold, beside = np.zeros(0), np.zeros(0)
    if gold is not None:
        refuse_other_shape(grid, gold)
        of_gold = spearman_by_row(np.where(np.isnan(grid.scores), np.nan, gold), lengths.scores)
        beside = spearman_by_row(np.where(np.isnan(gold), np.nan, grid.scores), lengths.scores)
        both = ~np.isnan(of_gold - beside)
        of_gold, beside = of_gold[both], beside[both]
    known = plain[~np.isnan(plain)]
    longer, lost_on = _lost_votes(grid, lengths, votes)
    return LengthBias(
        scores=resampling.mean(known, np.arange(len(known))),
        gold=resampling.mean(of_gold, np.arange(len(of_gold))),
        scores_with_gold=resampling.mean(beside, np.arange(len(beside))),
        excess=resampling.mean(beside - of_gold, np.arange(len(beside))),
        lost_to_longer=resampling.share(longer, lost_on),
        queries=len(known),
        gold_queries=len(beside),
        left_out=len(plain) - len(known),
        lost=len(longer),
    )


def _lost_votes(
    grid: ScoreGrid, lengths: ScoreGrid, votes: Sequence[Vote]
) -> tuple[Floats, Places]:
    """Of the votes against the scores, whether the longer response won, and on which query."""
    known, row, a, b = find_voted(grid, votes)
    voted = vote_outcomes(known)
    scored = compare(grid.scores[row, a], grid.scores[row, b], 0.0)
    longer = compare(lengths.scores[row, a], lengths.scores[row, b], 0.0)
    lost = (voted * scored == -1) & (longer != 0)
    return (voted[lost] == longer[lost]).astype(np.float64), renumbered(row[lost])


def refuse_other_shape(grid: ScoreGrid, table: Floats) -> None:
    """ValueError for a table that is not laid out like the scores."""
    if table.shape != grid.scores.shape:
        raise ValueError(f"a table of shape {table.shape} beside scores of {grid.scores.shape}")


NO_OTHERS = "there must be candidates of the judge's family and others"
NO_QUERY = "no query has differing scores and gold of the family and of others"

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class SelfPreference:
    """How much better a judge treats its own family than gold does."""

    preference: Interval | None
    """Score minus gold, each in standard deviations within the query, of the family minus that of
    the others; None if no query tells. A judge that hardly follows gold gives all the same, so that
    a family which gold puts last looks preferred."""
    at_equal_gold: Interval | None
    """Score of the family minus that of the others where gold is the same, by regression within
    queries; None if gold alone tells the two apart. Gold that is itself unsure favours a family
    which it puts first. A preference is sure where both figures say so, as long as gold is surer
    than the judge."""
    family: tuple[str, ...]
    """Candidates taken for the judge's family, sorted."""
    queries: int
    left_out: int
    """Queries without scores and gold of both kinds, or with all scores or gold the same."""
    reason: str | None
    """Why there is no figure, if there is none."""


def self_preference(
    grid: ScoreGrid,
    gold: Floats,
    family: AbstractSet[str],
    *,
    bootstrap: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> SelfPreference:
    """Compare what the judge gives its own family beyond gold with what it gives others.

    `gold` is laid out like the scores, with NaN where there is none.
    """
    refuse_other_shape(grid, gold)
    own = np.array([candidate in family for candidate in grid.candidates], dtype=bool)
    named = tuple(sorted(family & set(grid.candidates)))
    both = ~(np.isnan(grid.scores) | np.isnan(gold))
    scored, labelled = (_standard(np.where(both, each, np.nan)) for each in (grid.scores, gold))
    surplus = scored - labelled
    gaps = _mean_by_row(surplus[:, own]) - _mean_by_row(surplus[:, ~own])
    told = ~np.isnan(gaps)
    known, resampling = gaps[told], Resampling(bootstrap, seed, level)
    reason = None
    if not named or own.all():
        reason = NO_OTHERS
    elif not len(known):
        reason = NO_QUERY
    return SelfPreference(
        preference=resampling.mean(known, np.arange(len(known))),
        at_equal_gold=_at_equal_gold(scored[told], labelled[told], own, resampling),
        family=named,
        queries=len(known),
        left_out=len(gaps) - len(known),
        reason=reason,
    )


def _at_equal_gold(
    scored: Floats, labelled: Floats, own: Bools, resampling: Resampling
) -> Interval | None:
    """What being of the family adds to the score of a response that has the same gold."""
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
    draws = _slope(sum_draws(sums, resampling.times, resampling.seed))
    return resampling.sure(float(value), draws, len(sums))


def _slope(sums: Floats) -> Floats:
    """Of a regression on gold and family, the family's part; NaN where gold tells the family."""
    xz, xy, yz, yy, zz = sums.T
    apart = zz * yy - yz * yz
    slopes = np.full(len(sums), np.nan)
    np.divide(xz * yy - xy * yz, apart, out=slopes, where=apart > _ROUNDING * zz * yy)
    return slopes


def _standard(values: Floats) -> Floats:
    """Each row's distances from its mean in standard deviations; NaN for a row without spread."""
    centred = values - _mean_by_row(values)[:, None]
    spread = np.sqrt(_mean_by_row(centred**2))[:, None]
    highest = np.where(np.isnan(values), -np.inf, values).max(axis=1, initial=-np.inf)
    lowest = np.where(np.isnan(values), np.inf, values).min(axis=1, initial=np.inf)
    scaled = np.full(values.shape, np.nan)
    np.divide(centred, spread, out=scaled, where=(highest > lowest)[:, None] & (spread > 0.0))
    return scaled


def _mean_by_row(values: Floats) -> Floats:
    """The mean of what each row has; NaN if it has nothing."""
    present = ~np.isnan(values)
    counts = present.sum(axis=1)
    means = np.full(len(values), np.nan)
    np.divide(np.where(present, values, 0.0).sum(axis=1), counts, out=means, where=counts > 0)
    return means


@dataclass(frozen=True, slots=True)
class Bias:
    """What moves the scores beside quality, as far as lengths, names and gold tell."""

    length: LengthBias
    own_family: SelfPreference | None
    """None where no candidate's name tells of the judge's family."""
    queries: int
    """Queries whose responses' lengths were looked at."""
    queries_skipped: int
    """Queries that were not, in a run of very many responses."""


def find_bias(
    grid: ScoreGrid,
    lengths: ScoreGrid,
    looked_at: AbstractSet[str],
    labels: Floats | None,
    votes: Sequence[Vote],
    family: AbstractSet[str],
    config: RankingConfig,
) -> Bias:
    """Measure both; lengths (`baselines.length_grid`) only on the queries `looked_at`.

    `labels` are laid out like the grid, NaN where there is none; `family` names the candidates that
    seem to be of the judge's own.
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
    """Return the candidates of the judge's family by their names; None if none seems to be.

    Only names are read: a model tuned from another under a new name is not found. A distilled
    model is of every family that its name tells.

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
