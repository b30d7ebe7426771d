"""The CI gate: the run of a branch compared with that of its base, and the comment about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rocketeval.compare.pair import ComparisonVerdict
from rocketeval.gate.baseline import below, shown_bounds, shown_count
from rocketeval.judges.runs import open_run
from rocketeval.report.run_diff import CandidateDiff, RunDiff, diff_runs
from rocketeval.text import TOO_FEW, chance, count_of, join_words, percentage

MOST_SHOWN = 10


@dataclass(frozen=True, slots=True)
class GateOutcome:
    """Both runs, compared candidate by candidate."""

    diff: RunDiff
    max_drop: float | None = None

    @property
    def failed(self) -> tuple[CandidateDiff, ...]:
        """Candidates that fail the gate."""
        return tuple(filter(self._fails, self.diff.candidates))

    @property
    def lost(self) -> str:
        """The number of scores that only the base has, with their candidates; empty if none.

        These queries are left out of the comparison, so a candidate can pass without them.
        """
        lost = {one.candidate: one.missing.now for one in self.diff.candidates if one.missing.now}
        if not lost:
            return ""
        by_name = join_words(
            (f"{name}: {count:,}" for name, count in lost.items()), most=MOST_SHOWN
        )
        scores = count_of(sum(lost.values()), "score that the base has", "scores that the base has")
        return f"{scores} ({by_name})"

    @property
    def untested(self) -> str:
        """The candidates with too few queries for a test; empty if there are none."""
        names = [one.candidate for one in self.diff.candidates if not one.tested]
        return join_words(names, most=MOST_SHOWN)

    @property
    def could_fail(self) -> bool:
        """Whether anything was tested: a difference, or a fall by more than the largest allowed."""
        return self.max_drop is not None or any(one.tested for one in self.diff.candidates)

    def _fails(self, one: CandidateDiff) -> bool:
        found = one.comparison
        fell = self.max_drop is not None and below(found.effect.value, -self.max_drop)
        return fell or found.verdict is ComparisonVerdict.WORSE


def compare_runs(
    head: Path,
    base: Path,
    *,
    candidates: Sequence[str] = (),
    max_drop: float | None = None,
    level: float = 0.95,
) -> GateOutcome:
    """Compare the scores of two runs; ConfigError if they are not comparable."""
    return GateOutcome(diff_runs(open_run(head), open_run(base), candidates, level), max_drop)


def gate_comment(outcome: GateOutcome, report: str | None = None) -> str:
    """Return the comment on a pull request, in Markdown; untrusted text cannot leave its cell."""
    failed = outcome.failed
    head = "failed" if failed else "passed" if outcome.could_fail else "without a test"
    lines = [f"### RocketEval gate {head}", ""]
    if outcome.untested:
        lines[0] += f", {TOO_FEW}"
        lines += [f"**{TOO_FEW.capitalize()} to test {_cell(outcome.untested)}.**", ""]
    if outcome.lost:
        lines[0] += ", with missing scores"
        lines += [f"**This branch lacks {_cell(outcome.lost)}.** They are not compared.", ""]
    level = percentage(outcome.diff.candidates[0].comparison.level)
    lines += [
        f"| candidate | verdict | mean difference | {level} interval | p | queries |",
        "|---|---|---|---|---|---|",
    ]
    for one in outcome.diff.candidates:
        found = one.comparison
        lines.append(
            f"| {_cell(one.candidate)} | {one.verdict} | {found.effect.value:+.3f} | "
            f"{shown_bounds(found)} | {chance(found.p_value).removeprefix('p ').removeprefix('= ')}"
            f" | {shown_count(found)} |"
        )
    for one in outcome.diff.candidates:
        if one.falls:
            falls = count_of(len(one.falls), "query", "queries")
            lines += ["", f"**{_cell(one.candidate)}: {falls} with a lower score**"]
            lines += ["", "| query | base | this branch | worse answers |", "|---|---|---|---|"]
            lines += [
                f"| {_cell(fall.query)}: {_cell(fall.snippet[:80])} | {fall.before:.2f} | "
                f"{fall.now:.2f} | {fall.worse_answers} |"
                for fall in one.falls[:MOST_SHOWN]
            ]
            more = len(one.falls) - MOST_SHOWN
            if more > 0:
                lines += ["", f"and {more:,} more"]
    diff = outcome.diff
    notes = [f"Judge: {_cell(diff.head.store.judge().model)}.", *map(_cell, diff.notes)]
    if diff.new:
        notes.append(f"Only in this branch: {_cell(', '.join(diff.new))}.")
    if diff.gone:
        notes.append(f"Only in the base: {_cell(', '.join(diff.gone))}.")
    if report:
        notes.append(f"[Report]({report})")
    return "\n".join([*lines, "", " ".join(notes), ""])


def _cell(text: str) -> str:
    """Return a text for one cell of a table: no line breaks, links, images, HTML or mentions."""
    plain = " ".join(text.split())
    for mark in "\\`*_[]()<>|!#~":
        plain = plain.replace(mark, f"\\{mark}")
    return plain.replace("@", "@\u200b")
