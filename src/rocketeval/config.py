"""RunConfig: one YAML, validated once; unknown keys are refused with the nearest valid name."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path, PureWindowsPath
from typing import Annotated, Any, Literal, Self, TypeVar

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from rocketeval.errors import ConfigError
from rocketeval.resources import ENDINGS, explain_mistakes, read_yaml

__all__ = [
    "AuthorConfig",
    "BenchmarkConfig",
    "DistributedConfig",
    "EngineConfig",
    "EvolveConfig",
    "JudgeConfig",
    "MethodConfig",
    "PriceConfig",
    "RankingConfig",
    "RunConfig",
    "ScorerConfig",
    "Section",
    "load_config",
    "parse_config",
    "parse_options",
]

NOT_PLAIN = "the run's name {name!r} is not a plain folder name."


class Section(BaseModel):
    """A part of the config: frozen, no unknown keys."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, hide_input_in_errors=True, use_attribute_docstrings=True
    )


class NoOptions(Section):
    """The options of an implementation that has none."""


Options = TypeVar("Options", bound=Section)
FILE_TYPES = (".yaml", ".yml", ".csv")


def _from_config(path: Path, info: ValidationInfo) -> Path:
    """Return a path as it is meant from the config's folder, which is the validation's context."""
    return info.context / path if info.context else path


def _file_or_name(name: str, info: ValidationInfo) -> str:
    return str(info.context / name) if info.context and name.endswith(FILE_TYPES) else name


def _folder_or_uri(folder: str, info: ValidationInfo) -> str:
    return str(info.context / folder) if info.context and "://" not in folder else folder


ConfigPath = Annotated[Path, AfterValidator(_from_config)]
"""A path that is relative to the config file."""
ConfigFile = Annotated[str, AfterValidator(_file_or_name)]
"""A file relative to the config file, or the name of something packaged."""
ConfigFolder = Annotated[str, AfterValidator(_folder_or_uri)]
"""A folder relative to the config file, or a URI."""


class BenchmarkConfig(Section):
    """Where queries, responses and gold come from."""

    kind: str = "jsonl"
    """Format: jsonl, rocketeval, mt_bench, or an installed plugin's name."""
    path: ConfigPath
    """The benchmark's folder, relative to the config file."""
    options: dict[str, object] = {}
    """Settings of the format itself."""
    candidates: Annotated[list[str], Field(min_length=1)] | None = None
    """Judge only these candidates; all of them when absent."""
    limit: Annotated[int, Field(gt=0)] | None = None
    """Use only the first so many queries."""


def _without_password(url: str) -> str:
    if "@" in url.partition("//")[2].partition("/")[0]:
        raise ValueError("it holds a user name or password, which belong in the environment.")
    return url


class EngineConfig(Section):
    """A judge's or author's endpoint. Keys come from the environment, never from this file."""

    engine: str = "openai"
    """openai (any OpenAI-compatible server), openai_batch, scripted, or a plugin's name."""
    model: str
    """Model name as the endpoint knows it."""
    base_url: Annotated[str, AfterValidator(_without_password)] | None = None
    """Such as http://127.0.0.1:8000/v1; default $OPENAI_BASE_URL, then the OpenAI API."""
    api_key_env: str = "OPENAI_API_KEY"
    """Name of the environment variable that holds the key."""
    transport: str = "auto"
    """How an HTTP server is asked; auto takes the fastest exact way it offers, `chat` any has."""
    session_header: str | None = "x-session-id"
    """Header that tells a router to keep a response's items on one replica; null for none."""
    concurrency: Annotated[int, Field(gt=0)] | None = None
    """Responses in flight at most; what suits the engine when absent (16 or 32 over HTTP)."""
    timeout: Annotated[float, Field(gt=0)] = 120.0
    """Seconds to wait for one request, or longer while the server answers others."""
    patience: Annotated[float, Field(ge=0)] = 300.0
    """Seconds to keep retrying while nobody is answered; a server can restart."""
    top_logprobs: Annotated[int, Field(ge=1)] = 20
    """Tokens to ask log-probabilities for; 20 is what most servers allow."""
    min_mass: Annotated[float, Field(ge=0, le=1)] = 0.1
    """An answer with less probability on yes and no together is not used."""
    max_width: Annotated[float, Field(ge=0, le=1)] = 0.1
    """A truncated answer with a wider proven interval is not used."""
    labels: tuple[str, ...] = ("Yes", "No")
    """Words the judge answers with, best first; a grading method sets them."""
    extra_body: dict[str, object] = {}
    """Added to every request, for settings only this server knows."""
    options: dict[str, object] = {}
    """Settings of a plugin engine."""

    @field_validator("api_key_env")
    @classmethod
    def _names_a_variable(cls, value: str) -> str:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", value):
            raise ValueError(
                "this is not the name of an environment variable. Put the key into one, "
                "and its name here."
            )
        return value

    @field_validator("labels")
    @classmethod
    def _can_be_told_apart(cls, labels: tuple[str, ...]) -> tuple[str, ...]:
        if len(labels) < 2:
            raise ValueError("a judge needs at least two words to choose from.")
        for label in labels:
            if not label or label != label.strip():
                raise ValueError(f"{label!r} is blank, or has space around it.")
        if len({label.casefold() for label in labels}) < len(labels):
            raise ValueError("two of the words differ in nothing but their case.")
        return labels


