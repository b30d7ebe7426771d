"""The figures of a run: final ones of its stages, or provisional ones of judgments so far.

Provisional figures are computed in memory from the ledger, without writing to the run.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from rocketeval.config import RunConfig, ScorerConfig, load_config, with_tie_margin
from rocketeval.errors import RocketEvalError, StageMissing
from rocketeval.explain.groups import score_groups
from rocketeval.explain.stage import Explanation
from rocketeval.grid import ScoreGrid
from rocketeval.prices import priced, priced_if_used
from rocketeval.ranking.rank import Ranking, rank
from rocketeval.records import Checklist, Gold
from rocketeval.report.blocks import ReportSource, served_detail
from rocketeval.report.cells import make_cells
from rocketeval.report.content import RunContent
from rocketeval.report.findings import Findings, read_findings
from rocketeval.report.head import bare_head
from rocketeval.report.model import GRADE_STATUS_TEXT, STATUS_TEXT
from rocketeval.report.stage import gather
from rocketeval.scoring.answers import AnswerTable
from rocketeval.scoring.base import Learner, create_scorer
from rocketeval.scoring.crossfit import Scored, count_statuses, score_answers, score_table
from rocketeval.scoring.read_answers import (
    answers_yes_or_no,
    read_answers,
    rubric_of,
    scored_answers,
)
from rocketeval.scoring.rubric import POINTS
from rocketeval.store.inputs import Inputs
from rocketeval.store.manifest import GradeFacts, Manifest, ScoreFacts, Stages
from rocketeval.store.run import RunStore
from rocketeval.store.watch import made_by


def nobody_ranked(candidates: Iterable[str], queries: int, config: RunConfig) -> Ranking:
    """Return an empty ranking of candidates without any score."""
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


def _before_grading(manifest: Manifest, responses: int) -> Manifest:
    """Return the manifest without the facts of grading and later stages."""
    return _with_stages(
        manifest,
        GradeFacts(tasks=responses, unfinished=responses),
        ScoreFacts(without_score=responses),
    )


def _with_stages(manifest: Manifest, grade: GradeFacts, score: ScoreFacts) -> Manifest:
    """Return the manifest with these facts, and without later stages."""
    stages = manifest.stages
    known = Stages(load=stages.load, checklist=stages.checklist, grade=grade, score=score)
    return replace(manifest, stages=known)


class _SomeChecklists(Inputs):
    """Inputs whose checklists may not be written yet."""

    def checklists(self) -> dict[str, Checklist]:
        """Return the existing checklists."""
        try:
            return super().checklists()
        except StageMissing:
            return {}


RESAMPLES = 200
"""Maximum number of resamples of a provisional interval."""

_UNAUDITED = "Scores and ranks are final; the audit against votes, labels and ratings is pending."


@dataclass(frozen=True, eq=False)
class PageFigures:
    """The figures of a run's page, with a note if they are not final."""

    source: ReportSource
    going: str = ""
    """The note while the run is running; empty for final figures."""
    stopped: str = ""
    """The note if the run stopped."""

    @property
    def final(self) -> bool:
        """True if these are the run's saved figures."""
        return not self.going

    def words(self, is_going: bool) -> str:
        """Return the note; empty for final figures."""
        return self.going if is_going else self.stopped


def final_figures(store: RunStore) -> PageFigures:
    """Return the saved figures of a run."""
    return PageFigures(gather(store, run_config(store), read_findings(store)))


def provisional_figures(store: RunStore, command: str | None = None) -> PageFigures:
    """Return the figures of the judgments so far.

    `command` continues the run; by default, it names the run's own config.
    """
    config = run_config(store)
    if made_by(store).issuperset(("score", "rank")):
        return _not_audited(store, config, command)
    if store.manifest().judge is None:
        return _nothing_yet(store, config, command)
    answers, keys = read_answers(store)
    scorer, scored_by = _scorer(config.scorer)
    scored = score_answers(answers, Gold(), scorer)
    judged, total = int((answers.items > 0).sum()), len(keys) - keys.count(None)
    if not judged:
        return _nothing_yet(store, config, command)
    manifest = _manifest(store, config, answers, scored, keys)
    if np.isnan(scored.scores).all():
        ranking = nobody_ranked(set(answers.candidates), len(set(answers.query_ids)), config)
        scored_by = _why_no_score(manifest.stages.score, config)
    else:
        columns = (answers.query_ids, answers.candidates, scored.scores.tolist())
        grid = ScoreGrid.from_columns(*columns).clustered(store.inputs.clusters())
        ranking = _rank(grid, config)
    findings = Findings(
        score_table(answers, scored, keys),
        ranking,
        explain=_groups(store, answers.take(np.flatnonzero(answers.items)), ranking, config),
        manifest=manifest,
    )
    going, stopped = _words(judged, total, scored_by, _go_on(store, config, command))
    return PageFigures(gather(store, config, findings, provisional=going), going, stopped)


def _not_audited(store: RunStore, config: RunConfig, command: str | None) -> PageFigures:
    """Return the run's scores and ranks before the audit."""
    findings = read_findings(store)
    if findings.explain is None and _has_groups(store):
        answers, _ = scored_answers(store)
        explain = _groups(store, answers, findings.ranking, config)
        findings = replace(findings, explain=explain)
    source = gather(store, config, findings, provisional=_UNAUDITED)
    return PageFigures(source, _UNAUDITED, f"{_UNAUDITED} {_go_on(store, config, command)}")


