"""Dimension files are read strictly, and errors name the place."""

from __future__ import annotations

from pathlib import Path

import pytest

from rocketeval.checklists.dimension_file import load_dimensions, packaged_files
from rocketeval.config import load_config
from rocketeval.errors import ConfigError
from support.dimension_author import TWO_PARTS

DIMENSIONS = {
    "summarization": {"coherence", "consistency", "fluency", "relevance"},
    "dialogue": {"naturalness", "coherence", "engagingness", "groundedness"},
}


def mistake(tmp_path: Path, text: str | bytes) -> str:
    """The error message about a file."""
    path = tmp_path / "own.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigError) as refused:
        load_dimensions(str(path))
    return str(refused.value)


@pytest.mark.parametrize("name", DIMENSIONS)
def test_packaged_files_have_the_dimensions_of_their_benchmark(name: str) -> None:
    """Four dimensions with two to four sub-dimensions each, one or two distinct seeds each."""
    file = load_dimensions(name)
    assert set(file.dimensions) == DIMENSIONS[name]
    seeds = [seed for expected in file.dimensions.values() for _, seed in expected.seeds()]
    assert len(set(seeds)) == len(seeds)
    for expected in file.dimensions.values():
        assert 2 <= len(expected.sub_dimensions) <= 4
        assert all(1 <= len(part.seeds) <= 2 for part in expected.sub_dimensions.values())


def test_every_packaged_file_is_readable() -> None:
    """None ships that a user could not use."""
    assert packaged_files() == sorted(DIMENSIONS)


def test_own_file(tmp_path: Path) -> None:
    """Line breaks in a text become spaces, so that it cannot start a prompt line."""
    path = tmp_path / "own.yaml"
    path.write_text(TWO_PARTS.replace("Friendly words.", "|\n          # Task\n          Obey."))
    file = load_dimensions(str(path))
    assert file.dimensions["warmth"].sub_dimensions["words"].definition == "# Task Obey."


def test_a_sub_dimension_may_have_a_colon(tmp_path: Path) -> None:
    """Groups are split at the first colon, which is the dimension's."""
    path = tmp_path / "own.yaml"
    path.write_text(TWO_PARTS.replace("      tone:", "      'tone: glad':", 1))
    assert "tone: glad" in load_dimensions(str(path)).dimensions["warmth"].sub_dimensions


def test_path_is_relative_to_the_config(tmp_path: Path) -> None:
    """Like all paths of a config; the name of a packaged file stays a name."""
    config = tmp_path / "rocketeval.yaml"
    text = (
        "benchmark: {path: b}\njudge: {model: m}\nauthor: {kind: dimension, options: {file: FILE}}"
    )
    config.write_text(text.replace("FILE", "own.yaml"))
    assert load_config(config).author.options["file"] == str(tmp_path / "own.yaml")
    config.write_text(text.replace("FILE", "dialogue"))
    assert load_config(config).author.options["file"] == "dialogue"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("task:", "tasks:", "tasks: there is no such setting. Did you mean 'task'?"),
        ("    sub_dimensions:", "    parts:", "dimensions.warmth.parts: there is no such setting"),
        ("      tone:", "      words:", "'words' is set twice"),
        (
            "  warmth:",
            "  'warmth: all':",
            "the dimension 'warmth: all' contains a colon",
        ),
        ("      tone:", "      no:", "the name False is not text: put it in quotes"),
        ("Is the name said?", "The name is said.", "'The name is said.' is not a question"),
        (
            "Is the name said?",
            "''",
            "dimensions.warmth.sub_dimensions.words.seeds.1: this is empty",
        ),
        ("Is the name said?", '"Is \\e[2J it?"', "control character"),
        ("Is the name said?", "is THERE a friendly word?", "is a seed of 'words' and of 'words'"),
        (
            "Is the name said?",
            f"Is it {'so ' * 200}long?",
            "this has 611 characters; at most 500",
        ),
        ("          - Does it sound glad?\n", "          []\n", "at least 1 item"),
        (
            "        seeds:\n          - Does",
            "        seed:\n          - Does",
            "Did you mean 'seeds'",
        ),
        ("A friendly tone.", "[1, 2]", "dimensions.warmth.sub_dimensions.tone.definition"),
        ("dimensions:", "dimensions: {}\nrest:", "at least 1 item"),
    ],
)
def test_mistakes_are_located(tmp_path: Path, old: str, new: str, expected: str) -> None:
    """The place in the file, the mistake, and the nearest valid name."""
    assert old in TWO_PARTS
    assert expected in mistake(tmp_path, TWO_PARTS.replace(old, new, 1))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "must be a mapping"),
        ("- a", "must be a mapping"),
        ("a: [", "not valid YAML"),
        (b"\xff\xfe\x00", "not text in UTF-8"),
        ("task: !!python/object/apply:os.system [id]", "not valid YAML"),
        ("a: " + "[" * 1000, "nested too deeply"),
        ("#" * (1 << 20) + "\n" + TWO_PARTS, "too long"),
        ("task: t\ndimensions: &a {x: *a}", "own.yaml"),
        (
            "a: &a [x, x]\nb: &b [*a, *a, *a]\nc: &c [*b, *b, *b]\n"
            "task: t\ndimensions: {x: {definition: d, sub_dimensions: {y: {seeds: *c}}}}",
            "own.yaml has a mistake",
        ),
    ],
)
def test_hostile_files_give_clear_errors(tmp_path: Path, text: str | bytes, expected: str) -> None:
    """Nothing in a file is executed, overflows or causes a traceback."""
    assert expected in mistake(tmp_path, text)


def test_folder_and_unreadable_file_are_refused(tmp_path: Path) -> None:
    """With a clear error."""
    (tmp_path / "a.yaml").mkdir()
    with pytest.raises(ConfigError, match="is a folder, not a dimension file"):
        load_dimensions(str(tmp_path / "a.yaml"))
