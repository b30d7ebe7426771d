"""`rocketeval init`"""

from __future__ import annotations

import shlex
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

import click

from rocketeval.cli.help import codes, option, verb
from rocketeval.cli.text import as_argument, shown_path
from rocketeval.errors import ConfigError

PLACEHOLDER = "your-judge-model"
CONFIG = """\
# A RocketEval run. `rocketeval run` in this folder does everything.
name: quickstart

benchmark:
  kind: jsonl            # jsonl, mt_bench or rocketeval (the paper's own layout)
  path: benchmark        # queries, responses, checklists, votes: see benchmark/README.md

judge:                   # any OpenAI-compatible server: vLLM, SGLang, llama.cpp, a hosted API
  model: {model}
  base_url: {base_url}
  api_key_env: OPENAI_API_KEY   # the key is read from this environment variable, if it is set
  # concurrency: 16      # responses in flight; left out, it is what suits the server

author:
  kind: imported         # the benchmark brings checklists; `instance` lets an LLM write them:
  # kind: instance
  # engine: {{model: gpt-4o, base_url: https://api.openai.com/v1}}

scorer:
  kind: mean
  scale: [1, 10]

output: runs             # the run's files go to runs/quickstart
cache: runs/.cache       # judgments shared between runs, so that nothing is paid for twice

# To see what a run costs, name a table of prices per million tokens, which holds lines such as
#   models: {{gpt-4o-mini: {{prompt: 0.15, cached: 0.075, completion: 0.6}}}}
# prices: prices.yaml
# max_cost: 5            # the most that one command may spend
"""


@verb(
    examples=[("rocketeval init demo", "then: rocketeval run demo/rocketeval.yaml")],
    exit_codes=codes(2),
)
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=Path())
@option("--model", default=PLACEHOLDER, help="Judge model to put into the config.")
@option(
    "--base-url",
    default="http://127.0.0.1:8000/v1",
    metavar="URL",
    help="Endpoint to put into the config.",
)
def command(folder: Path, model: str, base_url: str) -> None:
    """Write a small benchmark and a config to start from.

    FOLDER (default: this one) gets 12 queries, 5 candidates of different quality, checklists and
    votes. Existing files are never overwritten.
    """
    config = folder / "rocketeval.yaml"
    benchmark = folder / "benchmark"
    for path in (config, benchmark):
        if path.exists():
            raise ConfigError(f"{path} exists already.", hint="Choose another folder.")
    folder.mkdir(parents=True, exist_ok=True)
    _copy(resources.files("rocketeval") / "examples" / "quickstart", benchmark)
    config.write_text(CONFIG.format(model=model, base_url=base_url), encoding="utf-8")
    click.echo(f"Wrote {shown_path(config)} and {shown_path(benchmark)}")
    if model == PLACEHOLDER:
        click.echo("Set `judge.model` and `judge.base_url` in it to a server you have.")
    command = shlex.join(["rocketeval", "run", as_argument(config)])
    if command.isprintable():
        click.echo(f"Next: {command}")


def _copy(source: Traversable, target: Path) -> None:
    if source.is_file():
        target.write_bytes(source.read_bytes())
        return
    target.mkdir(parents=True)
    for child in source.iterdir():
        _copy(child, target / child.name)
