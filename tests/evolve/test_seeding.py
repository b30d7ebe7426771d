"""Where evolution begins: packaged pools and files of one's own, in the wanted forms."""

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
    formats_of,
    with_formats,
)
from rocketeval.evolve.pool import packaged_seeds, seed_pool

CHOICE, GRADED = AnswerFormat.CHOICE, AnswerFormat.GRADED


def test_packaged_seeds_are_readable_and_ask_nothing_twice() -> None:
    """All of them together are one pool, with every way to begin that the paper has."""
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


def test_questions_about_responses_come_in_the_wanted_form() -> None:
    """Those about queries are a choice whatever is wanted."""
    pool = seed_pool(["presets"], (GRADED,))
    assert {each.form for each in pool.of(PerspectiveKind.RESPONSE)} == {GRADED}
    assert {each.form for each in pool.of(PerspectiveKind.QUERY)} == {CHOICE}


def test_of_both_forms_the_choice_is_the_parent() -> None:
    """Each question about responses is there twice, one after the other."""
    choice, graded, *_ = seed_pool(["guidelines"], formats_of("both"))
    assert (choice.form, choice.parents) == (CHOICE, ())
    assert (graded.form, graded.parents, graded.text) == (GRADED, (choice.id,), choice.text)


def test_files_of_ones_own_stand_beside_packaged_ones(tmp_path: Path) -> None:
    """What two of them ask is there once."""
    path = tmp_path / "own.yaml"
    first = next(iter(seed_pool(["prompts"], (CHOICE,))))
    path.write_text(f"perspectives:\n  - text: {first.text}\n  - text: Is it kind?\n")
    pool = seed_pool(["prompts", str(path)], (CHOICE,))
    assert len(pool) == len(seed_pool(["prompts"], (CHOICE,))) + 1
    assert pool[first.id].origin is PerspectiveOrigin.TRANSFER


def test_an_unknown_name_names_the_nearest() -> None:
    """A typing error is told, with what there is."""
    with pytest.raises(ConfigError, match="Did you mean 'guidelines'"):
        seed_pool(["guideline"], (CHOICE,))


def test_forms_are_given_once() -> None:
    """What has them already stays as it is, importance and all."""
    choice = Perspective("Is it kind?", importance=0.5, stability=1.0)
    query = Perspective("Is it asked?", PerspectiveKind.QUERY)
    both = with_formats([choice, query], "both")
    assert [each.form for each in both] == [CHOICE, GRADED, CHOICE]
    weighed = [both[0], replace(both[1], importance=0.2), both[2]]
    assert with_formats(weighed, "both") == tuple(weighed)


def test_another_form_forgets_what_was_learned_of_the_first() -> None:
    """An importance is that of the answers in one form."""
    (graded,) = with_formats([Perspective("Is it kind?", importance=0.5)], "graded")
    assert (graded.form, graded.importance, graded.parents) == (GRADED, None, ())
