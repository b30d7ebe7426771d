"""Command-line options shared by several verbs."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rocketeval.cli.help import COST, DATA, JUDGE, RUN, option
from rocketeval.errors import ConfigError
from rocketeval.text import join_words

if TYPE_CHECKING:
    from rocketeval.config import RunConfig


Verb = Callable[..., Any]


class FiniteRange(click.FloatRange):
    """A range of finite numbers; rejects `nan` and `inf`."""

    name = "number"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number; fail if it is not finite."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{number} is not a finite number.", param, ctx)
        return number


SEEDS = click.IntRange(0, 2**32 - 1)
"""Seeds of random numbers."""
DEFAULT_CONFIG = Path("rocketeval.yaml")
ENDING = ".rocketeval.yaml"
"""End of the name of a config written for a data file."""
_CONFIG = click.argument("config", type=click.Path(path_type=Path), default=DEFAULT_CONFIG)
WHAT = click.argument("what", type=click.Path(path_type=Path), default=DEFAULT_CONFIG)
"""Argument of verbs that read checklists from a config, a run, a benchmark or a file."""
NO_CONFIG = (".jsonl", ".json", ".gz")
"""Suffixes of checklist files."""
NAME = option(
    "--name", metavar="NAME", section=RUN, help="Name of the run; overrides the config's."
)
LEVEL = option(
    "--level",
    type=click.FloatRange(0.5, 0.999),
    default=0.95,
    show_default=True,
    metavar="LEVEL",
    help="Confidence level of the intervals.",
)
"""Option of verbs that print confidence intervals."""
_LIMIT = "Use only the first N queries, in a run named NAME-first-N."
_QUERIES = option(
    "--queries",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    section=RUN,
    help="Use only the queries in FILE, one id per line, in a run named NAME-FILE.",
)
_OVERRIDES = (
    option("--judge", metavar="MODEL", section=JUDGE, help="Judge model; overrides the config's."),
    option(
        "--base-url",
        metavar="URL",
        section=JUDGE,
        help="The judge's endpoint; overrides the config's.",
    ),
)
_ON = option(
    "--on",
    metavar="PLACE",
    section=JUDGE,
    help="Where to grade: local, ray, or a Ray address such as head:6379 or ray://head:10001; ray "
    "uses $RAY_ADDRESS if set, else starts Ray here. Overrides the config's.",
)
MAX_COST = option(
    "--max-cost",
    type=FiniteRange(min=0, min_open=True),
    metavar="MONEY",
    section=COST,
    help="Stop before the LLM calls of this command cost more than MONEY, in the currency of the "
    "config's prices. Needs prices in the config.",
)


def loaded(path: Path) -> RunConfig:
    """Return a config; raise ConfigError that names the config of a data file."""
    from rocketeval.config import load_config

    _refuse_data(path)
    if path == DEFAULT_CONFIG and not path.exists():
        others = sorted(str(each) for each in Path().glob(f"*{ENDING}") if each.is_file())
        if others:
            named = shlex.quote(others[0]) if len(others) == 1 else "one of them"
            there = join_words(others, most=5)
            raise ConfigError(
                f"There is no {path}, but {there}.", hint=f"Add {named} to the command."
            )
    return load_config(path)


def _refuse_data(path: Path) -> None:
    """Raise ConfigError for a data file, with its config or how to write one."""
    from rocketeval.benchmarks.row_files import row_format

    if row_format(path) in (None, "yaml") or not path.is_file():
        return
    written = _config_of(path)
    command = shlex.join(["rocketeval", "init", "--data", str(path)])
    hint = f"Write a config for it: {command}"
    if written.exists():
        hint = f"Its config is {written}: give that."
    raise ConfigError(f"{path} is data, not a config.", hint=hint)


def _config_of(data: Path) -> Path:
    """Return the path of the config that `run` writes for a data file."""
    from rocketeval.benchmarks.row_files import stem_of

    return Path(f"{stem_of(data)}{ENDING}")


class RunPath(click.Path):
    """A run directory or a config; a data file is refused."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path; raise ConfigError that names the config of a data file."""
        path = super().convert(value, param, ctx)
        _refuse_data(Path(str(path)))
        return path


RUN_PATH = RunPath()


def with_run(verb: Verb) -> Verb:
    """Pass the run of CONFIG and --name to the verb."""

    @wraps(verb)
    def command(config: Path, name: str | None, **own: Any) -> Any:
        from rocketeval.cli.run import Typed
        from rocketeval.evolve.apply_setup import as_graded
        from rocketeval.pipeline import Run

        run = Run(as_graded(override(loaded(config), name=name)))
        run.store.command = Typed.now(run.config).of_work("run")
        return verb(run, **own)

    return _CONFIG(NAME(command))


def with_settings(verb: Verb, limit: str = _LIMIT) -> Verb:
    """Pass the config, with overrides and --max-cost, to a verb that spends money.

    `limit` is the help text of --limit.
    """

    @wraps(verb)
    def command(settings: RunConfig, max_cost: float | None, **own: Any) -> Any:
        given = {} if max_cost is None else {"max_cost": max_cost}
        return verb(settings.model_copy(update=given), **own)

    return with_config(MAX_COST(command), limit)


def with_place(verb: Verb) -> Verb:
    """Add --on, which overrides where judging runs."""

    @wraps(verb)
    def command(settings: RunConfig, on: str | None, **own: Any) -> Any:
        if on is not None:
            given = {"cluster": None if on == "local" else on}
            place = settings.distributed.model_copy(update=given)
            settings = settings.model_copy(update={"distributed": place})
        return verb(settings, **own)

    return _ON(command)


