"""An evaluator in words and figures, for the report and for whoever reads evaluator.json."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from rocketeval.errors import ArtifactError
from rocketeval.evolve.cases import Floats
from rocketeval.evolve.describe_figures import confidence_of, cost_of, figures_of
from rocketeval.evolve.described import (
    Described,
    DescribedExpert,
    DescribedPerspective,
    DescribedProvenance,
    DescribedTrait,
    DescribedWeight,
)
from rocketeval.evolve.evaluator import Evaluator
from rocketeval.evolve.perspective import Perspective
from rocketeval.evolve.route import Router
from rocketeval.scoring.sealed import FOREIGN

MOST_TRAITS = 4
"""Traits that are told of an expert, those that set it apart most."""
_DIGITS = 6
_LEAST_APART = 1e-3
"""Shares of queries closer than this tell nothing apart."""


def describe_evaluator(evaluator: Evaluator) -> Described:
    """Return what a reader is told about an evaluator, as JSON holds it; `run` is not in it.

    ArtifactError when its provenance, which a file may have brought along, makes no sense.
    """
    try:
        return _described(evaluator)
    except FOREIGN as error:
        raise ArtifactError(
            f"What the evaluator says about its making cannot be read: {error!r}.",
            hint="Another release may have made it: run `rocketeval evolve` again.",
        ) from None


def _described(evaluator: Evaluator) -> Described:
    provenance = evaluator.provenance
    perspectives = (*evaluator.about_responses, *evaluator.about_queries)
    return Described(
        decides="pairs" if evaluator.task == "pairs" else "responses",
        asking=evaluator.asking,
        perspectives=[_perspective(each, provenance) for each in perspectives],
        ancestors=list(_ancestors(provenance, {each.id for each in perspectives})),
        experts=list(_experts(evaluator)),
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
        # Of the selection that chose it: among those that were chosen, all are stable.
        stability = found.stability
    return DescribedPerspective(
        id=found.id,
        text=found.text,
        kind=found.kind.value,
        origin=found.origin.value,
        parents=list(found.parents),
        round=found.round,
        types=list(found.types),
        form=found.form.value,
        importance=None if importance is None else round(importance, _DIGITS),
        stability=None if stability is None else round(stability, _DIGITS),
    )


def _ancestors(provenance: Mapping[str, Any], used: set[str]) -> Iterator[DescribedPerspective]:
    """What `provenance["ancestors"]` lists beside the evaluator's own."""
    for each in provenance.get("ancestors", ()):
        if each["id"] not in used:
            yield DescribedPerspective(
                id=each["id"],
                text=each["text"],
                kind=each["kind"],
                origin=each["origin"],
                parents=list(each.get("parents", ())),
                round=each.get("round", 0),
                types=list(each.get("types", ())),
                form=each["form"],
                importance=None,
                stability=None,
            )


def _experts(evaluator: Evaluator) -> Iterator[DescribedExpert]:
    sizes = evaluator.provenance.get("cases by expert")
    for index, expert in enumerate(evaluator.experts):
        yield DescribedExpert(
            index=index,
            size=None if sizes is None else sizes[index],
            attention=expert.attention.round(_DIGITS).tolist(),
            traits=distinguishing(evaluator.router, index, sizes),
        )


def distinguishing(
    router: Router, expert: int, sizes: list[int] | None = None
) -> list[DescribedTrait]:
    """Return the traits in which an expert's queries differ most from all, the farthest first.

    `sizes` are the experts' cases, so that the mean of all is over cases; over experts without.
    """
    if not router.perspectives:
        return []
    shares = _shares(router)
    usual = np.average(shares, axis=0, weights=sizes if sizes and any(sizes) else None)
    apart = router.weights * (shares[expert] - usual)
    order = np.argsort(-np.abs(apart), kind="stable")[:MOST_TRAITS]
    return [
        DescribedTrait(
            perspective=router.perspectives[place],
            apart=round(float(apart[place]), _DIGITS),
            share=round(float(shares[expert, place]), _DIGITS),
            usual=round(float(usual[place]), _DIGITS),
        )
        for place in order.tolist()
        if router.weights[place] > 0.0 and abs(shares[expert, place] - usual[place]) > _LEAST_APART
    ]


def _shares(router: Router) -> Floats:
    """The share of queries with a trait at each centroid: a vector holds its weight or 0."""
    heavy = np.where(router.weights > 0.0, router.weights, 1.0)
    return np.clip(router.centroids / heavy, 0.0, 1.0)


def _weights(router: Router) -> list[DescribedWeight]:
    order = np.argsort(-router.weights, kind="stable").tolist()
    return [
        DescribedWeight(
            perspective=router.perspectives[place],
            weight=round(float(router.weights[place]), _DIGITS),
        )
        for place in order
    ]


def _provenance(evaluator: Evaluator) -> DescribedProvenance:
    told = evaluator.provenance
    models = dict.fromkeys(judge.model for judge in evaluator.judges.values())
    return DescribedProvenance(
        created=str(told.get("created", "")),
        benchmark=str(told.get("benchmark", "")),
        cases=told.get("counts", {}).get("cases", told.get("cases")),
        rounds=_rounds(told.get("rounds")),
        judge=", ".join(models),
    )


def _rounds(found: Any) -> int | None:
    """How many rounds there were, of which each has an entry; None when nobody wrote it down."""
    return None if found is None else len(found)
