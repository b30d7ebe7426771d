"""From a data file to a config: `rocketeval run DATA` and `rocketeval init --data DATA`.

The config is written to the current folder. It names the reader and its options, so that the
mapping can be edited; the same command uses it again.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from functools import wraps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from rocketeval.cli.import_data import DataRequest, opened
from rocketeval.cli.options import ENDING, with_format, with_source
from rocketeval.cli.text import as_argument, shown_path
from rocketeval.errors import ConfigError
from rocketeval.text import count_of, printable_lines

if TYPE_CHECKING:
    from rocketeval.benchmarks.opened import OpenedData

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
        # A dry run leaves nothing behind, not even the config.
        dry = own.get("dry_run")
        with TemporaryDirectory(prefix="rocketeval-") if dry else nullcontext() as folder:
            scratch = Path(folder) if folder else None
            written = config_for(request, None if quiet else _say, scratch)
            click.get_current_context().params["config"] = written
            return verb(config=written, **own)

    return with_format(with_source(command))


def _say(line: str) -> None:
    click.echo(printable_lines(line), err=True)


def is_config(path: Path) -> bool:
    """Return whether a path is a config: YAML with a `benchmark`, or nothing that exists."""
    from rocketeval.benchmarks.opened import DATASET
    from rocketeval.benchmarks.row_files import WRAPPERS
    from rocketeval.resources import top_keys

    if str(path).startswith(DATASET):
        return False
    if path.suffix not in (".yaml", ".yml"):
        return not path.exists() and not path.suffix
    if not path.is_file():
        return True
    import yaml

    try:
        keys = top_keys(path)
        # Stop at the first key that decides, because rows may follow.
        first = next((key for key in keys or () if key in ("benchmark", *WRAPPERS)), "benchmark")
    except (yaml.YAMLError, ValueError):
        return True  # Reading it as a config explains the mistake.
    return keys is not None and first == "benchmark"


def config_for(
    request: DataRequest, say: Callable[[str], None] | None, scratch: Path | None = None
) -> Path:
    """Return the config of a run directory or of a data file; write it if there is none yet.

    It is written to the current folder, or to `scratch` if nothing may stay there.
    """
    from rocketeval.benchmarks.opened import describe
    from rocketeval.resources import is_run

    path = Path(request.path)
    if is_run(path):
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
        if scratch is None and (request.judge or request.base_url):
            _keep_judge(target, request, say)
        return target
    found = opened(request)
    if say:
        for line in describe(found).lines:
            say(line)
    if scratch is not None:
        write_config(request, found, scratch / target.name, Path.cwd() / "runs")
        return scratch / target.name
    write_config(request, found, target)
    if say:
        say(f"Judge: {judge_address(target)}")
        say(f"Config: {shown_path(target)} (edit it to change the mapping)\n")
    return target


def _keep_judge(target: Path, request: DataRequest, say: Callable[[str], None] | None) -> None:
    """Write this command's judge into a config that was not judged with yet, or say it differs."""
    import yaml

    from rocketeval.api import engine_settings
    from rocketeval.config import load_config

    text = target.read_text(encoding="utf-8")
    written = yaml.safe_load(text).get("judge") or {}
    judge = request.judge or str(written.get("model", ""))
    wanted = engine_settings(judge, request.base_url or written.get("base_url"), {})
    if all(written.get(key) == value for key, value in wanted.items()):
        return
    before, ledger = _dumped({"judge": written}), load_config(target).run_path / "ledger"
    if before in text and not any(ledger.glob("*")):
        text = text.replace(before, _dumped({"judge": wanted}))
        target.write_text(text, encoding="utf-8")
        if say:
            say(f"Its judge is now {judge_address(target)}.")
    elif say:
        say(f"Its judge is {judge_address(target)}; this command uses another one.")


def judge_address(config: Path) -> str:
    """Return the judge of a written config, with the server that its requests go to."""
    from rocketeval.config import load_config

    judge = load_config(config).judge
    if judge.engine == "llamacpp":
        return f"{Path(judge.model).name}, in this process"
    if judge.base_url:
        return f"{judge.model} at {judge.base_url}"
    if os.environ.get("OPENAI_BASE_URL"):
        return f"{judge.model} at $OPENAI_BASE_URL"
    return f"{judge.model} at the OpenAI API (for another server, set `judge.base_url`)"


def _name_of(request: DataRequest) -> str:
    from rocketeval.benchmarks.opened import DATASET
    from rocketeval.benchmarks.row_files import stem_of

    if request.path.startswith(DATASET):
        name = request.path.removeprefix(DATASET).partition(":")[0].rpartition("/")[2]
    else:
        path = Path(request.path).resolve()
        name = path.name if path.is_dir() else stem_of(path)
    return name.lstrip(".") or "data"


