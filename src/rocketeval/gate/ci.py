"""The CI gate: the run of a branch compared with that of its base, and the comment about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rocketeval.compare.pair import Comparison, ComparisonVerdict, compare
from rocketeval.errors import ConfigError
from rocketeval.grid import ScoreGrid
from rocketeval.judges.runs import JudgedRun, open_run, refuse_other_scales
from rocketeval.scoring.stage import read_grid

HEAD, BASE = "this branch", "base"
MOST_SHOWN = 10
VERDICTS = {
    ComparisonVerdict.BETTER: "significantly better",
    ComparisonVerdict.WORSE: "significantly worse",
    ComparisonVerdict.EQUAL: "equal enough",
    ComparisonVerdict.UNKNOWN: "no significant difference",
}


@dataclass(frozen=True, slots=True)
class QueryFall:
    """A query on which a candidate's score fell."""

    query_id: str
    text: str
    before: float
    now: float


@dataclass(frozen=True, slots=True)
class CandidateGate:
    """One candidate of both runs."""

    candidate: str
    comparison: Comparison
    falls: tuple[QueryFall, ...]
    """The largest first."""

    @property
    def worse(self) -> bool:
        """Whether it is significantly worse than in the base run."""
        return self.comparison.verdict is ComparisonVerdict.WORSE


@dataclass(frozen=True, slots=True)
class GateOutcome:
    """Both runs, compared candidate by candidate."""

    judge: str
    candidates: tuple[CandidateGate, ...]
    new: tuple[str, ...]
    """Candidates that only the branch has."""
    gone: tuple[str, ...]
    max_drop: float | None = None

    @property
    def failed(self) -> tuple[CandidateGate, ...]:
        """Candidates that fail the gate."""
        return tuple(
            one
            for one in self.candidates
            if one.worse
            or (self.max_drop is not None and one.comparison.effect.value < -self.max_drop)
        )


def compare_runs(
    head: Path,
    base: Path,
    *,
    candidates: Sequence[str] = (),
    max_drop: float | None = None,
    level: float = 0.95,
) -> GateOutcome:
    """Compare the scores of two runs, query by query; ConfigError if their judges differ."""
    ours, theirs = open_run(head), open_run(base)
    refuse_other_scales([ours, theirs])
    changed = theirs.store.judge().changes(ours.store.judge())
    if changed:
        named = ", ".join(f"{part}: {was} -> {now}" for part, (was, now) in changed.items())
        raise ConfigError(
            f"The base run has another judge ({named}): its scores are not comparable.",
            hint="Grade the base again with this judge.",
        )
    grids = read_grid(ours.store), read_grid(theirs.store)
    both = [name for name in grids[0].candidates if name in grids[1].candidates]
    chosen = [name for name in candidates or both if name in both]
    if not chosen:
        raise ConfigError(
            "The two runs have no candidate in common.",
            hint="Give the version under test the same candidate name in both.",
        )
    return GateOutcome(
        judge=ours.store.judge().model,
        candidates=tuple(_candidate(name, grids, ours, level) for name in chosen),
        new=tuple(name for name in grids[0].candidates if name not in grids[1].candidates),
        gone=tuple(name for name in grids[1].candidates if name not in grids[0].candidates),
        max_drop=max_drop,
    )


def _candidate(
    name: str, grids: tuple[ScoreGrid, ScoreGrid], run: JudgedRun, level: float
) -> CandidateGate:
    head, base = (
        dict(zip(grid.query_ids, grid.scores[:, grid.candidates.index(name)], strict=True))
        for grid in grids
    )
    shared = [query for query in head if query in base]
    if not shared:
        raise ConfigError(f"The two runs share no query of {name!r}.")
    scores = np.array([[head[query], base[query]] for query in shared])
    clusters = grids[0].cluster_names()
    pair = ScoreGrid(
        tuple(shared),
        (HEAD, BASE),
        scores,
        None if clusters is None else tuple(clusters[query] for query in shared),
    )
    texts = run.store.inputs.queries
    margin = run.config.ranking.tie_margin
    falls = [
        QueryFall(query, texts[query].text, float(base[query]), float(head[query]))
        for query in shared
        if base[query] - head[query] >= margin
    ]
    falls.sort(key=lambda fall: fall.now - fall.before)
    found = compare(pair, HEAD, BASE, tie_margin=margin, level=level)
    return CandidateGate(name, found, tuple(falls))


def gate_comment(outcome: GateOutcome, report: str | None = None) -> str:
    """Return the comment on a pull request, in Markdown; untrusted text cannot leave its cell."""
    failed = outcome.failed
    head = "failed" if failed else "passed"
    lines = [f"### RocketEval gate {head}", ""]
    lines += [
        "| candidate | verdict | mean difference | 95% interval | p | queries |",
        "|---|---|---|---|---|---|",
    ]
    for one in outcome.candidates:
        found = one.comparison
        effect = found.effect
        lines.append(
            f"| {_cell(one.candidate)} | {VERDICTS[found.verdict]} | {effect.value:+.3f} | "
            f"{effect.low:+.3f} to {effect.high:+.3f} | {found.p_value:.3f} | {found.queries} |"
        )
    for one in outcome.candidates:
        if one.falls:
            lines += [
                "",
                f"**{_cell(one.candidate)}: {len(one.falls)} queries with a lower score**",
            ]
            lines += ["", "| query | base | this branch |", "|---|---|---|"]
            lines += [
                f"| {_cell(fall.query_id)}: {_cell(fall.text[:80])} | {fall.before:.2f} | "
                f"{fall.now:.2f} |"
                for fall in one.falls[:MOST_SHOWN]
            ]
    notes = [f"Judge: {_cell(outcome.judge)}."]
    if outcome.new:
        notes.append(f"Only in this branch: {_cell(', '.join(outcome.new))}.")
    if outcome.gone:
        notes.append(f"Only in the base: {_cell(', '.join(outcome.gone))}.")
    if report:
        notes.append(f"[Report]({report})")
    return "\n".join([*lines, "", " ".join(notes), ""])


def _cell(text: str) -> str:
    """Return a text for one cell of a table: no line breaks, links, images, HTML or mentions."""
    plain = " ".join(text.split())
    for mark in "\\`*_[]()<>|!#~":
        plain = plain.replace(mark, f"\\{mark}")
    return plain.replace("@", "@\u200b")
