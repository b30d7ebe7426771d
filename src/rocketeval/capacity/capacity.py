"""A plan for a cluster: the run itself, and round amounts of work, side by side."""

from __future__ import annotations

from dataclasses import dataclass

from rocketeval.capacity.assume import Assumptions, Given, Measured, assume
from rocketeval.capacity.scatter import ROUTINGS, Routing
from rocketeval.capacity.size import Size, size_for

ANSWERS = tuple(10**power for power in range(6, 11))
"""Round amounts of work: a million answers to ten thousand million."""
FLEETS = (1, 2, 4, 8, 32, 256)
"""For which the cost of scattering is shown."""
DAY = 24.0


@dataclass(frozen=True, slots=True)
class Capacity:
    """What a run, and more of its kind, take on a cluster."""

    deadline: float | None
    """Hours; None when the number of replicas is given."""
    deadline_given: bool
    this_run: Size | None
    """None when nothing is known to be left to ask."""
    waiting: int
    """Responses of the run that wait for a checklist, and are in no row."""
    without_checklist: int
    """Responses of the run that will have none, and are in no row."""
    sizes: tuple[Size, ...]
    scatter: dict[Routing, dict[int, float]]
    """How many times the tokens of the best routing are computed, by replicas."""
    seed: int
    assumed: Assumptions


def plan_capacity(given: Given, measured: Measured) -> Capacity:
    """Return what the run and round amounts of work take."""
    assumed = assume(given, measured)
    deadline = given.hours
    if deadline is None and given.replicas is None:
        deadline = DAY

    def size(answers: float, responses: float | None = None) -> Size:
        return size_for(
            assumed,
            answers,
            responses=responses,
            replicas=given.replicas,
            deadline=deadline,
            seed=given.seed,
        )

    return Capacity(
        deadline=deadline,
        deadline_given=given.hours is not None,
        this_run=size(measured.answers, measured.responses) if measured.answers else None,
        waiting=measured.waiting,
        without_checklist=measured.without_checklist,
        sizes=tuple(map(size, ANSWERS)),
        scatter={
            routing: {fleet: assumed.scatter(fleet, routing) for fleet in FLEETS}
            for routing in ROUTINGS
        },
        seed=given.seed,
        assumed=assumed,
    )
