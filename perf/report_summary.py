"""The page of a run that is too large for one file: 1,000 candidates on 10,000 queries.

    python perf/report_summary.py [--candidates 1000] [--queries 10000] [--items 8]

The run is synthetic and in memory (10 million scores; answers and texts on demand), so that only
the page is measured: its content, its size, the time to write it, and the time a browser takes to
show it and to open a query.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from report_page import Prose, measure

from rocketeval.records import Interval
from rocketeval.report.blocks import ReportSource, fit, served_detail
from rocketeval.report.content import RunContent
from rocketeval.report.model import (
    Candidate,
    ItemFigure,
    ItemsBlock,
    QueriesBlock,
    QueryBlock,
    ReportHead,
    ResponseTexts,
)
from rocketeval.report.page import embedded_page


class MadeUp(RunContent):
    """A run's columns, drawn at random on demand."""

    def __init__(self, candidates: int, queries: int, items: int) -> None:
        random = np.random.default_rng(0)
        skill = np.sort(random.normal(0.0, 0.5, candidates))[::-1]
        noise = random.normal(0.0, 1.0, (queries, candidates))
        self.scores = np.clip(5.5 + skill + noise * random.uniform(0.3, 1.5, (queries, 1)), 1, 10)
        self.items = np.full(queries, items)
        self.prose = Prose(0)

    def hold(self, places: Sequence[int]) -> None:
        """Do nothing; there is nothing to read."""

    def queries(self, detail: list[int]) -> QueriesBlock:
        count = len(self.scores)
        return {
            "id": [f"q{place:05d}" for place in range(count)],
            "slices": [
                {
                    "name": "category",
                    "values": [f"kind {kind:02d}" for kind in range(12)],
                    "of": [[place % 12] for place in range(count)],
                }
            ],
            "snippet": [self.prose.text(150) for _ in range(count)],
            "mean": self.scores.mean(axis=1).round(4).tolist(),
            "spread": self.scores.std(axis=1).round(4).tolist(),
            "missing": [0] * count,
            "items": self.items.tolist(),
            "detail": detail,
        }

    def answers(self, places: Sequence[int]) -> Iterator[np.ndarray[Any, Any]]:
        for place in places:
            random = np.random.default_rng(place)
            yield random.random((self.scores.shape[1], int(self.items[place])))

    def figures(self, places: Sequence[int]) -> Iterator[ItemsBlock]:
        for place in places:
            yield self._checklist(int(self.items[place]))

    def query(self, place: int) -> QueryBlock:
        listed = self._checklist(int(self.items[place]))
        return {
            "text": self.prose.text(300),
            "history": [],
            "reference": None,
            "items": listed["texts"],
            "groups": None,
            "figures": listed["figures"],
            "odd": [],
            "disarmed": [],
            "labels": [],
            "texts": None,
            "histories": [],
            "cells": None,
        }

    def texts(self, places: Sequence[int]) -> Iterator[ResponseTexts]:
        for _ in places:
            yield [self.prose.text(1000) for _ in range(self.scores.shape[1])], []

    def labels(self) -> None:
        """Return no labels."""

    def pairs(self) -> None:
        """Return no pairs."""

    def _checklist(self, items: int) -> ItemsBlock:
        figure: ItemFigure = {
            "weight": 1 / items,
            "learned": False,
            "mean": 0.5,
            "spread": 0.29,
            "correlation": 0.3,
            "influence": 1 / items,
            "verdict": "",
            "why": "",
        }
        texts = [self.prose.text(80) for _ in range(items)]
        return {"texts": texts, "groups": None, "figures": [figure] * items}


def head(content: MadeUp) -> ReportHead:
    """Return the head of the synthetic run."""
    means = content.scores.mean(axis=0)
    queries, count = content.scores.shape
    rows = tuple(
        Candidate(
            name=f"candidate-{place:04d}",
            rank=place + 1,
            rank_low=max(1, place - 4),
            rank_high=min(count, place + 6),
            group=1 + place // 5,
            beats_next=place + 1 < count,
            rating=Interval(1000 + 100 * mean, 980 + 100 * mean, 1020 + 100 * mean),
            score=Interval(mean, mean - 0.05, mean + 0.05),
            queries=queries,
            missing=0,
            label=None,
            reference=None,
        )
        for place, mean in enumerate(means.round(3).tolist())
    )
    given = {"files_at", "live", "index_at", "blocks", "slices", "slice_notes"}
    unsaid: dict[str, Any] = {
        field.name: "" if field.type == "str" else ()
        for field in fields(ReportHead)
        if field.name not in given
    }
    return replace(
        ReportHead(**unsaid),
        run="summary",
        benchmark="made-up",
        judge="made-up",
        scale=(1.0, 10.0),
        answers_are="Probability of yes",
        yes_no=True,
        level=0.95,
        tie_margin=0.1,
        sizes=(("queries", queries), ("candidates", count), ("responses", queries * count)),
        candidates=rows,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--candidates", type=int, default=1000)
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--items", type=int, default=8)
    args = parser.parse_args()
    content = MadeUp(args.candidates, args.queries, args.items)
    detail = served_detail(content.scores, content.items)
    source = ReportSource(head(content), content, detail)
    started = time.monotonic()
    page = embedded_page(source)
    seconds = time.monotonic() - started
    held = Counter(fit(source, 14_000_000).detail.tolist())
    print(f"{args.candidates} candidates x {args.queries} queries x {args.items} items")
    print(f"report.html {len(page) / 1e6:.1f} MB, made in {seconds:.1f} s, ", end="")
    print(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB peak")
    names = ("line only", "with scores", "with answers", "with texts")
    print("queries", *(f"{name} {held[place]}" for place, name in enumerate(names)), sep=", ")
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "report.html"
        file.write_text(page, encoding="utf-8")
        for what, times in measure(file).items():
            print(f"{what:<14}{1000 * statistics.median(times):>8.0f} ms median")


if __name__ == "__main__":
    main()
