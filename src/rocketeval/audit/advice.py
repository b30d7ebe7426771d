"""What an audit means, in sentences: how far to trust the judge, where not, what to collect next.

Every verdict rests on an interval: better or worse is said only when the interval of the difference
leaves out zero. Figures have no more digits than they have.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rocketeval.audit.agreement import Agreement, Measured, MeasuredVotes, VoterAgreement
from rocketeval.audit.audit import JUDGE, Audit
from rocketeval.audit.baselines import GUESS, KNOW_NOTHING, LABELER, LONGER
from rocketeval.audit.categories import FEWEST_VOTES
from rocketeval.audit.correlation import Correlation
from rocketeval.audit.label_correlation import CANDIDATES, PER_QUERY, RESPONSES, LabelCorrelation
from rocketeval.names import listed
from rocketeval.ranking.bootstrap import least_queries
from rocketeval.records import Interval

Needed = Callable[[float, float, float], int | None]
"""How many queries tell an effect of some spread at some level, as `certainty.power` knows."""

LEVEL = 0.95
"""Confidence level of the audit's intervals."""
FARTHEST = 100
"""Where it would take more than so many times the queries there are, no number is given."""
MARGIN_MATTERS = 0.05
"""Agreement moved by so much over the tie margins is worth a word."""
FLATTERS = 0.2
"""A coefficient of candidates higher by so much than that of responses is worth a warning."""


@dataclass(frozen=True, slots=True)
class _Told:
    """One kind of figure in words."""

    on: str
    """What it is measured on."""
    gold: str
    """What to collect more of."""
    warning: str
    """What to do where the judge is worse than a rule that reads nothing."""
    figure: Callable[[float], str]
    gap: Callable[[Interval], str]


def advice(audit: Audit, needed: Needed) -> tuple[str, ...]:
    """Return what the audit means, the most important sentence of each kind of gold first."""
    return (
        *_on_votes(audit, needed),
        *_on_labels(audit, needed),
        *_on_ratings(audit.ratings),
        *_to_collect(audit, needed),
    )


