"""What an audit means, in sentences: how far to trust the judge, where not, what to collect next.

Every verdict rests on an interval: better or worse is said only when the interval of the difference
leaves out zero. Figures have no more digits than they have.
"""

from __future__ import annotations

from collections.abc import Iterator

from rocketeval.audit.advice_on_bias import on_bias
from rocketeval.audit.advice_on_labels import on_labels
from rocketeval.audit.advice_on_votes import on_votes
from rocketeval.audit.advice_words import LEVEL, Needed, about, rho
from rocketeval.audit.audit import Audit
from rocketeval.audit.correlation import Correlation


def advice(audit: Audit, needed: Needed) -> tuple[str, ...]:
    """Return what the audit means, the most important sentence of each kind of gold first."""
    return (
        *on_votes(audit, needed),
        *on_labels(audit, needed),
        *on_bias(audit.bias),
        *_on_ratings(audit.ratings),
        *_to_collect(audit, needed),
    )


def _on_ratings(ratings: Correlation | None) -> Iterator[str]:
    if ratings is None:
        return
    if ratings.spearman is None:
        yield f"The reference ratings tell nothing: {ratings.reason}."
        return
    yield (
        f"Reference ratings of {ratings.n} candidates: Spearman {rho(ratings.spearman.value)}. "
        "They test the order of candidates, not the score of a response."
    )


def _to_collect(audit: Audit, needed: Needed) -> Iterator[str]:
    if audit.agreement or audit.labels:
        return
    if audit.refused.labels or audit.refused.votes:
        yield (
            "All gold was learned from by the fit that made these scores: none is left to test "
            "them on."
        )
    elif audit.ratings is None:
        yield (
            "Nothing here says how far this judge can be trusted: there are no votes, labels or "
            "reference ratings."
        )
    weak, strong = (needed(effect, 0.5, LEVEL) or 0 for effect in (0.1, 0.2))
    yield (
        f"To find out, collect votes on pairs of responses, each to another query: some "
        f"{about(strong)} that are not ties tell an agreement of 70 % from guessing, "
        f"{about(weak)} one of 60 %. Have some pairs voted on twice. Or label responses: "
        "`rocketeval advise` chooses which."
    )
