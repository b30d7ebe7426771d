"""A report of the quickstart benchmark with made-up answers, with gaps of every kind."""

from __future__ import annotations

import json
from importlib.resources import files
from random import Random
from typing import Any

import pytest

from rocketeval.records import Interval, Turn
from rocketeval.report.data import (
    ReportAnswer,
    ReportData,
    ReportFigure,
    ReportQuery,
    ReportResponse,
    ReportRow,
)

SKILL = {"careful": 0.93, "solid": 0.86, "brief": 0.66, "rambling": 0.61, "broken": 0.24}


@pytest.fixture(scope="session")
def quickstart() -> ReportData:
    return made_up_report()


def made_up_report() -> ReportData:
    queries = tuple(_queries())
    return ReportData(
        run_name="quickstart",
        judge="Qwen2.5-3B-Instruct",
        judge_details={
            "engine": "openai",
            "endpoint": "chat",
            "version": "vllm 0.6.4",
            "logprobs": "top20",
            "template": "9a0c4be1d0f7",
        },
        author="gpt-4o",
        rows=_rows(),
        scale=(1.0, 10.0),
        queries=queries,
        counts=_counts(queries),
        agreement=_agreement(),
        methods=(
            "Ratings: Bradley-Terry on every pair of scores, mean 1000.",
            "Intervals: 95 %, 1,000 bootstrap draws over queries.",
            "Groups: a candidate joins a group while the interval of its rating difference to "
            "the group's first candidate holds zero.",
        ),
        cost={
            "requests": "403",
            "prompt tokens": "161 k",
            "cached": "83.1 %",
            "wall time": "41 s",
            "money": "$0.02",
        },
        created_with="RocketEval 0.1.0",
    )


def _read(*path: str) -> list[dict[str, Any]]:
    file = files("rocketeval").joinpath("examples", "quickstart", *path)
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def _queries() -> list[ReportQuery]:
    random = Random(0)
    items = {row["query_id"]: tuple(row["items"]) for row in _read("checklists.jsonl")}
    texts = {
        (row["query_id"], candidate): row["text"]
        for candidate in SKILL
        for row in _read("responses", f"{candidate}.jsonl")
    }
    return [
        ReportQuery(
            id=row["id"],
            text=row["text"],
            history=tuple(Turn(**turn) for turn in row.get("history", ())),
            reference=row.get("reference"),
            category=row.get("category"),
            items=items[row["id"]],
            responses=tuple(
                _response(candidate, texts[row["id"], candidate], len(items[row["id"]]), random)
                for candidate in SKILL
            ),
        )
        for row in _read("queries.jsonl")
    ]


def _response(candidate: str, text: str, items: int, random: Random) -> ReportResponse:
    if candidate == "broken" and random.random() < 0.15:
        failed = ReportAnswer(None, None, None, "error")
        return ReportResponse(candidate, text, None, None, (failed,) * items)
    answers = tuple(_answer(SKILL[candidate], random) for _ in range(items))
    known = [answer.p_yes for answer in answers if answer.p_yes is not None]
    neutralised = 2 if candidate == "rambling" else 0
    return ReportResponse(
        candidate, text, None, 1 + 9 * sum(known) / len(known), answers, neutralised
    )


def _answer(skill: float, random: Random) -> ReportAnswer:
    p_yes = random.betavariate(4 * skill, 4 * (1 - skill))
    match random.random():
        case chance if chance < 0.03:
            return ReportAnswer(0.985, 0.97, 1.0, "truncated")
        case chance if chance < 0.04:
            return ReportAnswer(None, 0.35, 1.0, "unbounded")
        case chance if chance < 0.06:
            return ReportAnswer(None, None, None, random.choice(["hidden", "low_mass"]))
    return ReportAnswer(p_yes, p_yes, p_yes, "ok")


def _rows() -> tuple[ReportRow, ...]:
    return (
        ReportRow(
            "careful", 1, 1, 2, 1, Interval(1288, 1221, 1371), Interval(9.2, 8.9, 9.5), 12, 0
        ),
        ReportRow("solid", 2, 1, 2, 1, Interval(1209, 1150, 1280), Interval(8.8, 8.4, 9.2), 12, 0),
        ReportRow("brief", 3, 3, 4, 2, Interval(961, 880, 1035), Interval(7.1, 6.5, 7.6), 12, 0),
        ReportRow("rambling", 4, 3, 4, 2, Interval(930, 861, 997), Interval(6.6, 6.0, 7.2), 12, 0),
        ReportRow("broken", 5, 5, 5, 3, Interval(612, 520, 701), Interval(3.1, 2.5, 3.8), 12, 2),
    )


def _counts(queries: tuple[ReportQuery, ...]) -> dict[str, int]:
    responses = [response for query in queries for response in query.responses]
    found = [answer.status for response in responses for answer in response.answers]
    return {
        "queries": len(queries),
        "candidates": len(SKILL),
        "responses": len(responses),
        "answers": len(found),
        **{
            status: found.count(status)
            for status in ("truncated", "unbounded", "hidden", "low_mass", "no_logprobs", "error")
        },
        "responses_without_checklist": 0,
        "unusable_votes": 3,
    }


def _agreement() -> tuple[ReportFigure, ...]:
    return (
        ReportFigure(
            "Agreement with votes", Interval(0.742, 0.66, 0.81), "120 votes by people", "share"
        ),
        ReportFigure(
            "Longer response wins", Interval(0.483, 0.39, 0.57), "", "share", baseline=True
        ),
        ReportFigure("Coin toss", Interval(0.5, 0.5, 0.5), "", "share", baseline=True),
        ReportFigure("Spearman with labels", Interval(0.81, 0.7, 0.88), "60 labels, per response"),
        ReportFigure("Kendall of the ranking", None, "needs reference ratings"),
    )
