"""The limited process of checks: hostile input is bounded, and functions come from the config."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from rocketeval.checks.library import LIBRARY
from rocketeval.checks.runner import CheckRunner, CheckSettings
from rocketeval.errors import ConfigError
from rocketeval.items import CheckCall
from rocketeval.records import Answer, PendingCheck, Status

SECONDS = 1.0
LONG = "word " * 2_000_000
"""A response of 10 MB."""


@pytest.fixture(scope="module")
def runner() -> Iterator[CheckRunner]:
    """A runner with a short time limit."""
    made = CheckRunner(CheckSettings(seconds=SECONDS, megabytes=1024))
    yield made
    made.close()


def ask(
    runner: CheckRunner, fn: str, args: dict[str, Any], response: str, reference: str | None = None
) -> Answer:
    return runner.check(PendingCheck(CheckCall(fn, args), response, reference))


def test_results_are_certain_answers(runner: CheckRunner) -> None:
    """A check answers with probability 1 or 0 and exact bounds."""
    passed = ask(runner, "contains", {"text": "a"}, "abc")
    failed = ask(runner, "contains", {"text": "x"}, "abc")
    assert (passed.status, passed.p_yes, passed.p_low, passed.p_high) == (Status.OK, 1.0, 1.0, 1.0)
    assert (failed.status, failed.p_yes) == (Status.OK, 0.0)


def test_catastrophic_pattern_is_stopped(runner: CheckRunner) -> None:
    """A pattern that would take years is a named failure within the time limit."""
    began = time.monotonic()
    answer = ask(runner, "regex", {"pattern": r"(a+)+$"}, "a" * 60 + "b")
    assert answer.status is Status.ERROR
    assert answer.p_yes is None
    assert "longer than" in (answer.text or "")
    assert time.monotonic() - began < SECONDS + 5
    assert ask(runner, "contains", {"text": "a"}, "abc").p_yes == 1.0


ARGUMENTS: dict[str, dict[str, Any]] = {
    "regex": {"pattern": "end$"},
    "contains": {"text": "absent"},
    "equals": {"text": "absent"},
    "contains_all": {"texts": ["word", "absent"]},
    "contains_any": {"texts": ["absent"]},
    "starts_with": {"text": "word"},
    "ends_with": {"text": "word"},
    "words": {"min": 10},
    "characters": {"min": 10},
    "json_schema": {"schema": {"type": "object"}},
    "language": {"code": "en"},
    "number": {"value": 1},
}


@pytest.mark.parametrize("name", sorted(LIBRARY))
@pytest.mark.parametrize(
    "response",
    [LONG, "[" * 1_000_000, '{"a":' * 200_000, "(" * 500_000, "9" * 5_000_000],
    ids=["10 MB", "deep list", "deep object", "deep code", "long number"],
)
def test_hostile_responses_are_bounded(runner: CheckRunner, name: str, response: str) -> None:
    """Every check ends in time, with a result or a named failure, and the next one works."""
    began = time.monotonic()
    answer = ask(runner, name, ARGUMENTS.get(name, {}), response, reference="1")
    assert time.monotonic() - began < SECONDS + 10
    assert answer.status in (Status.OK, Status.CHECK_FAILED, Status.ERROR)
    assert (answer.p_yes is None) is (answer.status is not Status.OK)
    assert ask(runner, "contains", {"text": "a"}, "abc").p_yes == 1.0


def test_memory_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A function that wants too much memory is a named failure, not the end of the run."""
    runner = own_functions(
        tmp_path,
        monkeypatch,
        "def f(response, reference):\n    return len(bytearray(8 << 30)) > 0\n",
    )
    answer = ask(runner, "mine", {}, "x")
    runner.close()
    assert answer.status is Status.ERROR
    assert "memory" in (answer.text or "")


def own_functions(folder: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> CheckRunner:
    """Return a runner whose check `mine` is the function `f` of this code."""
    (folder / "own_checks.py").write_text(code)
    monkeypatch.setenv("PYTHONPATH", str(folder), prepend=":")
    monkeypatch.syspath_prepend(str(folder))
    return CheckRunner(CheckSettings({"mine": "own_checks:f"}, seconds=SECONDS))


@pytest.mark.parametrize(
    ("body", "status", "part"),
    [
        ("return response.startswith(start)", Status.OK, None),
        ("raise KeyError('x')", Status.CHECK_FAILED, "KeyError"),
        ("return 1", Status.CHECK_FAILED, "not True or False"),
        ("print('noise'); return True", Status.OK, None),
        ("import os; os._exit(3)", Status.ERROR, "process ended"),
        ("import time; time.sleep(60)", Status.ERROR, "longer than"),
    ],
)
def test_own_functions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, status: Status, part: str | None
) -> None:
    """A function of the config decides; whatever it does wrong is a named failure."""
    code = f"def f(response, reference, start='a'):\n    {body}\n"
    runner = own_functions(tmp_path, monkeypatch, code)
    answer = ask(runner, "mine", {"start": "ab"}, "abc")
    runner.close()
    assert answer.status is status
    assert part is None or part in (answer.text or "")


