"""Tables with planted preferences that depend on the query type."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rocketeval.evolve.cases import Case, CaseTable
from rocketeval.evolve.perspective import Perspective, PerspectiveKind

Floats = NDArray[np.float64]

CONCISE, DETAILED, CORRECT = (
    Perspective(f"Is it {word}?") for word in ("concise", "detailed", "correct")
)
WHICH_TYPE = tuple(
    Perspective(f"Is it of type {number}?", PerspectiveKind.QUERY) for number in range(3)
)
CONSTANT = Perspective("Is it a query?", PerspectiveKind.QUERY)
PREFERENCES = np.array([[1.0, -1.0, 0.6], [-1.0, 1.0, 0.6], [0.3, 0.3, -1.2]])
"""Weights of concise, detailed and correct for each query type."""
MARGIN = 0.35


@dataclass(frozen=True)
class Planted:
    """A table with its known optimum."""

    table: CaseTable
    ceiling: float
    """Accuracy (for labels, rank correlation) of the planted rule, given the noisy answers and the
    true type."""
    types: NDArray[np.int64]
    """Query type of each case."""


def planted_pairs(
    queries: int = 120,
    each: int = 4,
    types: int = 2,
    idle: int = 5,
    noise: float = 0.1,
    seed: int = 0,
) -> Planted:
    """Pairs whose winner depends on the query type, with ties; `idle` adds noise columns."""
    random = np.random.default_rng(seed)
    kinds, names, traits = _queries(random, queries, each, types, idle)
    truth = random.uniform(-1.0, 1.0, (queries * each, 3))
    score = (PREFERENCES[kinds] * truth).sum(axis=1)
    gold = _outcome(score)
    seen = np.clip(truth + random.normal(0.0, noise, truth.shape), -1.0, 1.0)
    guess = _outcome((PREFERENCES[kinds] * seen).sum(axis=1))
    answers = np.hstack([seen, random.uniform(-1.0, 1.0, (len(seen), idle))])
    cases = [
        Case(name, (f"m{place}", f"n{place}"), float(value))
        for place, (name, value) in enumerate(zip(names, gold, strict=True))
    ]
    table = CaseTable(
        tuple(cases), _about_responses(idle), answers, _about_queries(types, idle), traits
    )
    return Planted(table, float(np.mean(guess == gold)), kinds)


def planted_labels(
    queries: int = 120, each: int = 4, types: int = 2, idle: int = 5, seed: int = 0
) -> Planted:
    """Responses labeled from 1 to 5 by the criteria of the query's type."""
    random = np.random.default_rng(seed)
    kinds, names, traits = _queries(random, queries, each, types, idle)
    truth = random.uniform(0.0, 1.0, (queries * each, 3))
    seen = np.clip(truth + random.normal(0.0, 0.1, truth.shape), 0.0, 1.0)
    score, guess = ((PREFERENCES[kinds] * one).sum(axis=1) for one in (truth, seen))
    labels = np.clip(np.round(3.0 + 1.5 * (score - score.mean()) / score.std()), 1.0, 5.0)
    answers = np.hstack([seen, random.uniform(0.0, 1.0, (len(seen), idle))])
    cases = [
        Case(name, (f"m{place}",), float(value))
        for place, (name, value) in enumerate(zip(names, labels, strict=True))
    ]
    table = CaseTable(
        tuple(cases), _about_responses(idle), answers, _about_queries(types, idle), traits
    )
    ranked = [np.argsort(np.argsort(one)).astype(float) for one in (guess, labels)]
    return Planted(table, float(np.corrcoef(*ranked)[0, 1]), kinds)


def _queries(
    random: np.random.Generator, queries: int, each: int, types: int, idle: int
) -> tuple[NDArray[np.int64], list[str], Floats]:
    """Each case's type, query and traits; one query in twenty has the wrong trait."""
    kind = random.integers(types, size=queries)
    believed = np.where(
        random.uniform(size=queries) < 0.05, random.integers(types, size=queries), kind
    )
    p_yes = np.where(believed[:, None] == np.arange(types), 0.9, 0.1)
    p_yes = np.clip(p_yes + random.normal(0.0, 0.1, p_yes.shape), 0.0, 1.0)
    chance = random.uniform(size=(queries, idle))
    traits = np.hstack([p_yes, np.ones((queries, 1)), chance])
    rows = np.repeat(np.arange(queries), each)
    return kind[rows], [f"q{row}" for row in rows], traits[rows]


def _outcome(score: Floats) -> Floats:
    return np.where(np.abs(score) < MARGIN, 0.0, np.sign(score))


def _about_responses(idle: int) -> tuple[Perspective, ...]:
    idlers = (Perspective(f"Idle about responses {number}?") for number in range(idle))
    return (CONCISE, DETAILED, CORRECT, *idlers)


def _about_queries(types: int, idle: int) -> tuple[Perspective, ...]:
    idlers = (
        Perspective(f"Idle about queries {number}?", PerspectiveKind.QUERY)
        for number in range(idle)
    )
    return (*WHICH_TYPE[:types], CONSTANT, *idlers)
