"""Reading levels and "not applicable": exact values, and bounds that always hold."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocketeval.engines.readout import SLACK, spellings
from rocketeval.engines.rubric_readout import RubricReadout
from rocketeval.items import AnswerLabels, level_labels
from rocketeval.records import Status

Drawn = tuple[AnswerLabels, dict[str, float]]
OTHERS = tuple(f"other{place}" for place in range(60))


def labels_of(levels: int, na: bool) -> AnswerLabels:
    words = ("Yes", "No") if levels == 2 else level_labels(levels)[::-1]
    return AnswerLabels(words, "NA" if na else None)


@st.composite
def distributions(draw: st.DrawFn) -> Drawn:
    """Draw labels, and the full distribution of the next token over spellings and other tokens."""
    labels = labels_of(draw(st.integers(2, 10)), draw(st.booleans()))
    words = labels.words if labels.na is None else (*labels.words, labels.na)
    tokens = [token for word in words for token in sorted(spellings(word))[:4]] + list(OTHERS)
    logits = draw(st.lists(st.floats(-12, 12), min_size=len(tokens), max_size=len(tokens)))
    top = max(logits)
    weights = [math.exp(logit - top) for logit in logits]
    total = math.fsum(weights)
    return labels, {token: weight / total for token, weight in zip(tokens, weights, strict=True)}


def exact(labels: AnswerLabels, full: dict[str, float]) -> tuple[float, float]:
    """Compute value and share of "not applicable" from a full distribution, independently."""
    sums = [
        math.fsum(p for token, p in full.items() if token in spellings(word))
        for word in labels.words
    ]
    steps = len(labels.words) - 1
    value = sum((1 - place / steps) * p for place, p in enumerate(sums)) / sum(sums)
    na = 0.0 if labels.na is None else sum(p for t, p in full.items() if t in spellings(labels.na))
    return value, na / (na + sum(sums))


@settings(max_examples=300, deadline=None)
@given(distributions(), st.integers(1, 20))
def test_bounds_contain_the_exact_figures(
    drawn: tuple[AnswerLabels, dict[str, float]], k: int
) -> None:
    """For every top-k list, value and applicability of the full distribution are within bounds."""
    labels, full = drawn
    listed = sorted(full.items(), key=lambda pair: -pair[1])[:k]
    answer = RubricReadout(labels).read([(token, math.log(p)) for token, p in listed if p > 0])
    value, na = exact(labels, full)
    if answer.p_low is None:
        assert answer.status in (Status.HIDDEN, Status.THINKING)
        return
    assert answer.p_high is not None
    assert answer.p_low - 1e-9 <= value <= answer.p_high + 1e-9
    if labels.na is not None:
        assert answer.na_low is not None
        assert answer.na_high is not None
        assert answer.na_low - 1e-9 <= na <= answer.na_high + 1e-9
    else:
        assert answer.p_na is None
    if answer.p_yes is not None:
        assert answer.p_low <= answer.p_yes <= answer.p_high


@settings(max_examples=100, deadline=None)
@given(distributions())
def test_complete_lists_are_exact(drawn: Drawn) -> None:
    """With every token listed, and with chosen tokens reported, the answer is the exact one."""
    labels, full = drawn
    readout = RubricReadout(labels, min_mass=0.0)
    value, na = exact(labels, full)
    groups = [
        [math.log(p) for token, p in full.items() if token in own and p > 0]
        for own in readout.spelled
    ]
    if not all(groups):
        return
    answer = readout.read_labels(groups)
    assert answer.p_yes == pytest.approx(value, abs=1e-9)
    assert answer.p_low == pytest.approx(answer.p_high, abs=1e-9)
    if labels.na is not None:
        assert answer.p_na == pytest.approx(na, abs=1e-9)


def test_sure_not_applicable_is_usable_without_yes_and_no() -> None:
    """If nearly everything is on NA, the hidden value hardly matters, so the answer is kept."""
    answer = RubricReadout(labels_of(2, True)).read(
        [("NA", math.log(0.995)), ("I", math.log(0.0001))]
    )
    assert answer.status is Status.TRUNCATED
    assert answer.p_na is not None
    assert answer.p_na > 1 - 2 * SLACK
    assert (answer.p_low, answer.p_high) == (0.0, 1.0)


def test_hidden_labels_leave_a_wide_answer_unused() -> None:
    """A list that allows too many values is not guessed."""
    answer = RubricReadout(labels_of(5, False)).read([("3", math.log(0.4)), ("x", math.log(0.35))])
    assert answer.status is Status.UNBOUNDED
    assert answer.p_yes is None
