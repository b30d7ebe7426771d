"""A request that cannot be met says what could be."""

from __future__ import annotations

from pathlib import Path

import pytest

from rocketeval.errors import ExportError
from rocketeval.exports.formats import FORMATS, WHATS, make_request


@pytest.mark.parametrize(
    ("given", "message", "hint"),
    [
        ({"to": None}, "Which format?", "wildbench"),
        ({"to": "cvs"}, "no format 'cvs'", "csv"),
        ({"to": "latex", "what": "scores"}, "latex cannot hold scores", "csv, jsonl, parquet"),
        ({"to": "matches", "what": "ranking"}, "matches cannot hold ranking", "csv, markdown"),
        ({"to": "csv", "what": "rankings"}, "no 'rankings'", "ranking"),
        ({"to": "markdown", "raw": True}, "--raw is for csv only", "Leave it out"),
        ({"to": "jsonl", "bom": True}, "--bom is for csv only", "Leave it out"),
        ({"to": None, "path": Path("x.docx")}, "Which format?", "csv"),
    ],
)
def test_what_does_not_fit_is_explained(given: dict[str, object], message: str, hint: str) -> None:
    """The message names the mistake, the hint what to say instead."""
    with pytest.raises(ExportError) as caught:
        make_request(**given)  # type: ignore[arg-type]
    assert message in caught.value.message
    assert hint in caught.value.hint


def test_every_what_has_a_format() -> None:
    """Nothing is offered that nothing can hold."""
    held = {what for form in FORMATS.values() for what in form.whats}
    assert held == set(WHATS)


def test_the_ending_says_the_format() -> None:
    """Each ending means one format; matches must be asked for."""
    for form in FORMATS.values():
        if form.ending and form.name != "matches":
            assert make_request(None, path=Path(f"a{form.ending.upper()}")).form is form
