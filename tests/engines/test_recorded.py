"""The recorded judge: exact answers, refusals, and its name."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from rocketeval.config import EngineConfig
from rocketeval.engines.base import create_engine
from rocketeval.engines.recorded import RecordedAnswer, RecordedJudge, write_record
from rocketeval.engines.scripted import exact_answer
from rocketeval.errors import ConfigError, EngineRefused
from rocketeval.records import Answer, GradingTask, Status, Usage
from rocketeval.testing import (
    EngineCase,
    check_close,
    check_identity,
    check_order,
    check_probabilities,
    check_repeatable,
)
from support.in_process import cli

JUDGE = RecordedJudge(
    engine="llamacpp", model="small", endpoint="chat", version="1", logprobs="top20", readout="r"
)
TASK = GradingTask(b"k", "sky", "mine", "A response. ", ("Blue?", "Deep?", "Hidden?"))
ANSWERS = (
    exact_answer(0.123456789012345678),
    Answer(Status.TRUNCATED, 0.9, 0.88, 0.92, 0.7, -0.1, None),
    Answer(Status.HIDDEN, mass=0.0),
)


def config(path: Path, model: str = "small (recorded)") -> EngineConfig:
    """Return the config of a recorded judge."""
    return EngineConfig(engine="recorded", model=model, options={"file": str(path)})


@pytest.fixture
def record(tmp_path: Path) -> Path:
    """Return a record with the answers to one task."""
    path = tmp_path / "record.jsonl"
    rows = [RecordedAnswer.of(TASK, item, answer) for item, answer in enumerate(ANSWERS)]
    write_record(path, JUDGE, rows)
    return path


async def test_answers_are_exact_and_free(record: Path) -> None:
    """Answers of any status come back to the last bit, with no usage."""
    graded = await create_engine(config(record)).grade(TASK, {})
    assert graded.answers == ANSWERS
    assert graded.usage == Usage()
    assert graded.failure is None


async def test_identity_is_the_recorded_judge(record: Path) -> None:
    """Engine and name are marked as recorded; a new record is another judge."""
    identity = await create_engine(config(record)).identify()
    assert (identity.engine, identity.model) == ("recorded", "small (recorded)")
    assert (identity.endpoint, identity.logprobs, identity.readout) == ("chat", "top20", "r")
    assert identity.version.endswith(" of llamacpp 1")
    record.write_text(record.read_text().replace("0.9,", "0.8,"))
    assert (await create_engine(config(record)).identify()).version != identity.version


@pytest.mark.parametrize("changed", ["prefix", "item"])
async def test_other_prompts_are_refused(record: Path, changed: str) -> None:
    """One changed letter is refused, with the item and a hint."""
    prefix = TASK.prefix + "!" if changed == "prefix" else TASK.prefix
    suffixes = TASK.suffixes if changed == "prefix" else ("Blue?", "Deeper?")
    other = GradingTask(b"k", "sky", "mine", prefix, suffixes)
    item = 1 if changed == "prefix" else 2
    with pytest.raises(EngineRefused) as refused:
        await create_engine(config(record)).grade(other, {})
    assert f"no answer to item {item} for 'mine' on query 'sky'" in refused.value.message
    assert "llamacpp" in refused.value.hint


async def test_known_answers_are_not_replaced(record: Path) -> None:
    """Answers that the run already has are kept."""
    mine = exact_answer(0.5)
    graded = await create_engine(config(record)).grade(TASK, {0: mine})
    assert graded.answers == (mine, *ANSWERS[1:])


async def test_recorded_judge_writes_no_text(record: Path) -> None:
    """It is not an author and has no likelihoods."""
    engine = create_engine(config(record))
    for asked in (engine.write("Hello", max_tokens=1), engine.likelihood("Hello", "you")):
        with pytest.raises(EngineRefused):
            await asked
    assert await engine.tokenise(["Hello"]) is None


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "line 1"),
        ("{}\n", "line 1, is invalid: engine"),
        (JUDGE.model_dump_json() + "\nnonsense\n", "line 2"),
        (JUDGE.model_dump_json() + '\n{"prompt": 1}\n', "line 2, is invalid: prompt"),
    ],
)
def test_invalid_record_is_named_with_its_line(tmp_path: Path, content: str, words: str) -> None:
    """The error names the file and the line."""
    path = tmp_path / "record.jsonl"
    path.write_text(content)
    with pytest.raises(ConfigError, match=words):
        create_engine(config(path))


def test_mistakes_in_the_config_are_named(record: Path, tmp_path: Path) -> None:
    """A missing file, another judge's name, and a base URL are errors."""
    with pytest.raises(ConfigError, match="Cannot read the record"):
        create_engine(config(tmp_path / "absent.jsonl"))
    with pytest.raises(ConfigError) as refused:
        create_engine(config(record, model="large"))
    assert "small (recorded)" in refused.value.hint
    with pytest.raises(ConfigError, match="base_url"):
        create_engine(config(record).model_copy(update={"base_url": "http://127.0.0.1:1/v1"}))


