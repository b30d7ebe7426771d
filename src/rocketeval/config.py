"""The config of a run: a YAML file, validated once, in which unknown keys are errors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

import yaml
from pydantic import (
    AfterValidator,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from rocketeval.errors import ConfigError
from rocketeval.resources import ENDINGS, explain_mistakes, is_run, read_yaml
from rocketeval.settings import (
    AuthorSettings,
    ConfigFile,
    ConfigFolder,
    ConfigPath,
    EngineSettings,
    Few,
    Folds,
    Many,
    Margin,
    MethodSettings,
    ModelSection,
    NoOptions,
    Price,
    Seconds,
    Section,
    Seed,
    Some,
    UntilConfig,
    is_encodable,
    is_plain_folder,
    problem_in,
    redacted,
    variable_name,
    without_password,
)

__all__ = [
    "AuthorConfig",
    "BenchmarkConfig",
    "DistributedConfig",
    "EngineConfig",
    "EvolveConfig",
    "JudgeConfig",
    "MethodConfig",
    "NoOptions",
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
Options = TypeVar("Options", bound=Section)


class BenchmarkConfig(Section):
    """Source of queries, responses and reference data."""

    kind: str = "jsonl"
    """Format: jsonl, mt_bench, a rubric or data format (healthbench, table), or a plugin's name."""
    path: ConfigPath
    """The benchmark's folder or data file, relative to the config file."""
    options: dict[str, object] = Field(default_factory=dict)
    """Settings of the format."""
    candidates: Annotated[list[str], Field(min_length=1)] | None = None
    """Judge only these candidates; default: all."""
    limit: Annotated[int, Field(gt=0, le=10**9)] | None = None
    """Use only the first N queries."""
    queries: ConfigPath | None = None
    """File with one query id per line, such as that of `rocketeval anchors`; use only these."""
    collected: ConfigPath | None = None
    """File with labels and votes, read with the benchmark's; `view --label` adds to it."""


class EngineConfig(ModelSection):
    """The endpoint of a judge or author. Keys come from the environment, never from this file."""

    engine: str = "openai"
    """openai (any OpenAI-compatible server), openai_batch, scripted, or a plugin's name."""
    model: str
    """Model name on the endpoint, or the file or folder of a model that is loaded here."""
    base_url: Annotated[str, AfterValidator(without_password)] | None = None
    """URL such as http://127.0.0.1:8000/v1; default: $OPENAI_BASE_URL, then the OpenAI API."""
    api_key_env: Annotated[str, AfterValidator(variable_name)] = "OPENAI_API_KEY"
    """Name of the environment variable that holds the key."""
    transport: str = "auto"
    """Request format of an HTTP server; auto uses the fastest exact one, `chat` works on all."""
    session_header: str | None = "x-session-id"
    """Header by which a router keeps a response's items on one replica; null for none."""
    concurrency: Annotated[int, Field(gt=0, le=100_000)] | None = None
    """Maximum responses in flight; default: chosen by the engine (16 or 32 over HTTP)."""
    timeout: Annotated[Seconds, Field(gt=0)] = 120.0
    """Seconds to wait for one request, or longer while the server answers others."""
    patience: Seconds = 300.0
    """Seconds to keep retrying while no request is answered, such as during a restart."""
    top_logprobs: Annotated[int, Field(ge=1, le=100_000)] = 20
    """Number of tokens to request log-probabilities for; most servers allow 20."""
    min_mass: Annotated[float, Field(ge=0, le=1)] = 0.1
    """An answer with less total probability on yes and no is not used."""
    max_width: Annotated[float, Field(ge=0, le=1)] = 0.1
    """A truncated answer with a wider proven interval is not used."""
    labels: tuple[str, ...] = ("Yes", "No")
    """Words the judge answers with, best first; set by the grading method."""
    extra_body: dict[str, object] = Field(default_factory=dict)
    """Added to every request, for server-specific settings."""
    options: EngineSettings = Field(default_factory=dict)
    """Settings of a plugin engine."""

    @field_validator("labels")
    @classmethod
    def _are_distinct(cls, labels: tuple[str, ...]) -> tuple[str, ...]:
        if len(labels) < 2:
            raise ValueError("a judge needs at least two words to choose from.")
        for label in labels:
            if not label or label != label.strip():
                raise ValueError(f"{label!r} is blank, or has space around it.")
        if len({label.casefold() for label in labels}) < len(labels):
            raise ValueError("two of the words differ only in case.")
        return labels


