"""What it costs when the items of one response are spread over replicas.

A replica that sees any item of a response has to compute the response's whole prefix; the replica
that sees all of them computes it once.
"""

from __future__ import annotations

from typing import Literal, get_args

Routing = Literal["together", "random", "round-robin"]
"""Together: one call per response, or a session header that the router heeds. Random: each item
goes anywhere, as with least-loaded routers that do not see the prefix. Round-robin: in turn."""
ROUTINGS: tuple[Routing, ...] = get_args(Routing)


def replicas_touched(routing: Routing, items: float, replicas: int) -> float:
    """Return how many of the replicas see the prefix of one response, on average.

    >>> [replicas_touched(routing, 8, 4) for routing in ROUTINGS]
    [1.0, 3.599..., 4.0]
    """
    if routing == "together" or items <= 1:
        return 1.0
    if routing == "round-robin":
        return float(min(items, replicas))
    return float(replicas * (1.0 - (1.0 - 1.0 / replicas) ** items))


def scatter_factor(
    routing: Routing, items: float, prefix_tokens: float, item_tokens: float, replicas: int
) -> float:
    """Return how many times the tokens of the best routing have to be computed.

    >>> round(scatter_factor("random", 8, prefix_tokens=1000, item_tokens=60, replicas=4), 1)
    2.8
    """
    own = items * item_tokens
    touched = replicas_touched(routing, items, replicas)
    whole = prefix_tokens + own
    return (touched * prefix_tokens + own) / whole if whole else 1.0
