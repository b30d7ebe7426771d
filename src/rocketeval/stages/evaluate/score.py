"""score, with an evaluator: its decisions become scores, and are written down one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rocketeval.config import RunConfig
from rocketeval.evolve.cases import Floats, Task
from rocketeval.evolve.describe import describe_evaluator
from rocketeval.records import Basis, Query
from rocketeval.scoring.answers import AnswerTable
from rocketeval.scoring.crossfit import Scored
from rocketeval.stages.evaluate.decide import Decided, decide
from rocketeval.stages.evaluate.given import Given, open_evaluator
from rocketeval.stages.evaluate.tally import Tally
from rocketeval.store.run import RunStore

KIND = "evaluator"
"""What the scores' scorer is called."""
_VERDICTS = {1.0: "a", 0.0: "tie", -1.0: "b"}


@dataclass(frozen=True, eq=False)
class Evaluated:
    """The scores of a run by its evaluator."""

    scored: Scored
    """In the order of the answers; FITTED where the query's gold was learned from, whoever
    responded, and everywhere if the evaluator does not say what it learned from."""
    facts: Mapping[str, Any]
    """What the manifest says of them."""


def evaluate_responses(store: RunStore, config: RunConfig, answers: AnswerTable) -> Evaluated:
    """Write what the evaluator decides; return the scores that this comes down to."""
    given = open_evaluator(config)
    evaluator, provenance = given.evaluator, given.evaluator.provenance
    tally = Tally(len(evaluator.experts), provenance.get("threshold"))
    parts = map(tally.add, decide(store, given))
    if evaluator.task == "pairs":
        store.save_rows("preferences", (row for part in parts for row in _preferences(part)))
    else:
        store.save_rows("evaluated", (row for part in parts for row in _values(part)))
    store.save_json("evaluator", {**describe_evaluator(evaluator), "run": tally.run()})
    attention = [expert.attention.tolist() for expert in evaluator.experts]
    weights = {query_id: attention[expert] for query_id, expert in tally.experts.items()}
    store.save_json("item_weights", weights)
    rows = list(zip(answers.query_ids, answers.candidates, strict=True))
    scores, clipped = _on_scale(tally.means(rows), evaluator.task, config.scorer.scale)
    basis = _basis(store.inputs.queries, given, answers.query_ids)
    learned = provenance.get("counts", {}).get("cases", 0)
    facts = {
        "learned": {"votes" if evaluator.task == "pairs" else "labels": learned},
        "evaluator": {
            **given.facts(),
            "decided": tally.cases,
            "undecided": tally.undecided,
            "to_person": tally.to_person,
            "threshold": tally.threshold,
            "clipped": clipped,
            "learned_from_known": "learned_from" in provenance,
        },
    }
    return Evaluated(Scored(scores, basis, KIND, None, None), facts)


def _preferences(part: Decided) -> Iterator[dict[str, Any]]:
    said = part.said
    assert said.probabilities is not None
    columns = (said.probabilities.tolist(), said.verdict.tolist(), *_sureness(part))
    for case, (b, tie, a), verdict, confidence, expert in zip(part.cases, *columns, strict=True):
        yield {
            "query_id": case.query_id,
            "candidate_a": case.candidates[0],
            "candidate_b": case.candidates[1],
            "p_a": a,
            "p_tie": tie,
            "p_b": b,
            "verdict": _VERDICTS[verdict],
            "confidence": confidence,
            "expert": expert,
        }


def _values(part: Decided) -> Iterator[dict[str, Any]]:
    assert part.said.values is not None
    columns = (part.said.values.tolist(), *_sureness(part))
    for case, value, confidence, expert in zip(part.cases, *columns, strict=True):
        yield {
            "query_id": case.query_id,
            "candidate": case.candidates[0],
            "value": value,
            "confidence": confidence,
            "expert": expert,
        }


def _sureness(part: Decided) -> tuple[list[float], list[int]]:
    return part.said.confidence.tolist(), part.said.expert.tolist()


def _on_scale(means: Floats, task: Task, scale: tuple[float, float]) -> tuple[Floats, int]:
    """Return scores on the label scale, and how many values lay outside of it.

    A share of wins is stretched over the scale; a value is on the scale of the labels it was
    learned from.
    """
    low, high = scale
    if task == "pairs":
        return low + (high - low) * means, 0
    return np.clip(means, low, high), int(((means < low) | (means > high)).sum())


def _basis(
    queries: Mapping[str, Query], given: Given, query_ids: Sequence[str]
) -> tuple[Basis, ...]:
    """Return what each score rests on; without a word on what was learned from, all are FITTED."""
    noted = given.evaluator.provenance.get("learned_from")
    if noted is None:
        return (Basis.FITTED,) * len(query_ids)
    learned = set(noted)
    fitted = {name for name, query in queries.items() if query.content_hash.hex() in learned}
    return tuple(Basis.FITTED if name in fitted else Basis.UNSEEN for name in query_ids)