class PriceConfig(Section):
    """Price per million tokens; without it, or a file in `prices`, no cost is shown."""

    prompt: Price
    """Price of prompt tokens."""
    completion: Price
    """Price of output tokens."""
    cached: Price | None = None
    """Price of cached prompt tokens; default: the prompt price."""
    currency: str = ""
    """Currency shown after amounts, such as USD."""


class JudgeConfig(EngineConfig):
    """The small LLM that answers the items."""

    template: ConfigPath | None = None
    """Your own grading prompt; default: the packaged one."""
    price: PriceConfig | None = None
    datamarking: bool = False
    """Join the words of each response by ^ in the prompt, so that requests in it look less like
    instructions; `rocketeval attack --datamarking` measures whether it helps."""
    canaries: Annotated[float, Field(ge=0, le=0.5)] = 0.01
    """Share of items asked again, to notice another model; 0: none. Not used on a Ray cluster."""


class MethodConfig(Section):
    """Grading method: how the judge is asked about a response."""

    kind: str = "checklist"
    """checklist (RocketEval), its ablations fixed, sequential, all_yes, all_no, multi_item, or a
    baseline: direct, reference, cot, analysis, generic, criterion, rubric, perplexity."""
    options: MethodSettings = Field(default_factory=dict)
    """Settings of the method."""


class AuthorConfig(Section):
    """Source of the checklists."""

    kind: str = "imported"
    """imported (from the benchmark), instance (a strong LLM writes one per query), dimension (one
    for all queries, after CheckEval), file (an edited export), fixed (the `items` in its options),
    or a plugin."""
    engine: EngineConfig | None = None
    """The author LLM; required by kind instance, and by the steps of kind dimension."""
    template: ConfigPath | None = None
    """Your own author prompt; default: the packaged one. Placeholders: {{history}}, {{query}},
    {{reference}}, and optionally {{least}} and {{most}}, the number of items to ask for."""
    min_items: Some = 3
    """A shorter checklist is rejected. The packaged prompt asks for 5 to 10 items, limited to the
    range of `min_items` and `max_items`. For kind dimension, the limits apply to each list that the
    author adds."""
    max_items: Some = 12
    """A longer checklist is rejected."""
    attempts: Annotated[int, Field(ge=1, le=100)] = 3
    """Maximum attempts per checklist; after an unreadable reply, the author sees its error."""
    price: PriceConfig | None = None
    options: AuthorSettings = Field(default_factory=dict)
    """Settings of the author's kind. A `file` (.yaml, .csv) is relative to the config file."""

    @model_validator(mode="after")
    def _some_length_fits(self) -> Self:
        if self.min_items > self.max_items:
            raise ValueError("min_items is above max_items, so no checklist would be accepted.")
        return self