class PriceConfig(Section):
    """Money per million tokens; without it, or a table in `prices`, no cost is shown."""

    prompt: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    """Prompt tokens."""
    completion: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    """Written tokens."""
    cached: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    """Prompt tokens taken from the prefix cache; the prompt price when absent."""
    currency: str = ""
    """Shown beside the money, such as USD."""


class JudgeConfig(EngineConfig):
    """The lightweight LLM that answers the items."""

    template: ConfigPath | None = None
    """Your own grading prompt; the packaged one when absent."""
    price: PriceConfig | None = None


class MethodConfig(Section):
    """How the judge is asked about a response."""

    kind: str = "checklist"
    """checklist (RocketEval), its ablations fixed, sequential, all_yes, all_no, multi_item, or a
    baseline: direct, reference, cot, analysis, generic, criterion, rubric, perplexity."""
    options: dict[str, object] = {}
    """Settings of this method."""


class AuthorConfig(Section):
    """Who writes the checklists."""

    kind: str = "imported"
    """imported (from the benchmark), instance (a strong LLM writes one per query), dimension (one
    for all queries, after CheckEval), file (an edited export), fixed (the `items` in its options),
    or a plugin."""
    engine: EngineConfig | None = None
    """The author LLM; needed by kind instance, and by the steps of kind dimension."""
    template: ConfigPath | None = None
    """Your own author prompt; the packaged one when absent. It shows {{history}}, {{query}} and
    {{reference}}, and may name {{least}} and {{most}}, how many items it asks for."""
    min_items: Annotated[int, Field(ge=1)] = 3
    """A shorter checklist is refused. The packaged prompt asks for 5 to 10 items as far as
    `min_items` and `max_items` accept these, else for all they accept. For kind dimension, each
    list that the author adds."""
    max_items: Annotated[int, Field(ge=1)] = 12
    """A longer checklist is refused."""
    attempts: Annotated[int, Field(ge=1)] = 3
    """How often a checklist is asked for at most, when it cannot be read; the author is shown what
    it wrote and what is wrong with it."""
    price: PriceConfig | None = None
    options: dict[str, object] = {}
    """Settings of this kind of author. A `file` (.yaml, .csv) is relative to the config file."""

    @field_validator("options")
    @classmethod
    def _finds_its_file(cls, options: dict[str, object], info: ValidationInfo) -> dict[str, Any]:
        file = options.get("file")
        return {**options, "file": _file_or_name(file, info)} if isinstance(file, str) else options

    @model_validator(mode="after")
    def _some_length_fits(self) -> Self:
        if self.min_items > self.max_items:
            raise ValueError("min_items is above max_items, so that no checklist would do.")
        return self


