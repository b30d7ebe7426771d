"""What changed between two runs: verdicts, scores, answers and responses.

Two runs are comparable if the same judge graded them in the same way and the same scorer scored
them. Candidates are compared on the queries whose text and checklist are equal in both, with the
paired test of `rocketeval compare`. Verdicts are about scores, not quality: whether the judge is
right, the audit says. An answer flipped if it crossed 0.5 and moved by `FLIPPED` or
more. It is then worse or better: for a penalty, yes is the worse answer. An answer to an item that
more likely does not apply, in one of the runs or both, cannot flip.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rocketeval.arrays import Floats, Ints
from rocketeval.compare.pair import Comparison, ComparisonVerdict, compare
from rocketeval.errors import ConfigError
from rocketeval.grid import ScoreGrid, win_threshold
from rocketeval.judges.runs import JudgedRun
from rocketeval.ranking.stage import clipping_scale
from rocketeval.records import Query
from rocketeval.scoring.read_answers import scored_answers
from rocketeval.scoring.stage import read_grid, scoring_change
from rocketeval.stats.bootstrap import least_queries
from rocketeval.stopping.race import RaceResult
from rocketeval.store.run import RunStore
from rocketeval.text import TOO_FEW, count_of, join_words

HEAD, BASE = "this run", "baseline"
FLIPPED = 0.1
"""How far an answer must move, across 0.5, to count as flipped."""
SNIPPET = 160
MOST_NAMED = 10
"""Candidates that an error or a note names."""
VERDICTS = {
    ComparisonVerdict.BETTER: "scores significantly higher",
    ComparisonVerdict.WORSE: "scores significantly lower",
    ComparisonVerdict.EQUAL: "equal enough",
    ComparisonVerdict.UNKNOWN: "no significant difference",
}


@dataclass(frozen=True, slots=True)
class ResponseChange:
    """One response in both runs, whose score, answers or text differ."""

    query: str
    """Id of its query."""
    snippet: str
    """The start of the query."""
    candidate: str
    before: float
    now: float
    worse_answers: int
    """Answers that flipped to no, or to yes for a penalty."""
    better_answers: int
    """Answers that flipped to yes, or to no for a penalty."""
    rewritten: bool
    """Whether the text of the response differs."""


@dataclass(frozen=True, slots=True)
class BestChange:
    """A query on which other candidates have the best response than before."""

    query: str
    snippet: str
    before: tuple[str, ...]
    """Candidates that were best, up to the tie margin."""
    now: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MissingScores:
    """Counts of queries that were left out of a comparison because a score is missing."""

    now: int
    """Only this run has no score."""
    before: int
    """Only the baseline has no score."""
    both: int

    @classmethod
    def of(cls, now: Floats, before: Floats) -> MissingScores:
        """Count the missing scores (NaN) in two columns of the same queries.

        >>> MissingScores.of(np.array([np.nan, 0.5, np.nan]), np.array([0.5, 0.5, np.nan]))
        MissingScores(now=1, before=0, both=1)
        """
        here, there = np.isnan(now), np.isnan(before)
        return cls(
            int((here & ~there).sum()), int((there & ~here).sum()), int((here & there).sum())
        )

    @property
    def total(self) -> int:
        """All queries that were left out."""
        return self.now + self.before + self.both

    @property
    def by_side(self) -> str:
        """The counts, with the side that has no score.

        >>> MissingScores(6, 0, 1).by_side
        '6 in this run, 1 in both'
        """
        sides = (self.now, "this run"), (self.before, "the baseline"), (self.both, "both")
        return ", ".join(f"{count:,} in {where}" for count, where in sides if count)


@dataclass(frozen=True, slots=True)
class CandidateDiff:
    """One candidate in both runs."""

    comparison: Comparison
    """This run against the baseline."""
    candidate: str
    before: float
    """Mean score in the baseline, on the queries with both scores, clipped as in the ranking."""
    now: float
    changes: tuple[ResponseChange, ...]
    """The largest fall first."""
    missing: MissingScores
    """Queries that were left out because a score is missing."""

    @property
    def tested(self) -> bool:
        """Whether the queries are enough for a test."""
        return self.comparison.clusters >= least_queries(self.comparison.level)

    @property
    def verdict(self) -> str:
        """The verdict in words."""
        return VERDICTS[self.comparison.verdict] if self.tested else TOO_FEW

    @property
    def falls(self) -> tuple[ResponseChange, ...]:
        """Responses whose score fell by the tie margin or more, the largest fall first."""
        least = win_threshold(self.comparison.tie_margin)
        return tuple(one for one in self.changes if one.before - one.now >= least)


@dataclass(frozen=True, slots=True)
class RunDiff:
    """A run compared with a baseline run."""

    head: JudgedRun
    base: JudgedRun
    candidates: tuple[CandidateDiff, ...]
    best: tuple[BestChange, ...]
    new: tuple[str, ...]
    """Candidates that only this run has."""
    gone: tuple[str, ...]
    """Candidates that only the baseline has."""
    notes: tuple[str, ...]
    """What was left out, and reasons for caution."""


def why_not_comparable(head: JudgedRun, base: JudgedRun) -> str:
    """Return why the scores of two runs mean different things; empty if they are comparable."""
    changed = base.store.judge().changes(head.store.judge())
    if changed:
        named = ", ".join(f"{part}: {was} -> {now}" for part, (was, now) in changed.items())
        return f"The baseline has another judge ({named}): its scores are not comparable."
    scoring = scoring_change(base.config, head.config)
    if scoring:
        return f"The baseline {scoring}."
    ours, theirs = (run.store.inputs.queries for run in (head, base))
    if not any(_equal(query, theirs.get(name)) for name, query in ours.items()):
        return "The baseline has another benchmark: the runs have no query in common."
    return ""


def diff_runs(
    head: JudgedRun,
    base: JudgedRun,
    candidates: Sequence[str] = (),
    level: float = 0.95,
) -> RunDiff:
    """Compare two runs candidate by candidate; ConfigError if they are not comparable."""
    why = why_not_comparable(head, base)
    if why:
        raise ConfigError(why, hint="Grade and score both the same way, or choose another run.")
    grids = read_grid(head.store), read_grid(base.store)
    both = [name for name in grids[0].candidates if name in grids[1].candidates]
    if not both:
        raise ConfigError(
            "The two runs have no candidate in common.",
            hint="Give the version under test the same candidate name in both.",
        )
    sides = {
        f"this run ({head.store.path.name})": grids[0].candidates,
        f"the baseline ({base.store.path.name})": grids[1].candidates,
    }
    chosen = _chosen(candidates, both, sides)
    new = tuple(name for name in grids[0].candidates if name not in both)
    gone = tuple(name for name in grids[1].candidates if name not in both)
    if head.config.evaluator is not None and (new or gone):
        raise ConfigError(
            "The runs have other candidates, and the evaluator's scores depend on them.",
            hint="Compare runs of the same candidates.",
        )
    pair = _CommonCells(head, base, grids, chosen)
    found = tuple(pair.candidate(name, level) for name in chosen)
    return RunDiff(
        head=head,
        base=base,
        candidates=found,
        best=tuple(pair.best()),
        new=new,
        gone=gone,
        notes=(
            *_many_tests(found, level),
            *pair.notes(),
            *_missing_scores(found),
            *_cautions(head, base),
        ),
    )


def _chosen(
    names: Sequence[str], both: Sequence[str], sides: Mapping[str, Sequence[str]]
) -> Sequence[str]:
    """Return the candidates to compare; ConfigError if a run lacks one of them.

    `sides` has the candidates of each run, by its name for people.
    """
    mistakes = []
    for name in names:
        lacking = [run for run, known in sides.items() if name not in known]
        if lacking:
            mistakes.append(f"The candidate {name!r} is missing in {' and in '.join(lacking)}.")
    if mistakes:
        raise ConfigError(
            " ".join(mistakes),
            hint=f"Both runs have: {join_words(map(repr, both), most=MOST_NAMED)}.",
        )
    return list(dict.fromkeys(names)) or both


class _CommonCells:
    """The responses that two runs share, with their scores and answers."""

    def __init__(
        self,
        head: JudgedRun,
        base: JudgedRun,
        grids: tuple[ScoreGrid, ScoreGrid],
        candidates: Sequence[str],
    ) -> None:
        self._head, self._base = head, base
        self._queries = head.store.inputs.queries
        here, there = (set(grid.query_ids) for grid in grids)
        self._only = len(here - there), len(there - here)
        equal = _equal_queries(head.store, base.store, here & there)
        self.query_ids = tuple(name for name in grids[0].query_ids if name in equal)
        self.changed = len(here & there) - len(self.query_ids)
        if not self.query_ids:
            raise ConfigError(
                "No query has the same text and checklist in both runs.",
                hint="Grade the baseline again with the present checklists.",
            )
        self._candidates = tuple(candidates)
        clusters = grids[0].cluster_names()
        self._clusters = (
            None if clusters is None else tuple(clusters[name] for name in self.query_ids)
        )
        self._scores = tuple(_columns(grid, self.query_ids, self._candidates) for grid in grids)
        self._answers = tuple(
            ResponseAnswers(run.store, set(self.query_ids), set(candidates)) for run in (head, base)
        )
        self._hashes = tuple(_hashes(run.store, set(self.query_ids)) for run in (head, base))

    def candidate(self, name: str, level: float) -> CandidateDiff:
        """Test one candidate against its earlier self, and list what changed."""
        column = self._candidates.index(name)
        now, before = (scores[:, column] for scores in self._scores)
        missing = MissingScores.of(now, before)
        if missing.total == len(self.query_ids):
            raise ConfigError(
                f"The candidate {name!r} has no query with a score in both runs "
                f"(missing scores: {missing.by_side}).",
                hint="Grade the same queries in both runs, then score again.",
            )
        ranking = self._head.config.ranking
        grid = ScoreGrid(
            self.query_ids, (HEAD, BASE), np.column_stack([now, before]), self._clusters
        )
        found = compare(
            grid,
            HEAD,
            BASE,
            tie_margin=ranking.tie_margin,
            bootstrap=ranking.bootstrap,
            seed=ranking.seed,
            level=level,
            scale=self._head.config.scorer.scale,
        )
        both = ~(np.isnan(now) | np.isnan(before))
        changes = sorted(self._changes(name, now, before), key=lambda one: one.now - one.before)
        return CandidateDiff(
            found,
            name,
            self._mean(before[both]),
            self._mean(now[both]),
            tuple(changes),
            missing,
        )

    def _mean(self, scores: Floats) -> float:
        """Return a mean score as the ranking shows it."""
        scale, value = clipping_scale(self._head.store, self._head.config), float(scores.mean())
        return value if scale is None else min(max(value, scale[0]), scale[1])

    def _changes(self, name: str, now: Floats, before: Floats) -> Iterator[ResponseChange]:
        for place, query in enumerate(self.query_ids):
            if np.isnan(now[place]) or np.isnan(before[place]):
                continue
            cell = (query, name)
            now_given, given = (answers.of(cell) for answers in self._answers)
            worse, better = flips(given, now_given)
            rewritten = self._hashes[0].get(cell) != self._hashes[1].get(cell)
            moved = abs(now[place] - before[place]) >= win_threshold(0.0)
            if rewritten or worse or better or moved:
                yield ResponseChange(
                    query,
                    _snippet(self._queries[query]),
                    name,
                    float(before[place]),
                    float(now[place]),
                    worse,
                    better,
                    rewritten,
                )

    def best(self) -> Iterator[BestChange]:
        """Yield the queries on which none of the best candidates was best before."""
        if len(self._candidates) < 2:
            return
        least = win_threshold(self._head.config.ranking.tie_margin)
        known = ~np.isnan(self._scores[0] + self._scores[1]).any(axis=1)
        for place in np.flatnonzero(known).tolist():
            now, before = (
                tuple(
                    name
                    for name, score in zip(self._candidates, scores[place], strict=True)
                    if scores[place].max() - score < least
                )
                for scores in self._scores
            )
            if not set(now) & set(before):
                query = self.query_ids[place]
                yield BestChange(query, _snippet(self._queries[query]), before, now)

    def notes(self) -> Iterator[str]:
        """Yield what was left out."""
        if self.changed:
            left_out = count_of(self.changed, "query is", "queries are")
            yield f"{left_out} left out, because the text or checklist changed."
        for count, where in zip(self._only, ("this run", "the baseline"), strict=True):
            if count:
                yield f"{count_of(count, 'query is', 'queries are')} only in {where}."


class ResponseAnswers:
    """The answers of some responses of a run, those of penalties turned around: 1 is better.

    The answer to an item that does not apply is NaN.
    """

    def __init__(self, store: RunStore, queries: Collection[str], names: Collection[str]) -> None:
        found, _ = scored_answers(store)
        self._turned = np.where(found.applies, found.turned, np.nan)
        self._offsets = found.offsets
        cells = enumerate(zip(found.query_ids, found.candidates, strict=True))
        self._rows = {cell: row for row, cell in cells if cell[0] in queries and cell[1] in names}

    def of(self, cell: tuple[str, str]) -> Floats:
        """Return the answers of a response; empty if it was not judged."""
        row = self._rows.get(cell)
        own = slice(0) if row is None else slice(self._offsets[row], self._offsets[row + 1])
        return self._turned[own]


def flips(before: Floats, now: Floats) -> tuple[int, int]:
    """Count the answers that flipped for the worse and for the better, if 1 is always better.

    >>> flips(np.array([0.9, 0.2, 0.55]), np.array([0.1, 0.7, 0.49]))
    (1, 1)
    """
    if len(before) != len(now):
        return 0, 0
    found = flipped(before, now)
    return int((found < 0).sum()), int((found > 0).sum())


def flipped(before: Floats, now: Floats) -> Ints:
    """Return -1 for each answer that flipped for the worse, 1 for the better, and 0 for others.

    A missing answer (NaN) did not flip.
    """
    moved = np.abs(now - before) >= FLIPPED
    yes = (now >= 0.5).astype(np.intp) - (before >= 0.5).astype(np.intp)
    return np.where(moved, yes, 0)


def _equal(query: Query, other: Query | None) -> bool:
    return other is not None and query.content_hash == other.content_hash


def _equal_queries(head: RunStore, base: RunStore, names: Collection[str]) -> set[str]:
    """Return the queries that a judge sees in the same way in both runs."""
    ours, theirs = head.inputs.checklists(), base.inputs.checklists()
    equal = set()
    for name in names:
        mine, other = ours.get(name), theirs.get(name)
        query, before = head.inputs.queries[name], base.inputs.queries[name]
        if mine is None or other is None or mine.scoring_hash != other.scoring_hash:
            continue
        material = query.material_hash(mine.uses) == before.material_hash(mine.uses)
        if material and _equal(query, before):
            equal.add(name)
    return equal


def _columns(grid: ScoreGrid, queries: Sequence[str], candidates: Sequence[str]) -> Floats:
    rows = {name: row for row, name in enumerate(grid.query_ids)}
    return grid.take(
        [rows[name] for name in queries], [grid.candidates.index(name) for name in candidates]
    ).scores


def _hashes(store: RunStore, queries: Collection[str]) -> Mapping[tuple[str, str], bytes]:
    return {
        (head.query_id, head.candidate): head.shown_hash(context=True)
        for head in store.inputs.heads()
        if head.query_id in queries
    }


def _many_tests(candidates: Sequence[CandidateDiff], level: float) -> Iterator[str]:
    """Yield a note on how many candidates look changed by chance."""
    count = sum(one.tested for one in candidates)
    if count > 1:
        yield (
            f"{count} candidates are tested, each at {100 * level:g}% without correction: by "
            f"chance, about {(1 - level) * count:.2g} of {count} unchanged ones would look changed."
        )


def _missing_scores(candidates: Sequence[CandidateDiff]) -> Iterator[str]:
    """Yield a note on the queries that were left out because a score is missing."""
    counts = [
        f"{one.candidate} {count_of(one.missing.total, 'query', 'queries')} ({one.missing.by_side})"
        for one in candidates
        if one.missing.total
    ]
    if counts:
        yield f"Left out because a score is missing: {join_words(counts, most=MOST_NAMED)}."


def _cautions(head: JudgedRun, base: JudgedRun) -> Iterator[str]:
    if head.store.manifest().stages.score.learned.fitted is not None:
        yield (
            "The scorer was fitted in each run, so equal answers can have different scores. "
            "`scorer: {kind: mean}` has no such effect."
        )
    races = [(one, one.store.read_if_made(RaceResult)) for one in (head, base)]
    early = [one.store.path.name for one, race in races if race is not None and race.stopped_early]
    if early:
        names = " and ".join(early)
        yield f"Grading of {names} stopped early, so the queries it covers are not all queries."


def _snippet(query: Query) -> str:
    return " ".join(query.text[: 2 * SNIPPET].split())[:SNIPPET]
