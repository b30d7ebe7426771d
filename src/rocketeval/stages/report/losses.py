"""How big a run is, and what is missing from it, for the report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rocketeval.records import Status
from rocketeval.report.data import GRADE_STATUS_TEXT, STATUS_TEXT, Loss
from rocketeval.stages.load import absent_responses, all_responses
from rocketeval.stages.report.findings import Findings

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


def losses(findings: Findings, *, yes_no: bool) -> tuple[tuple[Loss, ...], tuple[str, ...]]:
    """Return what is missing or unusual, and what was looked for and not found missing.

    `yes_no` says whether the judge is asked for a yes or no, or else for a grade.
    """
    every = _every_loss(findings, STATUS_TEXT if yes_no else GRADE_STATUS_TEXT)
    return tuple(loss for loss in every if loss.count), tuple(
        loss.what for loss in every if not loss.count
    )


def _every_loss(findings: Findings, status_text: Mapping[str, str]) -> list[Loss]:
    load, checklist, grade, score = _facts(findings)
    responses, scores = load.get("responses"), findings.scores["score"]
    ranked, unranked = len(findings.ranking.rows), len(findings.ranking.unranked)
    found = [
        Loss("responses absent from the benchmark", absent_responses(load), all_responses(load)),
        Loss("responses without a score", scores.null_count, len(scores)),
        Loss("candidates without any score", unranked, ranked + unranked),
        Loss(
            "empty responses, judged as they are", load.get("empty_responses", 0), responses, False
        ),
        *(
            Loss(f"{kind} left out, as the config says", count, None, False)
            for kind, count in load.get("left_out_by_config", {}).items()
        ),
    ]
    if checklist:
        failures = len(checklist.get("failures", ()))
        found.append(Loss("queries without a checklist", failures, load.get("queries")))
    if grade:
        found.append(Loss("responses not judged", grade.get("unfinished", 0), grade.get("tasks")))
    if score.get("answers"):
        found += _lost_answers(score, status_text)
    return found + _lost_gold(findings.audit, load)


def _lost_answers(score: Mapping[str, Any], status_text: Mapping[str, str]) -> list[Loss]:
    statuses, answers = score.get("statuses", {}), score.get("answers")
    return [
        Loss(f"answers: {words}", statuses.get(status, 0), answers, status not in _STILL_USED)
        for status, words in status_text.items()
    ]


def _lost_gold(audit: Mapping[str, Any] | None, load: Mapping[str, Any]) -> list[Loss]:
    if audit is None:
        return []
    votes: Mapping[str, int] = next(iter(audit.get("agreement", {}).values()), {})
    refused: Mapping[str, int] = audit.get("refused") or {}
    learned = "refused: the scorer was fitted to them"
    found = []
    if load.get("votes"):
        found.append(Loss("unusable votes", votes.get("unusable", 0), load["votes"]))
        found.append(Loss(f"votes {learned}", refused.get("votes", 0), load["votes"]))
    if load.get("labels"):
        judge = [methods.get("judge", {}) for methods in audit.get("labels", {}).values()]
        unusable = sum(part.get("unusable", 0) for part in judge)
        found.append(Loss("labels of responses without a score", unusable, load["labels"]))
        found.append(Loss(f"labels {learned}", refused.get("labels", 0), load["labels"]))
    return found


def _facts(findings: Findings) -> tuple[Mapping[str, Any], ...]:
    names = ("load", "checklist", "grade", "score")
    return tuple(findings.stages.get(name, {}) for name in names)
