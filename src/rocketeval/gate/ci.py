"""The CI gate: the run of a branch compared with that of its base, and the comment about it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from rocketeval.arrays import Floats
from rocketeval.compare.pair import ComparisonVerdict
from rocketeval.gate.baseline import shown_bounds, shown_count, shown_level
from rocketeval.judges.runs import open_run
from rocketeval.report.run_diff import VERDICTS, CandidateDiff, RunDiff, diff_runs, flips
from rocketeval.scoring.read_answers import scored_answers
from rocketeval.store.run import RunStore
from rocketeval.text import chance, count_of, join_words

MOST_SHOWN = 10


@dataclass(frozen=True, slots=True)
class GateOutcome:
    """Both runs, compared candidate by candidate."""

    diff: RunDiff
    max_drop: float | None = None
    worse_answers: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """Answers that flipped for the worse (to no; for a penalty to yes), of each response with a
    lower score, by query id and candidate."""

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

    def _fails(self, one: CandidateDiff) -> bool:
        found = one.comparison
        fell = self.max_drop is not None and found.effect.value < -self.max_drop
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
    diff = diff_runs(open_run(head), open_run(base), candidates, level)
    return GateOutcome(diff, max_drop, _worse_answers(diff))


def _worse_answers(diff: RunDiff) -> dict[tuple[str, str], int]:
    """Count the answers that flipped for the worse, of each response with a lower score."""
    cells = {(fall.query, one.candidate) for one in diff.candidates for fall in one.falls}
    if not cells:
        return {}
    before, now = (_turned_answers(run.store, cells) for run in (diff.base, diff.head))
    none = np.empty(0)
    return {cell: flips(before.get(cell, none), now.get(cell, none))[0] for cell in cells}


def _turned_answers(
    store: RunStore, cells: Collection[tuple[str, str]]
) -> dict[tuple[str, str], Floats]:
    """Return the answers of some responses, those of penalties turned around."""
    found, _ = scored_answers(store)
    turned, offsets = found.turned, found.offsets
    return {
        cell: turned[offsets[row] : offsets[row + 1]]
        for row, cell in enumerate(zip(found.query_ids, found.candidates, strict=True))
        if cell in cells
    }


def gate_comment(outcome: GateOutcome, report: str | None = None) -> str:
    """Return the comment on a pull request, in Markdown; untrusted text cannot leave its cell."""
    failed = outcome.failed
    head = "failed" if failed else "passed"
    lines = [f"### RocketEval gate {head}", ""]
    if outcome.lost:
        lines[0] += ", with missing scores"
        lines += [f"**This branch lacks {_cell(outcome.lost)}.** They are not compared.", ""]
    level = shown_level(outcome.diff.candidates[0].comparison.level)
    lines += [
        f"| candidate | verdict | mean difference | {level} interval | p | queries |",
        "|---|---|---|---|---|---|",
    ]
    for one in outcome.diff.candidates:
        found = one.comparison
        lines.append(
            f"| {_cell(one.candidate)} | {VERDICTS[found.verdict]} | {found.effect.value:+.3f} | "
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
                f"{fall.now:.2f} | {outcome.worse_answers.get((fall.query, one.candidate), 0)} |"
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
