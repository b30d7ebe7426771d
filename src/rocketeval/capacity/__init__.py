"""How large a cluster a run needs, how long it takes and what it costs: arithmetic, no network.

figure.py      a number and where it comes from
assume.py      every number the model rests on: given, else measured, else a stated default
scatter.py     what it costs when the items of a response are spread over replicas
losses.py      what replicas that are lost cost, simulated and in closed form
storage.py     bytes and object-store writes
size.py        one amount of work: replicas, hours, money, bytes
capacity.py    the run itself and round amounts of work, side by side
"""

from rocketeval.capacity.assume import Assumptions, Given, Measured, assume
from rocketeval.capacity.capacity import Capacity, plan_capacity
from rocketeval.capacity.figure import Figure, Source
from rocketeval.capacity.losses import Losses, Rework, expected_hours, simulate
from rocketeval.capacity.scatter import ROUTINGS, Routing, replicas_touched, scatter_factor
from rocketeval.capacity.size import Size

__all__ = [
    "ROUTINGS",
    "Assumptions",
    "Capacity",
    "Figure",
    "Given",
    "Losses",
    "Measured",
    "Rework",
    "Routing",
    "Size",
    "Source",
    "assume",
    "expected_hours",
    "plan_capacity",
    "replicas_touched",
    "scatter_factor",
    "simulate",
]
