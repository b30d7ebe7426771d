"""Evaluator files: plain data that is read without executing code.

The format is that of scorer files (`scoring.sealed`): `header` is JSON (perspectives, settings,
judges, provenance), `router.*` and `experts.*` are fitted arrays, and `digest` is a checksum.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from rocketeval.arrays import Floats
from rocketeval.evolve.cases import OUTCOMES, Task
from rocketeval.evolve.evaluator import Evaluator, Mixture
from rocketeval.evolve.forest import Expert, ForestSettings
from rocketeval.evolve.perspective import (
    AnswerFormat,
    Asking,
    Perspective,
    PerspectiveKind,
    PerspectiveOrigin,
    check_question,
)
from rocketeval.evolve.select import Router
from rocketeval.records import JudgeFingerprint
from rocketeval.scoring.forest import pack_forests, unpack_forests
from rocketeval.scoring.npz import FOREIGN, Schema

Arrays = Mapping[str, NDArray[Any]]

SCHEMA = Schema(
    "rocketeval.evaluator",
    version=1,
    thing="evaluator",
    if_unreadable="Check the path, or run `rocketeval evolve` to make one.",
)

_FOREST = "experts.forest."
_OWN = ("fill", "router.weights", "router.centroids", "experts.values", "experts.attention")
_HASH = re.compile("[0-9a-f]+")
_FORESTS = ("roots", "item", "right", "number")


def save_evaluator(evaluator: Evaluator, path: Path) -> None:
    """Write an evaluator to `path` atomically; the same fit gives the same bytes."""
    mixture, experts = evaluator.mixture, evaluator.experts
    sizes, forests = pack_forests([expert.forest for expert in experts])
    header = {
        "asking": evaluator.asking,
        "task": mixture.task,
        "mirrored": mixture.mirrored,
        "scale": list(mixture.scale),
        "reach": mixture.router.reach,
        "about_responses": [asdict(each) for each in evaluator.about_responses],
        "about_queries": [asdict(each) for each in evaluator.about_queries],
        "forests": sizes,
        "settings": [asdict(expert.settings) for expert in experts],
        "judges": {question_set: asdict(judge) for question_set, judge in evaluator.judges.items()},
        "provenance": dict(evaluator.provenance),
    }
    arrays = {
        "fill": mixture.fill,
        "router.weights": mixture.router.weights,
        "router.centroids": mixture.router.centroids,
        "experts.values": np.concatenate([expert.values for expert in experts]),
        "experts.attention": np.stack([expert.attention for expert in experts]),
        **{_FOREST + name: array for name, array in forests.items()},
    }
    SCHEMA.save(path, header, arrays)


def load_evaluator(path: Path) -> Evaluator:
    """Return the evaluator saved at `path`; raise ArtifactError if it cannot be used."""
    try:
        header, arrays = SCHEMA.unseal(path)
        expected = {"header", "digest", *_OWN, *(_FOREST + name for name in _FORESTS)}
        if arrays.keys() != expected:
            raise ValueError(f"its arrays are not as expected: {sorted(arrays.keys() ^ expected)}")
        return _evaluator(header, arrays)
    except FOREIGN as error:
        raise SCHEMA.foreign(path, error) from None


def _evaluator(header: Mapping[str, Any], arrays: Arrays) -> Evaluator:
    responses = _perspectives(header["about_responses"], PerspectiveKind.RESPONSE)
    queries = _perspectives(header["about_queries"], PerspectiveKind.QUERY)
    task: Task = _one_of(header["task"], get_args(Task))
    asking: Asking = _one_of(header["asking"], get_args(Asking))
    mirrored = header["mirrored"] is True
    if mirrored and task != "pairs":
        raise ValueError("only pairs can be mirrored")
    low, high = (float(end) for end in header["scale"])
    if not (np.isfinite([low, high]).all() and low <= high):
        raise ValueError("its scale is invalid")
    mixture = Mixture(
        task,
        mirrored,
        _numbers(arrays["fill"], (len(responses),)),
        (low, high),
        _router(header, arrays, queries),
        _experts(header, arrays, len(responses), 1 if task == "scores" else len(OUTCOMES)),
    )
    if len(mixture.experts) != mixture.router.experts:
        raise ValueError("its router and its experts do not match")
    judges = {str(name): JudgeFingerprint(**found) for name, found in header["judges"].items()}
    return Evaluator(asking, responses, queries, mixture, judges, _provenance(header["provenance"]))


def _router(header: Mapping[str, Any], arrays: Arrays, queries: tuple[Perspective, ...]) -> Router:
    weights = _numbers(arrays["router.weights"], (len(queries),))
    if not ((weights >= 0.0) & (weights <= 1.0)).all():
        raise ValueError("a routing weight is not between 0 and 1")
    experts = len(header["settings"])
    centroids = _numbers(arrays["router.centroids"], (experts, len(queries)))
    reach = float(header["reach"])
    if not (experts and np.isfinite(reach) and (reach > 0.0 or experts == 1)):
        raise ValueError("its router has an invalid reach")
    return Router(tuple(each.id for each in queries), weights, centroids, reach)


def _experts(
    header: Mapping[str, Any], arrays: Arrays, perspectives: int, outputs: int
) -> tuple[Expert, ...]:
    sizes = header["forests"]
    forests = unpack_forests(sizes, {name: arrays[_FOREST + name] for name in _FORESTS})
    values = _numbers(arrays["experts.values"], (sum(sizes["nodes"]), outputs))
    parts = np.split(values, np.cumsum(sizes["nodes"])[:-1])
    attention = _numbers(arrays["experts.attention"], (len(forests), perspectives))
    settings = [ForestSettings(**found) for found in header["settings"]]
    experts = tuple(
        Expert(*learned) for learned in zip(forests, parts, attention, settings, strict=True)
    )
    for expert in experts:
        expert.check(perspectives, outputs)
    return experts


def _perspectives(found: list[dict[str, Any]], kind: PerspectiveKind) -> tuple[Perspective, ...]:
    read = tuple(
        Perspective(
            text=_question(each["text"]),
            kind=PerspectiveKind(each["kind"]),
            origin=PerspectiveOrigin(each["origin"]),
            form=AnswerFormat(each["form"]),
            parents=tuple(str(parent) for parent in each["parents"]),
            round=int(each["round"]),
            types=tuple(str(name) for name in each["types"]),
            importance=None if each["importance"] is None else float(each["importance"]),
            stability=None if each["stability"] is None else float(each["stability"]),
        )
        for each in found
    )
    if any(each.kind is not kind for each in read) or len({each.id for each in read}) < len(read):
        raise ValueError("its perspectives are of the wrong kind or duplicated")
    return read


def _question(text: Any) -> str:
    if not isinstance(text, str):
        raise ValueError("the text of a perspective is not a string")
    try:
        return check_question(text)
    except ValueError as error:
        raise ValueError(f"perspective {text[:60]!r}: {str(error).rstrip('.')}") from None


def _provenance(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the provenance after checking the values that are used."""
    threshold = found.get("threshold")
    number = isinstance(threshold, int | float) and not isinstance(threshold, bool)
    if threshold is not None and not (number and 0.0 <= threshold <= 1.0):
        raise ValueError(f"its threshold is {threshold!r}, not a number from 0 to 1")
    learned = found.get("learned_from", [])
    if not isinstance(learned, list) or not all(
        isinstance(each, str) and _HASH.fullmatch(each) for each in learned
    ):
        raise ValueError("what it learned from is not a list of hashes")
    return dict(found)


def _numbers(array: NDArray[Any], shape: tuple[int, ...]) -> Floats:
    if array.dtype != np.float64 or array.shape != shape or not np.isfinite(array).all():
        raise ValueError(
            f"expected finite numbers of shape {shape}, got {array.shape} {array.dtype}"
        )
    return array


def _one_of(value: Any, known: tuple[Any, ...]) -> Any:
    if value not in known:
        raise ValueError(f"{value!r} is not one of {', '.join(known)}")
    return value
