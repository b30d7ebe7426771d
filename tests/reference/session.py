"""A user at the command line, with everything that the user sees."""

from __future__ import annotations

import io
import json
import os
import re
import sys
from collections.abc import Mapping
from contextlib import chdir
from pathlib import Path
from typing import Any
from unittest.mock import patch

from reference.contents import file_content, folder_content
from rocketeval.cli.main import main

VOLATILE = frozenset(
    {"created", "finished", "run_id", "seconds", "latency_seconds"}
    | {"versions", "made_with", "rocketeval"}
)
"""JSON names whose values belong to one run on one machine: times, versions, random names."""
_WORDS = (
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(\+00:00|Z)?"), "<moment>"),
    (re.compile(r"^\d\d:\d\d:\d\d "), "<clock> "),
    (re.compile(r"^Time( +)(?!.*--rate).*"), r"Time\1<time>"),
    (re.compile(r"(?<=  )\d+:\d\d$"), "<time>"),
    (re.compile(r"\bin \d+:\d\d\b"), "in <time>"),
    (re.compile(r"(?<![\d.])\d+(\.\d+)? s(?![\w'])"), "<time>"),
    (re.compile(r", [^,]*/s overall"), ""),
    (re.compile(r"^[0-9a-f]{16}$"), "<run id>"),
)
"""Texts that differ from run to run, and their placeholders. A time that `plan` computes from a
given rate stays."""
_SOMETIMES = re.compile(r"\d\d:\d\d:\d\d .*(\d so far|\(\d+ ?%\))")
"""A line that appears only if something takes long."""

FORMATS = {
    "csv": ("ranking", "scores", "judgments", "audit", "wins", "groups", "group_scores"),
    "markdown": ("ranking", "audit", "wins", "groups"),
    "latex": ("ranking", "audit", "wins", "groups"),
    "jsonl": ("scores", "judgments", "ranking", "audit", "wins", "groups", "group_scores"),
    "parquet": ("scores", "judgments", "ranking", "audit", "wins", "groups", "group_scores"),
}
"""The content that each format of `rocketeval export` can hold."""


class Session:
    """Commands run in a folder, with their stored output and files."""

    def __init__(self, home: Path) -> None:
        self.home = home.resolve()
        self.seen: dict[str, Any] = {}
        """Stored content by command or file."""

    def say(self, *args: str) -> str:
        """Run a command, store its output and exit code, and return its stdout."""
        code, out, err = run_command(self.home, args)
        result = {"code": code, "stdout": self._output(args, out), "stderr": self._clean(err)}
        self._keep(f"$ {' '.join(args)}", result)
        return out

    def both(self, *args: str) -> None:
        """Run a command with and without --json."""
        self.say(*args)
        self.say(*args, "--json")

    def export_all(self, run: str, *, whole: bool = True) -> None:
        """Export a run in every format; unless `whole`, skip content of other formats."""
        for form, whats in FORMATS.items():
            for what in whats if whole or form in ("jsonl", "markdown") else whats[:1]:
                self._export(run, form, what)
        for form in ("matches", "rocketeval", "wildbench"):
            self._export(run, form, None)
        self.keep("exports")

    def keep(self, folder: str) -> None:
        """Store the content of every file below a folder."""
        for name, content in folder_content(self.home / folder).items():
            self._keep(f"{folder}/{name}", self._clean(content))

    def keep_file(self, name: str) -> None:
        """Store the content of one file."""
        self._keep(name, self._clean(file_content(self.home / name)))

    def _export(self, run: str, form: str, what: str | None) -> None:
        chosen = () if what is None else ("--what", what)
        args = ("export", run, "--to", form, *chosen)
        if form in ("parquet", "rocketeval", "wildbench"):
            place = f"{form}-{what}.parquet" if form == "parquet" else form
            args = (*args, "-o", f"exports/{Path(run).name}/{place}", "--json")
        self.say(*args)

    def _keep(self, name: str, content: Any) -> None:
        # A repeated command may print something else the second time.
        self.seen[name if name not in self.seen else f"{name} (again)"] = content

    def _output(self, args: tuple[str, ...], out: str) -> Any:
        if "--json" in args:
            return self._clean(json.loads(out))
        if out.startswith("{"):
            return self._clean([json.loads(line) for line in out.splitlines()])
        return self._clean(out)

    def _clean(self, value: Any) -> Any:
        """Return a value without details of this machine and moment; text as lines."""
        if isinstance(value, dict):
            return {
                name: f"<{name}>" if _volatile(name, value) else self._clean(each)
                for name, each in value.items()
                # The schema version of a file says nothing about the run.
                if not (name == "schema" and isinstance(each, int))
            }
        if isinstance(value, list):
            return [self._clean(each) for each in value]
        if not isinstance(value, str):
            return value
        lines = value.split("\n")
        return (
            self._line(value)
            if len(lines) == 1
            else [self._line(line) for line in lines if not _SOMETIMES.match(line)]
        )

    def _line(self, line: str) -> str:
        line = line.replace(str(self.home), "<home>")
        for pattern, instead in _WORDS:
            line = pattern.sub(instead, line)
        return line


def _volatile(name: str, row: Mapping[str, Any]) -> bool:
    """Return whether a value belongs to one run on one machine, or to a library version."""
    if name == "seconds" and "--rate" in str(row.get("rate_from")):
        return False
    if name == "version":
        return "schema" in row
    if name == "hash":
        # Covers all bytes of an evaluator, including the time in its header; a frozen one is fixed.
        return str(row.get("file")).endswith(
            ("runs/evolve/evaluator.npz", "runs/labels/evaluator.npz")
        )
    return name in VOLATILE and isinstance(row[name], str | float | int | dict)


def run_command(home: Path, args: tuple[str, ...]) -> tuple[int, str, str]:
    """Run `rocketeval` in a folder, within this process; return its exit code and output."""
    streams = [io.TextIOWrapper(io.BytesIO(), "utf-8", newline="") for _ in range(2)]
    kept = {name: value for name, value in os.environ.items() if name not in _SETTINGS}
    with (
        chdir(home),
        patch.object(sys, "argv", ["rocketeval", *args]),
        patch.object(sys, "stdout", streams[0]),
        patch.object(sys, "stderr", streams[1]),
        patch.dict(os.environ, kept, clear=True),
    ):
        code = _exit_code()
    out, err = (_written(stream) for stream in streams)
    assert "Traceback" not in err, err
    return code, out, err


_SETTINGS = ("COLUMNS", "LINES", "OPENAI_API_KEY", "OPENAI_BASE_URL", "FORCE_COLOR", "NO_COLOR")
"""Environment variables that would change the output in a pipe."""


def _exit_code() -> int:
    try:
        main()
    except SystemExit as left:
        return left.code if isinstance(left.code, int) else 0
    raise AssertionError("the command did not end")


def _written(stream: io.TextIOWrapper) -> str:
    stream.flush()
    content: bytes = stream.detach().getvalue()  # type: ignore[attr-defined]
    return content.decode("utf-8")
