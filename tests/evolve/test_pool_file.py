"""Pool files are read strictly and round-trip."""

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
    """Return the pool read from a file with these entries."""
    path = folder / "pool.yaml"
    listed = "\n".join(f"  - {entry}" for entry in entries)
    path.write_text(f"perspectives:\n{listed}\n", encoding="utf-8")
    return read_pool(path)


def test_entry_with_only_a_text_is_added_by_a_person(tmp_path: Path) -> None:
    """That is how a person adds one between two rounds."""
    pool = pool_of(tmp_path, "text: Is it kind?", "{text: 'Is a poem asked for?', kind: query}")
    assert list(pool) == [
        Perspective("Is it kind?"),
        Perspective("Is a poem asked for?", PerspectiveKind.QUERY),
    ]
    assert {each.origin for each in pool} == {PerspectiveOrigin.PERSON}


def test_pool_round_trips(tmp_path: Path) -> None:
    """Every field survives; importance to four digits."""
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


def test_pool_file_explains_how_to_add_an_entry(tmp_path: Path) -> None:
    """The header is enough, and entries can be appended at the end."""
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


def test_wrong_id_is_recomputed(tmp_path: Path) -> None:
    """A person who edits a text need not know about ids."""
    (edited,) = pool_of(tmp_path, "{text: 'Is it kind?', id: 12}")
    assert edited.id == Perspective("Is it kind?").id


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ("{txt: 'Is it kind?'}", "Did you mean 'text'"),
        ("{text: 'Is it kind?', weight: 3}", "weight: there is no such setting"),
        ("{text: ' '}", "this is empty"),
        ("{kind: query}", "text: this setting is required"),
        (f"text: {'x' * LONGEST_TEXT}?", "501 characters; at most 500"),
        ('{text: "Is it\\akind?"}', "control character"),
        ('{text: "Is it\\u200bkind?"}', "invisible"),
        ('{text: "Is it \\u202ekind?"}', "invisible"),
        ("{text: 'Is it kind?', kind: person}", "kind: this must be 'response' or 'query'"),
        ("{text: 'Is it asked?', kind: query, form: graded}", "leave `form` out"),
        ("Is it kind?", "must be a mapping with a `text`"),
        ("{text: 3}", "text: this must be text"),
    ],
)
def test_invalid_entry_is_named_by_number(tmp_path: Path, entry: str, problem: str) -> None:
    """The error gives the file, the entry and what to do."""
    with pytest.raises(ConfigError) as caught:
        pool_of(tmp_path, "text: Is it right?", entry)
    assert "pool.yaml: perspective 2 " in str(caught.value)
    assert problem in str(caught.value)


def test_duplicate_names_both_entries(tmp_path: Path) -> None:
    """Case and punctuation do not make a new question; another format or kind does."""
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
        ("perspectives: []\nname: mine", "unknown key 'name'"),
        ("perspectives: [", "not valid YAML"),
        ("perspectives:\n  - {text: a, text: b}", "'text' is set twice"),
    ],
)
def test_file_of_another_format_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    """It is not read as an empty pool."""
    path = tmp_path / "pool.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=problem):
        read_pool(path)


def test_missing_file_is_named(tmp_path: Path) -> None:
    """It names the file."""
    with pytest.raises(ConfigError, match=r"Cannot read the pool of perspectives .*none\.yaml"):
        read_pool(tmp_path / "none.yaml")
