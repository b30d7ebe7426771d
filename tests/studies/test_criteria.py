"""Topical-Chat by criterion: the recorded table follows from the stored judgments."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from papers import criteria
from scipy.stats import pearsonr, spearmanr

from rocketeval.arrays import Floats

ROOT = Path(__file__).parents[2]
TOPICAL_CHAT = criteria.BENCHMARKS["topical_chat"]
NAMES = ("coherence", "naturalness")


def planted(seed: int, shared: float) -> criteria.Study:
    """Return ratings, and scores of a checklist that share a part with them; a rubric is noise."""
    rng = np.random.default_rng(seed)
    ratings = {name: rng.standard_normal((60, 6)) for name in NAMES}

    def judged(part: float) -> dict[str, Floats]:
        return {
            name: part * rated + rng.standard_normal((60, 6)) for name, rated in ratings.items()
        }

    ways = {criteria.CHECKLIST: judged(shared), criteria.GRADES["rubric"]: judged(0.0)}
    return criteria.Study(TOPICAL_CHAT, tuple(map(str, range(60))), ratings, ways)


def test_coefficients_equal_scipy() -> None:
    """With ties; equal scores count as 0, and equal ratings are left out."""
    rng = np.random.default_rng(0)
    one = rng.integers(0, 9, (20, 12)).astype(float)
    other = rng.integers(0, 9, (20, 12)).astype(float)
    pairs = list(zip(one, other, strict=True))
    assert criteria.pearson(one, other) == pytest.approx([pearsonr(*pair)[0] for pair in pairs])
    assert criteria.spearman(one, other) == pytest.approx([spearmanr(*pair)[0] for pair in pairs])
    constant, varied = np.full((1, 3), 0.1), np.array([[1.0, 2.0, 3.0]])
    assert criteria.spearman(constant, varied).tolist() == [0.0]
    assert np.isnan(criteria.spearman(varied, constant)).all()


def test_a_checklist_that_knows_the_ratings_is_ahead_of_noise() -> None:
    """The planned comparison excludes 0, within conversations and over all replies."""
    rows, apart = criteria.tables(planted(0, shared=1.0))
    assert [row.name for row in rows] == [criteria.CHECKLIST, criteria.GRADES["rubric"]]
    (found,) = apart
    for kind, figure in found.figures.items():
        assert figure.low > 0.3
        assert figure.value == pytest.approx(
            rows[0].figures[kind].value - rows[1].figures[kind].value
        )


@pytest.mark.skipif(
    not criteria.DATA.is_dir(), reason="the shared data are not next to this checkout"
)
def test_no_other_length_of_copied_sequences_follows_the_ratings_better() -> None:
    """The page says so: pairs of words were chosen after one to four words had been tried."""
    study = criteria.Study.read(criteria.BENCHMARKS["summeval"])
    prepared = criteria.summeval(criteria.DATA)
    candidates = sorted({row["candidate"] for row in prepared["gold"]})

    def within(length: int) -> float:
        cells = criteria.baselines(prepared, length)[criteria.COPIED]
        scores = np.array([[cells[query, name] for name in candidates] for query in study.queries])
        found = [np.nanmean(criteria.spearman(scores, each)) for each in study.ratings.values()]
        return round(float(np.mean(found)), 2)

    assert within(2) == max(map(within, (1, 2, 3, 4)))


def test_the_intervals_of_differences_cover(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a difference, 0 is outside of about one interval in twenty."""
    monkeypatch.setattr(criteria, "RESAMPLES", 200)
    outside = 0
    for seed in range(30):
        (row,) = criteria.tables(planted(seed, shared=0.0))[1]
        outside += sum(not one.low <= 0.0 <= one.high for one in row.figures.values())
    assert outside / 90 == pytest.approx(0.05, abs=0.07)


@pytest.mark.skipif(
    not criteria.DATA.is_dir(), reason="the shared data are not next to this checkout"
)
@pytest.mark.parametrize("name", list(criteria.BENCHMARKS))
def test_recorded_table_follows_from_the_stored_judgments(name: str) -> None:
    """Every line is computed again, to the last digit, and the docs quote it."""
    recorded = (criteria.RECORDED / f"{name}.txt").read_text(encoding="utf-8")
    study = criteria.Study.read(criteria.BENCHMARKS[name])
    assert "\n".join(criteria.lines_of(study)) + "\n" == recorded
    docs = (ROOT / "docs" / "evidence" / "reproduction.md").read_text(encoding="utf-8")
    assert f"```\n{recorded}```" in docs
