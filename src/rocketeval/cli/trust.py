"""How far the judge can be trusted, in two or three lines: `rocketeval audit` says more."""

from __future__ import annotations

from collections.abc import Iterator

from rocketeval.audit.advice_on_bias import on_bias
from rocketeval.audit.audit import Audit
from rocketeval.audit.baselines import KNOW_NOTHING
from rocketeval.audit.figures import Agreement
from rocketeval.audit.label_correlation import PER_QUERY, RESPONSES, LabelCorrelation
from rocketeval.audit.scorings import JUDGE
from rocketeval.cli.tables import figure
from rocketeval.names import counted
from rocketeval.records import Interval

NO_GOLD = "not known: there are no votes, labels or reference ratings"
NOTHING_LEFT = "not known from this run: no gold is left to test its scores on"


def trust_in_words(audit: Audit) -> Iterator[str]:
    """Yield a line for each kind of gold, then one for what the judge leans on."""
    votes = audit.agreement.get(JUDGE)
    if votes is not None:
        yield _votes(audit, votes)
    for part, methods in audit.labels.items():
        yield _labels(part, methods[JUDGE])
    if audit.ratings is not None:
        told = audit.ratings.spearman
        n = counted(audit.ratings.n, "candidate", "candidates")
        yield (
            f"no coefficient with reference ratings: {audit.ratings.reason}"
            if told is None
            else f"Spearman {told.value:.2f} with the reference ratings of {n}"
        )
    refused = list(_refused(audit))
    yield from refused
    if not is_audited(audit):
        yield NOTHING_LEFT if refused else NO_GOLD
    leanings = [sentence.split(": ")[0].split("; ")[0] for sentence in on_bias(audit.bias)]
    if leanings:
        yield "beware: " + "; ".join(each[0].lower() + each[1:].rstrip(".") for each in leanings)


def is_audited(audit: Audit) -> bool:
    """Whether anything says how far the judge can be trusted."""
    return bool(audit.agreement or audit.labels or audit.ratings)


def _votes(audit: Audit, votes: Agreement) -> str:
    ours = votes.with_ties
    if ours is None:
        return f"no figure from {counted(votes.votes, 'vote', 'votes')}: none could be used"
    told = f"agrees with {_percent(ours)} of {counted(votes.used, 'vote', 'votes')}, ties included"
    rivals = {
        name: found.with_ties
        for name in reversed(KNOW_NOTHING)
        if (found := audit.agreement.get(name)) and found.with_ties
    }
    if rivals:
        best = max(rivals, key=lambda name: rivals[name].value)
        told += f"; {_verdict(audit, ours, rivals[best], best)} {best} ({_whole(rivals[best])})"
    if audit.voters and audit.voters.with_ties:
        told += f"; another voter {_whole(audit.voters.with_ties)}"
    return told


def _verdict(audit: Audit, ours: Interval, theirs: Interval, rival: str) -> str:
    measured = audit.vote_differences.get(rival)
    known = measured.with_ties if measured else None
    # A rule that is right by chance has no votes of its own to be held against one by one.
    low, high = (
        (known.value.low, known.value.high)
        if known
        else (ours.low - theirs.value, ours.high - theirs.value)
    )
    if low > 0.0:
        return "beats"
    return "worse than" if high < 0.0 else "not told apart from"


def _labels(part: str, found: LabelCorrelation) -> str:
    whole, within = found.levels[RESPONSES].spearman, found.levels[PER_QUERY].spearman
    some = f"{part} of {counted(found.responses, 'response', 'responses')}"
    if whole is None:
        return f"no coefficient with {some}"
    told = f"Spearman {figure(whole, '.2f')} with {some}"
    return told if within is None else f"{told}, {within.value:.2f} within a query"


def _refused(audit: Audit) -> Iterator[str]:
    for count, what in ((audit.refused.labels, "labels"), (audit.refused.votes, "votes")):
        if count:
            yield f"{count:,} {what} not used: the scorer learned from them"


def _whole(share: Interval) -> str:
    return f"{100 * share.value:.0f} %"


def _percent(share: Interval) -> str:
    shown = figure(Interval(100 * share.value, 100 * share.low, 100 * share.high), ".0f")
    value, _, bounds = shown.partition(" ")
    return f"{value} % {bounds}".rstrip()
