"""The conclusion of an audit in a few sentences or lines."""

from __future__ import annotations

from collections.abc import Iterator

from rocketeval.audit.advice import (
    ALL,
    DECIDED,
    DecidingBaseline,
    deciding_baseline,
    doubt_within_queries,
    on_bias,
    side_of,
    ties_change_verdict,
)
from rocketeval.audit.audit import Audit
from rocketeval.audit.figures import LONGER, Agreement
from rocketeval.audit.labels import PER_QUERY, LabelCorrelation
from rocketeval.audit.votes import JUDGE
from rocketeval.audit.wording import (
    ANOTHER_VOTER,
    FigureText,
    direction,
    labels_of,
    percent,
    rho,
    significant_order,
    strictest_labels,
    trivial_rules,
)
from rocketeval.records import Interval
from rocketeval.text import count_of, figure, share


def in_brief(audit: Audit) -> Iterator[str]:
    """Yield one line per kind of reference data, then one line on biases."""
    if audit.agreement:
        yield _votes_in_brief(audit, audit.agreement[JUDGE])
    for part, methods in audit.labels.items():
        yield _labels_in_brief(audit, part, methods[JUDGE])
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
    names = ["it favors longer responses" if name == "Length bias" else name for name in names]
    return "; ".join(name[0].lower() + name[1:].rstrip(".") for name in names)


def _votes_in_brief(audit: Audit, judge: Agreement) -> str:
    if judge.with_ties is None:
        return f"no figure from {count_of(judge.votes, 'vote', 'votes')}: none could be used"
    votes = count_of(judge.used, "vote", "votes")
    line = f"agrees with {_percent(judge.with_ties)} of {votes} (win, loss or tie)"
    text = _deciding(audit, judge)
    baseline = deciding_baseline(audit, text)
    theirs = side_of(audit.agreement[baseline.name], text)
    value = "" if theirs is None else f", {percent(theirs.value)}"
    on = " on decided votes" if text is DECIDED else ""
    compared = _compared(direction(baseline.difference))
    line += f"; {compared} the {baseline.title} ('{baseline.name}'{value}){on}"
    if audit.voters is not None:
        line += f"; {ANOTHER_VOTER} {_percent(audit.voters.with_ties)}"
    return line


def _compared(sign: int | None) -> str:
    if sign is None:
        return "too few to compare with"
    return {1: "significantly better than", -1: "significantly worse than"}.get(sign, "tied with")


def _percent(found: Interval) -> str:
    """Return a share in percent with its interval, such as `75% (60-90)`."""
    value, _, bounds = share(found, ".0f").partition(" ")
    return f"{value}% {bounds}".rstrip()


def _labels_in_brief(audit: Audit, part: str, judge: LabelCorrelation) -> str:
    some = labels_of(part, judge.responses)
    if judge.spearman is None:
        return f"no coefficient with {some}"
    within = judge.levels[PER_QUERY].spearman
    inside = "" if within is None else f", {within.value:.2f} within a query"
    unbacked = doubt_within_queries(audit, part)
    but = f"; its scores {unbacked}" if unbacked else ""
    return f"Spearman {figure(judge.spearman, '.2f')} with {some}{inside}{but}"


UNCHECKED = (
    "Ranked by an unchecked judge: no human votes, labels or reference ratings show whether its "
    "scores are right."
)


NOT_AUDITED = (
    "Ranked by a judge that is not audited yet: `rocketeval audit` shows how far to trust it."
)


def doubt(audit: Audit | None) -> str:
    """Return why the ranking must not name a leader; empty if the judge passed its audit.

    A judge passes if it is significantly better than every baseline on votes, else if its scores
    correlate with labels, significantly and more than length does, over all responses and within
    queries, else if its order of candidates correlates significantly with reference ratings.
    """
    if audit is None:
        return NOT_AUDITED
    if not audit.has_gold:
        return UNCHECKED
    judge = audit.agreement.get(JUDGE)
    if judge is not None and judge.used:
        return _doubt_from_votes(audit, judge)
    part = strictest_labels(audit)
    if part is not None:
        return doubt_from_labels(audit, part)
    if audit.ratings is not None and significant_order(audit.ratings.spearman):
        return ""
    return _no_better("a random order, compared with the reference ratings")


def doubt_from_labels(audit: Audit, part: str) -> str:
    """Return why the judge did not pass on this kind of labels; empty if it did."""
    found = audit.labels[part][JUDGE].spearman
    over = audit.label_differences.get(part, {}).get(LONGER)
    if found is not None and found.low <= 0.0:
        return _ranked_by("whose scores have no significant positive correlation with labels")
    if found is None or over is None or (direction(over) or 0) <= 0:
        return _no_better(f"the baseline '{LONGER}' on labels")
    unbacked = doubt_within_queries(audit, part)
    return _ranked_by(f"whose scores {unbacked}") if unbacked else ""