def _check_same(target: Path, request: DataRequest) -> None:
    """Raise ConfigError if a written config is about other data than the request."""
    from rocketeval.benchmarks.opened import DATASET
    from rocketeval.config import load_config

    benchmark = load_config(target).benchmark
    options = benchmark.options
    reads, given = str(benchmark.path.resolve()), str(Path(request.path).resolve())
    if options.get("dataset"):
        reads = f"{DATASET}{options['dataset']}:{options.get('split', 'train')}"
    if request.path.startswith(DATASET):
        given = request.path if ":" in request.path[len(DATASET) :] else f"{request.path}:train"
    if reads != given:
        raise ConfigError(
            f"{target} exists and reads {reads}, not {given}.",
            hint=f"Delete or rename it, or run it: rocketeval run {as_argument(target)}",
        )
    differing = list(_differing(target, request))
    if differing:
        raise ConfigError(
            f"{target} exists with another {' and '.join(f'`{name}`' for name in differing)} than "
            "these options would write, so they have no effect.",
            hint=f"Leave them out (rocketeval run {as_argument(Path(request.path))}), edit the "
            "file, or delete it to write it again.",
        )


def _differing(target: Path, request: DataRequest) -> Iterator[str]:
    """Yield the sections of a written config that the typed options would write differently."""
    import yaml

    about_data = request.form or request.columns or request.candidates or request.skip_bad
    about_lists = request.author or request.checklist
    if request.author_url and not about_lists:
        yield "author"
    if not about_data and not about_lists:
        return
    written = yaml.safe_load(target.read_text(encoding="utf-8"))
    found = opened(request)
    if about_data and _benchmark(request, found, target) != written.get("benchmark"):
        yield "benchmark"
    if about_lists and _author(request, found) != written.get("author"):
        yield "author"


def write_config(
    request: DataRequest, found: OpenedData, target: Path, output: Path = Path("runs")
) -> None:
    """Write the smallest config for a data file; ask or refuse if something is missing."""
    from rocketeval.api import engine_settings

    if not sys.stdin.isatty():
        _refuse_incomplete(request, found)
    judge = request.judge or str(click.prompt("Judge model (its name on the server)", err=True))
    sections = [
        f"# Written from {Path(found.name).name}. Edit it, then: rocketeval run "
        f"{shlex.quote(target.name)}",
        _dumped({"name": _folder_name(_name_of(request))}),
        _dumped({"benchmark": _benchmark(request, found, target)}),
        _dumped({"judge": engine_settings(judge, request.base_url, {})}),
        _dumped({"author": _author(request, found)}),
    ]
    if found.reader and found.reader.summary.contexts:
        sections.append(
            "# The judge sees the context of each response.\n"
            + _dumped({"method": {"options": {"shows": ["context"]}}})
        )
    scale = found.scale
    if scale is not None:
        sections.append(
            f"# The labels are between {scale[0]:g} and {scale[1]:g}.\n"
            + _dumped({"scorer": {"scale": list(scale)}})
        )
    places = _dumped({"output": str(output), "cache": str(output / ".cache")})
    sections.append(f"{places.rstrip()}       # judgments shared between runs\n")
    target.write_text("\n".join(sections), encoding="utf-8")


def _folder_name(name: str) -> str:
    return re.sub(r"[^\w .()+-]", "-", name).strip(" .") or "data"


def _dumped(section: Mapping[str, object]) -> str:
    import yaml

    return yaml.safe_dump(dict(section), sort_keys=False, allow_unicode=True, width=10_000)


def _benchmark(request: DataRequest, found: OpenedData, target: Path) -> dict[str, object]:
    settings = dict(found.reader.settings()) if found.reader else {}
    if request.skip_bad:
        settings["bad_rows"] = "skip"
    path = found.config.path.resolve()
    shown = os.path.relpath(path, target.resolve().parent)
    named: dict[str, object] = {"kind": found.kind, "path": shown}
    return {**named, "options": settings} if settings else named


def _author(request: DataRequest, found: OpenedData) -> dict[str, object]:
    from rocketeval.api import GENERAL, engine_settings, general_author

    if request.author and request.checklist:
        raise click.UsageError("--author and --checklist exclude each other: drop one of them.")
    if request.author:
        engine = engine_settings(request.author, request.author_url, {})
        return {"kind": "instance", "engine": engine}
    if request.checklist == GENERAL:
        return general_author()
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
    from rocketeval.api import engine_settings, general_author

    model = _prompt("Author model (empty: seven general items for all queries)")
    if not model:
        return general_author()
    url = _prompt("Its base URL (empty: the OpenAI API)") or None
    return {"kind": "instance", "engine": engine_settings(model, url, {})}


def _prompt(question: str) -> str:
    return str(click.prompt(question, default="", show_default=False, err=True)).strip()
