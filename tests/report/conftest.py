"""A synthetic report in which every free text is one word and every kind of gap occurs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest

from rocketeval.arrays import Floats, Ints
from rocketeval.records import Interval
from rocketeval.report.blocks import ReportSource, served_detail
from rocketeval.report.content import RunContent
from rocketeval.report.model import (
    Candidate,
    CurveBin,
    Explained,
    FigureBaseline,
    FigureRow,
    FigureTable,
    ItemsBlock,
    LabelsBlock,
    LostItem,
    MissingNote,
    PairsBlock,
    QueriesBlock,
    QueryBlock,
    ReportCurve,
    ReportFigure,
    ReportHead,
    ResponseTexts,
    RunFile,
    StageCost,
    TrustNumber,
)

SURE = Interval(5.0, 4.0, 6.0)
MakeSource = Callable[..., ReportSource]


@pytest.fixture(scope="session")
def make_source() -> MakeSource:
    return made_up


def made_up(word: str = "harmless", queries: int = 3, length: int = 10) -> ReportSource:
    """Return a report of two candidates; the last query has the largest spread."""
    content = MadeUp(word, queries, length)
    detail = served_detail(content.scores, content.items)
    return ReportSource(made_up_head(word), content, detail)


class MadeUp(RunContent):
    """Blocks in which every text is one word; counts how often texts are read."""

    def __init__(self, word: str, queries: int, length: int) -> None:
        self.word = word
        self.lengths = [length] * queries
        self.query_lengths = [0] * queries
        self.readings = 0
        self.scores: Floats = np.array([[5.0, 5.0 + place] for place in range(queries)])
        self.items: Ints = np.full(queries, 2)

    def hold(self, places: Sequence[int]) -> None:
        """Do nothing."""

    def queries(self, detail: list[int]) -> QueriesBlock:
        count = len(self.items)
        return {
            "id": [self.word] * count,
            "slices": [],
            "snippet": [self.word] * count,
            "mean": [5.0] * count,
            "spread": [0.5] * count,
            "missing": [0] * count,
            "items": self.items.tolist(),
            "detail": detail,
        }

    def answers(self, places: Sequence[int]) -> Iterator[Floats]:
        for _ in places:
            yield np.array([[0.25, np.nan], [1.0, 0.0]])

    def figures(self, places: Sequence[int]) -> Iterator[ItemsBlock]:
        for _ in places:
            yield {"texts": [self.word] * 2, "groups": None, "figures": []}

    def query(self, place: int) -> QueryBlock:
        return {
            "text": self.word + noise(place, self.query_lengths[place]),
            "history": [],
            "reference": None,
            "items": [self.word] * 2,
            "groups": None,
            "figures": [],
            "odd": [],
            "disarmed": [],
            "labels": [],
            "texts": None,
            "histories": [],
            "cells": None,
        }

    def texts(self, places: Sequence[int]) -> Iterator[ResponseTexts]:
        self.readings += 1
        for place in places:
            yield [self.word + noise(place, self.lengths[place]), None], [], [(0, [self.word])]

    def context(self, place: int) -> list[str] | None:
        return [self.word] if place == 0 else None

    def labels(self) -> LabelsBlock | None:
        return None

    def pairs(self) -> PairsBlock | None:
        return {
            "first": 2,
            "effect": [1.0],
            "low": [0.5],
            "high": [1.5],
            "p_value": [0.01],
            "wins": [2],
            "ties": [1],
            "losses": [0],
            "verdict": ["worse"],
            "how": self.word,
        }


def noise(seed: int, length: int) -> str:
    """Return incompressible text."""
    random = np.random.default_rng(seed)
    return random.integers(33, 127, length).astype(np.uint8).tobytes().decode()


def made_up_head(word: str) -> ReportHead:
    """Return a head in which every free text is `word`."""
    first = Candidate(word, 1, 1, 2, 1, True, SURE, SURE, 8, 1, 7.5, 1100.0)
    second = Candidate(word, None, None, None, None, None, None, None, 0, 9, None, None)
    trust = TrustNumber(
        title=word,
        value=SURE,
        mood="good",
        verdict=word,
        beside=(FigureBaseline(word, 0.5, "floor"),),
        how=word,
    )
    row = FigureRow(word, (SURE, None), word)
    return ReportHead(
        run=word,
        benchmark=word,
        created=word,
        finished=word,
        made_with=word,
        provisional=word,
        conclusion=word,
        islands=1,
        weights="equal",
        learned_from="",
        judge=word,
        judge_details=((word, word),),
        author=word,
        method=word,
        scorer=word,
        score_is=word,
        scale=(1.0, 10.0),
        answers_are=word,
        yes_no=True,
        level=0.95,
        rank_intervals="Rank intervals hold for all candidates at once.",
        tie_margin=0.1,
        sizes=((word, 3),),
        losses=(MissingNote(word, 2, 9),),
        nothing_lost=(word,),
        candidates=(first, second),
        separation=(word,),
        trust=(trust,),
        advice=(word,),
        figures=(ReportFigure(word, SURE, word), ReportFigure(word, None, word)),
        tables=(FigureTable(word, (word, word), (row,), "share", word),),
        calibration=(ReportCurve(word, word, word, True, (CurveBin(1.0, SURE, 3),), word),),
        costs=(StageCost(word, 1.5),),
        cost_notes=((word, word),),
        wins=((None, 0.75), (0.25, None)),
        explained=(Explained(0, SURE, (LostItem(0, 1, word, 0.1, 0.9, 3.6),)),),
        notes=(word,),
        files=(RunFile(word, word),),
    )
