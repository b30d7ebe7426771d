"""From a data file to a config: `rocketeval run DATA` and `rocketeval init --data DATA`.

The config is written next to nothing else. It names the reader and its options, so that the mapping
can be edited; the same command uses it again.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any

import click

from rocketeval.cli.import_data import DATASET, DataRequest, OpenedData, describe, open_data
from rocketeval.cli.options import with_format, with_source
from rocketeval.cli.text import as_argument, printable_lines, shown_path
from rocketeval.errors import ConfigError
from rocketeval.text import count_of

ENDING = ".rocketeval.yaml"
"""Suffix of a config written for a data file."""
GENERAL = "general"
"""Name of the packaged checklist for all queries."""
AUTHOR_TOKENS = 1200
"""Tokens of one authored checklist, prompt and answer: a rough mean, for the first estimate."""


JUDGE_CHOICE = """\
  --judge MODEL [--base-url URL]      the judge's name on its server (default: the OpenAI API), or
                                      a GGUF file"""
CHOICES = """\
  --author MODEL [--author-url URL]   an LLM writes one for each query (best)
  --checklist general                 seven general items for all queries (free, a start)
  --checklist FILE                    your own, as .yaml or .csv"""


def with_data(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Let a verb whose first argument is a config also take a data file or folder, or a run."""

    @wraps(verb)
    def command(
        config: Path,
        form: str | None,
        columns: tuple[str, ...],
        candidates: str | None,
        skip_bad: bool,
        author: str | None,
        author_url: str | None,
        checklist: str | None,
        **own: Any,
    ) -> Any:
        request = DataRequest(
            path=str(config),
            form=form,
            columns=columns,
            candidates=candidates,
            skip_bad=skip_bad,
            judge=own.get("judge"),
            base_url=own.get("base_url"),
            author=author,
            author_url=author_url,
            checklist=checklist,
        )
        typed = [form, columns, candidates, skip_bad, author, author_url, checklist]
        if is_config(config):
            if any(typed):
                raise click.UsageError(
                    f"{config} is a config: set its `benchmark` and `author` there instead of "
                    "--format, --column, --candidates, --skip-bad, --author and --checklist."
                )
            return verb(config=config, **own)
        quiet = bool(own.get("quiet"))
        written = config_for(request, say=None if quiet else _say)
        click.get_current_context().params["config"] = written
        return verb(config=written, **own)

    return with_format(with_source(command))


def _say(line: str) -> None:
    click.echo(printable_lines(line), err=True)


def is_config(path: Path) -> bool:
    """Return whether a path is a config: YAML with a `benchmark`, or nothing that exists."""
    if str(path).startswith(DATASET):
        return False
    if path.suffix not in (".yaml", ".yml"):
        return not path.exists() and not path.suffix
    if not path.is_file():
        return True
    import yaml

    try:
        content = yaml.load(path.read_bytes(), yaml.CSafeLoader)
    except (yaml.YAMLError, AttributeError):
        return True
    known = isinstance(content, dict) and "results" in content and "benchmark" not in content
    return not known


def config_for(request: DataRequest, say: Callable[[str], None] | None) -> Path:
    """Return the config of a run directory or of a data file; write it if there is none yet."""
    path = Path(request.path)
    if path.is_dir() and (path / "manifest.json").exists() and (path / "run.yaml").exists():
        return path / "run.yaml"
    inside = path / "rocketeval.yaml"
    if path.is_dir() and inside.is_file():
        if say:
            say(f"Using {shown_path(inside)}, the config in this folder.")
        return inside
    target = Path(f"{_name_of(request)}{ENDING}")
    if target.exists():
        _check_same(target, request)
        if say:
            say(f"Using {shown_path(target)}, written before. Edit it, or delete it to start over.")
        return target
    found = open_data(request)
    if say:
        for line in describe(found):
            say(line)
    write_config(request, found, target)
    if say:
        say(f"Config: {shown_path(target)} (edit it to change the mapping)\n")
    return target


def _name_of(request: DataRequest) -> str:
    from rocketeval.benchmarks.row_files import stem_of

    if request.path.startswith(DATASET):
        name = request.path.removeprefix(DATASET).partition(":")[0].rpartition("/")[2]
    else:
        path = Path(request.path).resolve()
        name = path.name if path.is_dir() else stem_of(path)
    return name.lstrip(".") or "data"


def _check_same(target: Path, request: DataRequest) -> None:
    """Raise ConfigError if a written config is about other data than the request."""
    from rocketeval.config import load_config

    benchmark = load_config(target).benchmark
    given = Path(request.path).resolve()
    dataset = benchmark.options.get("dataset")
    if dataset is None and benchmark.path.resolve() != given:
        raise ConfigError(
            f"{target} exists and reads {benchmark.path}, not {given}.",
            hint=f"Delete or rename it, or run it: rocketeval run {as_argument(target)}",
        )
    if request.form or request.columns or request.candidates or request.author or request.checklist:
        raise ConfigError(
            f"{target} exists, so the options about the data and the checklists have no effect.",
            hint="Edit it, or delete it to write it again.",
        )


