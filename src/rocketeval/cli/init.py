"""`rocketeval init`: write an example benchmark and a config."""

from __future__ import annotations

import shlex
import sys
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

import click

from rocketeval.cli.data_config import judge_address, write_config
from rocketeval.cli.help import DATA, codes, option, verb
from rocketeval.cli.import_data import DataRequest, opened
from rocketeval.cli.options import with_format, with_source
from rocketeval.cli.text import as_argument, shown_path
from rocketeval.errors import ConfigError
from rocketeval.text import printable_lines

PLACEHOLDER = "your-judge-model"
URL = "http://127.0.0.1:8000/v1"
GGUF = ".gguf"
CONFIG = """\
# A RocketEval run. Start it with `rocketeval run` in this folder.
name: {name}

benchmark:
  kind: jsonl            # jsonl, mt_bench or rocketeval (the layout of the paper's scripts)
  path: benchmark        # queries, responses, checklists, votes: see benchmark/README.md

{judge}
author:
  kind: imported         # use the benchmark's checklists; `instance` has an LLM write them:
  # kind: instance
  # engine: {{model: gpt-4o, base_url: https://api.openai.com/v1}}

scorer:
  kind: mean
  scale: [1, 10]

output: runs             # the run directory is runs/{name}
cache: runs/.cache       # judgments shared between runs, so that you pay for each one once

# To see what a run costs, name a file of prices per million tokens, with lines such as
#   models: {{gpt-4o-mini: {{prompt: 0.15, cached: 0.075, completion: 0.6}}}}
# prices: prices.yaml
# max_cost: 5            # maximum cost of one command
"""
SERVER = """\
judge:                   # any OpenAI-compatible server: vLLM, SGLang, llama.cpp, a hosted API
  model: {model}
  base_url: {base_url}
  api_key_env: OPENAI_API_KEY   # environment variable with the API key, if the server needs one
  # concurrency: 16      # responses in flight; by default, adapted to the server
"""
GGUF_FILE = """\
judge:                   # a GGUF file that llama.cpp loads into this process; no server needed
  engine: llamacpp       # pip install "rocketeval[llamacpp]"
  model: {model}
"""
RECORDED = """\
# RECORDED: no model runs. This replays the answers that {judge} gave to this
# example. It shows what a result looks like and cannot judge any other text.
judge:
  engine: recorded
  model: {model}

# To judge with your own model, replace the judge with one of these and rename the run:
# judge:                 # a GGUF file in this process: pip install "rocketeval[llamacpp]"
#   engine: llamacpp
#   model: /models/some-instruct-model.gguf
# judge:                 # any OpenAI-compatible server that returns log-probabilities
#   model: some-model
#   base_url: {base_url}
"""