_UNTIL = option(
    "--until",
    metavar="GOAL",
    section=COST,
    help="Stop grading when the question is answered: best, top:K, beats:CANDIDATE, within:DELTA "
    "(order up to DELTA points, or DELTAsd) or interval:WIDTH. Overrides the config's; `all` "
    "grades everything.",
)


def with_until(verb: Verb) -> Verb:
    """Add --until, which overrides when grading stops."""

    @wraps(verb)
    def command(settings: RunConfig, until: str | None, **own: Any) -> Any:
        if until is not None:
            from rocketeval.goal import parse_goal
            from rocketeval.settings import UntilConfig

            given = None
            if until != "all":
                try:
                    parse_goal(until)
                except ValueError as error:
                    raise click.BadParameter(str(error), param_hint="--until") from None
                before = settings.until.model_dump() if settings.until else {}
                given = UntilConfig.model_validate({**before, "goal": until})
            settings = settings.model_copy(update={"until": given})
        return verb(settings, **own)

    return _UNTIL(command)


def with_config(verb: Verb, limit_help: str = _LIMIT) -> Verb:
    """Pass the config, with the command line's overrides, to the verb."""

    @wraps(verb)
    def command(
        config: Path,
        name: str | None,
        limit: int | None,
        queries: Path | None,
        judge: str | None,
        base_url: str | None,
        **own: Any,
    ) -> Any:
        given = loaded(config)
        settings = override(
            given, name=name, limit=limit, queries=queries, judge=judge, base_url=base_url
        )
        return verb(settings, **own)

    limit_option = option(
        "--limit", type=click.IntRange(min=1), metavar="N", section=RUN, help=limit_help
    )
    wrapped: Verb = command
    for add in reversed((_CONFIG, NAME, limit_option, _QUERIES, *_OVERRIDES)):
        wrapped = add(wrapped)
    return wrapped


def override(
    config: RunConfig,
    *,
    name: str | None,
    limit: int | None = None,
    queries: Path | None = None,
    judge: str | None = None,
    base_url: str | None = None,
) -> RunConfig:
    """Return the config with the command line's overrides."""
    from rocketeval.prices import with_prices

    def given(**values: Any) -> dict[str, Any]:
        return {key: value for key, value in values.items() if value is not None}

    ids = None if queries is None else queries.absolute()
    part = [] if limit is None else [f"first-{limit}"]
    part += [] if queries is None else [queries.stem]
    changed = config.model_copy(
        update={
            "benchmark": config.benchmark.model_copy(update=given(limit=limit, queries=ids)),
            "judge": config.judge.model_copy(update=given(model=judge, base_url=base_url)),
            # A trial on some queries must not overwrite the files of the full run.
            "name": name or "-".join([config.name, *part]),
        }
    )
    return with_prices(changed)


_EVALUATOR = option(
    "--evaluator",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    section=JUDGE,
    help="Grade with an evaluator that `rocketeval evolve` trained, instead of checklists; "
    "overrides the config's.",
)


def with_evaluator(verb: Verb) -> Verb:
    """Add --evaluator, which overrides the config's evaluator."""

    @wraps(verb)
    def command(settings: RunConfig, evaluator: Path | None, **own: Any) -> Any:
        if evaluator is not None:
            settings = settings.model_copy(update={"evaluator": evaluator.absolute()})
        return verb(settings, **own)

    return _EVALUATOR(command)


def existing(what: Path) -> Path:
    """Return WHAT; raise ConfigError if it does not exist or is the data of a config."""
    if not what.exists() and what != DEFAULT_CONFIG:
        raise ConfigError(
            f"{what} does not exist.",
            hint="Give a config, a run directory, a benchmark folder or a checklist file.",
        )
    written = _config_of(what)
    if what.is_file() and written.is_file():
        from rocketeval.config import load_config

        # A checklist file may have the name of another data file.
        if load_config(written).benchmark.path.resolve() == what.resolve():
            _refuse_data(what)
    return what


def own_config(what: Path, name: str | None) -> RunConfig | None:
    """Load WHAT as a config; return None for a benchmark folder or a checklist file."""
    from rocketeval.checklists.checklist_file import is_checklist_file

    if what.is_dir() or what.suffix in NO_CONFIG or is_checklist_file(what):
        return None
    config = loaded(what)
    return config.model_copy(update={"name": name}) if name else config


_FORMAT = (
    option("--format", "form", metavar="NAME", section=DATA, help="Format; default: detected."),
    option(
        "--column",
        "columns",
        multiple=True,
        metavar="PART=NAME",
        section=DATA,
        help="Column of a part of a table, such as query=question; repeat for more.",
    ),
    option(
        "--candidates",
        metavar="A,B",
        section=DATA,
        help="Columns of a table with one column per candidate.",
    ),
    option(
        "--skip-bad", is_flag=True, section=DATA, help="Leave out rows with a mistake; count them."
    ),
)
_SOURCE = (
    option(
        "--author",
        metavar="MODEL",
        section=DATA,
        help="LLM that writes a checklist per query, if the data has none.",
    ),
    option(
        "--author-url",
        metavar="URL",
        section=DATA,
        help="URL of the author's server; default: $OPENAI_BASE_URL, then the OpenAI API.",
    ),
    option(
        "--checklist",
        metavar="FILE",
        section=DATA,
        help="Checklists instead of an author: a .yaml or .csv file, or `general`, seven items for "
        "all queries.",
    ),
)


def with_format(verb: Verb) -> Verb:
    """Add the options about the format of a data file."""
    for add in reversed(_FORMAT):
        verb = add(verb)
    return verb


def with_source(verb: Verb) -> Verb:
    """Add the options about the source of the checklists."""
    for add in reversed(_SOURCE):
        verb = add(verb)
    return verb
