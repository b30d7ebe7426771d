"""The page of a run that has no judgment yet: what is to be judged, and no figure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from rocketeval._version import __version__
from rocketeval.config import RunConfig
from rocketeval.errors import StageMissing
from rocketeval.ranking.rank import Ranking
from rocketeval.records import Checklist
from rocketeval.report.data import GRADE, PROBABILITY, ReportHead
from rocketeval.report.source import ReportSource, served_detail
from rocketeval.stages.report.candidates import unranked
from rocketeval.stages.report.cells import make_cells
from rocketeval.stages.report.content import RunContent
from rocketeval.stages.report.head import author_names, benchmark_name
from rocketeval.stages.report.losses import losses, sizes
from rocketeval.stages.report.stage import Findings
from rocketeval.stages.report.weights import weighing
from rocketeval.stages.yes_no import answers_yes_or_no
from rocketeval.store.inputs import Inputs
from rocketeval.store.run import RunStore

_JUDGE_LATER = ("judge", "not known in full before its first answer")


@dataclass(frozen=True, eq=False)
class Unjudged:
    """A run before its first judgment."""

    source: ReportSource
    total: int
    """Responses that are to be judged, as far as is known."""


def unjudged(run: RunStore, config: RunConfig) -> Unjudged:
    """Return a report without figures: candidates, queries, and checklists if there are any."""
    store = RunStore(run.path)
    store.inputs = _SomeChecklists(store.path / "inputs")
    heads = list(store.inputs.heads())
    candidates = sorted({head.candidate for head in heads})
    queries, checklists = list(store.inputs.queries), store.inputs.checklists()
    findings = Findings(
        _no_scores([(head.query_id, head.candidate) for head in heads]),
        nobody_ranked(candidates, len(queries), config),
        manifest=_before_grading(store.manifest(), len(heads)),
    )
    cells = make_cells(findings.scores, queries, candidates)
    content = RunContent(store, config, findings, cells)
    source = ReportSource(
        _head(config, findings, checklists), content, served_detail(cells.scores, content.items)
    )
    known = [head for head in heads if head.query_id in checklists] if checklists else heads
    return Unjudged(source, len(known))


def _head(config: RunConfig, findings: Findings, checklists: dict[str, Checklist]) -> ReportHead:
    ranking = findings.ranking
    yes_no = answers_yes_or_no(config)
    lost, nothing_lost = losses(findings, yes_no=yes_no)
    weighed = weighing(findings, config)
    return ReportHead(
        run=config.name,
        benchmark=benchmark_name(config),
        created=str(findings.manifest.get("created", "")),
        finished="",
        made_with=f"RocketEval {__version__}",
        provisional="",
        conclusion="",
        islands=ranking.islands,
        weights=weighed.weights,
        learned_from=weighed.learned_from,
        judge=config.judge.model,
        judge_details=(_JUDGE_LATER,),
        author=author_names(checklists),
        method=config.method.kind,
        scorer=config.scorer.kind,
        scale=config.scorer.scale,
        answers_are=PROBABILITY if yes_no else GRADE,
        yes_no=yes_no,
        level=ranking.level,
        tie_margin=ranking.tie_margin,
        sizes=sizes(findings),
        losses=lost,
        nothing_lost=nothing_lost,
        candidates=tuple(unranked(name, ranking.queries) for name in ranking.unranked),
        separation=(),
        trust=(),
        advice=(),
        figures=(),
        tables=(),
        calibration=(),
        costs=(),
        cost_notes=(),
        wins=(),
        explained=(),
        notes=(),
        files=(),
    )


def nobody_ranked(candidates: Iterable[str], queries: int, config: RunConfig) -> Ranking:
    """Return the ranking of candidates without a single score."""
    return Ranking(
        rows=(),
        unranked=tuple(sorted(candidates)),
        tie_margin=config.ranking.tie_margin,
        bootstrap=0,
        seed=config.ranking.seed,
        level=0.95,
        queries=queries,
        islands=1,
    )


def _no_scores(cells: list[tuple[str, str]]) -> pa.Table:
    return pa.table(
        {
            "query_id": pa.array([query for query, _ in cells], pa.string()),
            "candidate": pa.array([name for _, name in cells], pa.string()),
            "score": pa.nulls(len(cells), pa.float64()),
            "judgment": pa.nulls(len(cells), pa.string()),
        }
    )


def _before_grading(manifest: dict[str, Any], responses: int) -> dict[str, Any]:
    """Return the manifest without what later stages said, which was about an earlier call."""
    stages = manifest.get("stages", {})
    kept = {name: stages[name] for name in ("load", "checklist") if name in stages}
    missing = {
        "grade": {"tasks": responses, "unfinished": responses},
        "score": {"without_score": responses},
    }
    return {**manifest, "stages": kept | missing}


class _SomeChecklists(Inputs):
    """Inputs whose checklists may still have to be written."""

    def checklists(self) -> dict[str, Checklist]:
        """Return those there are."""
        try:
            return super().checklists()
        except StageMissing:
            return {}