class ScorerConfig(Section):
    """How answers become a score."""

    kind: str = "mean"
    """mean, hard (share of items answered yes), extra_trees, random_forest, pooled_ridge,
    pooled_logistic, isotonic, select (the best of several), or an installed plugin's name."""
    scale: tuple[float, float] = (1.0, 10.0)
    """The label scale that scores are given on."""
    missing: Literal["skip", "drop"] = "skip"
    """skip: a missing answer is left out of the mean; drop: it takes the response with it."""
    learn_from: Literal["labels", "votes"] = "labels"
    """The gold that a scorer with something to learn is fitted to."""
    fit_on: tuple[str, ...] | None = None
    """Candidates whose labels are learned from; all labelled ones but the held-out when absent."""
    hold_out: Annotated[float, Field(ge=0, lt=1)] = 0.3
    """Share of the labelled candidates that is kept from the scorer, to audit it on."""
    folds: Annotated[int, Field(ge=2)] = 5
    """Parts into which the gold is cut, so that whatever is learned from is scored by a fit that
    did not see it."""
    seed: int = 0
    """Seed of the split, the folds and the scorer; the same seed gives the same scores."""
    tie_margin: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    """Scores this close shall be what voters call a tie; `ranking.tie_margin` when absent."""
    fitted: ConfigPath | None = None
    """A saved scorer to use instead of fitting one."""
    options: dict[str, object] = {}
    """Settings of this kind of scorer."""

    @field_validator("scale")
    @classmethod
    def _goes_up(cls, scale: tuple[float, float]) -> tuple[float, float]:
        low, high = scale
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise ValueError("the scale must go from a low to a high number, such as [1, 10].")
        return scale


TIE_SHARE = 1.0 / 90.0
"""Share of the score scale within which two scores are a tie."""


class RankingConfig(Section):
    """How scores become ranks."""

    tie_margin: Annotated[float, Field(ge=0)] = 0.1
    """Scores closer than this are a tie; when absent, 1/90 of the length of `scorer.scale`, which
    is 0.1 on a scale from 1 to 10."""
    bootstrap: Annotated[int, Field(ge=50)] = 1000
    """Resamples of the queries behind every interval."""
    seed: int = 0
    """Seed of the resampling; the same seed gives the same intervals."""
    anchor: str | None = None
    """Candidate whose rating is put at `anchor_rating`; the mean of all is when absent."""
    anchor_rating: float = 1000.0
    """The rating of the anchor, or the mean rating."""
    rank_intervals: Literal["simultaneous", "pairwise"] = "simultaneous"
    """simultaneous: all rank intervals hold at once; pairwise: each holds on its own, and is
    narrower."""


class DistributedConfig(Section):
    """Where judging runs. Most runs need none of this: one machine feeds dozens of GPUs."""

    cluster: str | None = None
    """ray (a cluster at $RAY_ADDRESS, else one started here), ray://head:10001, or head:6379 on a
    machine of the cluster; this process alone when absent. The option --on wins."""
    staging: ConfigFolder | None = None
    """Folder that all machines share, or a URI such as s3://bucket/folder, for tasks and what
    comes of them; `distributed` in the run's directory when absent, which does for one machine."""
    actors: Annotated[int, Field(gt=0)] | tuple[int, int] = 1
    """Workers that judge, or the fewest and the most; each keeps `judge.concurrency` responses in
    flight, or holds a model of its own."""
    batch: Annotated[int, Field(gt=0)] = 64
    """Responses that a worker is handed at a time; they become durable together."""
    calls: Annotated[int, Field(gt=0)] = 2
    """Batches that a worker has in hand at once, so that it never waits for the next."""
    cpus: Annotated[float, Field(ge=0)] = 1.0
    """Ray's CPUs that a worker takes."""
    gpus: Annotated[float, Field(ge=0)] = 0.0
    """GPUs that a worker takes, for an engine inside it such as vllm."""
    replicas: tuple[Annotated[str, AfterValidator(_without_password)], ...] = ()
    """Base addresses of servers with the same judge, instead of `judge.base_url`; each batch goes
    to one, and to another if that one is gone."""

    @property
    def pool(self) -> tuple[int, int]:
        """The fewest and the most workers."""
        return (self.actors, self.actors) if isinstance(self.actors, int) else self.actors

    @field_validator("actors")
    @classmethod
    def _some_number_fits(cls, actors: int | tuple[int, int]) -> int | tuple[int, int]:
        if isinstance(actors, tuple) and not 0 < actors[0] <= actors[1]:
            raise ValueError("give the fewest and the most workers, such as [1, 8].")
        return actors


