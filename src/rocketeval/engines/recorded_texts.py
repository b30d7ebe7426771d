"""Texts that an author or optimizer once wrote, played back to the prompts they answered.

One JSON object a line: {"when": "round 1, broaden", "text": "1. Is the response kind?"}. The first
row whose `when` stands in a prompt, as whole words, gives its text. A prompt that begins with
`Request:` is known by its first line alone: the rest quotes what others wrote.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from rocketeval.errors import ConfigError, RequestRejected

REQUEST = "Request:"
"""Begins the line that names what is asked for."""
HINT = 'A line of it reads {"when": "some words of the prompt", "text": "what is written"}.'


class RecordedText(NamedTuple):
    """One text, and the words of a prompt that it answers."""

    when: str
    text: str


class RecordedTexts:
    """Gives the recorded text for a prompt; RequestRejected when no row fits it.

    >>> RecordedTexts([RecordedText("batch 1", "one"), RecordedText("batch 10", "ten")])("batch 10")
    'ten'
    """

    def __init__(self, rows: Sequence[RecordedText], name: str = "the record") -> None:
        self._rows = [(_as_words(row.when), row.text) for row in rows]
        self._name = name

    @classmethod
    def load(cls, path: Path) -> RecordedTexts:
        """Return the texts in a JSONL file; ConfigError names the line that cannot be read."""
        try:
            lines = path.read_bytes().splitlines()
        except OSError as error:
            raise ConfigError(
                f"Cannot read the recorded texts {path}: {error.strerror}.",
                hint="`options.texts` of the scripted engine is relative to the config file.",
            ) from None
        rows = [_row(path, number, line) for number, line in enumerate(lines, 1) if line.strip()]
        return cls(rows, str(path))

    def __call__(self, prompt: str) -> str:
        """Return the text of the first row that fits."""
        first = prompt.strip().partition("\n")[0]
        searched = first if first.startswith(REQUEST) else prompt
        for when, text in self._rows:
            if when.search(searched):
                return text
        raise RequestRejected(
            f"none of the {len(self._rows)} texts in {self._name} is for the prompt that begins "
            f"{first[:80]!r}"
        )


def _as_words(when: str) -> re.Pattern[str]:
    # `batch 1` must not answer `batch 10`.
    return re.compile(rf"(?<!\w){re.escape(when)}(?!\w)")


def _row(path: Path, number: int, line: bytes) -> RecordedText:
    try:
        row: Any = orjson.loads(line)
    except orjson.JSONDecodeError:
        raise ConfigError(f"{path}, line {number}, is not valid JSON.", hint=HINT) from None
    told = isinstance(row, dict) and row.keys() == {"when", "text"}
    if not told or not all(isinstance(value, str) for value in row.values()):
        raise ConfigError(
            f"{path}, line {number}, must have `when` and `text`, both text, and nothing else.",
            hint=HINT,
        )
    if not row["when"].strip():
        raise ConfigError(f"{path}, line {number}: `when` is blank.", hint=HINT)
    return RecordedText(row["when"].strip(), row["text"])
