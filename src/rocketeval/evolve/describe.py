"""An evaluator in words and figures, for the report and for whoever reads evaluator.json.

What validation found about an evaluator, from its provenance, as a reader is told it.
What a reader is told about an evaluator: the shape of evaluator.json, and of the report's block.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NotRequired, TypedDict

import numpy as np

from rocketeval.arrays import Floats
from rocketeval.errors import ArtifactError
from rocketeval.evolve.evaluator import Evaluator
from rocketeval.evolve.perspective import Perspective
from rocketeval.evolve.select import Router
from rocketeval.evolve.validate import SINGLE_PROMPTS, WITH, WITHOUT
from rocketeval.scoring.npz import FOREIGN


class DescribedInterval(TypedDict):
    """A figure with its interval; an end is None where it is unknown."""

    value: float
    low: float | None
    high: float | None


class DescribedPerspective(TypedDict):
    """A question that the judge answers."""

    id: str
    text: str
    kind: str
    """`Kind`: what it is about."""
    origin: str
    """`Origin`: how it came into the pool."""
    parents: list[str]
    """Ids of those it was made from; the evaluator need not use them itself."""
    round: int
    types: list[str]
    form: str
    """`Form`: how it is answered."""
    importance: float | None
    """Its share in the surrogate's decisions, among those of its kind."""
    stability: float | None


class DescribedTrait(TypedDict):
    """What tells an expert's queries from others."""

    perspective: str
    """Id of a perspective about queries."""
    apart: float
    """From the mean of all to the expert's centroid, in the router's weighted space."""
    share: float | None
    """Share of the expert's queries that have the trait; None where the trait weighs nothing."""
    usual: float | None
    """The same over all experts."""


class DescribedExpert(TypedDict):
    """One expert: which queries it judges, and what it looks at."""

    index: int
    size: int | None
    """Cases in training that it is the nearest expert of; None when that is not kept."""
    attention: list[float]
    """One a perspective about responses, in order; they sum to one, or all are zero."""
    traits: list[DescribedTrait]
    """Those that lie farthest from the mean, farthest first."""


class DescribedWeight(TypedDict):
    """How much a trait counts when a query is sent to an expert."""

    perspective: str
    weight: float


class DescribedFigure(TypedDict):
    """What one arm reached in validation."""

    name: str
    value: DescribedInterval | None
    note: str
    own: bool
    """Whether it is the evaluator itself; the others are what it must be seen beside."""


class DescribedConfidence(TypedDict):
    """What is right among the cases that an evaluator is so sure of."""

    threshold: float
    coverage: float
    """Share of the cases with at least this confidence."""
    accuracy: DescribedInterval | None
    cases: int


class DescribedProvenance(TypedDict):
    """Where an evaluator comes from."""

    created: str
    benchmark: str
    cases: int | None
    """Those with gold that it learned from."""
    rounds: int | None
    judge: str
    """The model whose answers it learned to weigh."""


class Histogram(TypedDict):
    """Counts between edges, of which there is one more."""

    edges: list[float]
    counts: list[int]


class DescribedRun(TypedDict):
    """What an evaluator did in the run it is applied to."""

    cases: int
    by_expert: list[int]
    confidence: Histogram
    threshold: float | None
    """Cases below it should go to a person; None when none is recommended."""
    to_person: int


class Described(TypedDict):
    """An evaluator in words and figures."""

    decides: Literal["pairs", "responses"]
    """Who wins between two responses, or the score of one."""
    asking: str
    """`Asking`: whether the judge saw two responses at once, or one at a time."""
    perspectives: list[DescribedPerspective]
    """What is asked about responses first, in the order of columns; then about queries."""
    ancestors: list[DescribedPerspective]
    """Those that perspectives above were made from and that it does not use."""
    experts: list[DescribedExpert]
    router: list[DescribedWeight]
    """The heaviest first."""
    measure: str
    """What the figures measure."""
    unit: Literal["share", "number"]
    figures: list[DescribedFigure]
    confidence: list[DescribedConfidence]
    """The lowest threshold first."""
    cost: list[tuple[str, str]]
    provenance: DescribedProvenance
    run: NotRequired[DescribedRun]
    """Added by whoever applies it to a run."""


OWN = "this evaluator"
"""How the arm with as many experts as each fold chose is called."""

_LOADS = {
    "alone": "a {} that comes alone",
    "here": "a {} of its benchmark, where some share a query or a response",
    "single": "a {} by one question alone",
}


def figures_of(provenance: Mapping[str, Any]) -> list[DescribedFigure]:
    """Return what each arm reached, the evaluator itself first; none where nobody validated it."""
    found = provenance.get("figures")
    if not found:
        return []
    measure = found["measure"]
    told = [
        DescribedFigure(
            name=OWN if arm["name"] == WITH else arm["name"],
            value=_interval(arm["figures"][measure]),
            note="; ".join(_notes(arm, found)),
            own=arm["name"] == WITH,
        )
        for arm in found["arms"]
    ]
    return sorted(told, key=lambda figure: not figure["own"])


def confidence_of(provenance: Mapping[str, Any]) -> list[DescribedConfidence]:
    """Return the table of confidence, the lowest threshold first; empty for labels."""
    rows = [
        DescribedConfidence(
            threshold=row["threshold"],
            coverage=row["coverage"],
            accuracy=_interval(row["accuracy"]),
            cases=row["cases"],
        )
        for row in provenance.get("confidence") or ()
    ]
    return sorted(rows, key=lambda row: row["threshold"])


def cost_of(provenance: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what a verdict takes, as names and words; nothing where nobody counted."""
    found = provenance.get("cost")
    if not found:
        return []
    return [
        (words.format(found["case"]), ", ".join(_load(found[name], found["currency"])))
        for name, words in _LOADS.items()
    ]


def _notes(arm: Mapping[str, Any], found: Mapping[str, Any]) -> Iterator[str]:
    if arm["name"] == WITH:
        yield f"{found['cases']:,} cases of {found['queries']:,} queries"
        if found.get("worth"):
            yield found["worth"].rstrip(".")
    if arm["name"] in SINGLE_PROMPTS:
        yield found["overall"]
    gain = _interval(arm["gain"])
    if arm["name"] != WITHOUT and gain is not None:
        unit, scale, digits = ("points", 100.0, 1) if found["measure"] == "accuracy" else ("", 1, 2)
        low, high = (
            "?" if end is None else f"{scale * end:+z.{digits}f}"
            for end in (gain["low"], gain["high"])
        )
        value = f"{scale * gain['value']:+z.{digits}f} {unit}".strip()
        told = f"{value} over no experts ({low} to {high})"
        yield told.replace("-", "\N{MINUS SIGN}")


def _load(load: Mapping[str, Any], currency: str) -> Iterator[str]:
    calls = f"{load['calls']:,.1f}".removesuffix(".0")
    yield f"{calls} {'question' if calls == '1' else 'questions'} to the judge"
    if load["prompt_tokens"] is not None:
        yield f"{load['prompt_tokens']:,.0f} prompt tokens"
    if load["money"] is not None:
        yield f"{load['money']:.2g} {currency}".strip()


def _interval(found: Mapping[str, Any] | None) -> DescribedInterval | None:
    if found is None or found["value"] is None:
        return None
    return DescribedInterval(value=found["value"], low=found["low"], high=found["high"])


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
