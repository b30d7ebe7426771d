"""How often the check of a judge's identity would stop a run, from stored judgments of two judges.

    python studies/judges/canary_rule.py [--record]

needs no judge and no data. A check asks eight finished items again, the least certain item of eight
responses. Here they are drawn 4,000 times from responses that were judged twice: by the same judge
after a restart or on another machine, and by other judges. A run stops if their answers differ by
more than the rule of rocketeval/grading/canaries.py allows a judge that varies by itself. The other
column leaves out the part of the rule that looks at how many answers are as before.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
STUDIES = HERE.parent
sys.path[:0] = [str(STUDIES), str(HERE), str(STUDIES / "mt_bench")]

import judgments  # noqa: E402
from compare_forms import in_both  # noqa: E402

from rocketeval.arrays import Floats  # noqa: E402
from rocketeval.grading.canaries import EXACT, FLOOR, FLOOR_IF_SOME, MOST_CANARIES  # noqa: E402

DRAWS = 4_000
RECORDED = HERE / "recorded"
MT_BENCH = STUDIES / "mt_bench" / "recorded" / "judgments"
FIRST, SECOND = (
    MT_BENCH / "first_turn_checklist.parquet",
    MT_BENCH / "second_turn_checklist.parquet",
)
SAME = {
    "restarted": (FIRST, RECORDED / "first_turn_int8_again.parquet"),
    "another machine": (FIRST, RECORDED / "first_turn_int8_other_machine.parquet"),
    "another machine, second turn": (SECOND, RECORDED / "second_turn_int8_other_machine.parquet"),
}
OTHER = {
    "float32": (FIRST, MT_BENCH / "first_turn_float32.parquet"),
    "int8 with overflow": (FIRST, RECORDED / "first_turn_int8_overflow.parquet"),
    "int8 multiplied in float32": (FIRST, RECORDED / "first_turn_int8_in_float32.parquet"),
    "0.5B judge": (FIRST, MT_BENCH / "first_turn_checklist_0.5b.parquet"),
}


@dataclass(frozen=True)
class Row:
    """Two judgings of the same responses."""

    name: str
    responses: int
    as_before: float
    """Share of the items whose answer is the same."""
    stops: float
    """Share of the checks that stop a run."""
    stops_by_size: float
    """The same by the size of the difference alone."""

    def __str__(self) -> str:
        shares = (self.as_before, self.stops, self.stops_by_size)
        return f"{self.name:34}{self.responses:9}" + "".join(f"{each:15.1%}" for each in shares)


def differences(one: Path, two: Path) -> Floats:
    """Return the difference in log-odds of each response's least certain item."""
    first, second = in_both(judgments.read(one), judgments.read(two))
    found = []
    for start, end in zip(first.offsets[:-1], first.offsets[1:], strict=True):
        before, now = first.p_yes[start:end], second.p_yes[start:end]
        place = int(np.nanargmin(np.abs(before - 0.5)))
        found.append(np.diff([np.log(p / (1 - p)) for p in (before[place], now[place])])[0])
    return np.abs(np.array(found))


def row(name: str, one: Path, two: Path) -> Row:
    """Return what a check sees in two judgings."""
    moved = differences(one, two)
    moved = moved[np.isfinite(moved)]
    drawn = np.random.default_rng(0).choice(moved, (DRAWS, MOST_CANARIES))
    size = np.sqrt((drawn**2).mean(axis=1))
    some = (drawn <= EXACT).sum(axis=1) >= MOST_CANARIES / 2
    stops = size > np.where(some, FLOOR_IF_SOME, FLOOR)
    same = float((moved <= EXACT).mean())
    return Row(name, len(moved), same, float(stops.mean()), float((size > FLOOR).mean()))


def lines() -> list[str]:
    """Return the study as text."""
    head = f"{'':34}{'responses':>9}{'as before':>15}{'a check stops':>15}{'by size alone':>15}"
    made = [head, "the 1.5B judge in int8, again"]
    made += [str(row(f"  {name}", *pair)) for name, pair in SAME.items()]
    made.append("another judge")
    return made + [str(row(f"  {name}", *pair)) for name, pair in OTHER.items()]


def main() -> None:
    """Print the table, and keep it with `--record`."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--record", action="store_true", help="write recorded/canary_rule.txt")
    given = parser.parse_args()
    text = "\n".join(lines()) + "\n"
    print(text, end="")
    if given.record:
        (RECORDED / "canary_rule.txt").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
