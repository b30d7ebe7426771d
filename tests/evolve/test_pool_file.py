"""Pool files: what people write is read strictly, what is written is read back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rocketeval.errors import ConfigError
from rocketeval.evolve.perspective import (
    LONGEST_TEXT,
    AnswerFormat,
    Perspective,
    PerspectiveKind,
    PerspectiveOrigin,
    Pool,
)
from rocketeval.evolve.pool import read_pool, write_pool


def pool_of(folder: Path, *entries: str) -> Pool:
    """Return what is read of a file with these entries."""
    path = folder / "pool.yaml"
    listed = "\n".join(f"  - {entry}" for entry in entries)
    path.write_text(f"perspectives:\n{listed}\n", encoding="utf-8")
    return read_pool(path)


def test_a_text_alone_is_a_persons_perspective(tmp_path: Path) -> None:
    """That is how somebody adds one between two rounds."""
    pool = pool_of(tmp_path, "text: Is it kind?", "{text: 'Is a poem asked for?', kind: query}")
    assert list(pool) == [
        Perspective("Is it kind?"),
        Perspective("Is a poem asked for?", PerspectiveKind.QUERY),
    ]
    assert {each.origin for each in pool} == {PerspectiveOrigin.PERSON}


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    """Every field survives; an importance to four digits."""
    whole = Perspective(
        'Does it say "no: never" # or so?',
        PerspectiveKind.RESPONSE,
        PerspectiveOrigin.MIX,
        AnswerFormat.GRADED,
        ("0123456789ab", "123456789012"),
        3,
        ("coding", "yes"),
        0.123456,
        2 / 3,
    )
    plain = Perspective(
        "Trifft es zu, daß 中文 vorkommt?", PerspectiveKind.QUERY, PerspectiveOrigin.ROUTING
    )
    path = tmp_path / "new" / "pool.yaml"
    write_pool(Pool([whole, plain]), path)
    first, second = read_pool(path)
    assert (first, second) == (replace(whole, importance=0.1235), plain)


def test_a_written_file_tells_how_to_add_one(tmp_path: Path) -> None:
    """Somebody who opens it needs no manual, and can append at its end."""
    path = tmp_path / "pool.yaml"
    write_pool(Pool([Perspective("Is it kind?")]), path)
    assert path.read_text().startswith("# ")
    assert "To add one" in path.read_text()
    with path.open("a") as stream:
        stream.write("  - text: Is it short?\n")
    assert [each.text for each in read_pool(path)] == ["Is it kind?", "Is it short?"]
    with path.open("a") as stream:
        stream.write("- text: Is it long?\n")
    with pytest.raises(ConfigError, match=r"in line 15\.\n.*indentation"):
        read_pool(path)


def test_an_id_that_does_not_fit_is_made_anew(tmp_path: Path) -> None:
    """Who edits a text need not know what an id is."""
    (edited,) = pool_of(tmp_path, "{text: 'Is it kind?', id: 12}")
    assert edited.id == Perspective("Is it kind?").id


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ("{txt: 'Is it kind?'}", "Did you mean 'text'"),
        ("{text: 'Is it kind?', weight: 3}", "weight: there is no such setting"),
        ("{text: ' '}", "this is empty"),
        ("{kind: query}", "text: this setting is required"),
        (f"text: {'x' * LONGEST_TEXT}?", "501 characters; 500 are allowed"),
        ('{text: "Is it\\akind?"}', "control character"),
        ('{text: "Is it\\u200bkind?"}', "another that nobody sees"),
        ('{text: "Is it \\u202ekind?"}', "another that nobody sees"),
        ("{text: 'Is it kind?', kind: person}", "kind: Input should be 'response' or 'query'"),
        ("{text: 'Is it asked?', kind: query, form: graded}", "leave `form` out"),
        ("Is it kind?", "must be a mapping with a `text`"),
        ("{text: 3}", "text: this must be text"),
    ],
)
def test_a_wrong_entry_is_named_by_its_number(tmp_path: Path, entry: str, problem: str) -> None:
    """The file, the entry and what to do: nobody should have to count on their own."""
    with pytest.raises(ConfigError) as caught:
        pool_of(tmp_path, "text: Is it right?", entry)
    assert "pool.yaml: perspective 2 " in str(caught.value)
    assert problem in str(caught.value)


def test_a_repeat_names_both_entries(tmp_path: Path) -> None:
    """Case and punctuation make no other question; another form or kind does."""
    with pytest.raises(ConfigError, match="perspective 3 asks the same as perspective 2"):
        pool_of(tmp_path, "text: Is it right?", "text: Is it kind?", "text: is it KIND")
    both = pool_of(tmp_path, "text: Is it kind?", "{text: 'Is it kind?', form: graded}")
    assert len(both) == 2


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no list of `perspectives`"),
        ("perspectives: 3", "no list of `perspectives`"),
        ("- text: Is it kind?", "no list of `perspectives`"),
        ("perspectives: []\nname: mine", "'name' does not belong here"),
        ("perspectives: [", "not valid YAML"),
        ("perspectives:\n  - {text: a, text: b}", "'text' is set twice"),
    ],
)
def test_a_file_of_another_form_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    """What is not a pool is not read as an empty one."""
    path = tmp_path / "pool.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=problem):
        read_pool(path)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    """It names the file."""
    with pytest.raises(ConfigError, match=r"Cannot read the pool of perspectives .*none\.yaml"):
        read_pool(tmp_path / "none.yaml")
