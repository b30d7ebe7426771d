"""RocketEval Fig. 5: the effect of earlier answers, from stored judgments.

    python studies/papers/grade.py qwen2.5-coder-1.5b-instruct-int8 --only mt_bench \\
        --base-url URL                                                      # once, with a judge
    python studies/papers/uncertainty.py [--record]

MT-Bench's first turn, the candidates with votes. Every item is asked after all earlier ones, once
with every earlier answer Yes and once No: the share of items whose answer differs, by position, and
how much larger it is for later items. Intervals are from resamples of the queries. The samples of
Fig. 4 are in studies/mt_bench/sizes.py.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
from runs import record, stored, table  # noqa: E402

from rocketeval.audit.repeatability import Disagreement, disagreement  # noqa: E402
from rocketeval.records import Interval  # noqa: E402
from rocketeval.scoring.answers import AnswerTable  # noqa: E402
from rocketeval.stats.bootstrap import interval, query_places, ratio_draws  # noqa: E402
from rocketeval.text import share  # noqa: E402

EARLIER, LATER = (2, 4), 5
"""Positions that the plan compares: the earlier ones, and the first of the later ones."""


@dataclass(frozen=True)
class Effect:
    """How answers after all Yes and after all No differ."""

    found: Disagreement
    rise: Interval
    """The share that differs at later positions minus the share at earlier ones."""


def compared(one: AnswerTable, two: AnswerTable) -> Effect:
    """Return how two gradings of the same items differ, by position."""
    cells = list(zip(one.query_ids, one.candidates, strict=True))
    if cells != list(zip(two.query_ids, two.candidates, strict=True)):
        raise ValueError("the gradings are of different responses; grade both to the end")
    places = np.concatenate([np.arange(1, count + 1) for count in one.items])
    groups = np.repeat(np.array(one.query_ids), one.items)
    found = disagreement(one.p_yes, two.p_yes, groups, places, bootstrap=2000)
    known = ~(np.isnan(one.p_yes) | np.isnan(two.p_yes))
    differs = (one.p_yes >= 0.5) != (two.p_yes >= 0.5)
    parts = (places >= LATER, (places >= EARLIER[0]) & (places <= EARLIER[1]))
    rows = query_places(groups, len(places))
    differing, items = (
        np.stack([np.bincount(rows, of & part & known) for part in parts], axis=1)
        for of in (differs, np.ones_like(differs))
    )
    later, earlier = differing.sum(axis=0) / items.sum(axis=0)
    draws = ratio_draws(differing, items, times=2000, seed=0)
    rise = interval(later - earlier, draws[:, 0] - draws[:, 1], queries=len(items), level=0.95)
    return Effect(found, rise)


def lines_of(effect: Effect) -> list[str]:
    """Return the figure as text."""
    found, rise = effect.found, effect.rise
    rows = [
        [str(each.position), share(each.differing), str(each.items)] for each in found.by_position
    ]
    rise_text = f"{100 * rise.value:+.1f} ({100 * rise.low:+.1f} to {100 * rise.high:+.1f})"
    rows += [
        ["all", share(found.differing), str(found.items)],
        [f"{LATER} and later minus {EARLIER[0]} to {EARLIER[1]}", rise_text, ""],
    ]
    return [
        "Items answered differently after all Yes and after all No, %",
        *table(["position", "differ", "items"], rows),
    ]


def main() -> None:
    """Print the table, and keep it with `--record`."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--record", action="store_true", help="write recorded/uncertainty.*")
    given = parser.parse_args()
    effect = compared(stored("mt_bench", "all_yes"), stored("mt_bench", "all_no"))
    record("uncertainty", asdict(effect), lines_of(effect), keep=given.record)
    if given.record:
        from plots import earlier_answers

        earlier_answers(effect.found)


if __name__ == "__main__":
    main()
