"""The scripted engine as a recorded author: texts selected by words of the prompt."""

from __future__ import annotations

from pathlib import Path

import pytest

from rocketeval.config import EngineConfig, load_config
from rocketeval.engines.base import Engine, create_engine
from rocketeval.errors import ConfigError, RequestRejected

ROWS = """\
{"when": "batch 1", "text": "one"}

{"when": "batch 10", "text": "ten"}
{"when": "(a+b)", "text": "sum"}
"""


def recorded(folder: Path, rows: str = ROWS, **options: str) -> Engine:
    """Return an engine that plays back these rows."""
    path = folder / "texts.jsonl"
    path.write_text(rows)
    options = {"texts": str(path), **options}
    return create_engine(EngineConfig(engine="scripted", model="m", options=options))


@pytest.mark.parametrize(
    ("prompt", "text"),
    [("Request: batch 1\nGo.", "one"), ("Request: batch 10\nGo.", "ten"), ("Take (a+b).", "sum")],
)
async def test_first_matching_row_gives_the_text(tmp_path: Path, prompt: str, text: str) -> None:
    """Only whole words match: no number matches a longer one."""
    engine = recorded(tmp_path)
    assert (await engine.write(prompt, max_tokens=10)).text == text


async def test_request_line_decides_the_match(tmp_path: Path) -> None:
    """Text quoted after the first line does not match."""
    engine = recorded(tmp_path)
    quoting = "Request: batch 10\nA response says: batch 1"
    assert (await engine.write(quoting, max_tokens=10)).text == "ten"
    with pytest.raises(RequestRejected, match="'Request: batch 2'"):
        await engine.write("Request: batch 2\nA response says: batch 1", max_tokens=10)


async def test_unmatched_prompt_is_rejected(tmp_path: Path) -> None:
    """The error names the record and the start of the prompt."""
    with pytest.raises(RequestRejected, match=r"none of the 3 texts in .*texts\.jsonl .*'batch 2'"):
        await recorded(tmp_path).write("batch 2\nGo.", max_tokens=10)


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ('{"when": "a", "text": "b"}\n{"when"', "line 2, is not valid JSON"),
        ('{"when": "a"}', "line 1, must have exactly"),
        ('{"when": "a", "text": 3}', "line 1, must have exactly"),
        ('{"when": " ", "text": "b"}', "line 1: `when` is blank"),
        ("[]", "line 1, must have"),
    ],
)
def test_invalid_row_is_named(tmp_path: Path, rows: str, problem: str) -> None:
    """An invalid record is refused before anything is asked."""
    with pytest.raises(ConfigError, match=problem):
        recorded(tmp_path, rows)


def test_missing_record_and_conflicting_texts_are_refused(tmp_path: Path) -> None:
    """Both errors have a hint."""
    with pytest.raises(ConfigError, match="exclude each other"):
        recorded(tmp_path, text="always")
    engine = EngineConfig(engine="scripted", model="m", options={"texts": str(tmp_path / "none")})
    with pytest.raises(ConfigError, match="Cannot read the recorded texts"):
        create_engine(engine)


def test_optimizer_record_is_relative_to_the_config(tmp_path: Path) -> None:
    """A run can be started from any directory."""
    path = tmp_path / "run.yaml"
    path.write_text(
        "benchmark: {path: data}\n"
        "judge: {engine: scripted, model: j}\n"
        "evolve:\n"
        "  optimizer: {engine: scripted, model: o, options: {texts: records/texts.jsonl}}\n"
    )
    optimizer = load_config(path).evolve.optimizer
    assert optimizer is not None
    assert optimizer.options == {"texts": str(tmp_path / "records" / "texts.jsonl")}