CHECKS = (check_identity, check_order, check_probabilities, check_repeatable, check_close)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_engine_contract_without_writing(
    tmp_path: Path, check: Callable[[EngineCase], Awaitable[None]]
) -> None:
    """All checks except writing, usage and failures of single items."""
    scripted = create_engine(EngineConfig(engine="scripted", model="m"))
    rows: dict[str, RecordedAnswer] = {}

    class Learning:
        """Asks the script and records its answers."""

        def __getattr__(self, name: str) -> object:
            return getattr(scripted, name)

        async def grade(self, task: GradingTask, known: dict[int, Answer]) -> object:
            graded = await scripted.grade(task, known)
            for item, answer in enumerate(graded.answers):
                row = RecordedAnswer.of(task, item, answer)
                rows[row.prompt] = row
            return graded

    await check(EngineCase(Learning, rejected="x"))  # type: ignore[arg-type]
    path = tmp_path / "record.jsonl"
    await asyncio.to_thread(write_record, path, JUDGE, rows.values())
    await check(EngineCase(lambda: create_engine(config(path)), rejected="x"))


def test_recorded_quickstart(tmp_path: Path) -> None:
    """`init --recorded`, `run`, and every reading command work without a model."""
    output = cli(tmp_path, "init", "demo", "--recorded").stdout
    assert "no model runs" in output
    place = "demo/rocketeval.yaml"
    assert "RECORDED" in (tmp_path / place).read_text()
    shown = cli(tmp_path, "run", place).stdout
    assert "qwen2.5-coder-1.5b-instruct (recorded)" in shown
    assert "no model ran" in shown
    assert "careful" in shown
    assert "60 responses" in shown
    report = (tmp_path / "demo" / "runs" / "recorded" / "report.html").read_text()
    assert "qwen2.5-coder-1.5b-instruct (recorded)" in report
    assert "votes" in cli(tmp_path, "audit", place).stdout
    assert "careful" in cli(tmp_path, "explain", place, "--candidate", "careful").stdout
    assert "better" in cli(tmp_path, "compare", "careful", "broken", place).stdout
    assert "record" in cli(tmp_path, "doctor", place).stdout


def test_changed_response_is_refused_and_others_are_kept(tmp_path: Path) -> None:
    """A changed response ends the run with a hint; the others are in the ledger."""
    cli(tmp_path, "init", "demo", "--recorded")
    responses = tmp_path / "demo" / "benchmark" / "responses" / "solid.jsonl"
    lines = responses.read_text().splitlines()
    responses.write_text("\n".join([*lines[:-1], lines[-1].replace('"text": "', '"text": "My ')]))
    output = cli(tmp_path, "run", "demo/rocketeval.yaml", code=4).stderr
    assert "no answer to item 1 for 'solid'" in output
    assert "llamacpp" in output


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (("--recorded", "--model", "m"), 2, "--recorded"),
        (("--model", "absent.gguf"), 2, "absent.gguf"),
        (("--model", "judge.gguf", "--base-url", "http://x/v1"), 2, "--base-url"),
    ],
)
def test_init_refuses_conflicting_options(
    tmp_path: Path, options: tuple[str, ...], code: int, words: str
) -> None:
    """Nothing is written."""
    assert words in cli(tmp_path, "init", "demo", *options, code=code).stderr
    assert not (tmp_path / "demo").exists()


def test_init_accepts_a_gguf_file(tmp_path: Path) -> None:
    """The file name selects llama.cpp, and its path becomes absolute."""
    (tmp_path / "my: judge.gguf").write_bytes(b"GGUF")
    cli(tmp_path, "init", "demo", "--model", "my: judge.gguf")
    written = (tmp_path / "demo" / "rocketeval.yaml").read_text()
    assert "engine: llamacpp" in written
    assert f"model: '{tmp_path / 'my: judge.gguf'}'" in written
