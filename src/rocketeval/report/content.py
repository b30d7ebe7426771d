"""The content of a report's blocks, read lazily from the run directory.

Item figures, labels with scores, and pairwise comparisons of candidates.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np

from rocketeval.arrays import Floats, Ints
from rocketeval.config import RunConfig
from rocketeval.explain.candidate import weight_shares
from rocketeval.explain.items import NO_TO_ALL, YES_TO_ALL, item_verdicts
from rocketeval.grid import ScoreGrid
from rocketeval.items import ItemDetail, ItemKind
from rocketeval.records import Checklist, Label, Query, Status, Turn
from rocketeval.report.all_pairs import compare_all
from rocketeval.report.cells import (
    ANSWER_COLUMNS,
    JudgedColumns,
    ResponseGrid,
    ScorerWeights,
    known,
    read_judged,
    spread,
    weighing,
)
from rocketeval.report.findings import Findings
from rocketeval.report.model import (
    GRADE_STATUS_TEXT,
    STATUS_TEXT,
    ItemFigure,
    ItemsBlock,
    LabelsBlock,
    OddAnswer,
    PairsBlock,
    QueriesBlock,
    QueryBlock,
    ResponseTexts,
    RubricBlock,
    Turns,
)
from rocketeval.report.slices import slice_fields
from rocketeval.scoring.learning import label_cells
from rocketeval.scoring.read_answers import answers_yes_or_no
from rocketeval.scoring.rubric import POINTS
from rocketeval.stopping.race import RaceResult
from rocketeval.store.run import RunStore
from rocketeval.text import percentage

_DIGITS = 4
_TURNED = {YES_TO_ALL: NO_TO_ALL, NO_TO_ALL: YES_TO_ALL}


def figures_of(
    answers: Floats, scores: Floats, weights: Floats | None, *, learned: bool
) -> list[ItemFigure]:
    """Return item figures of a query; `answers` and `scores` have one row per candidate.

    `weights` is None if the scorer has no weights per item; influence is then unknown.
    """
    items = answers.shape[1]
    shown = np.full(items, 1.0 / max(items, 1)) if weights is None else weights
    return [
        {
            "weight": round(float(weight), _DIGITS),
            "learned": learned,
            "mean": _short(found.mean),
            "spread": _short(found.spread),
            "correlation": _short(found.correlation),
            "influence": _short(found.influence),
            "verdict": found.verdict,
            "why": found.why,
        }
        for weight, found in zip(shown, item_verdicts(answers, scores, weights), strict=True)
    ]


def _short(number: float | None) -> float | None:
    return None if number is None else round(number, _DIGITS)


MOST_LABELS = 5_000
"""Most dots in a scatter plot; a longer list is thinned evenly."""


def label_grid(cells: ResponseGrid, labels: Iterable[Label]) -> Floats:
    """Return the mean label of each cell; NaN without a label."""
    grid = ScoreGrid(cells.query_ids, cells.candidates, cells.scores)
    return label_cells(grid, labels)[0]


SNIPPET = 160
"""Number of characters of a query shown in the list of queries."""

NOT_JUDGED = "not judged"


class RunContent:
    """The data that a run's blocks are built from."""

    def __init__(
        self, store: RunStore, config: RunConfig, findings: Findings, cells: ResponseGrid
    ) -> None:
        self.store = store
        self.config = config
        self.findings = findings
        self.cells = cells
        self.scores = cells.scores
        """Queries by candidates, in the order of the head; NaN if missing."""
        self._held: JudgedColumns | None = None
        self._made: dict[int, ItemsBlock] = {}

    @cached_property
    def items(self) -> Ints:
        """Number of items per query."""
        return np.array(
            [len(self._checklist(place).items) for place in range(len(self.scores))], dtype=int
        )

    @cached_property
    def _checklists(self) -> dict[str, Checklist]:
        return self.store.inputs.checklists()

    @cached_property
    def _queries(self) -> list[Query]:
        by_id = self.store.inputs.queries
        return [by_id[query_id] for query_id in self.cells.query_ids]

    def queries(self, detail: list[int]) -> QueriesBlock:
        """Return the queries block; `detail` holds the detail level of each query."""
        scores = self.scores
        present = ~np.isnan(scores)
        counts = present.sum(axis=1)
        totals = np.where(present, scores, 0.0).sum(axis=1)
        means = np.where(counts > 0, totals / np.maximum(counts, 1), np.nan)
        return {
            "id": list(self.cells.query_ids),
            "slices": slice_fields(self._queries),
            "snippet": [
                " ".join(query.text[: 2 * SNIPPET].split())[:SNIPPET] for query in self._queries
            ],
            "mean": known(means),
            "spread": known(spread(scores)),
            "missing": (scores.shape[1] - counts).tolist(),
            "items": self.items.tolist(),
            "detail": detail,
        }

    def answers(self, places: Sequence[int]) -> Iterator[Floats]:
        """Yield one table of candidates by items per query; NaN if unanswered."""
        judged = self._judged(places)
        for place in places:
            yield judged.answers(place, int(self.items[place]))

    def figures(self, places: Sequence[int]) -> Iterator[ItemsBlock]:
        """Yield the item texts and figures of each query."""
        judged = self._judged(places)
        for place in places:
            yield self._items(place, judged)

    def query(self, place: int) -> QueryBlock:
        """Return one query's block without response texts and cells."""
        judged, query = self._judged([place]), self._queries[place]
        items = self._items(place, judged)
        block: QueryBlock = {
            "text": query.text,
            "history": _turns(query.history),
            "reference": query.reference,
            "items": items["texts"],
            "groups": items["groups"],
            "figures": items["figures"],
            "odd": list(self._odd(place, judged)),
            "disarmed": list(self._disarmed(place, judged)),
            "labels": [
                (column, round(label, _DIGITS))
                for column, label in enumerate(self._labels[place].tolist())
                if label == label
            ],
            "texts": None,
            "histories": [],
            "cells": None,
        }
        rubric = self._rubric(place, judged)
        return block if rubric is None else {**block, "rubric": rubric}

    def context(self, place: int) -> list[str] | None:
        """Return the passages that a query gives to all candidates; None if it has none."""
        passages = self._queries[place].context
        return None if passages is None else list(passages)

    def texts(self, places: Sequence[int]) -> Iterator[ResponseTexts]:
        """Yield the `texts`, `histories` and `contexts` of each query's responses."""
        columns = {name: column for column, name in enumerate(self.cells.candidates)}
        found: dict[str, ResponseTexts] = {
            self.cells.query_ids[place]: ([None] * len(columns), [], []) for place in places
        }
        for response in self.store.inputs.responses_to(list(found)):
            column = columns.get(response.candidate)
            if column is None:
                continue
            texts, histories, contexts = found[response.query_id]
            texts[column] = response.text
            if response.history is not None:
                histories.append((column, _turns(response.history)))
            if response.context is not None:
                contexts.append((column, list(response.context)))
        for place in places:
            yield found[self.cells.query_ids[place]]

    def labels(self) -> LabelsBlock | None:
        """Return labeled responses with a score; None if there are none."""
        labels, scores = self._labels, self.scores
        both = np.argwhere(~np.isnan(labels) & ~np.isnan(scores))
        if not len(both):
            return None
        shown = both[:: -(-len(both) // MOST_LABELS)]
        queries, candidates = shown.T
        return {
            "query": queries.tolist(),
            "candidate": candidates.tolist(),
            "score": scores[queries, candidates].round(_DIGITS).tolist(),
            "label": labels[queries, candidates].round(_DIGITS).tolist(),
            "left_out": len(both) - len(shown),
        }

    def pairs(self) -> PairsBlock | None:
        """Return pairwise comparisons of the top candidates; None if fewer than two are ranked."""
        cells, ranking = self.cells, self.findings.ranking
        ranked = len(ranking.rows)
        if ranked < 2:
            return None
        # The head lists ranked candidates first, in ranking order.
        grid = ScoreGrid(cells.query_ids, cells.candidates[:ranked], cells.scores[:, :ranked])
        grid = grid.clustered(self.store.inputs.clusters())
        found = compare_all(
            grid,
            tie_margin=ranking.tie_margin,
            bootstrap=ranking.bootstrap,
            seed=ranking.seed,
            level=ranking.level,
            race=self.store.read_if_made(RaceResult),
            scale=self.config.scorer.scale,
        )
        # Said only where it matters: a mean difference of zero is rare otherwise.
        constant = "Differences that are zero on all queries have an exact interval. "
        if not (found.effect == 0.0).any():
            constant = ""
        return {
            "first": found.first,
            "effect": known(found.effect),
            "low": known(found.low),
            "high": known(found.high),
            "p_value": known(found.p_value),
            "wins": found.wins.tolist(),
            "ties": found.ties.tolist(),
            "losses": found.losses.tolist(),
            "verdict": [str(verdict) for verdict in found.verdict],
            "how": (
                "Mean score difference over the queries on which both candidates have a score. "
                f"{percentage(ranking.level)} interval from {ranking.bootstrap} bootstrap "
                "resamples of the queries; p-value from a sign-flip test. A difference is "
                "significant if the interval excludes zero and p is at most "
                f"{1 - ranking.level:.2g}. Winning a query takes a lead of {ranking.tie_margin:g} "
                f"points or more. {constant}"
                "No correction for multiple comparisons."
            ),
        }

    def hold(self, places: Sequence[int]) -> None:
        """Read the answers of many queries in one pass over the ledger."""
        self._held = self._read(places)

    @cached_property
    def _labels(self) -> Floats:
        return label_grid(self.cells, self.store.inputs.labels())

    @cached_property
    def _weighing(self) -> ScorerWeights:
        return weighing(self.findings, self.config)

    @cached_property
    def _status_text(self) -> Mapping[str, str]:
        return STATUS_TEXT if answers_yes_or_no(self.config) else GRADE_STATUS_TEXT

    def _judged(self, places: Sequence[int]) -> JudgedColumns:
        # Other threads may replace `_held`, so read it once.
        held = self._held
        if held is not None and all(place in held.places for place in places):
            return held
        found = self._read(places)
        if len(places) > 1:
            self._held = found
        return found

    def _read(self, places: Sequence[int]) -> JudgedColumns:
        return read_judged(self.cells, places, self.store.judgments(ANSWER_COLUMNS))

    def _checklist(self, place: int) -> Checklist:
        query_id = self.cells.query_ids[place]
        return self._checklists.get(query_id) or Checklist(query_id, ())

    def _items(self, place: int, judged: JudgedColumns) -> ItemsBlock:
        if place not in self._made:
            checklist = self._checklist(place)
            answers = judged.answers(place, int(self.items[place]))
            learned = self.findings.weights.get(checklist.query_id)
            weights = self._weighing.of_items(int(self.items[place]), learned)
            if checklist.details is not None:
                signs = np.array([detail.weight for detail in checklist.details])
                # A penalty counts what it leaves; its mean is shown as the judge answered it.
                answers = np.where(signs < 0, 1.0 - answers, answers)
                if learned is None and weights is not None:
                    points = self.config.scorer.kind == POINTS
                    weights = weight_shares(checklist, len(signs), points=points)
            figures = figures_of(answers, self.scores[place], weights, learned=learned is not None)
            for figure, detail in zip(figures, checklist.every_detail, strict=True):
                if detail.check is not None:
                    figure["check"] = True
                if detail.weight < 0 and figure["mean"] is not None:
                    figure["mean"] = _short(1.0 - figure["mean"])
                    figure["why"] = _TURNED.get(figure["why"], figure["why"])
            self._made[place] = {
                "texts": list(checklist.titles),
                "groups": None if checklist.groups is None else list(checklist.groups),
                "figures": figures,
            }
        return self._made[place]

    def _odd(self, place: int, judged: JudgedColumns) -> Iterator[OddAnswer]:
        """Yield answers that need an explanation: unanswered items and wide bounds.

        The explanation is empty if the server listed too few tokens for an exact probability.
        """
        rows, items = judged.rows_of(place), int(self.items[place])
        spots, there = judged.spots(place, items)
        unjudged = self.cells.responses[place] & (rows < 0)
        for candidate in np.flatnonzero(unjudged).tolist():
            yield from ((candidate, item, None, None, NOT_JUDGED) for item in range(items))
        if not there.any():
            return
        fine = np.array([status == Status.OK for status in judged.statuses])
        low, high = judged.p_low[spots], judged.p_high[spots]
        # Skip bounds that round to the same number.
        wide = np.nan_to_num(low.round(2) - high.round(2)) != 0.0
        odd = there & (wide | ~fine[judged.status[spots]])
        for candidate, item in np.argwhere(odd).tolist():
            status = judged.statuses[judged.status[spots[candidate, item]]]
            ends = known(np.array([low[candidate, item], high[candidate, item]]))
            yield candidate, item, ends[0], ends[1], self._status_text.get(status, "")

    def _rubric(self, place: int, judged: JudgedColumns) -> RubricBlock | None:
        """Return the answers in words; None if all items are plain yes/no questions."""
        details = self._checklist(place).every_detail
        if all(detail.kind is ItemKind.YES_NO and not detail.na for detail in details):
            return None
        spots, there = judged.spots(place, len(details))
        return {
            "levels": [list(detail.levels) for detail in details],
            "answers": [
                (candidate, item, _in_words(details[item], value), p_na)
                for candidate, item in np.argwhere(there).tolist()
                for spot in [spots[candidate, item]]
                for value, p_na in zip(
                    known(judged.p_yes[[spot]]), known(judged.p_na[[spot]]), strict=True
                )
                if value is not None
                and (details[item].kind is not ItemKind.YES_NO or details[item].na)
            ],
        }

    def _disarmed(self, place: int, judged: JudgedColumns) -> Iterator[tuple[int, int]]:
        rows = judged.rows_of(place)
        for candidate in np.flatnonzero(rows >= 0).tolist():
            count = int(judged.neutralised[rows[candidate]])
            if count:
                yield candidate, count


def _in_words(detail: ItemDetail, value: float) -> str:
    """Return the answer to an item that is no yes/no question in words, else nothing.

    >>> _in_words(ItemDetail(kind=ItemKind.SCALE, levels=("bad", "fair", "good")), 0.6)
    'level 2.2 of 3, nearest: fair'
    """
    if detail.kind is ItemKind.CHECK:
        return "passed" if value >= 0.5 else "failed"
    if detail.kind is ItemKind.SCALE:
        steps = len(detail.levels) - 1
        nearest = detail.levels[round(value * steps)]
        return f"level {1 + value * steps:.1f} of {steps + 1}, nearest: {nearest}"
    return ""


def _turns(turns: Sequence[Turn]) -> Turns:
    return [(turn.role, turn.content) for turn in turns]