def _nothing_yet(run: RunStore, config: RunConfig, command: str | None) -> PageFigures:
    """Return a page without figures: candidates, queries, and any checklists."""
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
    page, detail = (
        bare_head(config, findings, checklists, rubric_of(config, checklists)),
        served_detail(cells.scores, content.items),
    )
    total = sum(head.query_id in checklists for head in heads) if checklists else len(heads)
    words = _words(0, total, "", _go_on(store, config, command))
    return PageFigures(ReportSource(page, content, detail), *words)


def _why_no_score(score: ScoreFacts, config: RunConfig) -> str:
    """Return the most frequent reason why judged responses have no score."""
    texts = STATUS_TEXT if answers_yes_or_no(config) else GRADE_STATUS_TEXT
    lost = {name: count for name, count in score.statuses.items() if count and name in texts}
    why = f" Most often, {texts[max(lost, key=lambda name: lost[name])]}." if lost else ""
    return f"No response has a score: none of {score.answers:,} answers is usable.{why}"


def _words(judged: int, total: int, scored_by: str, go_on: str) -> tuple[str, str]:
    """Return the notes on provisional figures of a running and of a stopped run."""
    so_far = f"figures cover the {judged:,} of {total:,} responses judged so far"
    going = f"These {so_far} and can still change. {scored_by}"
    return going.strip(), f"The run stopped; its {so_far}. {go_on} {scored_by}".strip()


def _manifest(
    store: RunStore,
    config: RunConfig,
    answers: AnswerTable,
    scored: Scored,
    keys: Sequence[str | None],
) -> Manifest:
    """Return the manifest as if grading and scoring had finished now.

    The saved facts of these stages may be of an earlier run on other responses.
    """
    judged = int((answers.items > 0).sum())
    tasks = len(keys) - keys.count(None)
    price, manifest = config.judge.price, store.manifest()
    earlier = manifest.stages.grade
    return _with_stages(
        manifest,
        GradeFacts(
            tasks=tasks,
            unfinished=tasks - judged,
            usage_of_ledger=priced(store.ledger_usage(), price),
            overhead_of_run=priced_if_used(earlier.overhead_of_run.usage, price),
            unjudged_of_run=priced_if_used(earlier.unjudged_of_run.usage, price),
        ),
        ScoreFacts(
            scorer=scored.kind,
            without_score=int(np.isnan(scored.scores).sum()),
            answers=int(answers.items.sum()),
            missing_answers=int((answers.items - answers.answered).sum()),
            statuses=_statuses(store, answers, keys),
        ),
    )


def _statuses(store: RunStore, answers: AnswerTable, keys: Sequence[str | None]) -> dict[str, int]:
    """Return the number of answers per status.

    The ledger grows, so it is read once, and judgments newer than `answers` are ignored.
    """
    judged = [key for key, items in zip(keys, answers.items.tolist(), strict=True) if items]
    tables = list(store.judgments(["key", "status"]))
    return count_statuses(
        judged,
        (table.select(["key"]) for table in tables),
        (table.select(["status"]) for table in tables),
    )


def run_config(store: RunStore) -> RunConfig:
    """Return the config saved in the run directory."""
    return with_tie_margin(load_config(store.path / "run.yaml"))


def _scorer(config: ScorerConfig) -> tuple[ScorerConfig, str]:
    """Return a scorer without training, the run's own if possible, and a note about it."""
    if config.fitted is None and not isinstance(create_scorer(config), Learner):
        return config, "Intervals use fewer resamples than those of a finished run."
    plain = ScorerConfig(kind="mean", scale=config.scale, missing=config.missing)
    return (
        plain,
        f"Scores are means of the answers until the run's scorer, {config.kind}, is fitted.",
    )


def _rank(grid: ScoreGrid, config: RunConfig) -> Ranking:
    settings = config.ranking
    times = min(RESAMPLES, settings.bootstrap)

    def ranked(anchor: str | None) -> Ranking:
        found = rank(
            grid,
            tie_margin=settings.tie_margin,
            bootstrap=times,
            seed=settings.seed,
            anchor=anchor,
            anchor_rating=settings.anchor_rating,
        )
        # A candidate without a score misses all queries, not only those with scores of others.
        return replace(found, queries=len(grid.query_ids))

    try:
        return ranked(settings.anchor)
    except RocketEvalError:
        # The anchor is not judged yet, or shares no queries with some candidates.
        return ranked(None)


def _has_groups(store: RunStore) -> bool:
    return any(made.groups for made in store.inputs.checklists().values())


def _groups(
    store: RunStore, answers: AnswerTable, ranking: Ranking, config: RunConfig
) -> Explanation:
    """Return an explanation with only the means by group, the part shown before its stage."""
    found = score_groups(
        answers,
        store.inputs.checklists(),
        [row.candidate for row in ranking.rows],
        clusters=store.inputs.clusters(),
        bootstrap=min(RESAMPLES, config.ranking.bootstrap),
        seed=ranking.seed,
        points=config.scorer.kind == POINTS,
    )
    return Explanation((), 0, 0, 0, 0, 0, {}, (), *found)


def _go_on(store: RunStore, config: RunConfig, command: str | None) -> str:
    if command is None and config.run_path.resolve() == store.path.resolve():
        command = shlex.join(["rocketeval", "run", str(store.path / "run.yaml")])
    return f"Continue with `{command}`." if command else "Run the same command again to continue."
