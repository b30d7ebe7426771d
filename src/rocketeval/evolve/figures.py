"""How well predictions agree with the gold, each figure with its interval over queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rocketeval.audit.kendall import kendall_adds, tau_b
from rocketeval.evolve.cases import Floats
from rocketeval.evolve.groups import query_numbers
from rocketeval.ranking.bootstrap import interval, resample_queries
from rocketeval.records import Interval

TIMES = 1000
"""How often queries are drawn anew."""
LEVEL = 0.95
_BLOCK_CELLS = 1_000_000


@dataclass(frozen=True, eq=False)
class Drawn:
    """Figures of the cases as they are, and again for every resample of their queries."""

    figures: Mapping[str, float]
    draws: Mapping[str, Floats]
    queries: int

    def intervals(self) -> dict[str, Interval]:
        """Return each figure with its 95 % interval."""
        return {name: self._sure(value, self.draws[name]) for name, value in self.figures.items()}

    def less(self, other: Drawn, name: str) -> Interval:
        """Return by how much one figure is above that of another, on the same resamples."""
        value = self.figures[name] - other.figures[name]
        return self._sure(value, self.draws[name] - other.draws[name])

    def _sure(self, value: float, draws: Floats) -> Interval:
        if np.isnan(draws).any():
            # Some resamples have one verdict alone: those that are left would flatter it.
            return Interval(value, np.nan, np.nan)
        return interval(value, draws, queries=self.queries, level=LEVEL)


def verdict_figures(
    said: Floats, gold: Floats, query_ids: Sequence[str], seed: int, times: int = TIMES
) -> Drawn:
    """Return accuracy, macro precision and F1, rho and tau of verdicts (-1, 0, 1).

    All of them are told by how often each verdict met each gold, query by query.
    """
    numbers = query_numbers(query_ids)
    cell = numbers * 9 + (gold + 1.0).astype(np.int64) * 3 + (said + 1.0).astype(np.int64)
    queries = int(numbers.max()) + 1
    met = np.bincount(cell, minlength=queries * 9).reshape(queries, 9).astype(np.float64)
    drawn = np.concatenate([counts @ met for counts in resample_queries(queries, times, seed)])
    whole = {name: float(value[0]) for name, value in _of_meetings(met.sum(axis=0)[None]).items()}
    return Drawn(whole, _of_meetings(drawn), queries)


def label_figures(
    said: Floats, gold: Floats, query_ids: Sequence[str], seed: int, times: int = TIMES
) -> Drawn:
    """Return rho, tau and mean squared error of labels; tau's draws are right to first order."""
    numbers = query_numbers(query_ids)
    queries = int(numbers.max()) + 1
    varied = min(float(np.ptp(said)), float(np.ptp(gold))) > 0.0
    tau = tau_b(said, gold) if varied else float("nan")
    adds = kendall_adds(tau if varied else None, said, gold, numbers.astype(np.intp))
    squared = (said - gold) ** 2
    draws: dict[str, list[Floats]] = {"rho": [], "tau": [], "mse": []}
    for counts in resample_queries(queries, times, seed):
        draws["rho"].append(_drawn_rho(said, gold, counts, numbers))
        draws["tau"].append(np.clip(tau + (counts - 1.0) @ adds, -1.0, 1.0))
        times_drawn = counts[:, numbers]
        draws["mse"].append(times_drawn @ squared / times_drawn.sum(axis=1))
    whole = {
        "rho": float(_drawn_rho(said, gold, np.ones((1, queries)), numbers)[0]),
        "tau": tau,
        "mse": float(squared.mean()),
    }
    return Drawn(whole, {name: np.concatenate(found) for name, found in draws.items()}, queries)


def _of_meetings(met: Floats) -> dict[str, Floats]:
    """Figures from rows of nine counts: gold b, tie, a by verdict b, tie, a."""
    table = met.reshape(-1, 3, 3)
    total = table.sum(axis=(1, 2))
    right = np.diagonal(table, axis1=1, axis2=2)
    given, said = table.sum(axis=2), table.sum(axis=1)
    # An outcome that neither side names is no class; one that was never said has precision 0.
    classes = np.maximum(((given + said) > 0.0).sum(axis=1), 1)
    precision = right / np.where(said > 0.0, said, 1.0)
    f1 = 2.0 * right / np.where(given + said > 0.0, given + said, 1.0)
    return {
        "accuracy": right.sum(axis=1) / total,
        "f1": f1.sum(axis=1) / classes,
        "precision": precision.sum(axis=1) / classes,
        "rho": _rho_of_meetings(table, given, said),
        "tau": _tau_of_meetings(table, given, said),
    }


def _rho_of_meetings(table: Floats, given: Floats, said: Floats) -> Floats:
    """Spearman's rho: the correlation of ranks, of which there are three a side."""
    total = table.sum(axis=(1, 2))
    one, two = (
        np.cumsum(side, axis=1) - side / 2.0 - total[:, None] / 2.0 for side in (given, said)
    )
    together = np.einsum("ni,nij,nj->n", one, table, two)
    apart = (given * one**2).sum(axis=1) * (said * two**2).sum(axis=1)
    return _quotient(together, np.sqrt(apart))


def _tau_of_meetings(table: Floats, given: Floats, said: Floats) -> Floats:
    """Kendall's tau-b: cases in the same order less those in the other."""
    surplus = np.zeros(len(table))
    for row in range(3):
        for column in range(3):
            later = table[:, row + 1 :, column + 1 :].sum(axis=(1, 2))
            other = table[:, row + 1 :, :column].sum(axis=(1, 2))
            surplus += table[:, row, column] * (later - other)
    total = table.sum(axis=(1, 2))
    apart = [(total**2 - (side**2).sum(axis=1)) / 2.0 for side in (given, said)]
    return _quotient(surplus, np.sqrt(apart[0] * apart[1]))


def _drawn_rho(said: Floats, gold: Floats, counts: Floats, numbers: NDArray[np.int64]) -> Floats:
    """Spearman's rho of each resample: ranks among the cases as often as they were drawn."""
    found, block = [], max(1, _BLOCK_CELLS // len(said))
    for start in range(0, len(counts), block):
        drawn = counts[start : start + block][:, numbers]
        one, two = (_drawn_ranks(side, drawn) for side in (said, gold))
        together = (drawn * one * two).sum(axis=1)
        apart = (drawn * one**2).sum(axis=1) * (drawn * two**2).sum(axis=1)
        found.append(_quotient(together, np.sqrt(apart)))
    return np.concatenate(found)


def _drawn_ranks(values: Floats, drawn: Floats) -> Floats:
    """Each case's rank, less the mean rank, when it is there as often as it was drawn."""
    _, place = np.unique(values, return_inverse=True)
    order = np.argsort(place, kind="stable")
    starts = np.flatnonzero(np.diff(place[order], prepend=-1))
    alike = np.add.reduceat(drawn[:, order], starts, axis=1)
    middle = np.cumsum(alike, axis=1) - alike / 2.0 - drawn.sum(axis=1, keepdims=True) / 2.0
    ranks: Floats = middle[:, place]
    return ranks


def _quotient(above: Floats, below: Floats) -> Floats:
    found = np.full(len(above), np.nan)
    np.divide(above, below, out=found, where=below > 0.0)
    return found
