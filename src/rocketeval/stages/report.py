"""report: one page that shows it all."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rocketeval._version import __version__
from rocketeval.config import RunConfig
from rocketeval.grid import ScoreGrid
from rocketeval.records import Interval, Judgment, Query, Response
from rocketeval.report.data import (
    ReportAnswer,
    ReportData,
    ReportFigure,
    ReportQuery,
    ReportResponse,
    ReportRow,
)
from rocketeval.report.html import build_report
from rocketeval.stages.score import read_grid
from rocketeval.store.run import RunStore

MOST_RESPONSES = 4000
MOST_CHARACTERS = 12_000_000
"""What the page embeds at most; beyond it, the queries that divide candidates most are shown."""


def write_report(store: RunStore, config: RunConfig) -> Path:
    """Write report.html and return its path."""
    grid = read_grid(store)
    ranking, audit = store.load_json("ranking", "rank"), store.load_json("audit", "audit")
    stages = store.manifest().get("stages", {})
    queries = _queries(store, grid)
    judge = store.judge()
    data = ReportData(
        run_name=config.name,
        judge=judge.model,
        judge_details={**asdict(judge), "digest": judge.digest.hex()},
        author=_authors(store),
        rows=tuple(map(_row, ranking["rows"])),
        scale=config.scorer.scale,
        queries=queries,
        queries_omitted=len(grid.query_ids) - len(queries),
        counts=_counts(stages, ranking, audit),
        agreement=_figures(audit),
        methods=_methods(ranking),
        cost=_cost(stages),
        created_with=f"RocketEval {__version__}",
    )
    return store.save_text("report.html", build_report(data))


def _authors(store: RunStore) -> str:
    names = {made.author for made in store.inputs.checklists().values()}
    return ", ".join(sorted("the benchmark" if name == "imported" else name for name in names))


def _row(row: Mapping[str, Any]) -> ReportRow:
    return ReportRow(
        candidate=row["candidate"],
        rank=row["rank"],
        rank_low=row["rank_low"],
        rank_high=row["rank_high"],
        group=row["group"],
        rating=_interval(row["rating"]),
        mean_score=_interval(row["mean_score"]),
        queries=row["queries"] + row["missing"],
        missing=row["missing"],
    )


def _interval(found: Mapping[str, float | None] | None) -> Interval | None:
    if found is None or found["value"] is None:
        return None
    # JSON has no NaN: a figure that rests on too little has no bounds, so it may be anything.
    low, high = found["low"], found["high"]
    return Interval(
        found["value"], -math.inf if low is None else low, math.inf if high is None else high
    )


def _queries(store: RunStore, grid: ScoreGrid) -> tuple[ReportQuery, ...]:
    shown = _most_divisive(grid, store.inputs.summary())
    scores = store.scores()
    chosen = scores.filter(pc.is_in(scores["query_id"], value_set=pa.array(shown))).to_pylist()
    cells = {(row["query_id"], row["candidate"]): row for row in chosen}
    judgments = store.judgments_of(row["judgment"] for row in chosen if row["judgment"])
    responses: dict[str, list[ReportResponse]] = {query_id: [] for query_id in shown}
    for response in store.inputs.responses_to(shown):
        cell = cells[response.query_id, response.candidate]
        judgment = judgments.get(cell["judgment"])
        responses[response.query_id].append(_response(response, cell["score"], judgment))
    checklists = store.inputs.checklists()
    return tuple(
        _query(
            store.inputs.queries[query_id],
            checklists[query_id].items if query_id in checklists else (),
            tuple(found),
        )
        for query_id, found in responses.items()
    )


def _most_divisive(grid: ScoreGrid, sizes: Mapping[str, int]) -> list[str]:
    """Return the queries to show in full, in benchmark order."""
    mean_length = max(1, sizes["response_characters"] // max(1, sizes["responses"]))
    fitting = min(MOST_RESPONSES, MOST_CHARACTERS // mean_length)
    room = max(1, fitting // max(1, len(grid.candidates)))
    if len(grid.query_ids) <= room:
        return list(grid.query_ids)
    present = np.where(np.isnan(grid.scores), np.nanmean(grid.scores), grid.scores)
    places = np.sort(np.argsort(-present.std(axis=1), kind="stable")[:room])
    return [grid.query_ids[place] for place in places]


def _query(
    query: Query, items: tuple[str, ...], responses: tuple[ReportResponse, ...]
) -> ReportQuery:
    return ReportQuery(
        query.id, query.text, query.history, query.reference, query.category, items, responses
    )


def _response(response: Response, score: float | None, judgment: Judgment | None) -> ReportResponse:
    answers = judgment.answers if judgment else ()
    return ReportResponse(
        response.candidate,
        response.text,
        response.history,
        score,
        tuple(
            ReportAnswer(answer.p_yes, answer.p_low, answer.p_high, answer.status)
            for answer in answers
        ),
        judgment.neutralised if judgment else 0,
    )


def _counts(
    stages: Mapping[str, Any], ranking: Mapping[str, Any], audit: Mapping[str, Any]
) -> dict[str, int]:
    load, checklist, grade, score = (
        stages.get(name, {}) for name in ("load", "checklist", "grade", "score")
    )
    votes: Mapping[str, int] = next(iter(audit["agreement"].values()), {})
    return {
        "queries": load.get("queries", 0),
        "candidates": load.get("candidates", 0),
        "responses": load.get("responses", 0),
        "judgments": grade.get("tasks", 0) - grade.get("unfinished", 0),
        "answers": score.get("answers", 0),
        **score.get("statuses", {}),
        "empty responses": load.get("empty_responses", 0),
        "queries without a checklist": len(checklist.get("failures", ())),
        "responses not judged": grade.get("unfinished", 0),
        "responses without a score": score.get("without_score", 0),
        "candidates without any score": len(ranking["unranked"]),
        "unusable votes": votes.get("unusable", 0),
    }


def _figures(audit: Mapping[str, Any]) -> tuple[ReportFigure, ...]:
    figures = []
    for ties, name in (("with_ties", "votes, ties included"), ("without_ties", "decided votes")):
        for method, found in audit["agreement"].items():
            figures.append(
                ReportFigure(
                    name=f"Agreement with {name}" if method == "judge" else method,
                    value=_interval(found[ties]),
                    note=f"{found['used' if ties == 'with_ties' else 'decisive']} votes",
                    unit="share",
                    baseline=method != "judge",
                )
            )
        if audit["voters"]:
            figures.append(
                ReportFigure(
                    name="another voter",
                    value=_interval(audit["voters"][ties]),
                    note="how often two voters agree: the ceiling",
                    unit="share",
                )
            )
    if audit["labels"]:
        note = audit["labels"]["reason"] or f"{audit['labels']['responses']} labelled responses"
        figures.append(
            ReportFigure("Pearson with labels", _interval(audit["labels"]["pearson"]), note)
        )
    if audit["ratings"]:
        figures.append(_rating_figure(audit["ratings"]))
    return tuple(figures)


def _rating_figure(found: Mapping[str, Any]) -> ReportFigure:
    name = "Spearman with reference ratings"
    if found["spearman"] is None:
        return ReportFigure(name, None, found["reason"])
    value, bounds = found["spearman"]["value"], found["spearman"]["interval"]
    note = f"{found['n']} candidates, p = {found['spearman']['p_value']:.3f}"
    if bounds is None:
        return ReportFigure(name, Interval(value, value, value), f"{note}; no interval")
    return ReportFigure(name, _interval(bounds), note)


def _methods(ranking: Mapping[str, Any]) -> tuple[str, ...]:
    level = f"{ranking['level']:.0%}"
    return (
        "An item's answer is p(Yes) / (p(Yes) + p(No)), from the judge's log-probabilities.",
        "A score is the mean of its answers, on the label scale.",
        "Ratings are a Bradley-Terry fit to all pairs of scores on each query, on the Elo scale "
        f"around 1000; scores closer than {ranking['tie_margin']:g} are a tie.",
        f"Intervals hold {level} of {ranking['bootstrap']} resamples of the queries.",
        "Candidates in one group cannot be told apart from the group's first.",
    )


def _cost(stages: Mapping[str, Any]) -> dict[str, str]:
    shown = {}
    for stage in ("checklist", "grade"):
        usage = stages.get(stage, {}).get("usage", {})
        if usage.get("requests"):
            shown[f"{stage} requests"] = f"{usage['requests']:,}"
            shown[f"{stage} prompt tokens"] = f"{usage['prompt_tokens']:,}"
            if usage["cost"]:
                shown[f"{stage} cost"] = f"{usage['cost']:.4f}"
    reused = stages.get("grade", {})
    shown["judgments paid for earlier"] = (
        f"{reused.get('finished_earlier', 0) + reused.get('from_cache', 0):,}"
    )
    shown["seconds"] = f"{sum(facts.get('seconds', 0) for facts in stages.values()):,.0f}"
    return shown
