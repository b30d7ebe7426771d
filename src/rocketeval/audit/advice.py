"""Conclusions of an audit in sentences: how far to trust the judge, and what to collect next.

Better or worse means that the 95% interval of the difference excludes zero.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from rocketeval.audit.audit import Audit
from rocketeval.audit.bias import NO_QUERY, Bias, LengthBias, SelfPreference
from rocketeval.audit.figures import (
    BASELINES,
    GUESS,
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
    DISTRUST,
    LEVEL,
    FigureText,
    Needed,
    about,
    above_zero,
    chance_text,
    direction,
    or_more,
    percent,
    points,
    rho,
    rho_gap,
    rho_interval,
    significant_order,
    simpler,
    span,
    strictest_labels,
    verdict,
)
from rocketeval.records import Interval
from rocketeval.stats.bootstrap import least_queries
from rocketeval.stats.correlation import Correlation
from rocketeval.text import LABELS_NEXT, count_of, join_words

LEANS = 0.3
"""Without reference data, a correlation of score and length is reported from this value on."""


def on_bias(bias: Bias | None) -> Iterator[str]:
    """Yield a sentence per significant bias of the judge."""
    if bias is None:
        return
    yield from _on_length(bias.length)
    if bias.own_family is not None:
        yield from _on_family(bias.own_family)


def _on_length(found: LengthBias) -> Iterator[str]:
    # A noisy judge follows length less than the labels do. Report a bias only if its own scores
    # correlate with length.
    if found.scores is None or not found.scores.low > 0.0:
        return
    gold, scored = found.gold, found.scores_with_gold
    if gold is not None and scored is not None and above_zero(found.excess):
        yield (
            "Length bias: within a query, the judge's scores follow length more closely "
            f"(Spearman {rho(scored.value)}) than labels do ({rho(gold.value)}): "
            f"{rho_gap(found.excess)}. Trust it less when responses differ in length."
        )
    elif found.lost_to_longer is not None and found.lost_to_longer.high < 0.5:
        lost = found.lost_to_longer
        yield (
            f"Length bias: of {found.lost:,} votes that disagree with its scores, only "
            f"{percent(lost.value)} ({span(lost)}) went to the longer response. Trust it less "
            "when responses differ in length."
        )
    elif gold is None and found.lost_to_longer is None and found.scores.value >= LEANS:
        scores = found.scores
        yield (
            f"Longer responses get higher scores: within a query, Spearman {rho_interval(scores)}. "
            "Only labels or votes can show how much of that is bias."
        )


def _on_family(found: SelfPreference) -> Iterator[str]:
    names = join_words(found.family, most=3)
    if above_zero(found.preference) and above_zero(found.at_equal_gold):
        more = found.at_equal_gold
        yield (
            f"It prefers its own family ({names}): compared with other candidates with the same "
            f"labels, it scores them {rho_interval(more)} "
            "standard deviations of a query's scores higher. Compare them with another judge."
        )
    elif found.reason == NO_QUERY:
        yield (
            f"The judge's own family may be among the candidates ({names}, guessed by name); label "
            "their responses and some of other candidates to measure self-preference."
        )


FLATTERS = 0.2
"""Warn if the candidate-level coefficient exceeds the response-level one by this much."""


def on_labels(audit: Audit, needed: Needed) -> Iterator[str]:
    """Yield conclusions from labels, the verdict first; nothing without labels."""
    part = strictest_labels(audit)
    if part is None:
        return
    judge, differences = audit.labels[part][JUDGE], audit.label_differences.get(part, {})
    if judge.spearman is None:
        yield f"No conclusion from the labels: {judge.reason}."
        return
    on = f"{'labels' if part == 'all labels' else part}, response by response (Spearman)"
    text = FigureText(on, "labels", DISTRUST, rho, rho_gap)
    if LONGER in differences:
        yield from verdict(judge.spearman.value, f"'{LONGER}'", differences[LONGER], text, needed)
    unbacked = doubt_within_queries(audit, part)
    if unbacked:
        more = "" if several_per_query(judge) else " Label several responses per query."
        yield f"Its scores {unbacked}: the labels do not back the order of candidates.{more}"
    yield from _levels(judge)
    for name, difference in differences.items():
        if name not in BASELINES:
            yield from simpler(name, difference, text)


def doubt_within_queries(audit: Audit, part: str) -> str:
    """Return why labels do not back the order of responses to one query; empty if they do.

    A ranking compares the responses to one query, but a correlation over all responses can come
    from queries that are harder than others. Labels that cannot test the order within a query, such
    as one per query, therefore do not back it. Also empty if the correlation over all responses is
    not significant either.
    """
    judge = audit.labels[part][JUDGE]
    within = judge.levels.get(PER_QUERY)
    if within is None or not above_zero(judge.spearman):
        return ""
    if not several_per_query(judge):
        return "could not be tested within a query (no query has two labeled responses)"
    if within.spearman is None:
        return "could not be tested within a query (each query has equal scores or equal labels)"
    if math.isnan(within.spearman.low):
        return (
            "could not be tested within a query (differing scores and labels in fewer than "
            f"{least_queries(LEVEL)} queries or clusters)"
        )
    if not within.spearman.low > 0.0:
        return "have no significant positive correlation with labels within a query"
    over_length = (audit.query_differences or {}).get(part)
    if over_length is not None and not over_length.value.low > 0.0:
        return "do not follow labels significantly more than response length does within a query"
    return ""


def several_per_query(judge: LabelCorrelation) -> bool:
    """Return whether some query has two or more labeled responses."""
    within = judge.levels.get(PER_QUERY)
    return within is not None and judge.responses > within.n + within.left_out


def _levels(judge: LabelCorrelation) -> Iterator[str]:
    """Yield whether candidate means overstate how well single responses are scored."""
    single, within, means = (
        judge.levels[level].spearman for level in (RESPONSES, PER_QUERY, CANDIDATES)
    )
    if single is None or means is None or math.isnan(single.low):
        return
    inside = "" if within is None else f", {rho(within.value)} within a query"
    figures = (
        f"Spearman {rho(means.value)} for candidate means, {rho(single.value)} for single "
        f"responses{inside}"
    )
    lowest = single if within is None or single.value < within.value else within
    if means.value - lowest.value < FLATTERS:
        yield f"Candidate means follow labels about as closely as single responses do: {figures}."
    elif not significant_order(judge.candidates.spearman):
        yield f"Candidate means may overstate agreement, and are uncertain themselves: {figures}."
    elif lowest.high < means.value:
        yield (
            f"Agreement is higher for candidate means than for single responses: {figures}. "
            "Trust the order of candidates more than the score of one response."
        )
    else:
        yield f"Candidate means may overstate agreement: {figures}; too few labels to decide."


TOO_MANY_TIES = 0.2
"""Warn if the share of ties by score exceeds that of the votes by this much."""
MARGIN_MATTERS = 0.05
"""The tie margin matters if it moves agreement by at least this much."""
DECIDED = FigureText("decided votes", "votes", DISTRUST, percent, points)
ALL = FigureText(
    "all votes, ties included",
    "votes",
    "Its ties differ from the voters' ties; try another tie margin.",
    percent,
    points,
)


def on_votes(audit: Audit, needed: Needed) -> Iterator[str]:
    """Yield conclusions from votes, the verdict first; nothing without votes."""
    if not audit.agreement:
        return
    judge = audit.agreement[JUDGE]
    if not judge.used:
        votes = count_of(judge.votes, "vote", "votes")
        yield f"No usable vote among {votes}: a score is missing, or a name is unknown."
        return
    if judge.without_ties is None and judge.with_ties is not None:
        yield (
            f"All {count_of(judge.used, 'vote', 'votes')} are ties, so they do not show which "
            f"response is better; {percent(judge.with_ties.value)} of them are ties by score too."
        )
    else:
        yield from _against_baselines(audit, DECIDED, needed)
        if ties_change_verdict(audit):
            yield from _against_baselines(audit, ALL, needed)
    yield _against_voters(audit, judge)
    yield from _categories(audit, judge)
    yield from _margins(audit)
    yield from _simpler_on_votes(audit)
    yield from _labeler(audit)


def _against_baselines(audit: Audit, text: FigureText, needed: Needed) -> Iterator[str]:
    """Yield the comparison of the judge with the baseline that decides."""
    baseline = deciding_baseline(audit, text)
    ours = side_of(audit.agreement[JUDGE], text)
    if ours is not None:
        rule = f"the baseline '{baseline.name}'"
        yield from verdict(ours.value, rule, baseline.difference, text, needed)


@dataclass(frozen=True, slots=True)
class DecidingBaseline:
    """The baseline that decides whether a judge passes."""

    name: str
    difference: MeasuredFigure
    """Agreement of the judge minus its own."""
    title: str
    """`best baseline`, or `baseline` if another one agrees with more votes."""


def deciding_baseline(audit: Audit, text: FigureText) -> DecidingBaseline:
    """Return the baseline with the worst verdict: better than the judge, else tied, else the best.

    The best baseline may be significantly worse than the judge while another one, whose difference
    varies more between queries, is not.
    """
    known = (
        (name, _side(audit.vote_differences[name], text))
        for name in ((LONGER, GUESS) if text is DECIDED else BASELINES)
        if name in audit.vote_differences
    )
    rules = [(name, difference) for name, difference in known if difference is not None]
    best, _ = min(rules, key=lambda rule: rule[1].value.value)
    name, difference = min(rules, key=lambda rule: (direction(rule[1]) or 0, rule[1].value.value))
    return DecidingBaseline(name, difference, "best baseline" if name == best else "baseline")


def ties_change_verdict(audit: Audit) -> bool:
    """Return whether counting ties changes the verdict."""
    decided, every = (deciding_baseline(audit, text) for text in (DECIDED, ALL))
    return direction(decided.difference) != direction(every.difference)


def _against_voters(audit: Audit, judge: Agreement) -> str:
    """Compare the judge with human-human agreement, on the same votes and by the same rule."""
    text = ALL if judge.without_ties is None else DECIDED
    ours, gap, theirs = audit.judge_with_humans, audit.human_difference, audit.voters
    here = None if ours is None else _side(ours, text)
    less = None if gap is None else _side(gap, text)
    if here is None or less is None or theirs is None:
        return (
            "Human-human agreement is unknown: ask a second person to vote on some pairs of "
            "responses."
        )
    people = here.value.value - less.value.value
    figures = (
        f"{percent(here.value.value)} against {percent(people)} on the {here.gold:,} "
        f"{'decided ' if text is DECIDED else ''}votes with a second voter"
    )
    if math.isnan(less.value.low):
        return f"Too few votes to compare it with human-human agreement: {figures}."
    if less.value.high < 0.0:
        found = f"Human-human agreement is significantly higher than the judge's: {figures}"
    elif less.value.low > 0.0:
        found = f"It agrees with voters more often than they agree with each other: {figures}"
    else:
        found = (
            "Its agreement with voters does not differ significantly from human-human agreement: "
            f"{figures}"
        )
    best = theirs.best_without_ties if text is DECIDED else theirs.best_with_ties
    bound = (
        "" if best is None else f" The expected upper bound for any judge is {percent(best.value)}."
    )
    return f"{found}, a difference of {points(less.value)}.{bound}"


def _categories(audit: Audit, judge: Agreement) -> Iterator[str]:
    text = ALL if judge.without_ties is None else DECIDED
    whole = side_of(judge, text)
    if len(audit.categories) == 1:
        yield f"Every category has fewer than {FEWEST_VOTES} votes: too few to compare categories."
    figures = [(part.category, side_of(part.agreement, text)) for part in audit.categories]
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
        yield f"No category is significantly below the overall agreement ({len(known)} compared)."
        return
    names = [f"{name} ({percent(figure.value)}, {span(figure)})" for name, figure in weak]
    yield (
        f"Weaker on {join_words(names, most=5)} than overall ({percent(whole.value)}). With "
        f"{len(known)} categories compared, {or_more(len(weak))} would look weaker by chance in "
        f"{chance_text(len(known), len(weak), (1.0 - LEVEL) / 2.0)}."
    )


def _margins(audit: Audit) -> Iterator[str]:
    shares = {row.margin: row.with_ties.value for row in audit.margins if row.with_ties}
    judge = audit.agreement[JUDGE]
    if judge.without_ties is None or math.isnan(judge.without_ties.low):
        return
    tied = {row.margin: row.ties for row in audit.margins}.get(audit.tie_margin)
    voted = 1.0 - judge.decisive / judge.used
    if tied is not None and tied > voted + TOO_MANY_TIES:
        yield (
            f"Too many ties: {percent(tied)} of the voted pairs tie by score, but {percent(voted)} "
            f"of the votes are ties. Lower `ranking.tie_margin` ({audit.tie_margin:g})."
        )
    lowest, highest = min(shares.values()), max(shares.values())
    if highest - lowest < MARGIN_MATTERS:
        yield (
            f"The tie margin hardly matters: agreement with all votes is {percent(lowest)} to "
            f"{percent(highest)} for margins from {min(shares):g} to {max(shares):g}."
        )
        return
    best = max(shares, key=lambda margin: shares[margin])
    used = shares[audit.tie_margin]
    better = ""
    if highest - used > 0.01:
        better = f"; {best:g} gives {percent(highest)}, but that margin was chosen on these votes"
    yield (
        f"The tie margin matters: agreement with all votes ranges from {percent(lowest)} to "
        f"{percent(highest)}. The margin used, {audit.tie_margin:g}, gives {percent(used)}{better}."
    )


def _simpler_on_votes(audit: Audit) -> Iterator[str]:
    for name, both in audit.vote_differences.items():
        text = ALL if both.without_ties is None else DECIDED
        difference = _side(both, text)
        if difference is not None and name not in (*BASELINES, LABELER):
            yield from simpler(name, difference, text)


def _labeler(audit: Audit) -> Iterator[str]:
    if LABELER in audit.agreement:
        text = ALL if audit.agreement[LABELER].without_ties is None else DECIDED
        labels = side_of(audit.agreement[LABELER], text)
        difference = _side(audit.vote_differences[LABELER], text)
        if labels is None or difference is None:
            return
        ours = labels.value + difference.value.value
        yield (
            f"Labels used as scores agree with {percent(labels.value)} of the {difference.gold:,} "
            f"{text.on} between labeled responses; the judge agrees with {percent(ours)} of them."
        )
    elif audit.labels:
        yield "No vote compares two labeled responses: agreement of labels with votes is unknown."


def side_of(found: Agreement | VoterAgreement | None, text: FigureText) -> Interval | None:
    if found is None:
        return None
    return found.without_ties if text is DECIDED else found.with_ties


def _side(both: MeasuredVotes, text: FigureText) -> MeasuredFigure | None:
    return both.without_ties if text is DECIDED else both.with_ties


def advice(audit: Audit, needed: Needed) -> tuple[str, ...]:
    """Return the conclusions, the verdict of each kind of reference data first."""
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
        yield f"No conclusion from the reference ratings: {ratings.reason}."
        return
    random = "" if significant_order(ratings.spearman) else ", not significantly above zero"
    yield (
        f"Reference ratings of {ratings.n} candidates: Spearman {rho(ratings.spearman.value)}"
        f"{random}. "
        "They test the order of candidates, not the score of a response."
    )


def _to_collect(audit: Audit, needed: Needed) -> Iterator[str]:
    if audit.agreement or audit.labels:
        return
    if audit.refused.counts:
        yield ("The scorer was fitted on all reference data, so none is left to test its scores.")
    elif audit.ratings is None:
        yield (
            "It is unknown how far this judge can be trusted: there are no votes, labels or "
            "reference ratings."
        )
    weak, strong = (needed(effect, 0.5, LEVEL) or 0 for effect in (0.1, 0.2))
    yield (
        "To find out, collect votes on pairs of responses to different queries: about "
        f"{about(strong)} votes that are not ties distinguish an agreement of 70% from guessing, "
        f"{about(weak)} one of 60%. Collect two votes on some pairs. Or label responses: "
        f"{LABELS_NEXT} chooses which."
    )
