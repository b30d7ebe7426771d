"""Agreement with votes by category of query: where a judge can be trusted, and where less."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rocketeval.audit.agreement import human_agreement
from rocketeval.audit.ballots import Ballots, Hits
from rocketeval.audit.figures import Agreement, MeasuredVotes, VoterAgreement, as_agreement
from rocketeval.records import Vote

Bools = NDArray[np.bool_]

FEWEST_VOTES = 20
"""A category with fewer usable votes is pooled with others like it."""
OTHER = "other"
"""Categories too small to stand alone, and queries without one."""


@dataclass(frozen=True, slots=True)
class CategoryAgreement:
    """How often scores, and other voters, say what votes on queries of one category say."""

    category: str
    agreement: Agreement
    voters: VoterAgreement | None
    """How often two voters agree there: the ceiling."""
    pooled: tuple[str, ...]
    """Of `other`, the categories in it, sorted; otherwise empty."""


@dataclass(frozen=True, slots=True, eq=False)
class VotesByCategory:
    """Votes in parts large enough to look at."""

    votes: Mapping[str, Sequence[Vote]]
    """By category: sorted, `other` last."""
    chosen: Mapping[str, Bools]
    """By category, which of the ballots are its votes."""
    pooled: tuple[str, ...]
    """The categories in `other`."""


def split_votes(
    votes: Sequence[Vote], ballots: Ballots, judged: Hits, categories: Mapping[str, str]
) -> VotesByCategory:
    """Return the votes by category of their query, those with few usable ones pooled.

    `categories` are by query id. There are no parts when no voted query has a category, or all
    have the same.
    """
    named = [categories.get(vote.query_id, OTHER) for vote in votes]
    if len(set(named)) < 2:
        return VotesByCategory({}, {}, ())
    own = np.array([categories.get(vote.query_id, OTHER) for vote in ballots.votes], dtype=object)
    usable = Counter(own[~np.isnan(judged.with_ties)].tolist())
    small = {name for name in named if usable[name] < FEWEST_VOTES}
    parts: dict[str, list[Vote]] = {}
    for name, vote in zip(named, votes, strict=True):
        parts.setdefault(OTHER if name in small else name, []).append(vote)
    ordered = sorted(parts, key=lambda name: (name == OTHER, name))
    return VotesByCategory(
        votes={name: parts[name] for name in ordered},
        chosen={
            name: np.isin(own, [*small, OTHER]) if name == OTHER else own == name
            for name in ordered
        },
        pooled=tuple(sorted(small - {OTHER})),
    )


def by_category(
    split: VotesByCategory,
    measured: Mapping[str, MeasuredVotes],
    *,
    bootstrap: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> tuple[CategoryAgreement, ...]:
    """Return what was measured in each category, beside how far its voters agree."""
    return tuple(
        CategoryAgreement(
            category=name,
            agreement=as_agreement(measured[name], len(votes)),
            voters=human_agreement(votes, bootstrap=bootstrap, seed=seed, level=level),
            pooled=split.pooled if name == OTHER else (),
        )
        for name, votes in split.votes.items()
    )
