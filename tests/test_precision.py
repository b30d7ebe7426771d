"""Two precisions of the same weights are two judges; a restarted server is one."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from rocketeval.precision import Measured, same_precision
from rocketeval.records import JudgeFingerprint

TOKENS = [f"token{number}" for number in range(20)]


def logits(seed: int) -> list[np.ndarray]:
    """What some model computes exactly after four questions."""
    rng = np.random.default_rng(seed)
    return [np.sort(rng.uniform(9, 28, len(TOKENS)))[::-1].astype(np.float32) for _ in range(4)]


def rounded(exact: np.ndarray, bits: int) -> np.ndarray:
    """Numbers with so many bits after the first: 7 in bfloat16, 10 in float16."""
    step = 2.0 ** (np.floor(np.log2(exact)) - bits)
    return np.round(exact / step) * step


def listed(computed: list[np.ndarray]) -> list[dict[str, float]]:
    """Log-probabilities as a server lists them."""
    return [
        dict(zip(TOKENS, (one - np.logaddexp.reduce(one)).tolist(), strict=True))
        for one in computed
    ]


def measured(bits: int | None, seed: int = 1, noise: float = 0.0) -> Measured:
    """A contact with a server that computes with so many bits; each answer has its own noise."""
    rng = np.random.default_rng(random.randrange(1 << 30))

    def asked() -> list[dict[str, float]]:
        moved = [one + rng.normal(0, noise, len(one)) for one in logits(seed)]
        return listed(moved if bits is None else [rounded(one, bits) for one in moved])

    return Measured.of(asked(), asked())


FORMATS = {"float32": (None, 1e-6), "float16": (10, 0.004), "bfloat16": (7, 0.05)}
"""Bits, and how far other requests in flight move a logit."""


@pytest.mark.parametrize("name", FORMATS)
def test_a_server_restarted_twenty_times_is_one_judge(name: str) -> None:
    """And it is called by the name of what it computes with."""
    bits, noise = FORMATS[name]
    first = measured(bits, noise=noise)
    for _ in range(20):
        again = measured(bits, noise=noise)
        assert again.name == name
        assert first.same_as(again)


@pytest.mark.parametrize(("one", "other"), [(a, b) for a in FORMATS for b in FORMATS if a < b])
def test_two_formats_are_two_judges(one: str, other: str) -> None:
    """Though every number is the same but for its last digits."""
    assert not measured(*FORMATS[one][:1]).same_as(measured(*FORMATS[other][:1]))


def test_other_weights_in_the_same_format_are_another_judge() -> None:
    """What a coarse quantization moves by more than the noise is seen."""
    assert not measured(None, seed=1).same_as(measured(None, seed=2))


def test_a_noisy_service_is_one_judge() -> None:
    """What moves between two answers to one question cannot tell two judges apart."""
    assert measured(None, noise=0.2).same_as(measured(None, noise=0.2))


def test_lists_that_tell_nothing_are_no_evidence() -> None:
    """A server that lists the drawn token alone may be any precision of the same answers."""
    whole = measured(None)
    drawn = [dict([next(iter(one.items()))]) for one in whole.listed]
    assert Measured.of(drawn, drawn).name == "unknown"
    assert Measured.of(drawn, drawn).same_as(whole)


def test_what_is_kept_is_read_back() -> None:
    """As text, and with the same verdict."""
    kept = measured(7)
    assert Measured.parse(str(kept)) == kept
    assert same_precision(str(kept), str(kept))
    assert same_precision("", str(kept))


def test_a_judge_keeps_the_name_it_has() -> None:
    """Of the judges that are known, the one that this is; measured apart, they are one."""

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


def test_the_distance_of_two_formats_is_small() -> None:
    """Answers alone would not tell: it is the steps that do."""
    exact, coarse = measured(None), measured(7)
    apart = [
        exact.listed[place][token] - coarse.listed[place][token]
        for place in range(4)
        for token in exact.listed[place]
        if token in coarse.listed[place]
    ]
    assert math.sqrt(sum(gap * gap for gap in apart) / len(apart)) < 0.1
