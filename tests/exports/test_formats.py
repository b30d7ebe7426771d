"""An invalid export request names the valid alternatives."""

from __future__ import annotations

from pathlib import Path

import pytest

from rocketeval.errors import ExportError
from rocketeval.exports.formats import FORMATS, WHATS, make_request


@pytest.mark.parametrize(
    ("given", "message", "hint"),
    [
        ({"to": None}, "No format", "wildbench"),
        ({"to": "cvs"}, "no format 'cvs'", "csv"),
        ({"to": "latex", "what": "scores"}, "latex does not support scores", "csv, jsonl, parquet"),
        ({"to": "matches", "what": "ranking"}, "matches does not support ranking", "csv, markdown"),
        ({"to": "csv", "what": "rankings"}, "no table 'rankings'", "ranking"),
        ({"to": "markdown", "raw": True}, "--raw is for csv only", "Leave it out"),
        ({"to": "jsonl", "bom": True}, "--bom is for csv only", "Leave it out"),
        ({"to": None, "path": Path("x.docx")}, "No format", "csv"),
    ],
)
def test_invalid_requests_are_explained(given: dict[str, object], message: str, hint: str) -> None:
    """The message names the mistake; the hint names the alternatives."""
    with pytest.raises(ExportError) as caught:
        make_request(**given)  # type: ignore[arg-type]
    assert message in caught.value.message
    assert hint in caught.value.hint


def test_every_table_has_a_format() -> None:
    """Each table is supported by at least one format."""
    held = {what for form in FORMATS.values() for what in form.whats}
    assert held == set(WHATS)


def test_the_extension_determines_the_format() -> None:
    """Each extension means one format with tables; formats of fixed content need --to."""
    for form in FORMATS.values():
        if form.ending and form.whats:
            assert make_request(None, path=Path(f"a{form.ending.upper()}")).form is form
