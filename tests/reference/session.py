"""A user at the command line, and everything that this user gets to see."""

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
"""Names in JSON whose values belong to one run on one machine: times, versions, chance names."""
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
"""What differs in text from run to run, and what stands there instead. A time that `plan` works out
from a given rate stays."""
_SOMETIMES = re.compile(r"\d\d:\d\d:\d\d .*(\d so far|\(\d+ ?%\))")
"""A line that is only said where something takes long."""

FORMATS = {
    "csv": ("ranking", "scores", "judgments", "audit", "wins", "groups", "group_scores"),
    "markdown": ("ranking", "audit", "wins", "groups"),
    "latex": ("ranking", "audit", "wins", "groups"),
    "jsonl": ("scores", "judgments", "ranking", "audit", "wins", "groups", "group_scores"),
    "parquet": ("scores", "judgments", "ranking", "audit", "wins", "groups", "group_scores"),
}
"""What each format of `rocketeval export` can hold."""


class Session:
    """Runs commands in a folder and keeps what they say and write."""

    def __init__(self, home: Path) -> None:
        self.home = home.resolve()
        self.seen: dict[str, Any] = {}
        """By command, or by file."""

    def say(self, *args: str) -> str:
        """Run a command, keep its words and its exit code, and return its stdout."""
        code, out, err = run_command(self.home, args)
        told = {"code": code, "stdout": self._told(args, out), "stderr": self._clean(err)}
        self._keep(f"$ {' '.join(args)}", told)
        return out

    def both(self, *args: str) -> None:
        """Run a command for people, and for programs."""
        self.say(*args)
        self.say(*args, "--json")

    def export_all(self, run: str, *, whole: bool = True) -> None:
        """Export a run in every format; unless `whole`, leave out what other formats hold too."""
        for form, whats in FORMATS.items():
            for what in whats if whole or form in ("jsonl", "markdown") else whats[:1]:
                self._export(run, form, what)
        for form in ("matches", "rocketeval", "wildbench"):
            self._export(run, form, None)
        self.keep("exports")

    def keep(self, folder: str) -> None:
        """Keep what every file below a folder holds."""
        for name, content in folder_content(self.home / folder).items():
            self._keep(f"{folder}/{name}", self._clean(content))

    def keep_file(self, name: str) -> None:
        """Keep what one file holds."""
        self._keep(name, self._clean(file_content(self.home / name)))

    def _export(self, run: str, form: str, what: str | None) -> None:
        chosen = () if what is None else ("--what", what)
        args = ("export", run, "--to", form, *chosen)
        if form in ("parquet", "rocketeval", "wildbench"):
            place = f"{form}-{what}.parquet" if form == "parquet" else form
            args = (*args, "-o", f"exports/{Path(run).name}/{place}", "--json")
        self.say(*args)

    def _keep(self, name: str, content: Any) -> None:
        # A command that is given again may say something else the second time.
        self.seen[name if name not in self.seen else f"{name} (again)"] = content

    def _told(self, args: tuple[str, ...], out: str) -> Any:
        if "--json" in args:
            return self._clean(json.loads(out))
        if out.startswith("{"):
            return self._clean([json.loads(line) for line in out.splitlines()])
        return self._clean(out)

    def _clean(self, value: Any) -> Any:
        """Return a value without what belongs to this machine and this moment; text as lines."""
        if isinstance(value, dict):
            return {
                name: f"<{name}>" if _volatile(name, value) else self._clean(each)
                for name, each in value.items()
                # The version of a file's schema, which says nothing about the run.
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
    """Whether a value belongs to one run on one machine, or to a version of the library."""
    if name == "seconds" and row.get("rate_from") == "given by --rate":
        return False
    if name == "version":
        return "schema" in row
    if name == "hash":
        # Of all bytes of an evaluator, the time in its header too; a frozen one keeps its own.
        return str(row.get("file")).endswith(
            ("runs/evolve/evaluator.npz", "runs/labels/evaluator.npz")
        )
    return name in VOLATILE and isinstance(row[name], str | float | int | dict)


def run_command(home: Path, args: tuple[str, ...]) -> tuple[int, str, str]:
    """Run `rocketeval` in a folder, within this process; return its exit code and its words."""
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
"""Of the environment: what would change the words that a pipe gets."""


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
