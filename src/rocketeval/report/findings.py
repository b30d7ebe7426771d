"""What the stages before the report left: the files a report is made from, read once.

How big a run is, and what is missing from it, for the report.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from rocketeval.audit.audit import Audit
from rocketeval.audit.item_gold import ItemGold
from rocketeval.audit.votes import JUDGE
from rocketeval.benchmarks.load import absent_responses, all_responses
from rocketeval.evolve.result import EvaluatorInRun
from rocketeval.explain.stage import Explanation
from rocketeval.ranking.rank import Ranking
from rocketeval.ranking.stage import read_ranking
from rocketeval.records import Status
from rocketeval.report.model import GRADE_STATUS_TEXT, STATUS_TEXT, MissingNote
from rocketeval.scoring.stage import item_weights
from rocketeval.store.run import RunStore

SCORE_COLUMNS = ["query_id", "candidate", "score", "judgment"]

Json = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Findings:
    """What is known of a run; what no stage has made yet is None."""

    scores: pa.Table
    """With at least `SCORE_COLUMNS`, one row a response, queries together."""
    ranking: Ranking
    audit: Audit | None = None
    explain: Explanation | None = None
    item_gold: ItemGold | None = None
    weights: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Of items, by query, where a scorer learned them."""
    manifest: Json = field(default_factory=dict)
    evaluator: EvaluatorInRun | None = None
    """What an evolved evaluator is and found here, where one judged."""

    @property
    def stages(self) -> Json:
        """What the manifest says of each stage."""
        found: Json = self.manifest.get("stages", {})
        return found


def read_findings(store: RunStore) -> Findings:
    """Return what a run's stages found; StageMissing before it is ranked."""
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


_STILL_USED = frozenset({Status.TRUNCATED.value})


def sizes(findings: Findings) -> tuple[tuple[str, int], ...]:
    """Return how much there was of everything."""
    load, checklist, grade, score = _facts(findings)
    found = (
        ("queries", load.get("queries", 0)),
        ("candidates", load.get("candidates", 0)),
        ("responses", load.get("responses", 0)),
        ("checklists", checklist.get("checklists", 0)),
        ("items", checklist.get("items", 0)),
        ("judgments", grade.get("tasks", 0) - grade.get("unfinished", 0)),
        ("answers", score.get("answers", 0)),
        ("labels", load.get("labels", 0)),
        ("votes", load.get("votes", 0)),
        ("reference ratings", load.get("ratings", 0)),
    )
    return tuple((name, count) for name, count in found if count)


def losses(findings: Findings, *, yes_no: bool) -> tuple[tuple[MissingNote, ...], tuple[str, ...]]:
    """Return what is missing or unusual, and what was looked for and not found missing.

    `yes_no` says whether the judge is asked for a yes or no, or else for a grade.
    """
    every = _every_loss(findings, STATUS_TEXT if yes_no else GRADE_STATUS_TEXT)
    return tuple(loss for loss in every if loss.count), tuple(
        loss.what for loss in every if not loss.count
    )


def _every_loss(findings: Findings, status_text: Mapping[str, str]) -> list[MissingNote]:
    load, checklist, grade, score = _facts(findings)
    responses, scores = load.get("responses"), findings.scores["score"]
    ranked, unranked = len(findings.ranking.rows), len(findings.ranking.unranked)
    found = [
        MissingNote(
            "responses absent from the benchmark", absent_responses(load), all_responses(load)
        ),
        MissingNote("responses without a score", scores.null_count, len(scores)),
        MissingNote("candidates without any score", unranked, ranked + unranked),
        MissingNote(
            "empty responses, judged as they are", load.get("empty_responses", 0), responses, False
        ),
        *(
            MissingNote(f"{kind} left out, as the config says", count, None, False)
            for kind, count in load.get("left_out_by_config", {}).items()
        ),
    ]
    if checklist:
        failures = len(checklist.get("failures", ()))
        found.append(MissingNote("queries without a checklist", failures, load.get("queries")))
    if grade:
        found.append(
            MissingNote("responses not judged", grade.get("unfinished", 0), grade.get("tasks"))
        )
    if score.get("answers"):
        found += _lost_answers(score, status_text)
    return found + _lost_gold(findings.audit, load)


def _lost_answers(score: Mapping[str, Any], status_text: Mapping[str, str]) -> list[MissingNote]:
    statuses, answers = score.get("statuses", {}), score.get("answers")
    return [
        MissingNote(
            f"answers: {words}", statuses.get(status, 0), answers, status not in _STILL_USED
        )
        for status, words in status_text.items()
    ]


def _lost_gold(audit: Audit | None, load: Mapping[str, Any]) -> list[MissingNote]:
    if audit is None:
        return []
    refused = audit.refused
    learned = "refused: the scorer was fitted to them"
    found = []
    if load.get("votes"):
        unusable = audit.agreement[JUDGE].unusable if audit.agreement else 0
        found.append(MissingNote("unusable votes", unusable, load["votes"]))
        found.append(MissingNote(f"votes {learned}", refused.votes, load["votes"]))
    if load.get("labels"):
        unusable = sum(methods[JUDGE].unusable for methods in audit.labels.values())
        found.append(MissingNote("labels of responses without a score", unusable, load["labels"]))
        found.append(MissingNote(f"labels {learned}", refused.labels, load["labels"]))
    return found


def _facts(findings: Findings) -> tuple[Mapping[str, Any], ...]:
    names = ("load", "checklist", "grade", "score")
    return tuple(findings.stages.get(name, {}) for name in names)
