"""What it costs that replicas are lost and come back: rework, simulated and in closed form.

The fleet shares one queue of work. A replica works for an exponential time, is lost with the
batches it had in hand and with what it finished since its last checkpoint (never more than it did
since it came up), and is back after a fixed time. Lost work is done again by whoever is free.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rocketeval.errors import ConfigError

TRIALS = 200
"""Runs that are simulated, unless each of them is long."""
FEWEST_TRIALS = 20
MOST_DRAWS = 20_000
"""Lives of replicas drawn in one trial: of a larger fleet, a part with its part of the work."""
ALL_DRAWS = 10_000_000
LEAST_USEFUL = 0.05
"""Below this share of useful time, a plan would be about something else than judging."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Losses:
    """How replicas are lost; all times in hours."""

    per_hour: float
    """Losses of one replica per hour that it is up."""
    restart: float
    """From a loss until a replica works in its place."""
    in_flight: float
    """Work of the batches in hand: all of it is sent again."""
    checkpoint: float
    """From finished to durable, at most: what was done since the last checkpoint is sent again."""

    @property
    def useful(self) -> float:
        """The share of paid time that becomes finished work, in the long run.

        A life of exponential length X, of which min(X, batch + U * checkpoint) is lost, is
        followed by a restart: the mean of what is kept over the mean of the cycle.
        """
        batch, since = self.per_hour * self.in_flight, self.per_hour * self.checkpoint
        kept = math.exp(-batch) * (-math.expm1(-since) / since if since else 1.0)
        return kept / (1.0 + self.per_hour * self.restart)


@dataclass(frozen=True, slots=True)
class Rework:
    """How long a fleet takes although replicas are lost; hours, over simulated runs."""

    hours: float
    """Mean."""
    hours_95: float
    """95 % of the simulated runs took no longer."""
    standard_error: float
    """Of the mean, from simulating no more runs than this."""
    losses: float
    """Replicas lost in one run, on average."""
    resent_share: float
    """Work that was done again, of all work, on average."""
    trials: int
    replicas_simulated: int
    """Fewer than the fleet's: the rest is taken to do as well, which overstates the spread."""


def expected_hours(work: float, replicas: int, losses: Losses) -> float:
    """Return the hours that `work` replica-hours take in the long run, in closed form.

    >>> expected_hours(100.0, 4, Losses(0.0, 0.1, 0.1, 0.1))
    25.0
    """
    return work / (replicas * losses.useful)


def simulate(work: float, replicas: int, losses: Losses, seed: int) -> Rework:
    """Return how long `work` replica-hours take `replicas` that are lost now and then."""
    if losses.useful < LEAST_USEFUL:
        raise ConfigError(
            f"Replicas are lost so often that {losses.useful:.1%} of their time would be of use.",
            hint="Check the losses per hour, the restart time, the batch and the checkpoint.",
        )
    if not losses.per_hour or not work:
        always = work / replicas
        return Rework(always, always, 0.0, 0.0, 0.0, 0, replicas)
    lives = _lives(losses.per_hour * expected_hours(work, replicas, losses))
    fleet = max(1, min(replicas, MOST_DRAWS // lives))
    trials = max(FEWEST_TRIALS, min(TRIALS, ALL_DRAWS // (fleet * lives)))
    share = work * fleet / replicas
    rng = np.random.default_rng(seed)
    runs = np.array([_one_run(share, fleet, lives, losses, rng) for _ in range(trials)])
    hours = runs[:, 0]
    return Rework(
        hours=float(hours.mean()),
        hours_95=float(np.quantile(hours, 0.95)),
        standard_error=float(hours.std(ddof=1) / math.sqrt(trials)),
        losses=float(runs[:, 1].mean() * replicas / fleet),
        resent_share=float(runs[:, 2].mean() / share),
        trials=trials,
        replicas_simulated=fleet,
    )


def _lives(losses: float) -> int:
    """Return how many lives of a replica are drawn at a time; more are drawn if they end early."""
    return math.ceil(losses + 4.0 * math.sqrt(losses)) + 3


def _one_run(
    work: float, replicas: int, lives: int, losses: Losses, rng: np.random.Generator
) -> tuple[float, int, float]:
    """Return hours, losses and lost replica-hours of one simulated run."""
    up: Floats = np.empty((replicas, 0))
    lost: Floats = np.empty((replicas, 0))
    while True:
        # Lives are only ever added: drawing a run anew would favour the quick ones.
        more = rng.exponential(1.0 / losses.per_hour, (replicas, lives))
        risk = losses.in_flight + losses.checkpoint * rng.random((replicas, lives))
        up, lost = np.hstack([up, more]), np.hstack([lost, np.minimum(risk, more)])
        found = _finish(work, up, lost, losses.restart)
        if found is not None:
            return found


def _finish(
    work: float, up: Floats, lost: Floats, restart: float
) -> tuple[float, int, float] | None:
    """Return when the work is done, as `_one_run` does; None if the lives drawn end before."""
    replicas, lives = up.shape
    deaths = np.cumsum(up, axis=1) + restart * np.arange(lives)
    births = deaths[:, :-1] + restart
    times = np.concatenate([[0.0], deaths.ravel(), births.ravel()])
    # What changes at each time: how many replicas work, and what is taken back.
    slopes = np.repeat([float(replicas), -1.0, 1.0], [1, deaths.size, births.size])
    drops = np.concatenate([[0.0], lost.ravel(), np.zeros(births.size)])
    known = times <= deaths[:, -1].min()
    order = np.argsort(times[known], kind="stable")
    times, slopes, drops = (column[known][order] for column in (times, slopes, drops))
    working = np.cumsum(slopes)
    gained = np.cumsum(working[:-1] * np.diff(times))
    taken = np.cumsum(drops)
    # Finished just before each time but the first.
    before = gained - taken[:-1]
    done = np.flatnonzero(before >= work)
    if not done.size:
        return None
    last = int(done[0])
    finished = (gained[last - 1] if last else 0.0) - taken[last]
    hours = times[last] + (work - finished) / working[last]
    return float(hours), int(np.count_nonzero(slopes[: last + 1] < 0)), float(taken[last])