class ScorerConfig(Section):
    """The scorer, which turns answers into scores."""

    kind: str = "mean"
    """mean, hard (share of items answered yes), points (weighted points over possible ones),
    extra_trees, random_forest, pooled_ridge, pooled_logistic, isotonic, select (the best of
    several), or an installed plugin's name."""
    scale: tuple[float, float] = (1.0, 10.0)
    """Scale of labels and scores."""
    missing: Literal["skip", "drop"] = "skip"
    """skip: leave a missing answer out of the mean; drop: leave out the whole response."""
    learn_from: Literal["labels", "votes"] = "labels"
    """Reference data that a learned scorer is fitted to."""
    fit_on: tuple[str, ...] | None = None
    """Candidates whose labels are used for fitting; default: all labeled ones not held out."""
    hold_out: Annotated[float, Field(ge=0, lt=1)] = 0.3
    """Share of the labeled candidates held out from fitting, for the audit."""
    folds: Folds = 5
    """Number of cross-validation folds; training data is scored out of fold."""
    seed: Seed = 0
    """Seed of the split, the folds and the scorer; the same seed gives the same scores."""
    tie_margin: Margin | None = None
    """Margin of a tie when learning from votes; default: `ranking.tie_margin`."""
    fitted: ConfigPath | None = None
    """A saved scorer to use instead of fitting one."""
    options: dict[str, object] = Field(default_factory=dict)
    """Settings of the scorer's kind."""

    @field_validator("scale")
    @classmethod
    def _goes_up(cls, scale: tuple[float, float]) -> tuple[float, float]:
        low, high = scale
        if not (-MOST_ON_SCALE <= low < high <= MOST_ON_SCALE):
            raise ValueError("the scale must go from a low to a high number, such as [1, 10].")
        return scale


MOST_ON_SCALE = 1e6
"""Largest label or score, positive or negative."""


class RankingConfig(Section):
    """The ranking, which turns scores into ratings and ranks."""

    tie_margin: Margin = 0.1
    """Scores closer than this are tied; default: 1/90 of the length of `scorer.scale`, which is 0.1
    on a scale from 1 to 10."""
    bootstrap: Annotated[int, Field(ge=50, le=100_000)] = 1000
    """Number of resamples of the queries for intervals."""
    seed: Seed = 0
    """Seed of the resampling; the same seed gives the same intervals."""
    anchor: str | None = None
    """Candidate whose rating is fixed at `anchor_rating`; default: the mean of all is."""
    anchor_rating: Annotated[float, Field(ge=-1e6, le=1e6)] = 1000.0
    """Rating of the anchor, or mean rating without one."""
    rank_intervals: Literal["simultaneous", "pairwise"] = "simultaneous"
    """simultaneous: all rank intervals hold at once; pairwise: each alone, and narrower."""


class DistributedConfig(Section):
    """Judging on a Ray cluster. Most runs do not need this: one machine feeds dozens of GPUs."""

    cluster: str | None = None
    """ray (a cluster at $RAY_ADDRESS, else one started here), ray://head:10001, or head:6379 on a
    machine of the cluster; default: this process only. The option --on overrides it."""
    staging: Annotated[ConfigFolder, AfterValidator(without_password)] | None = None
    """Folder shared by all machines, or a URI such as s3://bucket/folder, for tasks and results;
    default: `distributed` in the run directory, which suffices for one machine."""
    actors: Some | tuple[Some, Some] = 1
    """Number of workers, or minimum and maximum; each keeps `judge.concurrency` responses in
    flight, or holds its own model."""
    batch: Many = 64
    """Responses that a worker gets at a time; results are saved every two seconds, in any case."""
    calls: Some = 2
    """Batches per worker at the same time, so that it never waits for the next."""
    cpus: Annotated[float, Field(ge=0, le=10_000)] = 1.0
    """Ray CPUs per worker."""
    gpus: Annotated[float, Field(ge=0, le=10_000)] = 0.0
    """GPUs per worker, for an in-process engine such as vllm."""
    replicas: tuple[Annotated[str, AfterValidator(without_password)], ...] = ()
    """Base URLs of servers with the same judge, instead of `judge.base_url`; each batch goes to
    one, or to another if that one is unreachable."""

    @property
    def pool(self) -> tuple[int, int]:
        """Minimum and maximum number of workers."""
        return (self.actors, self.actors) if isinstance(self.actors, int) else self.actors

    @field_validator("actors")
    @classmethod
    def _some_number_fits(cls, actors: int | tuple[int, int]) -> int | tuple[int, int]:
        if isinstance(actors, tuple) and not 0 < actors[0] <= actors[1]:
            raise ValueError("give the minimum and maximum number of workers, such as [1, 8].")
        return actors


