"""A sample evaluator.json: two experts, a chain of parents, one hostile text."""

from __future__ import annotations

from dataclasses import replace

from rocketeval.evolve.result import (
    DescribedConfidence,
    DescribedExpert,
    DescribedFigure,
    DescribedPerspective,
    DescribedProvenance,
    DescribedRun,
    DescribedTrait,
    DescribedWeight,
    EvaluatorInRun,
    Histogram,
)
from rocketeval.records import Interval

HOSTILE = '=1+1 </script><img src=x onerror="alert(1)"> Is it warm?'
TEXTS = ("Is it right?", HOSTILE, "Is it short?")
CODE = "Does the query ask for code?"
DROPPED = "Is it good?"


def perspective(name: str, text: str, *, about: str, **more: object) -> DescribedPerspective:
    """Return a perspective as evaluator.json describes it."""
    found = DescribedPerspective(
        id=name,
        text=text,
        kind=about,
        origin="rule",
        parents=(),
        round=0,
        types=(),
        form="choice",
        importance=0.5,
        stability=1.0,
    )
    return replace(found, **more)  # type: ignore[arg-type]


def described() -> EvaluatorInRun:
    """Return an evaluator of pairs; expert 1 of 2 is for code and prefers short responses."""
    right, warm, short = (
        perspective("r0", TEXTS[0], about="response", importance=0.2),
        perspective(
            "r1", TEXTS[1], about="response", importance=0.5, origin="failures", round=1,
            parents=("old", "gone"), form="graded",
        ),
        perspective(
            "r2", TEXTS[2], about="response", importance=0.3, origin="depth", round=2,
            parents=("r1",), types=("coding",),
        ),
    )  # fmt: skip
    code = perspective("q0", CODE, about="query", importance=1.0, origin="routing", parents=("r2",))
    trait = DescribedTrait(perspective="q0", apart=0.4, share=0.9, usual=0.5)
    far = DescribedTrait(perspective="q0", apart=-0.4, share=0.1, usual=0.5)
    return EvaluatorInRun(
        decides="pairs",
        asking="each",
        perspectives=(right, warm, short, code),
        ancestors=(perspective("old", DROPPED, about="response", origin="transfer"),),
        experts=(
            DescribedExpert(index=0, size=60, attention=(0.1, 0.2, 0.7), traits=(trait,)),
            DescribedExpert(index=1, size=40, attention=(0.25, 0.75, 0.0), traits=(far,)),
        ),
        router=(DescribedWeight(perspective="q0", weight=1.0),),
        measure="accuracy",
        unit="share",
        figures=(
            DescribedFigure(name="evaluator", value=interval(0.74), note="", own=True),
            DescribedFigure(name="mean of the answers", value=interval(0.65), note="", own=False),
        ),
        confidence=(
            DescribedConfidence(threshold=0.0, coverage=1.0, accuracy=interval(0.74), cases=100),
            DescribedConfidence(threshold=0.3, coverage=0.6, accuracy=interval(0.86), cases=60),
            DescribedConfidence(threshold=0.9, coverage=0.0, accuracy=None, cases=0),
        ),
        cost=(("questions to the judge", "1,200"),),
        provenance=DescribedProvenance(
            created="2026-07-12T10:00:00+00:00",
            benchmark="duels",
            cases=100,
            rounds=2,
            judge="tiny",
        ),
        run=DescribedRun(
            cases=40,
            by_expert=(30, 10),
            confidence=Histogram((0.0, 0.5, 1.0), (25, 15)),
            threshold=0.3,
            to_person=18,
        ),
    )


def interval(value: float) -> Interval:
    """Return a figure with an interval of two points to each side."""
    return Interval(value, value - 0.02, value + 0.02)
