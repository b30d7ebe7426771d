"""Descriptions of an evaluator for the report and evaluator.json."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from rocketeval.arrays import Floats
from rocketeval.errors import ArtifactError
from rocketeval.evolve.evaluator import Evaluator
from rocketeval.evolve.perspective import Perspective
from rocketeval.evolve.predictions import ConfidenceRow
from rocketeval.evolve.result import (
    ArmFigures,
    CaseCost,
    Described,
    DescribedConfidence,
    DescribedExpert,
    DescribedFigure,
    DescribedPerspective,
    DescribedProvenance,
    DescribedTrait,
    DescribedWeight,
    EvaluatorCost,
    NotedFigures,
)
from rocketeval.evolve.select import Router
from rocketeval.evolve.validate import SINGLE_PROMPTS, WITH, WITHOUT
from rocketeval.records import Interval
from rocketeval.scoring.npz import FOREIGN
from rocketeval.store.codec import decode

OWN = "this evaluator"
"""Shown name of the arm whose number of experts was chosen in each fold."""


def figures_of(provenance: Mapping[str, Any]) -> tuple[DescribedFigure, ...]:
    """Return each arm's result, the evaluator first; empty if it was not validated."""
    if not provenance.get("figures"):
        return ()
    found = decode(NotedFigures, provenance["figures"])
    described = [
        DescribedFigure(
            name=OWN if arm.name == WITH else arm.name,
            value=_known(arm.figures[found.measure]),
            note="; ".join(_notes(arm, found)),
            own=arm.name == WITH,
        )
        for arm in found.arms
    ]
    return tuple(sorted(described, key=lambda figure: not figure.own))


def confidence_of(provenance: Mapping[str, Any]) -> tuple[DescribedConfidence, ...]:
    """Return accuracy by confidence, lowest threshold first; empty for labels."""
    rows = decode(tuple[ConfidenceRow, ...], provenance.get("confidence") or ())
    return tuple(
        DescribedConfidence(row.threshold, row.coverage, _known(row.accuracy), row.cases)
        for row in sorted(rows, key=lambda row: row.threshold)
    )


