"""Sentences about answers, scores and group means follow the rubric and the scorer."""

from __future__ import annotations

from pathlib import Path

import pytest

from rocketeval.explain.groups import groups_are
from rocketeval.items import Checklist, ItemDetail, ItemKind
from rocketeval.ranking.rank import Ranking
from rocketeval.report.method_notes import notes, score_is
from rocketeval.scoring.rubric import Rubric, answers_are
from rocketeval.store.manifest import ScoreFacts
from support.make import make_config

NOBODY = Ranking((), (), 0.1, 50, 0, 0.95, 9, 1)
SCALE = ItemDetail(kind=ItemKind.SCALE, levels=("bad", "good"))


def rubric(*details: ItemDetail) -> Rubric:
    return Rubric.of({"q": Checklist("q", ("Good?",) * len(details), details=details)})


def said(tmp_path: Path, scorer: str, found: Rubric) -> str:
    return " ".join(notes(NOBODY, ScoreFacts(scorer=scorer), make_config(tmp_path), found))


def test_plain_items_have_equal_weight(tmp_path: Path) -> None:
    """Plain checklists are explained without rubric words; equal weights count as plain."""
    for found in (Rubric(), Rubric.of({}), rubric(ItemDetail(2.0), ItemDetail(2.0))):
        assert found.rule == ""
        assert answers_are(found) == "Probability of yes"
        assert score_is("mean", found) == "mean p_yes, rescaled"
        assert "equal weight" in groups_are("mean", found)
        assert "penalty" not in said(tmp_path, "mean", found)


@pytest.mark.parametrize(
    ("details", "words"),
    [
        ((ItemDetail(9.0), ItemDetail()), "weights"),
        ((ItemDetail(-1.0), ItemDetail()), "penalty"),
        ((ItemDetail(na=True), ItemDetail()), "applies"),
    ],
)
@pytest.mark.parametrize("scorer", ["mean", "hard", "extra_trees", "isotonic"])
def test_unequal_items_are_explained(
    tmp_path: Path, details: tuple[ItemDetail, ...], words: str, scorer: str
) -> None:
    """Weights, penalties and n/a each have their own words, and no others."""
    found = rubric(*details)
    assert words in found.rule
    assert found.rule in said(tmp_path, scorer, found)
    assert found.rule in groups_are(scorer, found)
    assert "equal weight" not in groups_are(scorer, found)
    others = {"weights", "penalty", "applies"} - {words}
    assert not [each for each in others if each in found.rule]


def test_points_are_no_mean(tmp_path: Path) -> None:
    """The scorer `points` earns and takes away points."""
    found = rubric(ItemDetail(9.0), ItemDetail(-5.0))
    assert "mean answer" not in said(tmp_path, "points", found)
    assert "points earned" in said(tmp_path, "points", found)
    assert groups_are("points", found).startswith("Points earned")
    assert score_is("points", found) == "points earned / points possible"


def test_answers_are_named_by_kind(tmp_path: Path) -> None:
    """Only kinds that occur are named."""
    assert answers_are(rubric(SCALE)) == "Expected level (0 to 1)"
    assert (
        answers_are(rubric(ItemDetail(), SCALE)) == "Probability of yes or expected level (0 to 1)"
    )
    assert answers_are(Rubric(grades=True)).startswith("Grade")
    assert "p(Yes)" not in said(tmp_path, "mean", rubric(SCALE))
    assert score_is("mean", Rubric(grades=True)) == "mean grade, rescaled"
    assert "0.5" in score_is("hard", rubric(SCALE))
