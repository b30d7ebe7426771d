"""Agreement of pairwise verdicts, such as an LLM's that saw both responses, with votes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from rocketeval.audit.by_query import Resampling, query_places, renumbered
from rocketeval.audit.figures import VoterAgreement
from rocketeval.records import Vote


def verdict_agreement(
    verdicts: Iterable[Vote],
    votes: Iterable[Vote],
    *,
    bootstrap: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> VoterAgreement | None:
    """How often a verdict is what a vote says of the same two responses; None if none ever meet.

    Every vote counts once for each verdict it meets, as in MT-Bench; without ties, only where
    neither is one. The order in which the responses were shown does not matter.
    """
    given: dict[tuple[str, frozenset[str]], list[str | None]] = defaultdict(list)
    for verdict in verdicts:
        given[_pair(verdict)].append(_winner(verdict))
    met = [
        (vote.query_id, _winner(vote), winner)
        for vote in votes
        for winner in given.get(_pair(vote), ())
    ]
    resampling = Resampling(bootstrap, seed, level)
    places = query_places([query_id for query_id, _, _ in met], len(met))
    same = np.array([one == other for _, one, other in met], dtype=np.float64)
    decisive = np.array([None not in (one, other) for _, one, other in met], dtype=bool)
    with_ties = resampling.share(same, places)
    if with_ties is None:
        return None
    return VoterAgreement(
        with_ties=with_ties,
        without_ties=resampling.share(same[decisive], renumbered(places[decisive])),
        pairs=len(met),
        decisive_pairs=int(decisive.sum()),
    )


def _pair(vote: Vote) -> tuple[str, frozenset[str]]:
    return vote.query_id, frozenset((vote.candidate_a, vote.candidate_b))


def _winner(vote: Vote) -> str | None:
    return {"a": vote.candidate_a, "b": vote.candidate_b, "tie": None}[vote.winner]