def _doubt_from_votes(audit: Audit, judge: Agreement) -> str:
    if not audit.vote_differences:  # An audit of an early version: compare by the interval.
        rules = trivial_rules(audit)
        name = max(rules, key=lambda each: rules[each])
        passes = judge.with_ties is not None and judge.with_ties.low > rules[name]
        return "" if passes else _no_better(f"the baseline '{name}' on {judge.used:,} human votes")
    text = _deciding(audit, judge)
    baseline = deciding_baseline(audit, text)
    if (direction(baseline.difference) or 0) > 0:
        return ""
    votes = f"{judge.decisive:,} decided" if text is DECIDED else f"{judge.used:,}"
    return _no_better(f"the baseline '{baseline.name}' on {votes} human votes")


def _deciding(audit: Audit, judge: Agreement) -> FigureText:
    """Return which votes decide: all, or only decided ones if the verdict on those differs."""
    changes = judge.without_ties is not None and ties_change_verdict(audit)
    return DECIDED if changes else ALL


def _no_better(baseline: str) -> str:
    return _ranked_by(f"that is not significantly better than {baseline}")


def _ranked_by(judge: str) -> str:
    return f"Ranked by a judge {judge}: its order may say nothing about quality."


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
    text = _deciding(audit, judge)
    verdict_changes = text is DECIDED
    baseline = deciding_baseline(audit, text)
    ours, theirs = side_of(judge, text), side_of(audit.agreement[baseline.name], text)
    if ours is None or theirs is None:
        return
    kind, votes = ("decided ", judge.decisive) if verdict_changes else ("", judge.used)
    agrees = f"it agrees with {_percent(ours)} of {votes:,} {kind}human votes"
    yield _verdict_in_brief(baseline, agrees, percent(theirs.value))
    if verdict_changes:
        baseline = deciding_baseline(audit, ALL)
        value = percent(trivial_rules(audit)[baseline.name])
        compared = _compared(direction(baseline.difference) or 0)
        named = f"the {baseline.title} ('{baseline.name}', {value})"
        yield f"With ties counted, it is {compared} {named}."
    elif audit.voters is not None:
        yield f"Human-human agreement is {_percent(audit.voters.with_ties)}."


def _verdict_in_brief(baseline: DecidingBaseline, agrees: str, value: str) -> str:
    sign, named = direction(baseline.difference), f"'{baseline.name}', {value}"
    if sign is None:
        return f"Undecided, too few votes: {agrees} ({baseline.title}: {named})."
    if sign > 0:
        more = f"significantly more than every baseline (best: {named})"
        return f"This judge passes: {agrees}, {more}."
    if sign < 0:
        less = f"significantly less than the {baseline.title} ({named})"
        return f"This judge does not pass: {agrees}, {less}."
    return f"Undecided: {agrees}, not significantly more than the {baseline.title} ({named})."


def _conclude_from_labels(audit: Audit) -> Iterator[str]:
    part = strictest_labels(audit)
    judge = audit.labels[part][JUDGE] if part else None
    if part is None or judge is None or judge.spearman is None:
        return
    some = labels_of(part, judge.responses)
    follows = f"Spearman {figure(judge.spearman, '.2f')} between its scores and {some}"
    difference = audit.label_differences.get(part, {}).get(LONGER)
    sign = None if difference is None else direction(difference)
    if difference is None or sign is None:
        yield f"Undecided, too few labels: {follows}."
        return
    length = f"that of response length ({rho(judge.spearman.value - difference.value.value)})"
    if sign > 0 and judge.spearman.low > 0.0:
        yield from _within_queries(audit, part, f"{follows}, significantly more than {length}")
    elif sign < 0:
        yield f"This judge does not pass: {follows}, significantly less than {length}."
    else:
        bar = length if judge.spearman.low > 0.0 else "zero"
        yield f"Undecided: {follows}, not significantly above {bar}."


def _within_queries(audit: Audit, part: str, found: str) -> Iterator[str]:
    """Yield the verdict on a judge that passes over all responses."""
    judge = audit.labels[part][JUDGE]
    unbacked = doubt_within_queries(audit, part)
    if not unbacked:
        yield f"This judge passes: {found}."
        return
    within = judge.levels[PER_QUERY].spearman
    inside = "" if within is None else f"; {figure(within, '.2f')} within a query"
    verdict = "Undecided" if within is None or not within.high < 0.0 else "This judge does not pass"
    yield f"{verdict}: {found}{inside}."
    yield f"Its scores {unbacked}, so the labels do not back the order of candidates."


def _conclude_without(audit: Audit) -> str:
    """Return the conclusion of an audit without usable votes or labels."""
    if audit.ratings is not None and audit.ratings.spearman is not None:
        return (
            f"The ranking of {audit.ratings.n} candidates has a Spearman correlation of "
            f"{rho(audit.ratings.spearman.value)} with reference ratings"
            f"{'' if significant_order(audit.ratings.spearman) else ', not significantly above 0'}"
            ". They test the ranking, not single scores."
        )
    if audit.refused.counts:
        return "No verdict on this judge: its scorer was fitted on all reference data."
    if audit.has_gold:
        return "No verdict on this judge: the reference data could not be used."
    return (
        "No verdict on this judge: there are no votes, labels or reference ratings to compare it "
        "with."
    )
