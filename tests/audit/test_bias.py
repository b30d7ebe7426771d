"""Length bias and self-preference of a run, with and without reference data, and their advice."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rocketeval.audit.advice import on_bias
from rocketeval.audit.bias import Bias, find_bias
from rocketeval.config import RankingConfig
from rocketeval.grid import ScoreGrid
from rocketeval.records import Vote

CONFIG = RankingConfig(bootstrap=200)
NAMES = ("qwen-a", "qwen-b", "gpt-c", "gpt-d")
IDS = tuple(f"q{row}" for row in range(60))


def laid_out(scores: np.ndarray) -> ScoreGrid:
    """Return a grid of four candidates."""
    return ScoreGrid(IDS[: len(scores)], NAMES, scores)


def made(per_length: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return scores that follow labels and length, with labels and lengths."""
    rng = np.random.default_rng(seed)
    labels, lengths, noise = rng.normal(size=(3, 60, 4))
    return labels + per_length * lengths + 0.5 * noise, lengths, labels


def voted(labels: np.ndarray) -> list[Vote]:
    """Return votes for the better of each pair of neighbors."""
    return [
        Vote(IDS[row], NAMES[c], NAMES[c + 1], "a" if labels[row, c] > labels[row, c + 1] else "b")
        for row in range(len(labels))
        for c in range(3)
    ]


def advice_on(found: Bias) -> str:
    return "\n".join(on_bias(found))


def found(
    scores: np.ndarray,
    lengths: np.ndarray,
    labels: np.ndarray | None = None,
    votes: list[Vote] | None = None,
    family: frozenset[str] = frozenset(),
    looked_at: int = 60,
) -> Bias:
    """Return the biases measured on the first queries."""
    few = set(IDS[:looked_at])
    return find_bias(laid_out(scores), laid_out(lengths), few, labels, votes or [], family, CONFIG)


def test_length_bias_beyond_labels_is_reported() -> None:
    """A fair judge is not reported, nor one that follows length because labels do."""
    scores, lengths, labels = made(1.0)
    bias = found(scores, lengths, labels)
    words = advice_on(bias)
    assert words.startswith("Length bias: ")
    assert bias.length.scores_with_gold is not None
    assert f"(Spearman {bias.length.scores_with_gold.value:.2f})" in words
    fair, lengths, labels = made(0.0)
    assert advice_on(found(fair, lengths, labels)) == ""
    assert advice_on(found(fair, labels, labels)) == ""


def test_noisy_judge_is_not_reported_if_labels_avoid_length() -> None:
    """Its excess is above zero only because labels correlate negatively with length."""
    rng = np.random.default_rng(1)
    _, _, labels = made(0.0)
    bias = found(labels + 2.0 * rng.normal(size=labels.shape), -labels, labels)
    assert bias.length.excess is not None
    assert bias.length.excess.low > 0.0
    assert advice_on(bias) == ""


def test_lost_votes_show_length_bias_without_labels() -> None:
    """The judge loses votes to shorter responses."""
    scores, lengths, labels = made(1.0)
    words = advice_on(found(scores, lengths, votes=voted(labels)))
    assert words.startswith("Length bias: ")
    assert "went to the longer response" in words
    fair, lengths, labels = made(0.0)
    assert advice_on(found(fair, lengths, votes=voted(labels))) == ""


def test_without_reference_data_only_a_strong_correlation_is_reported() -> None:
    """A weak correlation is not reported."""
    scores, lengths, _ = made(1.0)
    bias = found(scores, lengths)
    assert bias.length.gold is None
    assert "Longer responses get higher scores: within a query, Spearman" in advice_on(bias)
    assert "Only labels or votes can show" in advice_on(bias)
    assert advice_on(found(*made(0.2)[:2])) == ""


def test_length_bias_uses_only_the_sampled_queries() -> None:
    """Skipped queries are counted and may lack lengths; the family uses all queries."""
    scores, lengths, labels = made(1.0)
    unknown = np.array(lengths)
    unknown[20:] = np.nan
    bias = found(scores, unknown, labels, family=frozenset(NAMES[:2]), looked_at=20)
    assert (bias.queries, bias.queries_skipped) == (20, 40)
    assert (bias.length.queries, bias.length.gold_queries, bias.length.left_out) == (20, 20, 0)
    assert bias.own_family is not None
    assert bias.own_family.queries == 60
    assert bias.length == found(scores[:20], lengths[:20], labels[:20], looked_at=20).length


def test_self_preference_is_reported_and_a_fair_judge_is_not() -> None:
    """By name only; without labels the advice says what to label."""
    scores, lengths, labels = made(0.0)
    family = frozenset({"qwen-a", "qwen-b", "qwen-elsewhere"})
    assert advice_on(found(scores, lengths, labels, family=family)) == ""
    vain = scores + np.array([2.0, 2.0, 0.0, 0.0])
    words = advice_on(found(vain, lengths, labels, family=family))
    assert words.startswith("It prefers its own family (qwen-a, qwen-b): ")
    unlabelled = advice_on(found(scores, lengths, family=family))
    assert "(qwen-a, qwen-b, guessed by name)" in unlabelled
    nobody = found(scores, lengths, labels, family=frozenset({"llama"}))
    assert nobody.own_family is None


def test_unlabeled_queries_do_not_count_as_left_out() -> None:
    """Queries without labels do not count as left out."""
    scores, lengths, labels = made(0.0)
    few = np.full(labels.shape, np.nan)
    few[:9] = labels[:9]
    few[9] = 5.0
    own = found(scores, lengths, few, family=frozenset({"qwen-a"})).own_family
    assert own is not None
    assert (own.queries, own.left_out) == (9, 1)


@pytest.mark.parametrize("queries", [0, 1, 5])
def test_too_few_queries_give_no_advice(queries: int) -> None:
    """Without an interval there is no sentence, and an empty bias raises no error."""
    scores, lengths, labels = (each[:queries] for each in made(1.0))
    bias = found(scores, lengths, labels, voted(labels), frozenset({"qwen-a"}), queries)
    assert "Length bias" not in advice_on(bias)
    assert "prefers its" not in advice_on(bias)
    if queries:
        assert bias.length.scores is not None
        assert math.isnan(bias.length.scores.low)