def write_config(request: DataRequest, found: OpenedData, target: Path) -> None:
    """Write the smallest config for a data file; ask or refuse if something is missing."""
    if not sys.stdin.isatty():
        _refuse_incomplete(request, found)
    judge = request.judge or str(click.prompt("Judge model (its name on the server)", err=True))
    sections = [
        f"# Written from {found.path.name or found.name}. Edit it, then: rocketeval run "
        f"{shlex.quote(target.name)}",
        _dumped({"name": _folder_name(_name_of(request))}),
        _dumped({"benchmark": _benchmark(request, found, target)}),
        _dumped({"judge": _engine(judge, request.base_url)}),
        _dumped({"author": _author(request, found)}),
    ]
    if found.reader and found.reader.summary.contexts:
        sections.append(
            "# The judge sees the context of each response.\n"
            + _dumped({"method": {"options": {"shows": ["context"]}}})
        )
    scale = _scale(found)
    if scale is not None:
        sections.append(
            f"# The labels are between {scale[0]:g} and {scale[1]:g}.\n"
            + _dumped({"scorer": {"scale": list(scale)}})
        )
    sections.append("output: runs\ncache: runs/.cache       # judgments shared between runs\n")
    target.write_text("\n".join(sections), encoding="utf-8")


def _folder_name(name: str) -> str:
    return re.sub(r"[^\w .()+-]", "-", name)


def _dumped(section: Mapping[str, object]) -> str:
    import yaml

    return yaml.safe_dump(dict(section), sort_keys=False, allow_unicode=True, width=10_000)


def _benchmark(request: DataRequest, found: OpenedData, target: Path) -> dict[str, object]:
    settings = dict(found.reader.settings()) if found.reader else {}
    if request.skip_bad:
        settings["bad_rows"] = "skip"
    path = found.path.resolve()
    shown = os.path.relpath(path, target.resolve().parent)
    named: dict[str, object] = {"kind": found.kind, "path": shown}
    return {**named, "options": settings} if settings else named


def _engine(model: str, base_url: str | None) -> dict[str, object]:
    if model.endswith(".gguf"):
        return {"engine": "llamacpp", "model": str(Path(model).expanduser().absolute())}
    return {"model": model, **({"base_url": base_url} if base_url else {})}


def _author(request: DataRequest, found: OpenedData) -> dict[str, object]:
    if request.author and request.checklist:
        raise click.UsageError("--author and --checklist exclude each other: drop one of them.")
    if request.author:
        return {"kind": "instance", "engine": _engine(request.author, request.author_url)}
    if request.checklist == GENERAL:
        return _general()
    if request.checklist:
        path = Path(request.checklist)
        if not path.is_file():
            raise ConfigError(
                f"There is no checklist file {path}.", hint="Give a .yaml or .csv file, or general."
            )
        return {"kind": "file", "options": {"file": str(path.absolute())}}
    if found.has_checklists:
        return {"kind": "imported"}
    return _ask_for_checklists(found)


def _refuse_incomplete(request: DataRequest, found: OpenedData) -> None:
    """Raise ConfigError that names everything that a config still needs."""
    lacking, choices = [], []
    if not request.judge:
        lacking.append("No judge is named.")
        choices.append(f"Name a judge:\n{JUDGE_CHOICE}")
    if not (request.author or request.checklist or found.has_checklists):
        lacking.append(_checklists_needed(found))
        choices.append(f"Choose where the checklists come from:\n{CHOICES}")
    if lacking:
        raise ConfigError(" ".join(lacking), hint="\n".join(choices))


def _checklists_needed(found: OpenedData) -> str:
    own, queries = found.checklists, found.queries
    have = f"only {own:,} of {queries:,} queries have one" if own else "the data has none"
    return (
        f"Checklists are needed, and {have}. An author LLM writes one per query: "
        f"{count_of(queries, 'request', 'requests')}, about {queries * AUTHOR_TOKENS:,} tokens in "
        "all."
    )


def _ask_for_checklists(found: OpenedData) -> dict[str, object]:
    """Ask on the terminal where the checklists come from."""
    click.echo(_checklists_needed(found), err=True)
    model = _prompt("Author model (empty: seven general items for all queries)")
    if not model:
        return _general()
    return {
        "kind": "instance",
        "engine": _engine(model, _prompt("Its base URL (empty: the OpenAI API)") or None),
    }


def _general() -> dict[str, object]:
    from rocketeval.checklists.simple import GENERAL_ITEMS

    return {"kind": "fixed", "options": {"items": list(GENERAL_ITEMS)}}


def _prompt(question: str) -> str:
    return str(click.prompt(question, default="", show_default=False, err=True)).strip()


def _scale(found: OpenedData) -> tuple[float, float] | None:
    """Return the scale of the labels if it is not the usual 1 to 10."""
    values = [label.value for label in found.summary.labels] if found.summary else []
    if not values or (min(values) >= 1 and max(values) <= 10):
        return None
    if min(values) >= 0 and max(values) <= 1:
        return 0.0, 1.0
    return float(min(values)), float(max(values))
