"""Conclusions of an audit in sentences: how far to trust the judge, and what to collect next.

Better or worse means that the 95% interval of the difference excludes zero.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

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
    ANOTHER_VOTER,
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
            f"Longer responses get higher scores: within a query, Spearman {rho(scores.value)} "
            f"({rho(scores.low)} to {rho(scores.high)}). Only labels or votes can show how much "
            "of that is bias."
        )


def _on_family(found: SelfPreference) -> Iterator[str]:
    names = join_words(found.family, most=3)
    if above_zero(found.preference) and above_zero(found.at_equal_gold):
        more = found.at_equal_gold
        yield (
            f"It prefers its own family ({names}): compared with other candidates with the same "
            f"labels, it scores them {rho(more.value)} ({rho(more.low)} to {rho(more.high)}) "
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
    text = FigureText(f"{part}, response by response (Spearman)", "labels", DISTRUST, rho, rho_gap)
    if LONGER in differences:
        yield from verdict(judge.spearman.value, f"'{LONGER}'", differences[LONGER], text, needed)
    yield from _levels(judge)
    for name, difference in differences.items():
        if name not in BASELINES:
            yield from simpler(name, difference, text)


def _levels(judge: LabelCorrelation) -> Iterator[str]:
    """Yield whether candidate means overstate how well single responses are scored."""
    single, within, means = (
        judge.levels[level].spearman for level in (RESPONSES, PER_QUERY, CANDIDATES)
    )
    if single is None or means is None or math.isnan(single.low):
        return
    inside = "" if within is None else f", within a query {rho(within.value)}"
    figures = f"Spearman {rho(means.value)}; single responses {rho(single.value)}{inside}"
    lowest = single if within is None or single.value < within.value else within
    if means.value - lowest.value < FLATTERS:
        yield f"Candidate means follow labels about as closely as single responses do: {figures}."
    elif not _sure_order(judge, means):
        yield f"Candidate means may overstate agreement, and are uncertain themselves: {figures}."
    elif lowest.high < means.value:
        yield (
            f"Candidate means overstate agreement: {figures}. Trust the order of candidates more "
            "than the score of a response."
        )
    else:
        yield f"Candidate means may overstate agreement: {figures}; too few labels to decide."


def _sure_order(judge: LabelCorrelation, means: Interval) -> bool:
    """Return whether the order of candidates is significant, by its interval or its p-value."""
    if not math.isnan(means.low):
        return means.low > 0.0
    found = judge.candidates.spearman
    return found is not None and found.value > 0.0 and found.p_value < 1.0 - LEVEL


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
        if _ties_change_verdict(audit):
            yield from _against_baselines(audit, ALL, needed)
    yield _against_voters(judge, audit.voters)
    yield from _categories(audit, judge)
    yield from _margins(audit)
    yield from _simpler_on_votes(audit)
    yield from _labeler(audit)


def _against_baselines(audit: Audit, text: FigureText, needed: Needed) -> Iterator[str]:
    """Yield the comparison of the judge with the best baseline."""
    name, difference = _best_baseline(audit, text)
    ours = _figure(audit.agreement[JUDGE], text)
    if ours is not None:
        rule = f"the best baseline, '{name}',"
        yield from verdict(ours.value, rule, difference, text, needed)


def _best_baseline(audit: Audit, text: FigureText) -> tuple[str, MeasuredFigure]:
    known = (
        (name, _side(audit.vote_differences[name], text))
        for name in ((LONGER, GUESS) if text is DECIDED else BASELINES)
        if name in audit.vote_differences
    )
    rules = [(name, difference) for name, difference in known if difference is not None]
    return min(rules, key=lambda rule: rule[1].value.value)


def _ties_change_verdict(audit: Audit) -> bool:
    """Return whether counting ties changes the verdict."""
    return direction(_best_baseline(audit, DECIDED)[1]) != direction(_best_baseline(audit, ALL)[1])


def _against_voters(judge: Agreement, voters: VoterAgreement | None) -> str:
    text = ALL if judge.without_ties is None else DECIDED
    ours, theirs = _figure(judge, text), _figure(voters, text)
    if ours is None or theirs is None:
        return (
            "Human-human agreement is unknown: ask a second person to vote on some pairs of "
            "responses."
        )
    # Both use the same queries; treating them as independent makes the interval too wide.
    gap = theirs.value - ours.value
    reach = math.hypot(*((each.high - each.low) / 2.0 for each in (ours, theirs)))
    short = Interval(gap, gap - reach, gap + reach)
    figures = f"{percent(ours.value)} against {percent(theirs.value)}"
    if math.isnan(reach):
        return f"Too few votes to compare it with human-human agreement: {figures} so far."
    if short.low > 0.0:
        return (
            f"Human-human agreement is significantly higher than the judge's: {figures}, "
            f"{points(short)}."
        )
    if short.high < 0.0:
        return f"It agrees with voters more often than they agree with each other: {figures}."
    difference = Interval(-gap, -gap - reach, -gap + reach)
    return (
        "Its agreement with voters does not differ significantly from human-human agreement: "
        f"{figures}, a difference of {points(difference)}."
    )


def _categories(audit: Audit, judge: Agreement) -> Iterator[str]:
    text = ALL if judge.without_ties is None else DECIDED
    whole = _figure(judge, text)
    if len(audit.categories) == 1:
        yield f"Every category has fewer than {FEWEST_VOTES} votes: too few to compare categories."
    figures = [(part.category, _figure(part.agreement, text)) for part in audit.categories]
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
    lowest, highest = min(shares.values()), max(shares.values())
    if highest - lowest < MARGIN_MATTERS:
        yield (
            f"The tie margin hardly matters: agreement with ties is {percent(lowest)} to "
            f"{percent(highest)} for margins from {min(shares):g} to {max(shares):g}."
        )
        return
    best = max(shares, key=lambda margin: shares[margin])
    used = shares[audit.tie_margin]
    better = f"; {best:g} gives {percent(highest)}, but is chosen on these votes"
    yield (
        f"The tie margin matters: agreement with ties is {percent(lowest)} to {percent(highest)}. "
        f"{audit.tie_margin:g} gives {percent(used)}{better if highest - used > 0.01 else ''}."
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
        labels = _figure(audit.agreement[LABELER], text)
        difference = _side(audit.vote_differences[LABELER], text)
        if labels is None or difference is None:
            return
        ours = labels.value + difference.value.value
        yield (
            f"Labels used as scores agree with {percent(labels.value)} of {text.on} on labeled "
            f"pairs ({difference.gold:,}); the judge agrees with {percent(ours)} of the same votes."
        )
    elif audit.labels:
        yield "No vote compares two labeled responses: agreement of labels with votes is unknown."


def _figure(found: Agreement | VoterAgreement | None, text: FigureText) -> Interval | None:
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
    yield (
        f"Reference ratings of {ratings.n} candidates: Spearman {rho(ratings.spearman.value)}. "
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
        "`rocketeval labels next` chooses which."
    )


def in_brief(audit: Audit) -> Iterator[str]:
    """Yield one line per kind of reference data, then one line on biases."""
    if audit.agreement:
        yield _votes_in_brief(audit, audit.agreement[JUDGE])
    for part, methods in audit.labels.items():
        yield _labels_in_brief(part, methods[JUDGE])
    if audit.ratings is not None:
        found, some = audit.ratings.spearman, count_of(audit.ratings.n, "candidate", "candidates")
        yield (
            f"no coefficient with reference ratings: {audit.ratings.reason}"
            if found is None
            else f"Spearman {found.value:.2f} with the reference ratings of {some}"
        )
    for count, what in audit.refused.counts:
        yield f"{count:,} {what} not used: the scorer was fitted on them"
    if not audit.has_gold:
        yield (
            "unknown from this run: the scorer was fitted on all reference data"
            if audit.refused.counts
            else "unknown: there are no votes, labels or reference ratings"
        )
    biases = _biases(audit)
    if biases:
        yield f"caution: {biases}"


def _biases(audit: Audit) -> str:
    """Return the short name of each significant bias, joined; empty if there is none."""
    names = [sentence.split(": ")[0].split("; ")[0] for sentence in on_bias(audit.bias)]
    return "; ".join(name[0].lower() + name[1:].rstrip(".") for name in names)


def _votes_in_brief(audit: Audit, judge: Agreement) -> str:
    if judge.with_ties is None:
        return f"no figure from {count_of(judge.votes, 'vote', 'votes')}: none could be used"
    votes = count_of(judge.used, "vote", "votes")
    line = f"agrees with {_percent(judge.with_ties)} of {votes}, ties included"
    name, difference = _best_baseline(audit, ALL)
    verb = {1: "better than", -1: "worse than"}.get(direction(difference) or 0, "tied with")
    line += f"; {verb} {name} ({percent(trivial_rules(audit)[name])})"
    if audit.voters is not None:
        line += f"; {ANOTHER_VOTER} {percent(audit.voters.with_ties.value)}"
    return line


def _percent(found: Interval) -> str:
    """Return a share in percent with its interval, such as `75% (60-90)`."""
    value, _, bounds = share(found, ".0f").partition(" ")
    return f"{value}% {bounds}".rstrip()


def _labels_in_brief(part: str, judge: LabelCorrelation) -> str:
    some = f"{part} of {count_of(judge.responses, 'response', 'responses')}"
    if judge.spearman is None:
        return f"no coefficient with {some}"
    within = judge.levels[PER_QUERY].spearman
    inside = "" if within is None else f", {within.value:.2f} within a query"
    return f"Spearman {figure(judge.spearman, '.2f')} with {some}{inside}"


def conclusion(audit: Audit) -> str:
    """Return how far to trust the judge, in one to three sentences."""
    sentences = (
        list(_conclude_from_votes(audit))
        or list(_conclude_from_labels(audit))
        or [_conclude_without(audit)]
    )
    biases = _biases(audit)
    return " ".join([*sentences[:2], *([f"Caution: {biases}."] if biases else [])])


def _conclude_from_votes(audit: Audit) -> Iterator[str]:
    judge = audit.agreement.get(JUDGE)
    if judge is None or not judge.used:
        return
    verdict_changes = judge.without_ties is not None and _ties_change_verdict(audit)
    text = DECIDED if verdict_changes else ALL
    name, difference = _best_baseline(audit, text)
    ours, theirs = _figure(judge, text), _figure(audit.agreement[name], text)
    if ours is None or theirs is None:
        return
    kind, votes = ("decided ", judge.decisive) if verdict_changes else ("", judge.used)
    agrees = f"it agrees with {_percent(ours)} of {votes:,} {kind}human votes"
    yield _verdict_in_brief(direction(difference), agrees, f"{name}, {percent(theirs.value)}")
    if verdict_changes:
        name, difference = _best_baseline(audit, ALL)
        compared = {1: "better than", -1: "worse than"}.get(direction(difference) or 0, "tied with")
        value = percent(trivial_rules(audit)[name])
        yield f"With ties counted, it is {compared} the best baseline ({name}, {value})."
    elif audit.voters is not None:
        yield f"Human-human agreement is {percent(audit.voters.with_ties.value)}."


def _verdict_in_brief(sign: int | None, agrees: str, baseline: str) -> str:
    if sign is None:
        return f"Too few votes for a verdict: {agrees} (best baseline: {baseline})."
    if sign > 0:
        return f"Trust this judge: {agrees}, more than every baseline (best: {baseline})."
    if sign < 0:
        return f"Do not trust this judge: {agrees}, less than the best baseline ({baseline})."
    return (
        f"Do not rely on this judge yet: {agrees}, not significantly more than the best baseline "
        f"({baseline})."
    )


def _conclude_from_labels(audit: Audit) -> Iterator[str]:
    part = strictest_labels(audit)
    judge = audit.labels[part][JUDGE] if part else None
    if part is None or judge is None or judge.spearman is None:
        return
    some = count_of(judge.responses, "response", "responses")
    follows = f"Spearman {figure(judge.spearman, '.2f')} between its scores and {part} of {some}"
    difference = audit.label_differences.get(part, {}).get(LONGER)
    sign = None if difference is None else direction(difference)
    if difference is None or sign is None:
        yield f"Too few labels for a verdict: {follows}."
        return
    length = rho(judge.spearman.value - difference.value.value)
    if sign > 0 and judge.spearman.low > 0.0:
        yield f"Trust this judge: {follows}, more than that of response length ({length})."
    elif sign < 0:
        yield f"Do not trust this judge: {follows}, less than that of response length ({length})."
    else:
        bar = f"that of response length ({length})" if judge.spearman.low > 0.0 else "zero"
        yield f"Do not rely on this judge yet: {follows}, not significantly above {bar}."


def _conclude_without(audit: Audit) -> str:
    """Return the conclusion of an audit without usable votes or labels."""
    if audit.ratings is not None and audit.ratings.spearman is not None:
        return (
            f"The ranking of {audit.ratings.n} candidates has a Spearman correlation of "
            f"{rho(audit.ratings.spearman.value)} with reference ratings. They test the ranking, "
            "not single scores."
        )
    if audit.refused.counts:
        return "No verdict on this judge: its scorer was fitted on all reference data."
    if audit.has_gold:
        return "No verdict on this judge: the reference data could not be used."
    return (
        "No verdict on this judge: there are no votes, labels or reference ratings to compare it "
        "with."
    )
