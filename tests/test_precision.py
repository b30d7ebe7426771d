"""Detection of numeric precision: two precisions are two judges, a restarted server is one."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from rocketeval.precision import Measured, same_precision
from rocketeval.records import JudgeFingerprint

TOKENS = [f"token{number}" for number in range(20)]


def logits(seed: int) -> list[np.ndarray]:
    """Return the exact logits of a model after four questions."""
    rng = np.random.default_rng(seed)
    return [np.sort(rng.uniform(9, 28, len(TOKENS)))[::-1].astype(np.float32) for _ in range(4)]


def rounded(exact: np.ndarray, bits: int) -> np.ndarray:
    """Round numbers to a mantissa of `bits`: 7 in bfloat16, 10 in float16."""
    step = 2.0 ** (np.floor(np.log2(exact)) - bits)
    return np.round(exact / step) * step


def listed(computed: list[np.ndarray]) -> list[dict[str, float]]:
    """Return log-probabilities as a server lists them."""
    return [
        dict(zip(TOKENS, (one - np.logaddexp.reduce(one)).tolist(), strict=True))
        for one in computed
    ]


def measured(bits: int | None, seed: int = 1, noise: float = 0.0) -> Measured:
    """Measure a server of this precision; each answer has its own noise."""
    rng = np.random.default_rng(random.randrange(1 << 30))

    def asked() -> list[dict[str, float]]:
        moved = [one + rng.normal(0, noise, len(one)) for one in logits(seed)]
        return listed(moved if bits is None else [rounded(one, bits) for one in moved])

    return Measured.of(asked(), asked())


FORMATS = {"float32": (None, 1e-6), "float16": (10, 0.004), "bfloat16": (7, 0.05)}
"""Mantissa bits, and the noise of a logit due to other requests in flight."""


@pytest.mark.parametrize("name", FORMATS)
def test_restarted_server_is_one_judge(name: str) -> None:
    """Twenty restarts give the same judge, with the name of its number format."""
    bits, noise = FORMATS[name]
    first = measured(bits, noise=noise)
    for _ in range(20):
        again = measured(bits, noise=noise)
        assert again.name == name
        assert first.same_as(again)


@pytest.mark.parametrize(("one", "other"), [(a, b) for a in FORMATS for b in FORMATS if a < b])
def test_two_formats_are_two_judges(one: str, other: str) -> None:
    """They differ only in the last digits of every number."""
    assert not measured(*FORMATS[one][:1]).same_as(measured(*FORMATS[other][:1]))


def test_other_weights_in_the_same_format_are_another_judge() -> None:
    """Changes beyond the noise, such as by coarse quantization, are detected."""
    assert not measured(None, seed=1).same_as(measured(None, seed=2))


def test_noisy_service_is_one_judge() -> None:
    """Differences within the measured noise do not make two judges."""
    assert measured(None, noise=0.2).same_as(measured(None, noise=0.2))


def test_short_lists_give_an_unknown_precision() -> None:
    """A server that lists only the sampled token matches any precision."""
    whole = measured(None)
    drawn = [dict([next(iter(one.items()))]) for one in whole.listed]
    assert Measured.of(drawn, drawn).name == "unknown"
    assert Measured.of(drawn, drawn).same_as(whole)


def test_measurement_is_parsed_from_its_text() -> None:
    """The text form gives an equal measurement."""
    kept = measured(7)
    assert Measured.parse(str(kept)) == kept
    assert same_precision(str(kept), str(kept))
    assert same_precision("", str(kept))


def test_known_judge_keeps_its_fingerprint() -> None:
    """A judge that matches a known one within the noise gets its fingerprint."""

    def judge(found: Measured) -> JudgeFingerprint:
        return JudgeFingerprint(
            "openai", "m", "chat", "1", "top20", "t", "r", found.precision, str(found)
        )

    fine, coarse = judge(measured(None)), judge(measured(7))
    again = judge(measured(None, noise=1e-5))
    assert again.digest != fine.digest
    assert again.known_as([coarse, fine]) is fine
    assert coarse.known_as([fine]) is coarse
    assert list(fine.changes(coarse)) == ["precision"]
    assert fine.known_as([coarse.before_precision]) == coarse.before_precision


def test_distance_of_two_formats_is_small() -> None:
    """The distance alone cannot distinguish formats; the steps can."""
    exact, coarse = measured(None), measured(7)
    apart = [
        exact.listed[place][token] - coarse.listed[place][token]
        for place in range(4)
        for token in exact.listed[place]
        if token in coarse.listed[place]
    ]
    assert math.sqrt(sum(gap * gap for gap in apart) / len(apart)) < 0.1