class EvolveConfig(Section):
    """Training of an evaluator from its mistakes (`rocketeval evolve`)."""

    gold: Literal["votes", "labels"] = "votes"
    """What it learns to predict: the winner of two responses, or the label of one."""
    asking: Literal["pairs", "each"] = "each"
    """pairs: the judge sees two responses together, as in the paper; each: one response per
    question, and a pair is decided by the difference of the answers, which needs fewer requests."""
    answers: Literal["choice", "graded", "both"] = "graded"
    """choice: yes or no (for two responses, A or B); graded: 1 to 5 (for two, -4 to 4); both: every
    perspective is asked both ways, and the useful ones are kept."""
    seeds: tuple[ConfigFile, ...] = ("guidelines", "presets", "prompts")
    """Initial perspectives: packaged pools by name, or your own files (.yaml), relative to the
    config file."""
    guidelines: ConfigPath | None = None
    """Your annotation guidelines as a text file; the optimizer turns them into perspectives."""
    optimizer: EngineConfig | None = None
    """The strong LLM that analyzes mistakes and proposes perspectives; without one, only the seeds
    and perspectives that people add to the pool are used."""
    price: PriceConfig | None = None
    """Price of the optimizer's tokens."""
    attempts: Annotated[int, Field(ge=1, le=100)] = 3
    """Maximum requests for one list of perspectives, if replies are unreadable."""
    rounds: Few = 3
    """Maximum number of rounds; 0 fits an evaluator to the seeds."""
    patience: Some = 1
    """Stop after this many rounds in a row without a gain in validation."""
    batch: Some = 6
    """Mistakes per request to the optimizer."""
    batches: Few = 4
    """Batches of mistakes per round."""
    deepen: Few = 4
    """Perspectives to rephrase per round."""
    broaden: Few = 4
    """Perspectives on new aspects to add per round."""
    most_about_responses: Some = 50
    """Maximum number of response-dependent perspectives."""
    most_about_queries: Few = 32
    """Maximum number of response-independent perspectives; with 0 there are no experts."""
    experts: Annotated[tuple[Some, ...], Field(min_length=1)] = (1, 2, 3, 4)
    """Numbers of experts to choose from by validation."""
    share: Annotated[float, Field(gt=0, lt=1)] = 0.4
    """Share of the queries used for training; the others are held out for the figures."""
    folds: Folds = 5
    """Number of cross-validation folds of the queries."""
    search: Literal["short", "paper"] = "short"
    """Forest settings to search: twelve, or all 96 of the paper."""
    max_calls: Annotated[int, Field(ge=1, le=10**12)] | None = None
    """Total questions to the judge and requests to the optimizer, over all commands, after which no
    new round starts."""
    seed: Seed = 0
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
    """The config of one run."""

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
    """File of an evaluator trained by `rocketeval evolve`; its perspectives replace the checklists,
    and its experts the scorer."""
    output: Annotated[ConfigPath, Field(validate_default=True)] = Path("runs")
    """Folder of runs, relative to the config file."""
    cache: Annotated[ConfigPath | None, Field(validate_default=True)] = Path("runs/.cache")
    """Cache of judgments shared between runs; null disables it."""
    prices: ConfigPath | None = None
    """YAML file of prices by model name; a `price` in this config overrides it."""
    max_cost: Annotated[float, Field(gt=0, le=1e12, allow_inf_nan=False)] | None = None
    """Maximum money that one command may spend on judge, author and optimizer together; it stops
    before it would spend more."""
    until: UntilConfig | None = None
    """Question after whose answer grading stops, such as `best`; default: grade everything."""

    @model_validator(mode="after")
    def _margin_follows_the_scale(self) -> Self:
        if "tie_margin" not in self.ranking.model_fields_set:
            margin = default_tie_margin(self.scorer.scale)
            ranking = self.ranking.model_copy(update={"tie_margin": margin})
            ranking.__pydantic_fields_set__.discard("tie_margin")
            object.__setattr__(self, "ranking", ranking)
        return self

    @field_validator("name")
    @classmethod
    def _stays_in_output(cls, name: str) -> str:
        if not is_plain_folder(name):
            raise ValueError(NOT_PLAIN.format(name=name))
        return name

    @property
    def run_path(self) -> Path:
        """The run directory; raises ConfigError if the name is not a plain folder name."""
        if not is_plain_folder(self.name):
            raise ConfigError(NOT_PLAIN.format(name=self.name))
        return self.output / self.name


