"""report: one page that shows it all."""

from __future__ import annotations

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
from rocketeval.ranking.words import separation_in_words
from rocketeval.records import Judgment, Query, Response
from rocketeval.report.data import (
    GRADE,
    PROBABILITY,
    ReportAnswer,
    ReportData,
    ReportQuery,
    ReportResponse,
    ReportRow,
)
from rocketeval.report.html import build_report
from rocketeval.stages.explain import item_weights
from rocketeval.stages.rank import read_ranking
from rocketeval.stages.report_explain import explained, report_items, wins
from rocketeval.stages.report_figures import cost, counts, methods, read_interval
from rocketeval.stages.report_trust import figures, tables
from rocketeval.stages.score import read_grid
from rocketeval.stages.yes_no import answers_yes_or_no
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
    ranked = read_ranking(store)
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
        separation=tuple(separation_in_words(ranked.rows)),
        wins=wins(ranked),
        explained=explained(store.json_if_made("explain")),
        counts=counts(stages, ranking, audit),
        agreement=figures(audit),
        agreement_tables=tables(audit),
        advice=tuple(audit.get("advice", ())),
        answers=PROBABILITY if answers_yes_or_no(config) else GRADE,
        methods=methods(ranking, stages.get("score", {}), config.method.kind),
        cost=cost(stages),
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
        rating=read_interval(row["rating"]),
        mean_score=read_interval(row["mean_score"]),
        queries=row["queries"] + row["missing"],
        missing=row["missing"],
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
    checklists, weights = store.inputs.checklists(), item_weights(store)
    return tuple(
        _query(
            store.inputs.queries[query_id],
            checklists[query_id].items if query_id in checklists else (),
            tuple(found),
            weights.get(query_id),
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
    query: Query,
    items: tuple[str, ...],
    responses: tuple[ReportResponse, ...],
    weights: list[float] | None,
) -> ReportQuery:
    return ReportQuery(
        query.id,
        query.text,
        query.history,
        query.reference,
        query.category,
        items,
        responses,
        report_items(items, responses, weights),
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
