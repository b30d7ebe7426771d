"""The results of earlier stages that a report is built from.

Also counts how large a run is and what is missing from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from rocketeval.audit.audit import Audit
from rocketeval.audit.item_gold import ItemGold
from rocketeval.audit.votes import JUDGE
from rocketeval.evolve.result import EvaluatorInRun
from rocketeval.explain.stage import Explanation
from rocketeval.ranking.rank import Ranking
from rocketeval.ranking.stage import read_ranking
from rocketeval.records import Status
from rocketeval.report.model import GRADE_STATUS_TEXT, STATUS_TEXT, MissingNote
from rocketeval.scoring.stage import item_weights
from rocketeval.store.manifest import LoadFacts, Manifest, ScoreFacts, Stages
from rocketeval.store.run import RunStore

SCORE_COLUMNS = ["query_id", "candidate", "score", "judgment"]


@dataclass(frozen=True, eq=False)
class Findings:
    """The results of a run's stages; None for a stage that has not run."""

    scores: pa.Table
    """Has at least `SCORE_COLUMNS`; one row per response, grouped by query."""
    ranking: Ranking
    audit: Audit | None = None
    explain: Explanation | None = None
    item_gold: ItemGold | None = None
    weights: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Learned item weights by query."""
    manifest: Manifest = field(default=Manifest())
    evaluator: EvaluatorInRun | None = None
    """The evolved evaluator and its results, if one judged the run."""

    @property
    def stages(self) -> Stages:
        """The manifest's facts about each stage."""
        return self.manifest.stages


def read_findings(store: RunStore) -> Findings:
    """Read the results of a run; raise StageMissing before it is ranked."""
    return Findings(
        scores=store.scores(SCORE_COLUMNS),
        ranking=read_ranking(store),
        audit=store.read_if_made(Audit),
        explain=store.read_if_made(Explanation),
        item_gold=store.read_if_made(ItemGold),
        weights=item_weights(store),
        manifest=store.manifest(),
        evaluator=store.read_if_made(EvaluatorInRun),
    )


_STILL_USED = frozenset({Status.TRUNCATED.value, Status.SAMPLED.value})


def sizes(findings: Findings) -> tuple[tuple[str, int], ...]:
    """Return the counts that describe the run's size."""
    load, checklist, grade = findings.stages.load, findings.stages.checklist, findings.stages.grade
    found = (
        ("queries", load.queries),
        ("candidates", load.candidates),
        ("responses", load.responses),
        ("checklists", checklist.checklists),
        ("items", checklist.items),
        ("judgments", grade.tasks - grade.unfinished - grade.not_needed),
        ("answers", findings.stages.score.answers),
        ("labels", load.labels),
        ("votes", load.votes),
        ("reference ratings", load.ratings),
    )
    return tuple((name, count) for name, count in found if count)


def losses(findings: Findings, *, yes_no: bool) -> tuple[tuple[MissingNote, ...], tuple[str, ...]]:
    """Return what is missing or unusual, and the checks that found nothing missing.

    `yes_no` is true if the judge answers yes or no, and false if it gives grades.
    """
    every = _every_loss(findings, STATUS_TEXT if yes_no else GRADE_STATUS_TEXT)
    return tuple(loss for loss in every if loss.count), tuple(
        loss.what for loss in every if not loss.count
    )


def _every_loss(findings: Findings, status_text: Mapping[str, str]) -> list[MissingNote]:
    made, scores = findings.stages.made(), findings.scores["score"]
    load, grade, score = findings.stages.load, findings.stages.grade, findings.stages.score
    responses, queries = (load.responses, load.queries) if "load" in made else (None, None)
    ranked, unranked = len(findings.ranking.rows), len(findings.ranking.unranked)
    found = [
        MissingNote(
            "responses absent from the benchmark", load.absent_responses, load.all_responses
        ),
        MissingNote("responses without a score", scores.null_count - grade.not_needed, len(scores)),
        MissingNote("candidates without a score", unranked, ranked + unranked),
        MissingNote(
            "empty responses (judged like any other)", load.empty_responses, responses, False
        ),
        *(
            MissingNote(f"{kind} left out{_by_config(kind)}", count, None, False)
            for kind, count in load.left_out_by_config.items()
        ),
    ]
    if grade.not_needed:
        early = "responses not needed, because grading stopped early"
        found.insert(1, MissingNote(early, grade.not_needed, len(scores), False))
    if "checklist" in made:
        failures = len(findings.stages.checklist.failures)
        found.append(MissingNote("queries without a checklist", failures, queries))
    if "grade" in made:
        found.append(MissingNote("responses not judged", grade.unfinished, grade.tasks))
    if score.answers:
        found += _lost_answers(score, status_text)
    return found + _lost_reference_data(findings.audit, load)


def _by_config(kind: str) -> str:
    """Return who left records of a kind out: the config's selection, or else the reader."""
    return " by the config" if kind in ("responses", "labels", "votes", "ratings") else ""


def _lost_answers(score: ScoreFacts, status_text: Mapping[str, str]) -> list[MissingNote]:
    inapplicable = (
        MissingNote("answers: not applicable", score.not_applicable, score.answers, False),
    )
    found = [
        MissingNote(
            f"answers: {words}",
            score.statuses.get(status, 0),
            score.answers,
            status not in _STILL_USED,
        )
        for status, words in status_text.items()
        # Most runs have no checks, and need no note that none failed.
        if status != Status.CHECK_FAILED or score.statuses.get(status)
    ]
    return [*found, *(inapplicable if score.not_applicable else ())]


def _lost_reference_data(audit: Audit | None, load: LoadFacts) -> list[MissingNote]:
    if audit is None:
        return []
    refused = audit.refused
    learned = "refused because the scorer was fitted to them"
    found = []
    if load.votes:
        unusable = audit.agreement[JUDGE].unusable if audit.agreement else 0
        found.append(MissingNote("unusable votes", unusable, load.votes))
        found.append(MissingNote(f"votes {learned}", refused.votes, load.votes))
    if load.labels:
        unusable = sum(methods[JUDGE].unusable for methods in audit.labels.values())
        found.append(MissingNote("labels of responses without a score", unusable, load.labels))
        found.append(MissingNote(f"labels {learned}", refused.labels, load.labels))
    return found