def default_tie_margin(scale: tuple[float, float]) -> float:
    """Return the default tie margin: 1/90 of the scale.

    >>> default_tie_margin((1.0, 10.0)), default_tie_margin((0.0, 1.0))
    (0.1, 0.011111111)
    """
    low, high = scale
    return round((high - low) / 90.0, 9)


def with_tie_margin(config: RunConfig) -> RunConfig:
    """Return the config with the scorer's tie margin filled in from the ranking's."""
    if config.scorer.tie_margin is not None:
        return config
    scorer = config.scorer.model_copy(update={"tie_margin": config.ranking.tie_margin})
    return config.model_copy(update={"scorer": scorer})


def load_config(path: Path | str) -> RunConfig:
    """Return the config of a YAML file or run directory; relative paths start from its folder."""
    path = Path(path, "run.yaml") if is_run(Path(path)) else Path(path)
    hint = "`rocketeval init` writes a config to start from."
    if path.suffix not in ENDINGS:
        hint += " To name a candidate or a query, use an option: see --help."
    config = parse_config(read_yaml(path, "config", hint=hint), where=path)
    run = path.parent.resolve()  # It may have been moved or copied.
    if path.name == "run.yaml" and is_run(run):
        config = config.model_copy(update={"output": run.parent, "name": run.name})
    return config


def parse_config(raw: Any, *, where: Path | None = None) -> RunConfig:
    """Return `raw` (a mapping, as read from YAML) as a validated config."""
    origin = str(where) if where else "The config"
    if not isinstance(raw, dict):
        found = "is empty" if raw is None else "contains no settings (`name: value` lines)"
        raise ConfigError(
            f"{origin} {found}.", hint="`rocketeval init` writes a config to start from."
        )
    if where is not None and not is_encodable(str(where.resolve())):
        problem = "the name of its folder is not valid Unicode text"
        raise ConfigError(f"{ascii(origin)[1:-1]} cannot be used: {problem}.")
    return parse_options(raw, RunConfig, origin, where.parent.resolve() if where else None)


def parse_options(
    raw: Mapping[str, object], kind: type[Options], where: str, folder: Path | None = None
) -> Options:
    """Return settings, validated; relative paths start from `folder`."""
    problem = problem_in(raw)
    if problem is not None:
        raise ConfigError(f"{where} cannot be used: {problem}.")
    try:
        return kind.model_validate(raw, context=folder)
    except ValidationError as error:
        raise ConfigError(
            f"{where} has a mistake:\n" + explain_mistakes(error, kind, raw)
        ) from None


def dump_config(config: RunConfig) -> str:
    """Return the config as YAML, with every setting; values of secret names are hidden."""
    settings = redacted(config.model_dump(mode="json"))
    for section, name in ((settings, "until"), (settings["benchmark"], "collected")):
        if section[name] is None:  # Runs without them keep their files.
            del section[name]
    return yaml.safe_dump(settings, sort_keys=False, allow_unicode=True)