@verb(
    examples=[
        ("rocketeval init demo --recorded", "see a result in a minute"),
        ("rocketeval init demo --model judge.gguf", "use a GGUF file as judge"),
        ("rocketeval init demo --model NAME --base-url URL", "use a server as judge"),
        ("rocketeval init --data answers.csv --model NAME", "a config for your own file"),
    ],
    exit_codes=codes(2),
)
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=Path())
@option("--recorded", is_flag=True, help="Replay recorded answers of a real judge; needs no model.")
@option(
    "--model", "--judge", "model", metavar="NAME",
    help="Judge: its name on the server, or a GGUF file.",
)  # fmt: skip
@option(
    "--base-url",
    metavar="URL",
    help=f"URL of the judge's server. Default: {URL}; with --data: $OPENAI_BASE_URL, then the "
    "OpenAI API.",
)
@option("--data", metavar="PATH", section=DATA, help="Write a config for this file or folder.")
@with_format
@with_source
def command(
    folder: Path,
    model: str | None,
    base_url: str | None,
    recorded: bool,
    data: str | None,
    form: str | None,
    columns: tuple[str, ...],
    candidates: str | None,
    skip_bad: bool,
    author: str | None,
    author_url: str | None,
    checklist: str | None,
) -> None:
    """Write a config to start from, with an example benchmark or for your own data.

    The example in FOLDER (default: the current folder) has 12 queries, 5 candidates of different
    quality, checklists and votes. With --data, the config reads your file or folder; what is
    missing is asked for on a terminal. Existing files are never overwritten.
    """
    if data is None and not (model or base_url or recorded) and sys.stdin.isatty():
        data = click.prompt(
            "A file or folder with your data (empty: an example)", default="", show_default=False
        )
    if data:
        if recorded:
            raise click.UsageError("--recorded can judge only its own example: drop --data.")
        shape = (form, columns, candidates, skip_bad)
        source = (author, author_url, checklist)
        _config_for_data(folder, DataRequest(data, *shape, model, base_url, *source))
        return
    if form or columns or candidates or skip_bad or author or author_url or checklist:
        raise click.UsageError("The options about data and checklists need --data PATH.")
    judge = _judge(model, base_url, recorded=recorded)
    config = folder / "rocketeval.yaml"
    benchmark = folder / "benchmark"
    for path in (config, benchmark):
        if path.exists():
            raise ConfigError(f"{path} already exists.", hint="Choose another folder.")
    folder.mkdir(parents=True, exist_ok=True)
    _copy(resources.files("rocketeval") / "examples" / "quickstart", benchmark)
    name = "recorded" if recorded else "quickstart"
    config.write_text(CONFIG.format(judge=judge, name=name), encoding="utf-8")
    click.echo(f"Wrote {shown_path(config)} and {shown_path(benchmark)}")
    if recorded:
        click.echo("The judge is recorded: no model runs, and it can judge only this example.")
    elif model is None:
        click.echo("In the config, set `judge.model` and `judge.base_url` to your server.")
    command = shlex.join(["rocketeval", "run", as_argument(config)])
    if command.isprintable():
        click.echo(f"Next: {command}")


def _config_for_data(folder: Path, request: DataRequest) -> None:
    """Write the smallest config for the user's own data."""
    config = folder / "rocketeval.yaml"
    if config.exists():
        raise ConfigError(f"{config} already exists.", hint="Choose another folder.")
    from rocketeval.benchmarks.opened import describe

    found = opened(request)
    for line in describe(found).lines:
        click.echo(printable_lines(line))
    folder.mkdir(parents=True, exist_ok=True)
    write_config(request, found, config)
    click.echo(f"Wrote {shown_path(config)}")
    click.echo(printable_lines(f"Judge: {judge_address(config)}"))
    click.echo(f"Check the judge: {shlex.join(['rocketeval', 'doctor', as_argument(config)])}")
    click.echo(f"Next: {shlex.join(['rocketeval', 'run', as_argument(config)])}")


def _judge(model: str | None, base_url: str | None, *, recorded: bool) -> str:
    """Return the config's judge section."""
    if recorded:
        if model or base_url:
            raise click.UsageError("--recorded has its own judge: drop --model and --base-url.")
        from rocketeval.engines.base import PACKAGED, SUFFIX

        return RECORDED.format(judge=PACKAGED, model=PACKAGED + SUFFIX, base_url=URL)
    if model is not None and model.endswith(GGUF):
        if base_url:
            raise click.UsageError(
                "A GGUF file is loaded into this process: drop --base-url. For a server, give "
                "the model's name on that server."
            )
        return GGUF_FILE.format(model=_quoted(_weights(model)))
    return SERVER.format(model=_quoted(model or PLACEHOLDER), base_url=base_url or URL)


def _weights(model: str) -> str:
    path = Path(model).expanduser().absolute()
    if not path.is_file():
        raise ConfigError(
            f"There is no file {path}.", hint="Set --model to the path of a GGUF file."
        )
    return str(path)


def _quoted(value: str) -> str:
    """Return a value as YAML, quoted where necessary."""
    import yaml

    return yaml.safe_dump(value, width=10_000).splitlines()[0]


def _copy(source: Traversable, target: Path) -> None:
    if source.is_file():
        target.write_bytes(source.read_bytes())
        return
    target.mkdir(parents=True)
    for child in source.iterdir():
        _copy(child, target / child.name)