def _on_votes(audit: Audit, needed: Needed) -> Iterator[str]:
    if not audit.agreement:
        return
    judge = audit.agreement[JUDGE]
    if not judge.used:
        votes = _counted(judge.votes, "vote", "votes")
        yield f"Of {votes} none can be used: a score is missing, or a name unknown."
        return
    if judge.without_ties is None and judge.with_ties is not None:
        yield (
            f"All {_counted(judge.used, 'vote', 'votes')} are ties, and none says which response "
            f"is better; {_percent(judge.with_ties.value)} of them are ties by score too."
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


def _against_rules(audit: Audit, told: _Told, needed: Needed) -> Iterator[str]:
    """The judge against the rule that reads nothing and does best."""
    name, difference = _best_rule(audit, told)
    ours = _figure(audit.agreement[JUDGE], told)
    if ours is not None:
        rule = f"'{name}', the best of the rules that read nothing"
        yield from _verdict(ours.value, rule, difference, told, needed)


def _best_rule(audit: Audit, told: _Told) -> tuple[str, Measured]:
    known = (
        (name, _side(audit.vote_differences[name], told))
        for name in ((LONGER, GUESS) if told is DECIDED else KNOW_NOTHING)
        if name in audit.vote_differences
    )
    rules = [(name, difference) for name, difference in known if difference is not None]
    return min(rules, key=lambda rule: rule[1].value.value)


def _turns_over(audit: Audit) -> bool:
    """Whether counting ties changes the verdict."""
    return _sign(_best_rule(audit, DECIDED)[1]) != _sign(_best_rule(audit, ALL)[1])


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
    span = Interval(gap, gap - reach, gap + reach)
    figures = f"{_percent(ours.value)} against {_percent(theirs.value)}"
    if math.isnan(reach):
        return f"Whether it agrees as well as another voter cannot be told: {figures} so far."
    if span.low > 0.0:
        return f"Another voter agrees more often than the judge: {figures}, {_points(span)}."
    if span.high < 0.0:
        return f"It agrees with votes more often than two voters with each other: {figures}."
    return (
        f"It is not told apart from another voter, the ceiling: {figures}, {_points(span)} short."
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
    names = [f"{name} ({_percent(figure.value)}, {_span(figure)})" for name, figure in weak]
    yield (
        f"Trust it less on {listed(names, most=5)}: below the {_percent(whole.value)} of all. "
        f"{len(known)} categories were looked at; by luck alone {_or_more(len(weak))} would "
        f"look so in about {_percent(_luck(len(known), len(weak)))} of audits."
    )


def _or_more(count: int) -> str:
    return "at least one" if count == 1 else f"{count} or more"


def _luck(looked_at: int, found: int) -> float:
    """The chance of so many intervals or more below a figure that they all should hold."""
    tail = (1.0 - LEVEL) / 2.0
    fewer = (
        math.comb(looked_at, count) * tail**count * (1.0 - tail) ** (looked_at - count)
        for count in range(found)
    )
    return max(0.0, 1.0 - math.fsum(fewer))


def _margins(audit: Audit) -> Iterator[str]:
    shares = {row.margin: row.with_ties.value for row in audit.margins if row.with_ties}
    judge = audit.agreement[JUDGE]
    if judge.without_ties is None or math.isnan(judge.without_ties.low):
        return
    lowest, highest = min(shares.values()), max(shares.values())
    if highest - lowest < MARGIN_MATTERS:
        yield (
            f"The tie margin hardly matters: with ties, {_percent(lowest)} to "
            f"{_percent(highest)} for margins from {min(shares):g} to {max(shares):g}."
        )
        return
    best = max(shares, key=lambda margin: shares[margin])
    used = shares[audit.tie_margin]
    better = f"; {best:g} would give {_percent(highest)}, though chosen on these very votes"
    yield (
        f"The tie margin matters: with ties, {_percent(lowest)} to {_percent(highest)} by margin. "
        f"{audit.tie_margin:g} gives {_percent(used)}{better if highest - used > 0.01 else ''}."
    )


def _simpler_on_votes(audit: Audit) -> Iterator[str]:
    for name, both in audit.vote_differences.items():
        told = ALL if both.without_ties is None else DECIDED
        difference = _side(both, told)
        if difference is not None and name not in (*KNOW_NOTHING, LABELER):
            yield from _simpler(name, difference, told)


def _labeler(audit: Audit) -> Iterator[str]:
    if LABELER in audit.agreement:
        told = ALL if audit.agreement[LABELER].without_ties is None else DECIDED
        labels = _figure(audit.agreement[LABELER], told)
        difference = _side(audit.vote_differences[LABELER], told)
        if labels is None or difference is None:
            return
        ours = labels.value + difference.value.value
        yield (
            f"Labels, read as scores, agree with {_percent(labels.value)} of {told.on} on labelled "
            f"pairs ({difference.gold:,}), the judge with {_percent(ours)} of the same."
        )
    elif audit.labels:
        yield "No vote is on two labelled responses: how far labels agree with voters is not known."


def _on_labels(audit: Audit, needed: Needed) -> Iterator[str]:
    part = next((part for part in _TESTS_MOST if part in audit.labels), None)
    if part is None:
        return
    judge, differences = audit.labels[part][JUDGE], audit.label_differences.get(part, {})
    if judge.spearman is None:
        yield f"The labels tell nothing: {judge.reason}."
        return
    told = _Told(f"{part}, response by response (Spearman)", "labels", _DISTRUST, _rho, _rho_gap)
    if LONGER in differences:
        yield from _verdict(judge.spearman.value, f"'{LONGER}'", differences[LONGER], told, needed)
    yield from _levels(judge)
    for name, difference in differences.items():
        if name not in KNOW_NOTHING:
            yield from _simpler(name, difference, told)


def _levels(judge: LabelCorrelation) -> Iterator[str]:
    """Whether means of candidates look better than single responses are."""
    single, within, means = (
        judge.levels[level].spearman for level in (RESPONSES, PER_QUERY, CANDIDATES)
    )
    if single is None or means is None or math.isnan(single.low):
        return
    inside = "" if within is None else f", within a query {_rho(within.value)}"
    figures = f"Spearman {_rho(means.value)}; single responses {_rho(single.value)}{inside}"
    lowest = single if within is None or single.value < within.value else within
    if means.value - lowest.value < FLATTERS:
        yield f"Means of candidates follow labels hardly closer than responses do: {figures}."
    elif means.low <= 0.0:
        yield f"Means of candidates may flatter the judge, and are not sure either: {figures}."
    elif lowest.high < means.value:
        yield (
            f"Means of candidates flatter the judge: {figures}. Trust the order of candidates "
            "more than the score of a response."
        )
    else:
        yield f"Means of candidates may flatter the judge: {figures}; too few labels to tell."


def _on_ratings(ratings: Correlation | None) -> Iterator[str]:
    if ratings is None:
        return
    if ratings.spearman is None:
        yield f"The reference ratings tell nothing: {ratings.reason}."
        return
    yield (
        f"Reference ratings of {ratings.n} candidates: Spearman {_rho(ratings.spearman.value)}. "
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
        f"{_about(strong)} that are not ties tell an agreement of 70 % from guessing, "
        f"{_about(weak)} one of 60 %. Have some pairs voted on twice. Or label responses: "
        "`rocketeval advise` chooses which."
    )


def _verdict(
    ours: float, name: str, difference: Measured, told: _Told, needed: Needed
) -> Iterator[str]:
    """Whether the judge does better than the rule `name`, and if not, what would tell."""
    theirs = ours - difference.value.value
    figures = f"{told.figure(ours)} against {told.figure(theirs)}"
    sign = _sign(difference)
    if sign is None:
        yield (
            f"On {told.on}, the judge cannot be told from {name} ({figures}): "
            f"{_counted(difference.queries, 'query', 'queries')} with {told.gold}, and "
            f"{least_queries(LEVEL)} are the fewest that can tell anything."
        )
    elif sign > 0:
        yield f"On {told.on}, the judge beats {name}: {figures}, {told.gap(difference.value)}."
    elif sign < 0:
        yield (
            f"On {told.on}, the judge does worse than {name}: {figures}, "
            f"{told.gap(difference.value)}. {told.warning}"
        )
    else:
        yield (
            f"On {told.on}, the judge is not told apart from {name}: {figures}, "
            f"{told.gap(difference.value)}. {_more(difference, told, needed)}"
        )


def _more(difference: Measured, told: _Told, needed: Needed) -> str:
    """How much more gold would tell a difference like the one seen."""
    effect, queries = difference.value.value, difference.queries
    told_by = None
    if abs(effect) > 1e-6 and not math.isnan(difference.spread):
        told_by = needed(effect, difference.spread, LEVEL)
    if told_by is None or told_by > FARTHEST * queries:
        return f"So small a difference would take over {FARTHEST} times the {told.gold}."
    more = max(told_by - queries, 1) / queries
    return (
        f"If it is real, about {_about(more * difference.gold)} more {told.gold}, on "
        f"{_about(more * queries)} more queries, would tell it four times in five."
    )


def _simpler(name: str, difference: Measured, told: _Told) -> Iterator[str]:
    """Whether a simpler score of the same answers is good enough."""
    sign = _sign(difference)
    if sign == 0:
        yield (
            f"The simpler score {name!r} does as well on {told.on}, as far as can be told: "
            f"{told.gap(difference.value)} between them."
        )
    elif sign is not None and sign < 0:
        gap = difference.value
        turned = Interval(-gap.value, -gap.high, -gap.low)
        yield f"The simpler score {name!r} does better on {told.on}: {told.gap(turned)}."


def _sign(difference: Measured) -> int | None:
    """1 for better, -1 for worse, 0 for not told apart; None below the fewest queries."""
    if math.isnan(difference.value.low):
        return None
    return (difference.value.low > 0.0) - (difference.value.high < 0.0)


def _figure(found: Agreement | VoterAgreement | None, told: _Told) -> Interval | None:
    if found is None:
        return None
    return found.without_ties if told is DECIDED else found.with_ties


def _side(both: MeasuredVotes, told: _Told) -> Measured | None:
    return both.without_ties if told is DECIDED else both.with_ties


def _counted(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


def _percent(share: float) -> str:
    return f"{100.0 * share:z.0f} %"


def _span(interval: Interval) -> str:
    return f"{100.0 * interval.low:z.0f} to {100.0 * interval.high:z.0f}"


def _points(gap: Interval) -> str:
    digits = 0 if abs(gap.value) >= 0.01 else 1
    value, low, high = (f"{100.0 * each:z.{digits}f}" for each in (gap.value, gap.low, gap.high))
    return f"{value} points ({low} to {high})"


def _rho(value: float) -> str:
    return f"{value:z.2f}"


def _rho_gap(gap: Interval) -> str:
    return f"a difference of {_rho(gap.value)} ({_rho(gap.low)} to {_rho(gap.high)})"


def _about(count: float) -> str:
    """Return a count with two digits that mean something.

    >>> _about(1234), _about(7.2)
    ('1,200', '8')
    """
    whole = math.ceil(count)
    return f"{round(whole, 2 - len(str(whole))):,}" if whole > 99 else f"{whole:,}"


_DISTRUST = "Do not trust its scores here."
DECIDED = _Told("decided votes", "votes", _DISTRUST, _percent, _points)
ALL = _Told(
    "all votes, ties included",
    "votes",
    "Its ties are not the voters'; another tie margin may be.",
    _percent,
    _points,
)
_TESTS_MOST = ("held-out labels", "all labels", "labels out of fold")
"""Labels by how much they test: of candidates never seen, of all, of candidates learned from."""