def test_function_that_cannot_be_imported_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mistake in the user's module stops the run with its reason."""
    runner = own_functions(tmp_path, monkeypatch, "import no_such_module\n")
    with pytest.raises(ConfigError, match="no_such_module"):
        ask(runner, "mine", {}, "x")


def test_only_named_functions_are_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Data can use the library and the config's names, nothing else; code is part of identity."""
    with pytest.raises(ValueError, match="there is no check 'system'"):
        CheckSettings().bind(CheckCall("system"))
    settings = own_functions(tmp_path, monkeypatch, "def f(r, ref): return True\n").settings
    before = settings.bind(CheckCall("mine")).source
    (tmp_path / "own_checks.py").write_text("def f(r, ref): return False\n")
    assert before.startswith("own_checks:f ")
    assert settings.bind(CheckCall("mine")).source != before
    with pytest.raises(ConfigError, match="cannot be found"):
        CheckSettings({"mine": "no_such_module:f"}).bind(CheckCall("mine"))
    with pytest.raises(ConfigError, match="entry point"):
        CheckSettings({"mine": "nowhere"}).targets()


def test_schema_cannot_fetch_a_url(runner: CheckRunner) -> None:
    """A remote reference in a schema is not resolved."""
    schema = {"$ref": "http://127.0.0.1:9/schema.json"}
    answer = ask(runner, "json_schema", {"schema": schema}, "{}")
    assert answer.status is Status.CHECK_FAILED
    assert "Unresolvable" in (answer.text or "") or "schema.json" in (answer.text or "")


def test_current_folder_is_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python files of a benchmark's folder are not executed, whatever their names are."""
    marker = tmp_path / "executed"
    for name in ("json", "struct", "jsonschema", "numpy", "referencing", "rocketeval"):
        (tmp_path / f"{name}.py").write_text(f"open({str(marker)!r}, 'w')\n")
    monkeypatch.chdir(tmp_path)
    runner = CheckRunner(CheckSettings(seconds=SECONDS * 10))
    answer = ask(runner, "json_schema", {"schema": {"type": "object"}}, "{}")
    runner.close()
    assert answer.p_yes == 1.0
    assert not marker.exists()


def test_functions_are_imported_from_where_they_were_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder on the import path of this process is enough, as in a script or a notebook."""
    package = tmp_path / "own_package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "inner.py").write_text("def f(response, reference): return response == 'x'\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    settings = CheckSettings({"mine": "own_package.inner:f"}, seconds=SECONDS)
    assert settings.bind(CheckCall("mine")).source.startswith("own_package.inner:f ")
    runner = CheckRunner(settings)
    answer = ask(runner, "mine", {}, "x")
    runner.close()
    assert answer.p_yes == 1.0


def test_package_that_raises_is_not_imported_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A package whose `__init__` raises is an error with its reason, not a traceback."""
    package = tmp_path / "raising_package"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('no license')\n")
    (package / "m.py").write_text("def f(response, reference): return True\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    settings = CheckSettings({"mine": "raising_package.m:f"}, seconds=SECONDS)
    assert settings.bind(CheckCall("mine")).source
    with pytest.raises(ConfigError, match="no license"):
        ask(CheckRunner(settings), "mine", {}, "x")


@pytest.mark.parametrize("place", ["in a check", "while the process starts"])
def test_close_does_not_wait(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stop takes seconds, even if one check may take minutes and others wait for it."""
    reached = tmp_path / "reached"
    slow = f"open({str(reached)!r}, 'w'); import time; time.sleep(600)"
    defined = "def f(response, reference):\n"
    body = f"    {slow}\n" if place == "in a check" else f"    return True\n{slow}\n"
    own_functions(tmp_path, monkeypatch, defined + body)
    runner = CheckRunner(CheckSettings({"mine": "own_checks:f"}, seconds=600))
    with ThreadPoolExecutor() as threads:
        waiting = [threads.submit(ask, runner, "mine", {}, "x") for _ in range(3)]
        while not reached.exists():
            time.sleep(0.01)
        runner.close()
        answers = [each.result(60) for each in waiting]
    assert all(answer.p_yes is None for answer in answers)
