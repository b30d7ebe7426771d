"""What the votes say of a judge, in sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator

from rocketeval.audit.advice_words import (
    DISTRUST,
    LEVEL,
    Needed,
    Told,
    direction,
    luck,
    or_more,
    percent,
    points,
    simpler,
    span,
    verdict,
)
from rocketeval.audit.audit import Audit
from rocketeval.audit.baselines import GUESS, KNOW_NOTHING, LABELER, LONGER
from rocketeval.audit.categories import FEWEST_VOTES
from rocketeval.audit.figures import Agreement, Measured, MeasuredVotes, VoterAgreement
from rocketeval.audit.scorings import JUDGE
from rocketeval.names import counted, listed
from rocketeval.records import Interval

MARGIN_MATTERS = 0.05
"""Agreement moved by so much over the tie margins is worth a word."""
DECIDED = Told("decided votes", "votes", DISTRUST, percent, points)
ALL = Told(
    "all votes, ties included",
    "votes",
    "Its ties are not the voters'; another tie margin may be.",
    percent,
    points,
)


def on_votes(audit: Audit, needed: Needed) -> Iterator[str]:
    """Yield what votes tell, the verdict first; nothing without votes."""
    if not audit.agreement:
        return
    judge = audit.agreement[JUDGE]
    if not judge.used:
        votes = counted(judge.votes, "vote", "votes")
        yield f"Of {votes} none can be used: a score is missing, or a name unknown."
        return
    if judge.without_ties is None and judge.with_ties is not None:
        yield (
            f"All {counted(judge.used, 'vote', 'votes')} are ties, and none says which response "
            f"is better; {percent(judge.with_ties.value)} of them are ties by score too."
        )
    else:
        yield from _against_rules(audit, DECIDED, needed)
        if _turns_over(audit):
            yield from _against_rules(audit, ALL, needed)
    yield _ceiling(judge, audit.voters)
    yield from _categories(audit, judge)
    yield from _margins(audit)
    yield from _simpler_on_votes(audit)
    yield from _labeler(audit)


def _against_rules(audit: Audit, told: Told, needed: Needed) -> Iterator[str]:
    """The judge against the rule that reads nothing and does best."""
    name, difference = _best_rule(audit, told)
    ours = _figure(audit.agreement[JUDGE], told)
    if ours is not None:
        rule = f"'{name}', the best of the rules that read nothing"
        yield from verdict(ours.value, rule, difference, told, needed)


def _best_rule(audit: Audit, told: Told) -> tuple[str, Measured]:
    known = (
        (name, _side(audit.vote_differences[name], told))
        for name in ((LONGER, GUESS) if told is DECIDED else KNOW_NOTHING)
        if name in audit.vote_differences
    )
    rules = [(name, difference) for name, difference in known if difference is not None]
    return min(rules, key=lambda rule: rule[1].value.value)


def _turns_over(audit: Audit) -> bool:
    """Whether counting ties changes the verdict."""
    return direction(_best_rule(audit, DECIDED)[1]) != direction(_best_rule(audit, ALL)[1])


def _ceiling(judge: Agreement, voters: VoterAgreement | None) -> str:
    told = ALL if judge.without_ties is None else DECIDED
    ours, theirs = _figure(judge, told), _figure(voters, told)
    if ours is None or theirs is None:
        return (
            "How far people agree with each other is not known: have some pairs of responses "
            "voted on by a second person."
        )
    # Both rest on the same queries, so that taking them as independent errs to the wide side.
    gap = theirs.value - ours.value
    reach = math.hypot(*((each.high - each.low) / 2.0 for each in (ours, theirs)))
    short = Interval(gap, gap - reach, gap + reach)
    figures = f"{percent(ours.value)} against {percent(theirs.value)}"
    if math.isnan(reach):
        return f"Whether it agrees as well as another voter cannot be told: {figures} so far."
    if short.low > 0.0:
        return f"Another voter agrees more often than the judge: {figures}, {points(short)}."
    if short.high < 0.0:
        return f"It agrees with votes more often than two voters with each other: {figures}."
    difference = Interval(-gap, -gap - reach, -gap + reach)
    return (
        f"It is not told apart from another voter, the ceiling: {figures}, a difference of "
        f"{points(difference)}."
    )


def _categories(audit: Audit, judge: Agreement) -> Iterator[str]:
    told = ALL if judge.without_ties is None else DECIDED
    whole = _figure(judge, told)
    if len(audit.categories) == 1:
        yield f"Every category has fewer than {FEWEST_VOTES} votes: too few to look at one by one."
    figures = [(part.category, _figure(part.agreement, told)) for part in audit.categories]
    known = [
        (name, figure)
        for name, figure in figures
        if figure is not None and not math.isnan(figure.low)
    ]
    if whole is None or len(known) < 2:
        return
    weak = sorted(
        ((name, figure) for name, figure in known if figure.high < whole.value),
        key=lambda part: part[1].value,
    )
    if not weak:
        yield f"No category is clearly below the whole ({len(known)} looked at)."
        return
    names = [f"{name} ({percent(figure.value)}, {span(figure)})" for name, figure in weak]
    yield (
        f"Trust it less on {listed(names, most=5)}: below the {percent(whole.value)} of all. "
        f"{len(known)} categories were looked at; by luck alone {or_more(len(weak))} would "
        f"look so in {luck(len(known), len(weak), (1.0 - LEVEL) / 2.0)}."
    )


def _margins(audit: Audit) -> Iterator[str]:
    shares = {row.margin: row.with_ties.value for row in audit.margins if row.with_ties}
    judge = audit.agreement[JUDGE]
    if judge.without_ties is None or math.isnan(judge.without_ties.low):
        return
    lowest, highest = min(shares.values()), max(shares.values())
    if highest - lowest < MARGIN_MATTERS:
        yield (
            f"The tie margin hardly matters: with ties, {percent(lowest)} to "
            f"{percent(highest)} for margins from {min(shares):g} to {max(shares):g}."
        )
        return
    best = max(shares, key=lambda margin: shares[margin])
    used = shares[audit.tie_margin]
    better = f"; {best:g} would give {percent(highest)}, though chosen on these very votes"
    yield (
        f"The tie margin matters: with ties, {percent(lowest)} to {percent(highest)} by margin. "
        f"{audit.tie_margin:g} gives {percent(used)}{better if highest - used > 0.01 else ''}."
    )


def _simpler_on_votes(audit: Audit) -> Iterator[str]:
    for name, both in audit.vote_differences.items():
        told = ALL if both.without_ties is None else DECIDED
        difference = _side(both, told)
        if difference is not None and name not in (*KNOW_NOTHING, LABELER):
            yield from simpler(name, difference, told)


def _labeler(audit: Audit) -> Iterator[str]:
    if LABELER in audit.agreement:
        told = ALL if audit.agreement[LABELER].without_ties is None else DECIDED
        labels = _figure(audit.agreement[LABELER], told)
        difference = _side(audit.vote_differences[LABELER], told)
        if labels is None or difference is None:
            return
        ours = labels.value + difference.value.value
        yield (
            f"Labels, read as scores, agree with {percent(labels.value)} of {told.on} on labelled "
            f"pairs ({difference.gold:,}), the judge with {percent(ours)} of the same."
        )
    elif audit.labels:
        yield "No vote is on two labelled responses: how far labels agree with voters is not known."


def _figure(found: Agreement | VoterAgreement | None, told: Told) -> Interval | None:
    if found is None:
        return None
    return found.without_ties if told is DECIDED else found.with_ties


def _side(both: MeasuredVotes, told: Told) -> Measured | None:
    return both.without_ties if told is DECIDED else both.with_ties
