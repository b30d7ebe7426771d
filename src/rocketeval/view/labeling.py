"""Labeling in `rocketeval view --label`: the queue of pairs, records, and what they show so far."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from rocketeval.audit.figures import find_paired_votes, hits, measure_votes
from rocketeval.benchmarks.collected import (
    Collected,
    CollectedLabel,
    CollectedLabels,
    CollectedVote,
    WrongAnswer,
    labels_in,
    votes_in,
)
from rocketeval.compare.labeling import draw_pairs
from rocketeval.compare.stage import LabelScope, estimate_labels
from rocketeval.config import RunConfig, load_config
from rocketeval.errors import ConfigError, RocketEvalError
from rocketeval.grid import ScoreGrid
from rocketeval.ranking.rank import Ranking
from rocketeval.records import Interval, Label, Vote
from rocketeval.scoring.stage import read_grid
from rocketeval.store.run import RunStore

if TYPE_CHECKING:
    from rocketeval.view.catalog import ViewTarget

QUEUE = 60
"""Number of pairs to hand out at once."""
TOP = 6
"""Pairs are drawn among this many candidates of the ranking."""
AIM = 0.1
"""Half-width of the interval of agreement to aim for."""
FEWEST_VOTES = 5
"""Votes before agreement is shown."""


@dataclass(frozen=True, slots=True)
class QueuedPair:
    """A pair of responses to vote on, in the order to show."""

    query: str
    a: str
    b: str


@dataclass(frozen=True, slots=True)
class LabelEstimate:
    """The estimated mean label of a candidate."""

    candidate: str
    value: Interval
    labels: int


@dataclass(frozen=True, slots=True)
class LabelProgress:
    """What the labels show so far."""

    labeler: str
    votes: int
    """Votes of this labeler."""
    labels: int
    wrong: int
    """Answers of the judge that this labeler marked as wrong."""
    agreement: Interval | None
    """Share of decided votes, of the run and collected, that the judge's scores predict."""
    decided: int
    """Number of these votes."""
    needed: int | None
    """More votes until the interval is about 10 points on each side; None if unknown."""
    estimates: tuple[LabelEstimate, ...]
    saved: str = ""
    """Id of the record that this answers; empty for none."""


@dataclass(frozen=True, slots=True)
class LabelQueue:
    """The pairs to vote on next, and what the labels show so far."""

    pairs: tuple[QueuedPair, ...]
    progress: LabelProgress


class MistakenLabel(RocketEvalError):
    """A label that does not fit the run."""


