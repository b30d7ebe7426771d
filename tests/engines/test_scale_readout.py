"""Grades on a scale: expected values, labels, and valid bounds."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketeval.config import EngineConfig
from rocketeval.engines.readout import SLACK, Readout, spellings
from rocketeval.engines.scale_readout import ScaleReadout, make_readout
from rocketeval.records import Answer, Status

Listed = list[tuple[str, float]]
SCALE = ("5", "4", "3", "2", "1")
ROUNDING = 1e-12


def listed(probabilities: dict[str, float]) -> Listed:
    """Return token and log-probability pairs."""
    return [(token, math.log(p)) for token, p in probabilities.items()]


def test_answer_is_the_expected_grade() -> None:
    """Variants are summed, other words are left out, the most likely label is named."""
    shares = {"5": 0.1, " 5": 0.1, "4": 0.15, "\u01204": 0.15, "3": 0.1, "2": 0.05, "1": 0.05}
    answer = ScaleReadout(SCALE).read(listed({**shares, "word": 0.3}))
    assert answer.status is Status.OK
    assert answer.mass == pytest.approx(0.7)
    assert answer.p_yes == pytest.approx((0.2 + 0.3 * 0.75 + 0.1 * 0.5 + 0.05 * 0.25) / 0.7)
    assert answer.text == "4"
    assert (answer.logp_yes, answer.logp_no) == (None, None)


def test_exact_reading_has_a_point_interval() -> None:
    """If every variant is known, the bounds equal the grade."""
    logps = [[math.log(p)] for p in (0.1, 0.2, 0.1, 0.05, 0.05)]
    answer = ScaleReadout(SCALE).read_labels(logps, wrote="4")
    expected = (0.1 + 0.2 * 0.75 + 0.1 * 0.5 + 0.05 * 0.25) / 0.5
    assert answer.p_yes == answer.p_low == answer.p_high == pytest.approx(expected)
    assert (answer.mass, answer.text) == (pytest.approx(0.5), "4")


@pytest.mark.parametrize(
    ("shares", "status"),
    [
        ({}, Status.NO_LOGPROBS),
        ({"word": 0.9}, Status.HIDDEN),
        ({"5": 0.02, "4": 0.02, "word": 0.9}, Status.LOW_MASS),
        ({"5": 0.3, "4": 0.3, "3": 0.1, "2": 0.1, "1": 0.1}, Status.OK),
        ({"5": 0.9, "4": 0.08, "word": 0.0001}, Status.TRUNCATED),
        ({"5": 0.5, "word": 0.2}, Status.UNBOUNDED),
        ({"<think>": 0.6, "5": 0.3}, Status.THINKING),
        ({"5": 0.8, "4": 0.8}, Status.UNSOUND),
    ],
)
def test_status(shares: dict[str, float], status: Status) -> None:
    """Each defect of a list has its own status; only ok and truncated have a grade."""
    answer = ScaleReadout(SCALE).read(listed(shares))
    assert answer.status is status
    usable = status in (Status.OK, Status.TRUNCATED)
    assert (answer.p_yes is not None) == usable
    assert (answer.text == "5") == usable


@pytest.mark.parametrize(
    ("logps", "wrote", "status"),
    [
        ([[-1.0], [], [-2.0]], None, Status.NO_LOGPROBS),
        ([[-1.0], [math.nan], [-2.0]], None, Status.NO_LOGPROBS),
        ([[21.0], [3.0], [2.0]], None, Status.UNSOUND),
        ([[-0.1], [-0.1], [-0.1]], None, Status.UNSOUND),
        ([[-1.0], [-1.5], [-2.0]], "<think>", Status.THINKING),
        ([[-9.0], [-9.0], [-9.0]], None, Status.LOW_MASS),
        ([[-math.inf], [-math.inf], [-math.inf]], None, Status.LOW_MASS),
    ],
)
def test_exact_reading_edge_cases(
    logps: list[list[float]], wrote: str | None, status: Status
) -> None:
    """An answer without a grade has a status."""
    answer = ScaleReadout(("3", "2", "1")).read_labels(logps, wrote=wrote)
    assert (answer.status, answer.p_yes, answer.text) == (status, None, None)


def test_hidden_label_is_bounded() -> None:
    """A hidden spelling is at most the least listed token; all fill the remaining mass."""
    answer = ScaleReadout(("3", "2", "1"), max_width=1.0).read(listed({"3": 0.9, "word": 0.015}))
    spelled = len(spellings("1"))
    assert spelled == 5
    assert answer.p_high == pytest.approx(1.0)
    rest = 0.085 + SLACK
    on_the_worst = spelled * 0.015
    on_the_next = rest - on_the_worst
    assert answer.p_low == pytest.approx((0.9 + on_the_next * 0.5) / (0.9 + rest))
    assert answer.p_yes == pytest.approx(((answer.p_low or 0) + 1.0) / 2)


def test_tiny_probabilities_keep_their_digits() -> None:
    """Nothing underflows if any mass counts."""
    readout = ScaleReadout(("3", "2", "1"), min_mass=0.0, max_width=1.0)
    answer = readout.read([("3", -800.0), ("2", -800.0), ("1", -800.0), ("word", -0.001)])
    assert answer.p_yes == pytest.approx(0.5)
    assert answer.p_low is not None
    assert answer.p_high is not None
    assert 0.0 <= answer.p_low <= 0.5 <= answer.p_high <= 1.0


@st.composite
def cut(draw: st.DrawFn) -> tuple[tuple[str, ...], Listed, int]:
    """A scale, a distribution over its spellings and other words, and a cut."""
    words = draw(st.sampled_from([("3", "2", "1"), SCALE, tuple("9876543210"), ("A", "B", "C")]))
    spelled = sorted(token for word in words for token in spellings(word))
    labels = draw(st.lists(st.sampled_from(spelled), min_size=1, max_size=20, unique=True))
    tokens = labels + [f"word{number}" for number in range(draw(st.integers(1, 40)))]
    size = len(tokens)
    logits = draw(st.lists(st.floats(-12, 4), min_size=size, max_size=size))
    total = math.log(math.fsum(map(math.exp, logits)))
    full = [(token, logit - total) for token, logit in zip(tokens, logits, strict=True)]
    return words, sorted(full, key=lambda pair: -pair[1]), draw(st.integers(1, size))


@given(cut())
def test_interval_always_contains_the_exact_value(case: Any) -> None:
    """The bounds contain the exact grade for any distribution and any cut."""
    words, full, k = case
    readout = ScaleReadout(words, min_mass=0.0)
    answer = readout.read(full[:k])
    if answer.status is Status.HIDDEN:
        return
    shares = [math.fsum(math.exp(p) for t, p in full if t in label) for label in readout.spelled]
    weighed = math.fsum(v * s for v, s in zip(readout.values, shares, strict=True))
    truth = weighed / math.fsum(shares)
    assert answer.p_low is not None
    assert answer.p_high is not None
    assert 0.0 <= answer.p_low <= answer.p_high <= 1.0
    assert answer.p_low - ROUNDING <= truth <= answer.p_high + ROUNDING
    if answer.p_yes is not None:
        assert answer.p_low <= answer.p_yes <= answer.p_high
    if answer.status is Status.TRUNCATED:
        assert answer.p_high - answer.p_low <= readout.max_width


@given(cut(), st.randoms(use_true_random=False))
def test_no_hidden_distribution_exceeds_the_bounds(case: Any, chance: Any) -> None:
    """The grade stays inside however the hidden probability is spread."""
    words, full, k = case
    readout = ScaleReadout(words, min_mass=0.0)
    seen_list = full[:k]
    answer = readout.read(seen_list)
    if answer.status is Status.HIDDEN:
        return
    listed_tokens = {token for token, _ in seen_list}
    least = math.exp(seen_list[-1][1])
    left = max(0.0, 1.0 - math.fsum(math.exp(logp) for _, logp in seen_list))
    shares = [
        math.fsum(math.exp(p) for t, p in seen_list if t in label) for label in readout.spelled
    ]
    for place in chance.sample(range(len(words)), len(words)):
        most = min(left, len(readout.spelled[place] - listed_tokens) * least)
        gained = most * chance.choice([0.0, 1.0, chance.random()])
        shares[place] += gained
        left -= gained
    grade = math.fsum(v * s for v, s in zip(readout.values, shares, strict=True))
    grade /= math.fsum(shares)
    assert answer.p_low is not None
    assert answer.p_high is not None
    assert answer.p_low - ROUNDING <= grade <= answer.p_high + ROUNDING


@given(cut())
def test_two_labels_agree_with_the_yes_no_readout(case: Any) -> None:
    """Status and bounds are the same."""
    _, full, k = case
    scale = ScaleReadout(("A", "B"), min_mass=0.05)
    plain = Readout(spellings("A"), spellings("B"), min_mass=0.05)
    ours, known = scale.read(full[:k]), plain.read(full[:k])
    assert ours.status is known.status
    for mine, yours in zip(numbers(ours), numbers(known), strict=True):
        assert mine == (None if yours is None else pytest.approx(yours, rel=1e-9, abs=1e-12))


def numbers(answer: Answer) -> tuple[float | None, ...]:
    """Return the numbers of an answer."""
    return answer.p_yes, answer.p_low, answer.p_high, answer.mass


def test_default_labels_use_the_yes_no_readout() -> None:
    """The default labels give the readout under which judgments are stored."""
    made = make_readout(EngineConfig(model="m"))
    assert made == Readout()
    assert made.hash == "78ad14539e070874aedc445e3b520303"
    assert isinstance(make_readout(EngineConfig(model="m", labels=SCALE)), ScaleReadout)
    words = make_readout(EngineConfig(model="m", labels=("Good", "Bad"), min_mass=0.3))
    assert words == Readout(spellings("good"), spellings("bad"), min_mass=0.3)


def test_hash_depends_on_every_setting() -> None:
    """Scales that can differ in an answer have different hashes."""
    made = [
        ScaleReadout(SCALE),
        ScaleReadout(SCALE[::-1]),
        ScaleReadout(SCALE[:4]),
        ScaleReadout(SCALE, min_mass=0.2),
        ScaleReadout(SCALE, max_width=0.2),
    ]
    assert len({readout.hash for readout in made} | {Readout().hash}) == len(made) + 1
    assert ScaleReadout(SCALE).hash == ScaleReadout(SCALE).hash
