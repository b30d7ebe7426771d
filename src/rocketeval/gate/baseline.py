"""Baselines: the scores of an accepted version in a file, and the paired test against them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from filelock import FileLock
from pydantic import Field, ValidationError

from rocketeval.errors import BenchmarkError, ConfigError
from rocketeval.grid import ROUNDING
from rocketeval.resources import first_mistake
from rocketeval.settings import Section
from rocketeval.stats.bootstrap import least_queries
from rocketeval.store.files import make_folder, write_bytes
from rocketeval.text import NO_INTERVAL, chance, count_of, join_words, percentage, printable

if TYPE_CHECKING:
    from rocketeval.compare.pair import Comparison
    from rocketeval.grader import ResponseGrade

SCHEMA = 1
TIE = 0.01
"""Scores from 0 to 1 that are closer than this count as a tie."""
MOST_SHOWN = 5
FLIPPED = 0.25
"""An item is named if its value fell by this much."""


class ItemScore(Section):
    """An item of a case and its value."""

    text: str
    value: float | None


class CaseScore(Section):
    """The score of one case in a baseline."""

    score: float | None
    checklist: str
    """Hash of the checklist as scored."""
    items: list[ItemScore]

    @classmethod
    def of(cls, graded: ResponseGrade) -> CaseScore:
        """Return what a baseline keeps of a graded response."""
        return cls(
            score=_rounded(graded.score),
            checklist=graded.checklist.hex(),
            items=[
                ItemScore(text=item.text, value=_rounded(item.value, 4)) for item in graded.items
            ],
        )


class ScoredTest(Section):
    """The scores of one test."""

    judge: str
    """Name of the judge."""
    fingerprint: str
    """Hash of the judge's fingerprint."""
    cases: dict[str, CaseScore]


class BaselineContent(Section):
    """A baseline file."""

    schema_version: int = Field(SCHEMA, alias="schema")
    tests: dict[str, ScoredTest] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Regression:
    """A case whose score fell."""

    case: str
    before: float
    now: float
    items: tuple[tuple[str, float, float], ...]
    """Items whose value fell most: text, before, now."""


@dataclass(frozen=True, slots=True)
class BaselineComparison:
    """A test's scores compared with its baseline."""

    comparison: Comparison
    regressions: tuple[Regression, ...]
    """The largest first."""
    changed: tuple[str, ...]
    """Cases that were left out because their checklist changed."""
    new: tuple[str, ...]
    """Cases that the baseline does not have."""
    gone: tuple[str, ...]
    """Cases of the baseline that were not scored now."""
    lost: tuple[str, ...]
    """Cases left out because they have a score in the baseline and none now."""
    gained: tuple[str, ...]
    """Cases left out because they have a score now and none in the baseline."""
    unscored: tuple[str, ...]
    """Cases left out because they have no score on either side."""

    @property
    def summary(self) -> str:
        """The difference, its interval and p-value, and the missing scores in a line."""
        effect = shown_effect(self.comparison, "case", "cases")
        counts = [f"{len(names):,} {where}" for names, where in self._missing() if names]
        return f"{effect}, missing scores: {', '.join(counts)}" if counts else effect

    def describe(self) -> str:
        """Return the summary, the largest regressions with their items, and what was left out."""
        lines = [self.summary]
        for fall in self.regressions[:MOST_SHOWN]:
            lines.append(f"  {fall.case}: {fall.before:.2f} -> {fall.now:.2f}")
            lines += [f"    {was:.2f} -> {now:.2f}  {text}" for text, was, now in fall.items]
        more = len(self.regressions) - MOST_SHOWN
        if more > 0:
            lines.append(f"  and {more} more cases with a lower score")
        return "\n".join(map(printable, [*lines, *self.left_out]))

    @property
    def left_out(self) -> tuple[str, ...]:
        """A line per reason to leave cases out, with their names."""
        reasons = [
            *((f"left out, no score {where}", names) for names, where in self._missing()),
            ("left out, checklist changed", self.changed),
            ("left out, not in the baseline", self.new),
            ("in the baseline, but not scored", self.gone),
        ]
        return tuple(
            f"  {what}: {join_words(names, most=MOST_SHOWN)}" for what, names in reasons if names
        )

    def _missing(self) -> tuple[tuple[tuple[str, ...], str], ...]:
        """Return the cases without a score, and the side that has none."""
        return (self.lost, "now"), (self.gained, "in the baseline"), (self.unscored, "in both")


def shown_bounds(found: Comparison, one: str = "query", many: str = "queries") -> str:
    """Return the bounds of the difference, or why there are none."""
    if not math.isnan(found.effect.low):
        return f"{found.effect.low:+.3f} to {found.effect.high:+.3f}"
    if found.clusters >= least_queries(found.level):
        return f"{NO_INTERVAL}: the same on all {many}"
    if found.clusters < found.queries:
        few = f"{found.queries:,} {many} in {count_of(found.clusters, 'cluster', 'clusters')} are"
    else:
        few = count_of(found.queries, f"{one} is", f"{many} are")
    return f"{NO_INTERVAL}: {few} too few"


def shown_effect(found: Comparison, one: str = "query", many: str = "queries") -> str:
    """Return the mean difference with its interval, p-value and number of queries or cases."""
    bounds = shown_bounds(found, one, many)
    if not math.isnan(found.effect.low):
        bounds = f"{percentage(found.level)} interval {bounds}"
    both = f"on {shown_count(found)} {one if found.queries + found.missing == 1 else many}"
    return f"mean difference {found.effect.value:+.3f} ({bounds}, {chance(found.p_value)}) {both}"