class EvolveConfig(Section):
    """How an evaluator learns from its mistakes (`rocketeval evolve`)."""

    gold: Literal["votes", "labels"] = "votes"
    """What it learns to predict: who wins between two responses, or the label of one."""
    asking: Literal["pairs", "each"] = "each"
    """pairs: the judge sees two responses at once, as in the paper; each: one response at a time,
    and a pair is told by the difference of the two answers, which costs fewer calls."""
    answers: Literal["choice", "graded", "both"] = "graded"
    """choice: yes or no (of two responses, A or B); graded: 1 to 5 (of two, -4 to 4); both: every
    perspective is asked either way, and those worth keeping stay."""
    seeds: tuple[ConfigFile, ...] = ("guidelines", "presets", "prompts")
    """Where it begins: packaged pools by name, or files (.yaml) of your own, relative to the config
    file."""
    guidelines: ConfigPath | None = None
    """Your annotation guidelines as a text file; the optimizer takes them apart."""
    optimizer: EngineConfig | None = None
    """The strong LLM that looks at mistakes and proposes perspectives; without one, only the seeds
    and what people add to the pool are there to choose from."""
    price: PriceConfig | None = None
    """Of the optimizer."""
    attempts: Annotated[int, Field(ge=1)] = 3
    """How often the optimizer is asked for a list at most, when it cannot be read."""
    rounds: Annotated[int, Field(ge=0)] = 3
    """Rounds of evolution at most; 0 fits an evaluator to the seeds."""
    patience: Annotated[int, Field(ge=1)] = 1
    """Rounds in a row without a gain in validation, after which it stops."""
    batch: Annotated[int, Field(ge=1)] = 6
    """Mistakes that the optimizer is shown at a time."""
    batches: Annotated[int, Field(ge=0)] = 4
    """How many such batches it is shown in a round."""
    deepen: Annotated[int, Field(ge=0)] = 4
    """Perspectives that a round puts into other words."""
    broaden: Annotated[int, Field(ge=0)] = 4
    """Perspectives that a round adds which ask about something new."""
    most_about_responses: Annotated[int, Field(ge=1)] = 50
    """Response-dependent perspectives that are kept."""
    most_about_queries: Annotated[int, Field(ge=0)] = 32
    """Response-independent perspectives that are kept; 0 leaves out experts."""
    experts: Annotated[tuple[Annotated[int, Field(ge=1)], ...], Field(min_length=1)] = (1, 2, 3, 4)
    """Numbers of experts to choose from by validation."""
    share: Annotated[float, Field(gt=0, lt=1)] = 0.4
    """Share of the queries whose mistakes the optimizer may see; figures rest on the others."""
    folds: Annotated[int, Field(ge=2)] = 5
    """Parts into which queries are cut, so that no figure rests on gold that was learned from."""
    search: Literal["short", "paper"] = "short"
    """Settings of the experts' forests that are tried: twelve, or all 96 of the paper."""
    max_calls: Annotated[int, Field(ge=1)] | None = None
    """Questions to the judge and requests to the optimizer, over all commands, after which no
    round begins."""
    seed: int = 0
    """Seed of the split, the folds and the forests; the same seed gives the same evaluator."""

    @field_validator("optimizer")
    @classmethod
    def _finds_its_texts(
        cls, optimizer: EngineConfig | None, info: ValidationInfo
    ) -> EngineConfig | None:
        texts = optimizer.options.get("texts") if optimizer else None
        if optimizer is None or not isinstance(texts, str) or not info.context:
            return optimizer
        options = {**optimizer.options, "texts": str(info.context / texts)}
        return optimizer.model_copy(update={"options": options})