def cost_of(provenance: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return the cost of a verdict as (name, text) pairs; empty if it is unknown."""
    if not provenance.get("cost"):
        return ()
    found = decode(EvaluatorCost, provenance["cost"])
    one = found.case
    loads = (
        (f"one {one} on its own", found.alone),
        (f"one {one} of its benchmark, where queries and responses are shared", found.here),
        (f"one {one} with a single question", found.single),
    )
    return tuple((words, ", ".join(_load(load, found.currency))) for words, load in loads)


def _notes(arm: ArmFigures, found: NotedFigures) -> Iterator[str]:
    if arm.name == WITH:
        yield f"{found.cases:,} cases of {found.queries:,} queries"
        if found.worth:
            yield found.worth.rstrip(".")
    if arm.name in SINGLE_PROMPTS:
        yield found.overall
    gain = _known(arm.gain)
    if arm.name != WITHOUT and gain is not None:
        unit, scale, digits = ("points", 100.0, 1) if found.measure == "accuracy" else ("", 1, 2)
        low, high = (
            f"{scale * end:+z.{digits}f}" if math.isfinite(end) else "?"
            for end in (gain.low, gain.high)
        )
        value = f"{scale * gain.value:+z.{digits}f} {unit}".strip()
        yield f"{value} over no experts ({low} to {high})".replace("-", "\N{MINUS SIGN}")


def _load(load: CaseCost, currency: str) -> Iterator[str]:
    calls = f"{load.calls:,.1f}".removesuffix(".0")
    yield f"{calls} {'question' if calls == '1' else 'questions'} to the judge"
    if load.prompt_tokens is not None:
        yield f"{load.prompt_tokens:,.0f} prompt tokens"
    if load.money is not None:
        yield f"{load.money:.2g} {currency}".strip()


def _known(found: Interval | None) -> Interval | None:
    return None if found is None or math.isnan(found.value) else found


MOST_TRAITS = 4
"""Maximum number of traits per expert, the most distinctive ones."""
_DIGITS = 6
_LEAST_APART = 1e-3
"""Differences between shares of queries below this are ignored."""


def describe_evaluator(evaluator: Evaluator) -> Described:
    """Return a description of an evaluator.

    Raises ArtifactError if the provenance in its file cannot be read.
    """
    try:
        return _described(evaluator)
    except FOREIGN as error:
        raise ArtifactError(
            f"The evaluator's provenance cannot be read: {error!r}.",
            hint="Another release may have written it: run `rocketeval evolve` again.",
        ) from None


def _described(evaluator: Evaluator) -> Described:
    provenance = evaluator.provenance
    perspectives = (*evaluator.about_responses, *evaluator.about_queries)
    return Described(
        decides="pairs" if evaluator.task == "pairs" else "responses",
        asking=evaluator.asking,
        perspectives=tuple(_perspective(each, provenance) for each in perspectives),
        ancestors=tuple(_ancestors(provenance, {each.id for each in perspectives})),
        experts=tuple(_experts(evaluator)),
        router=_weights(evaluator.router),
        measure="accuracy" if evaluator.task == "pairs" else "rank correlation (Spearman)",
        unit="share" if evaluator.task == "pairs" else "number",
        figures=figures_of(provenance),
        confidence=confidence_of(provenance),
        cost=cost_of(provenance),
        provenance=_provenance(evaluator),
    )


def _perspective(found: Perspective, provenance: Mapping[str, Any]) -> DescribedPerspective:
    standing = provenance.get("standings", {}).get(found.id, (found.importance, found.stability))
    importance, stability = standing
    if found.stability is not None:
        # Use the stability from the selection; among the selected ones, all are stable.
        stability = found.stability
    return DescribedPerspective(
        id=found.id,
        text=found.text,
        kind=found.kind.value,
        origin=found.origin.value,
        parents=found.parents,
        round=found.round,
        types=found.types,
        form=found.form.value,
        importance=None if importance is None else round(importance, _DIGITS),
        stability=None if stability is None else round(stability, _DIGITS),
    )


def _ancestors(provenance: Mapping[str, Any], used: set[str]) -> Iterator[DescribedPerspective]:
    """Yield the ancestors that the evaluator does not use itself."""
    for each in provenance.get("ancestors", ()):
        if each["id"] not in used:
            yield decode(DescribedPerspective, {"parents": [], "round": 0, "types": [], **each})


def _experts(evaluator: Evaluator) -> Iterator[DescribedExpert]:
    sizes = evaluator.provenance.get("cases by expert")
    for index, expert in enumerate(evaluator.experts):
        yield DescribedExpert(
            index=index,
            size=None if sizes is None else sizes[index],
            attention=tuple(expert.attention.round(_DIGITS).tolist()),
            traits=distinguishing(evaluator.router, index, sizes),
        )


def distinguishing(
    router: Router, expert: int, sizes: list[int] | None = None
) -> tuple[DescribedTrait, ...]:
    """Return the traits in which an expert's queries differ most from all, largest first.

    With `sizes` (cases per expert) the overall mean is over cases, otherwise over experts.
    """
    if not router.perspectives:
        return ()
    shares = _shares(router)
    usual = np.average(shares, axis=0, weights=sizes if sizes and any(sizes) else None)
    apart = router.weights * (shares[expert] - usual)
    order = np.argsort(-np.abs(apart), kind="stable")[:MOST_TRAITS]
    return tuple(
        DescribedTrait(
            perspective=router.perspectives[place],
            apart=round(float(apart[place]), _DIGITS),
            share=round(float(shares[expert, place]), _DIGITS),
            usual=round(float(usual[place]), _DIGITS),
        )
        for place in order.tolist()
        if router.weights[place] > 0.0 and abs(shares[expert, place] - usual[place]) > _LEAST_APART
    )


def _shares(router: Router) -> Floats:
    """Return the share of queries with each trait at each centroid."""
    heavy = np.where(router.weights > 0.0, router.weights, 1.0)
    return np.clip(router.centroids / heavy, 0.0, 1.0)


def _weights(router: Router) -> tuple[DescribedWeight, ...]:
    order = np.argsort(-router.weights, kind="stable").tolist()
    return tuple(
        DescribedWeight(
            perspective=router.perspectives[place],
            weight=round(float(router.weights[place]), _DIGITS),
        )
        for place in order
    )


def _provenance(evaluator: Evaluator) -> DescribedProvenance:
    found = evaluator.provenance
    models = dict.fromkeys(judge.model for judge in evaluator.judges.values())
    return DescribedProvenance(
        created=str(found.get("created", "")),
        benchmark=str(found.get("benchmark", "")),
        cases=found.get("counts", {}).get("cases", found.get("cases")),
        rounds=None if found.get("rounds") is None else len(found["rounds"]),
        judge=", ".join(models),
    )
