"""The result of a race in sentences, and figures of a ranking that account for its looks."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan

import numpy as np

from rocketeval.arrays import Floats, Ints
from rocketeval.goal import parse_goal
from rocketeval.records import Interval
from rocketeval.stats.bootstrap import least_queries
from rocketeval.stats.permutation import PairwiseTests, holm
from rocketeval.stats.sequential import Bounds, normal_statistics, paired_means
from rocketeval.stopping.race import RaceResult
from rocketeval.text import count_of, figure, join_words, percentage

MOST_NAMES = 5


def race_in_words(race: RaceResult) -> tuple[str, str]:
    """Return what was decided, and after how many judgments, in one sentence each.

    Decisions are about scores: whether the judge is right, the audit says.
    """
    return _decision(race), _spent(race)


def _decision(race: RaceResult) -> str:
    goal, count = parse_goal(race.goal), len(race.rows)
    tied = join_words(race.named("tied"), most=MOST_NAMES)
    if goal.kind == "beats":
        return _against(race, goal.against)
    if goal.kind == "interval":
        if race.ending == "decided":
            return f"All {count} mean scores are known within an interval of {goal.size:g}."
        if any(row.state == "tied" and isnan(row.mean.low) for row in race.rows):
            why = "there are too few queries, or all scores of a candidate are equal"
            return f"The intervals of {tied} are wider than {goal.size:g} or unknown: {why}."
        return f"The intervals of {tied} are wider than {goal.size:g}: there are too few queries."
    if goal.kind == "within":
        width = f"{goal.size:g}{' standard deviations' if goal.in_sd else ''}"
        if race.ending == "decided":
            return f"No candidate is placed above one that scores higher by {width} or more."
        return f"The order is not known to {width} for {tied}: there are too few queries."
    found = race.named("in")
    if race.ending == "decided":
        if goal.count == 1:
            return f"{found[0]} has the highest mean score of {count} candidates."
        names = join_words(found, most=MOST_NAMES)
        return f"The {goal.count} highest mean scores of {count} candidates: {names}."
    sure = f"{join_words(found, most=MOST_NAMES)} in; " if found else ""
    what = "highest mean score" if goal.count == 1 else f"{goal.count} highest mean scores"
    return f"Not decided ({what}): {sure}{tied} are tied."


def _against(race: RaceResult, old: str) -> str:
    parts = []
    for state, words in (
        ("better", f"significantly higher than {old}"),
        ("worse", f"significantly lower than {old}"),
        ("tied", f"tied with {old}"),
    ):
        rows = [row for row in race.rows if row.state == state]
        if not rows:
            continue
        names = join_words([row.candidate for row in rows], most=MOST_NAMES)
        shown = ""
        if len(rows) == 1 and rows[0].difference is not None:
            shown = f" by {figure(rows[0].difference, '.2f')}" if state != "tied" else ""
        verb = ("is", "are") if state == "tied" else ("scores", "score")
        parts.append(f"{names} {verb[len(rows) > 1]} {words}{shown}")
    return f"{'; '.join(parts)}."


def _spent(race: RaceResult) -> str:
    share = race.judgments / max(1, race.of)
    used = f"{race.judgments:,} of {count_of(race.of, 'judgment', 'judgments')} ({share:.0%})"
    rest = "the others were not needed"
    if race.ending == "decided":
        return f"Decided after {used}; {rest}." if share < 1 else f"Decided after {used}."
    if race.ending == "near tie":
        return f"Stopped as a near tie after {used}: more queries are unlikely to decide; {rest}."
    return f"Not decided with all {race.all_queries:,} queries, after {used}."


def looks_note(race: RaceResult) -> str:
    """Return the sentence on what the intervals of a run that stopped early account for."""
    early = f"Grading stopped early (until {race.goal}). " if race.stopped_early else ""
    looks = count_of(len(race.looks), "planned look", "planned looks")
    return (
        f"{early}Intervals and significance account for {looks}; the chance of a false decision is "
        f"at most {percentage(1.0 - race.level)}."
    )


def race_tests(
    scores: Floats,
    clusters: Ints,
    candidates: Sequence[str],
    race: RaceResult,
    level: float,
    *,
    adjusted: bool = True,
) -> PairwiseTests:
    """Test every pair of columns; p-values account for all looks and, by Holm's rule, all pairs."""
    rows = np.argsort(clusters, kind="stable")
    pairs = paired_means(scores[rows], clusters[rows])
    statistics = normal_statistics(pairs.statistics(), np.maximum(pairs.units - 1.0, 1.0))
    # As in `compare`, the sign-flip test decides on a difference that is the same on all queries.
    statistics += pairs.sign_statistics()
    looks, bounds = _looks(race, candidates), Bounds(race.looks)
    p_values = np.ones_like(statistics)
    shared = np.minimum(looks[:, None], looks)
    for look in np.unique(shared).tolist():
        here = shared == look
        p_values[here] = 2.0 * bounds.p_value(np.abs(statistics[here]), look)
    # As everywhere, an interval or a test needs a minimum of queries.
    p_values = np.where(pairs.units < least_queries(level), 1.0, np.minimum(p_values, 1.0))
    np.fill_diagonal(p_values, 1.0)
    if adjusted:
        p_values = holm(p_values)
    return PairwiseTests(np.where(pairs.units > 0, pairs.values, np.nan), p_values, level)


def _looks(race: RaceResult, candidates: Sequence[str]) -> Ints:
    last = {row.candidate: row.look - 1 for row in race.rows}
    return np.array([last[name] for name in candidates], np.int64)


def over_looks(race: RaceResult, p_value: float, first: str, second: str) -> float:
    """Return a two-sided p-value of one comparison that accounts for all looks."""
    from scipy.special import ndtri

    look = int(_looks(race, [first, second]).min())
    statistic = np.array([-ndtri(max(p_value, 1e-290) / 2.0)])
    return min(1.0, 2.0 * float(Bounds(race.looks).p_value(statistic, look)[0]))


def widen_interval(given: Interval, race: RaceResult, level: float, *candidates: str) -> Interval:
    """Return an interval of one look, widened to account for all looks up to the candidates'."""
    factor = Bounds(race.looks).widening(int(_looks(race, candidates).min()), level)
    value = given.value
    return Interval(
        value, value - factor * (value - given.low), value + factor * (given.high - value)
    )