def shown_count(found: Comparison) -> str:
    """Return how many queries or cases have both scores, and of how many if some do not."""
    every = found.queries + found.missing
    return f"{found.queries:,} of {every:,}" if found.missing else f"{found.queries:,}"


class BaselineFile:
    """A JSON file with one section per test; processes may update it at the same time."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self, test: str) -> ScoredTest:
        """Return the scores of a test; ConfigError if there are none."""
        content = self._content()
        if test not in content.tests:
            raise ConfigError(
                f"{self.path} has no baseline of {test}.",
                hint="Accept the present scores: pytest --rocketeval-update-baseline.",
            )
        return content.tests[test]

    def write(self, test: str, scores: ScoredTest) -> None:
        """Add the scores of a test, or replace them."""
        make_folder(self.path.parent)
        with FileLock(f"{self.path}.lock"):
            content = self._content()
            tests = {**content.tests, test: scores}
            ordered = {name: tests[name] for name in sorted(tests)}
            text = BaselineContent(schema=SCHEMA, tests=ordered).model_dump_json(
                indent=1, by_alias=True
            )
            write_bytes(self.path, f"{text}\n".encode())

    def _content(self) -> BaselineContent:
        try:
            return BaselineContent.model_validate_json(self.path.read_bytes())
        except FileNotFoundError:
            return BaselineContent(schema=SCHEMA)
        except ValidationError as error:
            raise ConfigError(
                f"The baseline {self.path} is invalid: {first_mistake(error, 'file')}.",
                hint="Restore it, or accept the present scores: --rocketeval-update-baseline.",
            ) from None


def scored_test(graded: Mapping[str, ResponseGrade]) -> ScoredTest:
    """Return the scores of a test's cases; BenchmarkError if two judges gave them."""
    judges = {one.judge.digest.hex(): one.judge.model for one in graded.values() if one.judge}
    if len(judges) > 1:
        raise BenchmarkError(
            "The cases were scored by two judges.", hint="Run the test again with one judge."
        )
    digest, model = next(iter(judges.items()), ("", "code checks"))
    cases = {name: CaseScore.of(one) for name, one in graded.items()}
    return ScoredTest(judge=model, fingerprint=digest, cases=cases)


def below(value: float, limit: float) -> bool:
    """Return whether a mean is below a limit; rounding in its sum does not count.

    >>> below(sum([0.8] * 6) / 6, 0.8), below(0.79, 0.8)
    (False, True)
    """
    return value < limit - ROUNDING


def compare_scores(
    now: ScoredTest, before: ScoredTest, *, level: float = 0.95
) -> BaselineComparison:
    """Compare the cases that both have, with the paired test of `rocketeval compare`."""
    from rocketeval.compare.pair import compare
    from rocketeval.grid import ScoreGrid

    if now.fingerprint != before.fingerprint:
        raise ConfigError(
            f"The baseline was scored by another judge ({before.judge}) than now ({now.judge}).",
            hint="Use the same judge, or accept new scores: --rocketeval-update-baseline.",
        )
    both = [name for name in now.cases if name in before.cases]
    same = [name for name in both if now.cases[name].checklist == before.cases[name].checklist]
    if not same:
        raise ConfigError(
            "No case has the same checklist in the baseline.",
            hint="Accept the present scores: pytest --rocketeval-update-baseline.",
        )
    pairs = [[_score(now, name), _score(before, name)] for name in same]
    scores = np.array(pairs, dtype=np.float64)
    missing = dict(zip(same, np.isnan(scores).tolist(), strict=True))
    found = compare(
        ScoreGrid(tuple(same), ("now", "baseline"), scores),
        "now",
        "baseline",
        tie_margin=TIE,
        level=level,
    )
    return BaselineComparison(
        comparison=found,
        regressions=_regressions(now, before, same),
        changed=tuple(name for name in both if name not in same),
        new=tuple(name for name in now.cases if name not in before.cases),
        gone=tuple(name for name in before.cases if name not in now.cases),
        lost=_names_where(missing, [True, False]),
        gained=_names_where(missing, [False, True]),
        unscored=_names_where(missing, [True, True]),
    )


def _regressions(
    now: ScoredTest, before: ScoredTest, names: Sequence[str]
) -> tuple[Regression, ...]:
    falls = []
    for name in names:
        ours, theirs = now.cases[name], before.cases[name]
        if ours.score is None or theirs.score is None or theirs.score - ours.score < TIE:
            continue
        pairs = zip(theirs.items, ours.items, strict=True)
        items = [
            (was.text, was.value, new.value)
            for was, new in pairs
            if was.value is not None and new.value is not None and was.value - new.value >= FLIPPED
        ]
        items.sort(key=lambda row: row[2] - row[1])
        falls.append(Regression(name, theirs.score, ours.score, tuple(items)))
    return tuple(sorted(falls, key=lambda fall: fall.now - fall.before))


def _names_where(missing: Mapping[str, list[bool]], sides: list[bool]) -> tuple[str, ...]:
    return tuple(name for name, found in missing.items() if found == sides)


def _score(scores: ScoredTest, name: str) -> float:
    found = scores.cases[name].score
    return np.nan if found is None else found


def _rounded(value: float | None, digits: int = 6) -> float | None:
    return None if value is None else round(value, digits)