class Labeling:
    """Collects the labels of one person for one run."""

    def __init__(self, path: Path, labeler: str) -> None:
        """Raise ConfigError if the run's config names no file for labels."""
        self.labeler = labeler
        self._store = RunStore(path)
        self._config = _config_of(path)
        self._file = collected_file(self._config, path)
        self._lock = Lock()

    def queue(self) -> tuple[QueuedPair, ...]:
        """Return the next pairs without a vote."""
        ranked = [row.candidate for row in self._store.read(Ranking).rows[:TOP]]
        voted = {(vote.query_id, _pair(vote)) for vote in self._votes(self._file.records())}
        drawn = draw_pairs(self._grid, ranked, voted=voted, more=QUEUE)
        return tuple(QueuedPair(one.query_id, one.candidate_a, one.candidate_b) for one in drawn)

    def record(self, given: Mapping[str, object]) -> LabelProgress:
        """Write a record, and return the progress once it is on disk."""
        with self._lock:
            if given.get("kind") == "undo":
                self._file.undo(str(given.get("id", "")))
                return self.progress()
            made = self._made(given)
            self._file.add(made)
            return self.progress(made.id)

    def progress(self, saved: str = "") -> LabelProgress:
        """Return what the labels show so far."""
        records = self._file.records()
        own = [one for one in records if one.by == self.labeler]
        agreement, decided = self._agreement(self._votes(records))
        return LabelProgress(
            labeler=self.labeler,
            votes=sum(isinstance(one, CollectedVote) for one in own),
            labels=sum(isinstance(one, CollectedLabel) for one in own),
            wrong=sum(isinstance(one, WrongAnswer) for one in own),
            agreement=agreement,
            decided=decided,
            needed=_needed(agreement, decided),
            estimates=self._estimates([*self._given[1], *labels_in(records)]),
            saved=saved,
        )

    @cached_property
    def _grid(self) -> ScoreGrid:
        return read_grid(self._store)

    @cached_property
    def _given(self) -> tuple[list[Vote], list[Label]]:
        """Votes and labels of the run that are not in the file."""
        records = self._file.records()
        votes, labels = set(votes_in(records)), set(labels_in(records))
        inputs = self._store.inputs
        return (
            [vote for vote in inputs.votes() if vote not in votes],
            [label for label in inputs.labels() if label not in labels],
        )

    def _votes(self, records: Sequence[Collected]) -> list[Vote]:
        return [*self._given[0], *votes_in(records)]

    def _agreement(self, votes: Sequence[Vote]) -> tuple[Interval | None, int]:
        paired = find_paired_votes(self._grid, votes)
        own = hits(paired, self._grid.scores, self._config.ranking.tie_margin)
        decided = int((~np.isnan(own.without_ties)).sum())
        if decided < FEWEST_VOTES:
            return None, decided
        found = measure_votes(paired, {"judge": own})["judge"].without_ties
        return (None if found is None else found.value), decided

    def _estimates(self, labels: Sequence[Label]) -> tuple[LabelEstimate, ...]:
        try:
            found = estimate_labels(self._store, self._config, LabelScope(), 0.95, labels)
        except RocketEvalError:
            # Too few labels, or a scorer that was fitted on them: there is no estimate to show.
            return ()
        return tuple(
            LabelEstimate(row.candidate, row.with_scores, row.labelled) for row in found.rows
        )

    def _made(self, given: Mapping[str, object]) -> Collected:
        query = str(given.get("query", ""))
        if query not in self._grid.query_ids:
            raise MistakenLabel(f"There is no query {query!r} in this run.")
        if given.get("kind") == "vote":
            winner = given.get("winner")
            if winner not in ("a", "b", "tie"):
                raise MistakenLabel("The winner must be a, b or tie.")
            a, b = self._candidate(given.get("a")), self._candidate(given.get("b"))
            if a == b:
                raise MistakenLabel("A vote needs two candidates.")
            return CollectedVote(
                by=self.labeler,
                query_id=query,
                candidate_a=a,
                candidate_b=b,
                winner=winner,
            )
        candidate = self._candidate(given.get("candidate"))
        if given.get("kind") == "label":
            return CollectedLabel(
                by=self.labeler, query_id=query, candidate=candidate, value=self._value(given)
            )
        if given.get("kind") == "answer":
            item, text = self._item(query, given.get("item"))
            p_yes = given.get("p_yes")
            return WrongAnswer(
                by=self.labeler,
                query_id=query,
                candidate=candidate,
                item=item,
                text=text,
                p_yes=float(p_yes) if isinstance(p_yes, int | float) else None,
            )
        raise MistakenLabel("The kind must be vote, label, answer or undo.")

    def _candidate(self, name: object) -> str:
        if not isinstance(name, str) or name not in self._grid.candidates:
            raise MistakenLabel(f"There is no candidate {name!r} in this run.")
        return name

    def _value(self, given: Mapping[str, object]) -> float:
        value, (low, high) = given.get("value"), self._config.scorer.scale
        if not isinstance(value, int | float) or not low <= value <= high:
            raise MistakenLabel(f"A label must be a number from {low:g} to {high:g}.")
        return float(value)

    def _item(self, query: str, number: object) -> tuple[int, str]:
        checklist = self._store.inputs.checklists().get(query)
        items = () if checklist is None else checklist.titles
        if not isinstance(number, int) or not 1 <= number <= len(items):
            raise MistakenLabel(f"The checklist of {query!r} has no item {number!r}.")
        return number, items[number - 1]


def collected_file(config: RunConfig, path: Path) -> CollectedLabels:
    """Return the file for labels; raise ConfigError if the config names none."""
    if config.benchmark.collected is None:
        raise ConfigError(
            f"When {path.name} was run, its config named no file for labels.",
            hint="With `collected: collected.jsonl` under `benchmark:`, run `rocketeval run` once "
            "more (finished judgments are reused); then start `rocketeval view --label`.",
        )
    return CollectedLabels(config.benchmark.collected)


def check_collects(target: ViewTarget) -> None:
    """Raise ConfigError if no run of the target can collect labels."""
    problems: list[ConfigError] = []
    for path in target.runs().values():
        try:
            collected_file(_config_of(path), path)
            return
        except ConfigError as error:
            problems.append(error)
    if problems:
        raise problems[0]


def _config_of(path: Path) -> RunConfig:
    return load_config(path / "run.yaml")


def _pair(vote: Vote) -> frozenset[str]:
    return frozenset((vote.candidate_a, vote.candidate_b))


def _needed(agreement: Interval | None, decided: int) -> int | None:
    """Return how many more votes bring the half-width to about `AIM`; it falls with the root."""
    if agreement is None or not math.isfinite(agreement.high - agreement.low):
        return None
    half = (agreement.high - agreement.low) / 2.0
    return max(0, math.ceil(decided * (half / AIM) ** 2) - decided)
