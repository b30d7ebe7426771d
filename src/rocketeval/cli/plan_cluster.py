"""`rocketeval plan --cluster`: its options."""

from __future__ import annotations

from dataclasses import dataclass
from functools import wraps
from typing import Any

import click

from rocketeval.capacity.assume import Given
from rocketeval.capacity.capacity import Capacity
from rocketeval.capacity.scatter import ROUTINGS
from rocketeval.cli.options import FiniteRange, Verb
from rocketeval.stages.plan import Plan

_ZERO_OR_MORE = FiniteRange(min=0)
_MORE_THAN_ZERO = FiniteRange(min=0, min_open=True)


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """A plan, and what it takes on a cluster."""

    plan: Plan
    cluster: Capacity


_OPTIONS = (
    click.option(
        "--cluster", is_flag=True, help="Add replicas, hours, money and bytes on a cluster."
    ),
    click.option("--hours", type=_MORE_THAN_ZERO, help="Deadline; 24 without --replicas."),
    click.option("--replicas", type=click.IntRange(min=1), help="Replicas there are."),
    click.option("--gpu-hour", type=_ZERO_OR_MORE, metavar="MONEY", help="Price."),
    click.option("--gpus", type=click.IntRange(min=1), help="GPUs of one replica."),
    click.option(
        "--routing",
        type=click.Choice(ROUTINGS),
        help="Where the items of a response go; together, if a call or a header keeps them so.",
    ),
    click.option("--losses", type=_ZERO_OR_MORE, help="Losses of one replica per hour (spot)."),
    click.option(
        "--restart-minutes",
        type=_ZERO_OR_MORE,
        metavar="MINUTES",
        help="From a loss to a replica that works in its place.",
    ),
    click.option("--batch", type=click.IntRange(min=1), help="Responses sent together."),
    click.option(
        "--checkpoint-seconds",
        type=_MORE_THAN_ZERO,
        metavar="SECONDS",
        help="From finished to durable, at most.",
    ),
    click.option("--seed", type=int, help="Of the simulated losses."),
)


def with_cluster(verb: Verb) -> Verb:
    """Give the verb what the command line says of a cluster, as `cluster`; None without one."""

    @wraps(verb)
    def command(*args: Any, cluster: bool, **own: Any) -> Any:
        told = {name: own.pop(name) for name in Given.__slots__ if name in own and name != "rate"}
        given = {name: value for name, value in told.items() if value is not None}
        if given and not cluster:
            names = ", ".join(f"--{name.replace('_', '-')}" for name in given)
            raise click.UsageError(f"What is said of a cluster is for --cluster: {names}")
        if told["hours"] is not None and told["replicas"] is not None:
            raise click.UsageError("--hours finds the replicas, --replicas the hours: give one.")
        return verb(*args, cluster=Given(**given) if cluster else None, **own)

    wrapped: Verb = command
    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    return wrapped
