"""Seed pools: packaged and own files, in the configured answer formats."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rocketeval.errors import ConfigError
from rocketeval.evolve.perspective import (
    AnswerFormat,
    KnownQuestions,
    Perspective,
    PerspectiveKind,
    PerspectiveOrigin,
    Pool,
    formats_of,
    with_formats,
)
from rocketeval.evolve.pool import packaged_seeds, read_pool, seed_pool, write_pool
from rocketeval.evolve.rounds import proposed_elsewhere

CHOICE, GRADED = AnswerFormat.CHOICE, AnswerFormat.GRADED


def test_packaged_seeds_are_readable_and_distinct() -> None:
    """Together they form one pool with every initial origin of the paper."""
    pool = seed_pool(packaged_seeds(), (CHOICE,))
    assert {each.origin for each in pool} == {
        PerspectiveOrigin.RULE,
        PerspectiveOrigin.PRESET,
        PerspectiveOrigin.TRANSFER,
    }
    asked = KnownQuestions()
    for each in pool:
        assert asked.duplicate_of(each) is None, each.text
        asked.add(each)


def test_response_questions_have_the_configured_format() -> None:
    """Questions about queries are always a choice."""
    pool = seed_pool(["presets"], (GRADED,))
    assert {each.form for each in pool.of(PerspectiveKind.RESPONSE)} == {GRADED}
    assert {each.form for each in pool.of(PerspectiveKind.QUERY)} == {CHOICE}


def test_choice_is_the_parent_of_the_graded_format() -> None:
    """Each question about responses appears twice, one after the other."""
    choice, graded, *_ = seed_pool(["guidelines"], formats_of("both"))
    assert (choice.form, choice.parents) == (CHOICE, ())
    assert (graded.form, graded.parents, graded.text) == (GRADED, (choice.id,), choice.text)


def test_own_files_combine_with_packaged_ones(tmp_path: Path) -> None:
    """Duplicates are dropped."""
    path = tmp_path / "own.yaml"
    first = next(iter(seed_pool(["prompts"], (CHOICE,))))
    path.write_text(f"perspectives:\n  - text: {first.text}\n  - text: Is it kind?\n")
    pool = seed_pool(["prompts", str(path)], (CHOICE,))
    assert len(pool) == len(seed_pool(["prompts"], (CHOICE,))) + 1
    assert pool[first.id].origin is PerspectiveOrigin.TRANSFER


def test_pool_of_another_run_enters_without_rounds_and_weights(tmp_path: Path) -> None:
    """Its proposals keep their origin, so that every command of the run can count them."""
    learned = {"importance": 0.5, "stability": 1.0}
    old = [
        Perspective("Is it kind?", origin=PerspectiveOrigin.PRESET, **learned),
        Perspective("Is it brief?", origin=PerspectiveOrigin.FAILURES, round=2, **learned),
        Perspective("Is it warm?", origin=PerspectiveOrigin.DEPTH, round=1, **learned),
        Perspective("Is it calm?", round=3),
    ]
    write_pool(Pool(old), tmp_path / "old.yaml")
    pool = seed_pool([str(tmp_path / "old.yaml")], (CHOICE,))
    assert {(each.round, each.importance, each.stability) for each in pool} == {(0, None, None)}
    assert [each.origin for each in pool] == ["preset", "failures", "depth", "failures"]
    assert proposed_elsewhere(pool) == 3
    write_pool(pool, tmp_path / "pool.yaml")
    assert proposed_elsewhere(read_pool(tmp_path / "pool.yaml")) == 3


def test_unknown_name_suggests_the_nearest() -> None:
    """A typo is reported with the known names."""
    with pytest.raises(ConfigError, match="Did you mean 'guidelines'"):
        seed_pool(["guideline"], (CHOICE,))


def test_formats_are_added_once() -> None:
    """Existing ones stay unchanged, with their importance."""
    choice = Perspective("Is it kind?", importance=0.5, stability=1.0)
    query = Perspective("Is it asked?", PerspectiveKind.QUERY)
    both = with_formats([choice, query], "both")
    assert [each.form for each in both] == [CHOICE, GRADED, CHOICE]
    weighed = [both[0], replace(both[1], importance=0.2), both[2]]
    assert with_formats(weighed, "both") == tuple(weighed)


def test_other_format_drops_learned_weights() -> None:
    """Importance belongs to the answers in one format."""
    (graded,) = with_formats([Perspective("Is it kind?", importance=0.5)], "graded")
    assert (graded.form, graded.importance, graded.parents) == (GRADED, None, ())
