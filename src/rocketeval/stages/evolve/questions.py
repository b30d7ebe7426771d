"""How many questions perspectives take: of each response or pair, and of each query once."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from rocketeval.config import EvolveConfig
from rocketeval.evolve.cases import Case
from rocketeval.evolve.perspective import Kind, Perspective, Pool
from rocketeval.evolve.sheets import Asking


def shown(cases: Iterable[Case], asking: Asking) -> int:
    """Return how many responses, or pairs of them, a judge is shown.

    >>> pairs = [Case("q", ("x", "y"), 1.0), Case("q", ("x", "z"), 0.0)]
    >>> shown(pairs, "each"), shown(pairs, "pairs")
    (3, 2)
    """
    if asking == "pairs":
        return len({(case.query_id, case.candidates) for case in cases})
    return len({(case.query_id, name) for case in cases for name in case.candidates})


def questions(perspectives: Iterable[Perspective], cases: Collection[Case], asking: Asking) -> int:
    """Return how many questions perspectives take on cases, those answered earlier included."""
    counts = dict.fromkeys(Kind, 0)
    for each in perspectives:
        counts[each.kind] += 1
    queries = len({case.query_id for case in cases})
    return counts[Kind.RESPONSE] * shown(cases, asking) + counts[Kind.QUERY] * queries


def most_questions(pool: Pool, cases: Collection[Case], settings: EvolveConfig) -> int:
    """Return how many questions those that are kept of a pool take at most, and the overall one."""
    kept = [
        *pool.of(Kind.RESPONSE)[: settings.most_about_responses + 1],
        *pool.of(Kind.QUERY)[: settings.most_about_queries],
    ]
    return questions(kept, cases, settings.asking)


def most_for_optimizer(settings: EvolveConfig) -> int:
    """Return how many requests a round makes to the optimizer at most."""
    requests = settings.batches + bool(settings.deepen) + bool(settings.broaden)
    return settings.attempts * (requests + bool(settings.most_about_queries))
