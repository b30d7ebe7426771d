"""What an audit means, in sentences: how far to trust the judge, where not, what to collect next.

Every verdict rests on an interval: better or worse is said only when the interval of the difference
leaves out zero. Figures have no more digits than they have.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from rocketeval.audit.audit import Audit
from rocketeval.audit.bias import NO_QUERY, Bias, LengthBias, SelfPreference
from rocketeval.audit.figures import (
    GUESS,
    KNOW_NOTHING,
    LABELER,
    LONGER,
    Agreement,
    MeasuredFigure,
    MeasuredVotes,
    VoterAgreement,
)
from rocketeval.audit.labels import CANDIDATES, PER_QUERY, RESPONSES, LabelCorrelation
from rocketeval.audit.votes import FEWEST_VOTES, JUDGE
from rocketeval.audit.wording import (
    ANOTHER_VOTER,
    DISTRUST,
    LEVEL,
    FigureText,
    Needed,
    about,
    above_zero,
    direction,
    luck,
    or_more,
    percent,
    points,
    rho,
    rho_gap,
    simpler,
    span,
    strictest_labels,
    trivial_rules,
    verdict,
)
from rocketeval.records import Interval
from rocketeval.stats.correlation import Correlation
from rocketeval.text import count_of, figure, join_words, share

LEANS = 0.3
"""Without gold, a correlation of score and length from here on is worth a word."""


def on_bias(bias: Bias | None) -> Iterator[str]:
    """Yield what the judge leans on, where that is sure; nothing where it is not."""
    if bias is None:
        return
    yield from _on_length(bias.length)
    if bias.own_family is not None:
        yield from _on_family(bias.own_family)


def _on_length(found: LengthBias) -> Iterator[str]:
    # A judge that is merely unsure follows length less than gold does, to either side. It leans on
    # length only where its scores follow length themselves.
    if found.scores is None or not found.scores.low > 0.0:
        return
    gold, beside = found.gold, found.scores_with_gold
    if gold is not None and beside is not None and above_zero(found.excess):
        yield (
            "It leans on length: of the responses to one query, longer ones get higher scores "
            f"(Spearman {rho(beside.value)}), and not as much higher labels ({rho(gold.value)}): "
            f"{rho_gap(found.excess)}. Trust it less where responses differ in length."
        )
    elif found.lost_to_longer is not None and found.lost_to_longer.high < 0.5:
        lost = found.lost_to_longer
        yield (
            f"It leans on length: of {found.lost:,} votes against its scores, only "
            f"{percent(lost.value)} ({span(lost)}) went to the longer response. Trust it less "
            "where responses differ in length."
        )
    elif gold is None and found.lost_to_longer is None and found.scores.value >= LEANS:
        scores = found.scores
        yield (
            f"Longer responses get higher scores: within a query, Spearman {rho(scores.value)} "
            f"({rho(scores.low)} to {rho(scores.high)}). Only labels or votes can tell how much "
            "of that is deserved."
        )


def _on_family(found: SelfPreference) -> Iterator[str]:
    names = join_words(found.family, most=3)
    if above_zero(found.preference) and above_zero(found.at_equal_gold):
        more = found.at_equal_gold
        yield (
            f"It prefers its own family ({names}): beside other candidates with the same labels "
            f"it scores them higher, by {rho(more.value)} ({rho(more.low)} to {rho(more.high)}) "
            "standard deviations of a query's scores. Let another judge compare them."
        )
    elif found.reason == NO_QUERY:
        yield (
            f"By name, the judge's own family is among the candidates ({names}); labels of their "
            "responses and of others' would tell whether it prefers them."
        )


FLATTERS = 0.2
"""A coefficient of candidates higher by so much than that of responses is worth a warning."""


def on_labels(audit: Audit, needed: Needed) -> Iterator[str]:
    """Yield what labels tell, the verdict first; nothing without labels."""
    part = strictest_labels(audit)
    if part is None:
        return
    judge, differences = audit.labels[part][JUDGE], audit.label_differences.get(part, {})
    if judge.spearman is None:
        yield f"The labels tell nothing: {judge.reason}."
        return
    told = FigureText(f"{part}, response by response (Spearman)", "labels", DISTRUST, rho, rho_gap)
    if LONGER in differences:
        yield from verdict(judge.spearman.value, f"'{LONGER}'", differences[LONGER], told, needed)
    yield from _levels(judge)
    for name, difference in differences.items():
        if name not in KNOW_NOTHING:
            yield from simpler(name, difference, told)


def _levels(judge: LabelCorrelation) -> Iterator[str]:
    """Whether means of candidates look better than single responses are."""
    single, within, means = (
        judge.levels[level].spearman for level in (RESPONSES, PER_QUERY, CANDIDATES)
    )
    if single is None or means is None or math.isnan(single.low):
        return
    inside = "" if within is None else f", within a query {rho(within.value)}"
    figures = f"Spearman {rho(means.value)}; single responses {rho(single.value)}{inside}"
    lowest = single if within is None or single.value < within.value else within
    if means.value - lowest.value < FLATTERS:
        yield f"Means of candidates follow labels hardly closer than responses do: {figures}."
    elif not _sure_order(judge, means):
        yield f"Means of candidates may flatter the judge, and are not sure either: {figures}."
    elif lowest.high < means.value:
        yield (
            f"Means of candidates flatter the judge: {figures}. Trust the order of candidates "
            "more than the score of a response."
        )
    else:
        yield f"Means of candidates may flatter the judge: {figures}; too few labels to tell."


def _sure_order(judge: LabelCorrelation, means: Interval) -> bool:
    """Whether the order of candidates is more than luck: by its interval, else by its p-value."""
    if not math.isnan(means.low):
        return means.low > 0.0
    told = judge.candidates.spearman
    return told is not None and told.value > 0.0 and told.p_value < 1.0 - LEVEL


MARGIN_MATTERS = 0.05
"""Agreement moved by so much over the tie margins is worth a word."""
DECIDED = FigureText("decided votes", "votes", DISTRUST, percent, points)
ALL = FigureText(
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
        votes = count_of(judge.votes, "vote", "votes")
        yield f"Of {votes} none can be used: a score is missing, or a name unknown."
        return
    if judge.without_ties is None and judge.with_ties is not None:
        yield (
            f"All {count_of(judge.used, 'vote', 'votes')} are ties, and none says which response "
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


def _against_rules(audit: Audit, told: FigureText, needed: Needed) -> Iterator[str]:
    """The judge against the rule that reads nothing and does best."""
    name, difference = _best_rule(audit, told)
    ours = _figure(audit.agreement[JUDGE], told)
    if ours is not None:
        rule = f"'{name}', the best of the rules that read nothing"
        yield from verdict(ours.value, rule, difference, told, needed)


def _best_rule(audit: Audit, told: FigureText) -> tuple[str, MeasuredFigure]:
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
        f"Trust it less on {join_words(names, most=5)}: below the {percent(whole.value)} of all. "
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


def _figure(found: Agreement | VoterAgreement | None, told: FigureText) -> Interval | None:
    if found is None:
        return None
    return found.without_ties if told is DECIDED else found.with_ties


def _side(both: MeasuredVotes, told: FigureText) -> MeasuredFigure | None:
    return both.without_ties if told is DECIDED else both.with_ties


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
    if audit.refused.counts:
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
        "`rocketeval labels next` chooses which."
    )


def in_brief(audit: Audit) -> Iterator[str]:
    """Yield one line per kind of gold, then one for what the judge leans on."""
    if audit.agreement:
        yield _votes_in_brief(audit, audit.agreement[JUDGE])
    for part, methods in audit.labels.items():
        yield _labels_in_brief(part, methods[JUDGE])
    if audit.ratings is not None:
        told, some = audit.ratings.spearman, count_of(audit.ratings.n, "candidate", "candidates")
        yield (
            f"no coefficient with reference ratings: {audit.ratings.reason}"
            if told is None
            else f"Spearman {told.value:.2f} with the reference ratings of {some}"
        )
    for count, what in audit.refused.counts:
        yield f"{count:,} {what} not used: the scorer learned from them"
    if not audit.has_gold:
        yield (
            "not known from this run: no gold is left to test its scores on"
            if audit.refused.counts
            else "not known: there are no votes, labels or reference ratings"
        )
    leanings = [sentence.split(": ")[0].split("; ")[0] for sentence in on_bias(audit.bias)]
    if leanings:
        yield "beware: " + "; ".join(each[0].lower() + each[1:].rstrip(".") for each in leanings)


def _votes_in_brief(audit: Audit, judge: Agreement) -> str:
    if judge.with_ties is None:
        return f"no figure from {count_of(judge.votes, 'vote', 'votes')}: none could be used"
    value, _, bounds = share(judge.with_ties, ".0f").partition(" ")
    ours = f"{value} % {bounds}".rstrip()
    told = f"agrees with {ours} of {count_of(judge.used, 'vote', 'votes')}, ties included"
    name, difference = _best_rule(audit, ALL)
    verb = {1: "beats", -1: "worse than"}.get(direction(difference) or 0, "not told apart from")
    told += f"; {verb} {name} ({percent(trivial_rules(audit)[name])})"
    if audit.voters is not None:
        told += f"; {ANOTHER_VOTER} {percent(audit.voters.with_ties.value)}"
    return told


def _labels_in_brief(part: str, judge: LabelCorrelation) -> str:
    some = f"{part} of {count_of(judge.responses, 'response', 'responses')}"
    if judge.spearman is None:
        return f"no coefficient with {some}"
    within = judge.levels[PER_QUERY].spearman
    inside = "" if within is None else f", {within.value:.2f} within a query"
    return f"Spearman {figure(judge.spearman, '.2f')} with {some}{inside}"
