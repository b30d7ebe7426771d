"""Bradley-Terry strengths: against another implementation, by hand, and at the edges."""

from __future__ import annotations

import time

import numpy as np
import pytest
from numpy.typing import NDArray

from rocketeval.stats import bradley_terry
from rocketeval.stats import bradley_terry as pairwise
from rocketeval.workers import one_blas_thread

Floats = NDArray[np.float64]


def skilled_scores(seed: int, queries: int, candidates: int, missing: float = 0.0) -> Floats:
    """Return candidates of rising skill, with noise so that lower ones win sometimes."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(queries, candidates)) + np.linspace(-1, 1, candidates)
    scores[rng.random(scores.shape) < missing] = np.nan
    return scores


def fitted(scores: Floats, tie_margin: float = 0.1, virtual_ties: float = 0.5) -> Floats:
    """Return strengths from scores."""
    wins = pairwise.win_totals(scores, tie_margin).sum(axis=0)
    return bradley_terry.fit(wins, pairwise.pair_counts(scores), virtual_ties=virtual_ties)


@pytest.mark.parametrize("decimals", [None, 0], ids=["fine scores", "coarse scores"])
@pytest.mark.parametrize("tie_margin", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_strengths_equal_evalica(missing: float, tie_margin: float, decimals: int | None) -> None:
    """Without the virtual game, the fit equals evalica's, with ties, gaps and any margin."""
    evalica = pytest.importorskip("evalica", reason="evalica is the outside oracle")
    scores = skilled_scores(1, 50, 7, missing)
    if decimals is not None:
        scores = scores.round(decimals)
    lefts, rights, winners = [], [], []
    outcome = {1: evalica.Winner.X, -1: evalica.Winner.Y, 0: evalica.Winner.Draw}
    for row in scores:
        for i in range(7):
            for j in range(i + 1, 7):
                if not np.isnan(row[[i, j]]).any():
                    lefts.append(str(i))
                    rights.append(str(j))
                    winners.append(outcome[int(pairwise.compare(row[i], row[j], tie_margin))])
    theirs = evalica.bradley_terry(lefts, rights, winners, tolerance=1e-14, limit=100_000)
    expected = np.log([theirs.scores[str(i)] for i in range(7)])
    ours = fitted(scores, tie_margin, virtual_ties=0.0)
    assert decimals is None or winners.count(evalica.Winner.Draw) > 50
    np.testing.assert_allclose(ours, expected - expected.mean(), atol=1e-8)


def test_rounding_errors_are_ties_without_a_margin() -> None:
    """Scores that differ in their last bit are half a win each, in ratings and in the matrix."""
    scores = np.array([[2.8, 2.8 + 1e-15, 1.0]])
    assert pairwise.win_totals(scores, 0.0).tolist() == [[1.5, 1.5, 0.0]]
    shares = pairwise.win_matrix(scores, 0.0)
    assert shares is not None
    assert shares[0, 1] == shares[1, 0] == 0.5


def test_two_candidates_have_the_log_odds_of_their_games() -> None:
    """Three wins to one without the virtual game is a difference of log 3."""
    meetings = np.array([[0.0, 4.0], [4.0, 0.0]])
    strengths = bradley_terry.fit(np.array([3.0, 1.0]), meetings, virtual_ties=0.0)
    assert strengths[0] - strengths[1] == pytest.approx(np.log(3.0))
    assert strengths.sum() == pytest.approx(0.0)


def test_the_virtual_game_hardly_moves_a_real_ranking() -> None:
    """With 400 comparisons per candidate it changes strengths by under a hundredth."""
    scores = skilled_scores(2, 80, 6)
    shift = np.abs(fitted(scores) - fitted(scores, virtual_ties=0.0)).max()
    assert 0.0 < shift < 0.005


def test_perfect_winner_and_loser_stay_finite() -> None:
    """Complete separation gives large but finite strengths in the right order."""
    scores = np.tile([1.0, 2.0, 3.0, 4.0], (1000, 1))
    strengths = fitted(scores)
    assert np.isfinite(strengths).all()
    assert (np.diff(strengths) > 1.0).all()
    assert np.abs(strengths).max() < 20.0


def test_candidates_that_never_meet_stay_finite() -> None:
    """Two separate groups and a candidate without games have strengths; the last is mean."""
    scores = np.full((6, 5), np.nan)
    scores[:3, :2] = [1.0, 2.0]
    scores[3:, 2:4] = [2.0, 1.0]
    strengths = fitted(scores)
    assert np.isfinite(strengths).all()
    assert strengths[1] > strengths[0]
    assert strengths[2] > strengths[3]
    assert strengths[4] == pytest.approx(0.0, abs=1e-9)


def test_equal_candidates_have_equal_strengths() -> None:
    """All ties give strengths of zero."""
    np.testing.assert_allclose(fitted(np.ones((10, 4))), 0.0, atol=1e-12)


def test_fit_converges_from_any_start() -> None:
    """The damped step reaches the same optimum from an absurd start."""
    scores = skilled_scores(4, 30, 5)
    wins, met = pairwise.win_totals(scores, 0.1).sum(axis=0), pairwise.pair_counts(scores)
    far = bradley_terry.fit(wins, met, start=np.array([30.0, -30.0, 10.0, 0.0, -20.0]))
    np.testing.assert_allclose(far, bradley_terry.fit(wins, met), atol=1e-8)


def test_a_thousand_candidates_fit_in_seconds_of_cpu() -> None:
    """Newton with one matrix per step takes about half a second of CPU, with slack."""
    scores = skilled_scores(5, 200, 1000)
    wins, met = pairwise.win_totals(scores, 0.1).sum(axis=0), pairwise.pair_counts(scores)
    before = time.process_time()
    with one_blas_thread():
        strengths = bradley_terry.fit(wins, met)
    assert time.process_time() - before < 30.0
    assert np.corrcoef(strengths, np.arange(1000))[0, 1] > 0.98
