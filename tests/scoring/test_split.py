"""The split of candidates into training and test data."""

from __future__ import annotations

import pytest

from rocketeval.config import ScorerConfig
from rocketeval.errors import ConfigError
from rocketeval.records import Gold, Label, Vote
from rocketeval.scoring.split import split_gold

NAMES = [f"c{number}" for number in range(10)]
GOLD = Gold([Label(q, name, 1.0 + place) for q in "xy" for place, name in enumerate(NAMES)])


def config(**settings: object) -> ScorerConfig:
    """Return settings of a learning scorer."""
    return ScorerConfig.model_validate({"kind": "extra_trees", **settings})


def test_three_of_ten_are_held_out_by_default() -> None:
    """Their labels are not used for training, and they cover the label range."""
    split = split_gold(GOLD, NAMES, config())
    assert len(split.held_out) == 3
    assert sorted(split.fitted + split.held_out) == NAMES
    assert {label.candidate for label in split.learned.labels} == set(split.fitted)
    places = [int(name[1:]) for name in split.held_out]
    assert min(places) <= 3
    assert max(places) >= 7


def test_only_the_seed_decides() -> None:
    """The order of labels does not matter; another seed gives another split."""
    backwards = Gold(GOLD.labels[::-1])
    assert (
        split_gold(GOLD, NAMES, config()).held_out
        == split_gold(backwards, NAMES, config()).held_out
    )
    assert len({split_gold(GOLD, NAMES, config(seed=seed)).held_out for seed in range(9)}) > 1


ONE_TALK = Gold(
    votes=[Vote("x", "c1", "c2", "a"), Vote("y", "c1", "c2", "b")],
    clusters={"x": "talk", "y": "talk"},
)
"""Votes on both turns of one conversation."""


def test_hold_out_zero_uses_all_candidates() -> None:
    """Everything is training data, tested out-of-fold."""
    assert split_gold(GOLD, NAMES, config(hold_out=0.0)).held_out == ()


def test_fit_on_selects_the_training_candidates() -> None:
    """The other labeled candidates are held out."""
    split = split_gold(GOLD, NAMES, config(fit_on=["c1", "c2", "c3"]))
    assert split.fitted == ("c1", "c2", "c3")
    assert len(split.held_out) == 7


def test_labels_of_unknown_candidates_are_ignored() -> None:
    """They are neither training nor held-out data."""
    gold = Gold([*GOLD.labels, Label("x", "stranger", 3.0)])
    split = split_gold(gold, NAMES, config())
    assert "stranger" not in split.fitted + split.held_out


def test_three_labeled_candidates_leave_two_for_training() -> None:
    """One is held out, however few there are."""
    gold = Gold([Label("x", name, 5.0) for name in NAMES[:3]])
    split = split_gold(gold, NAMES, config(hold_out=0.9))
    assert (len(split.fitted), len(split.held_out)) == (2, 1)


def test_votes_are_not_held_out() -> None:
    """Only votes between candidates of the run, or of `fit_on`, are used."""
    votes = [
        Vote("x", "c1", "c2", "a"),
        Vote("y", "c2", "c3", "b"),
        Vote("y", "c1", "stranger", "a"),
        Vote("z", "c8", "c9", "tie"),
    ]
    split = split_gold(Gold(votes=votes), NAMES, config(learn_from="votes"))
    assert (len(split.learned.votes), split.held_out) == (3, ())
    named = config(learn_from="votes", fit_on=["c1", "c2", "c3"])
    assert split_gold(Gold(votes=votes), NAMES, named).fitted == ("c1", "c2", "c3")


@pytest.mark.parametrize(
    ("settings", "gold", "words"),
    [
        ({"fit_on": ["c1", "c22"]}, GOLD, "'c22', which is not a candidate"),
        ({"fit_on": ["c1", "c9"]}, Gold([Label("x", "c1", 2.0)]), "without a label: c9"),
        ({}, Gold(), "there are 0 labeled candidates to learn from"),
        ({}, Gold([Label("x", "c1", 2.0)]), "there are 1 labeled candidates"),
        ({"learn_from": "votes"}, GOLD, "there are 0 independent queries with votes"),
        ({"learn_from": "votes"}, ONE_TALK, "there are 1 independent queries with votes"),
    ],
)
def test_missing_training_data_has_a_hint(
    settings: dict[str, object], gold: Gold, words: str
) -> None:
    """The hint suggests a name, or a scorer that needs no reference data."""
    with pytest.raises(ConfigError, match=words):
        split_gold(gold, NAMES, config(**settings))