class RunConfig(Section):
    """Everything one run needs."""

    name: str = "run"
    """Name of the run; its directory is `output/name`."""
    benchmark: BenchmarkConfig
    judge: JudgeConfig
    author: AuthorConfig = AuthorConfig()
    method: MethodConfig = MethodConfig()
    scorer: ScorerConfig = ScorerConfig()
    ranking: RankingConfig = RankingConfig()
    distributed: DistributedConfig = DistributedConfig()
    evolve: EvolveConfig = EvolveConfig()
    evaluator: ConfigPath | None = None
    """An evaluator that `rocketeval evolve` made, to judge with: its perspectives take the place of
    checklists, its experts that of the scorer."""
    output: Annotated[ConfigPath, Field(validate_default=True)] = Path("runs")
    """Directory that holds runs, relative to the config file."""
    cache: Annotated[ConfigPath | None, Field(validate_default=True)] = Path("runs/.cache")
    """Judgments shared between runs; null switches it off."""
    prices: ConfigPath | None = None
    """YAML table of prices by model name; a `price` in this file wins over it."""
    max_cost: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """Money one command may spend on judge and author, or optimizer, together; it stops before it
    spends more."""

    @model_validator(mode="after")
    def _margin_follows_the_scale(self) -> Self:
        if "tie_margin" not in self.ranking.model_fields_set:
            margin = default_tie_margin(self.scorer.scale)
            ranking = self.ranking.model_copy(update={"tie_margin": margin})
            # The section stays unset: what was given and what follows from it remain apart.
            ranking.__pydantic_fields_set__.discard("tie_margin")
            object.__setattr__(self, "ranking", ranking)
        return self

    @field_validator("name")
    @classmethod
    def _stays_in_output(cls, name: str) -> str:
        if not _is_plain_folder(name):
            raise ValueError(NOT_PLAIN.format(name=name))
        return name

    @property
    def run_path(self) -> Path:
        """The run's own directory; ConfigError if the name was replaced by one that leaves it."""
        if not _is_plain_folder(self.name):
            raise ConfigError(NOT_PLAIN.format(name=self.name))
        return self.output / self.name


def default_tie_margin(scale: tuple[float, float]) -> float:
    """Return the score difference below which two responses tie, unless one is given.

    >>> default_tie_margin((1.0, 10.0)), default_tie_margin((0.0, 1.0))
    (0.1, 0.011111111)
    """
    low, high = scale
    return round((high - low) * TIE_SHARE, 9)


def with_tie_margin(config: RunConfig) -> RunConfig:
    """Return the config with the scorer's tie margin filled in from the ranking's."""
    if config.scorer.tie_margin is not None:
        return config
    scorer = config.scorer.model_copy(update={"tie_margin": config.ranking.tie_margin})
    return config.model_copy(update={"scorer": scorer})


def load_config(path: Path | str) -> RunConfig:
    """Return the config in the YAML file at `path`; relative paths start from its folder."""
    hint = "`rocketeval init` writes one to start from."
    if Path(path).suffix not in ENDINGS:
        hint += " To name a candidate or a query, use an option: see --help."
    raw = read_yaml(Path(path), "config", hint=hint)
    return parse_config(raw, where=Path(path))


def parse_config(raw: Any, *, where: Path | None = None) -> RunConfig:
    """Return `raw` (a mapping, as read from YAML) as a validated config."""
    origin = str(where) if where else "The config"
    if not isinstance(raw, dict):
        found = "is empty" if raw is None else "holds no settings (`name: value` lines)"
        raise ConfigError(
            f"{origin} {found}.", hint="`rocketeval init` writes a config to start from."
        )
    try:
        return RunConfig.model_validate(raw, context=where.parent.resolve() if where else None)
    except ValidationError as error:
        raise ConfigError(
            f"{origin} has a mistake:\n" + explain_mistakes(error, RunConfig)
        ) from None


def parse_options(raw: Mapping[str, object], kind: type[Options], where: str) -> Options:
    """Return an implementation's own settings, validated like the rest of the config."""
    try:
        return kind.model_validate(raw)
    except ValidationError as error:
        raise ConfigError(f"{where} has a mistake:\n" + explain_mistakes(error, kind)) from None


def dump_config(config: RunConfig) -> str:
    """Return the config as YAML, every setting written out."""
    return yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


def _is_plain_folder(name: str) -> bool:
    """Whether `name` is one visible folder on every system: no separator, drive or dot in front."""
    visible = name == name.strip() and name.isprintable() and not name.startswith(".")
    return bool(name) and visible and PureWindowsPath(name).name == name
