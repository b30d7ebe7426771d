"""RunConfig: one YAML, validated once; unknown keys are refused with the nearest valid name."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rocketeval.errors import ConfigError
from rocketeval.registry import nearest


class Section(BaseModel):
    """A part of the config: frozen, no unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class BenchmarkConfig(Section):
    """Where queries, responses and gold come from."""

    kind: str = "jsonl"
    """Format: jsonl, rocketeval, mt_bench, or an installed plugin's name."""
    path: Path
    """File or directory, relative to the config file."""
    options: dict[str, Any] = {}
    """Settings of the format itself."""
    candidates: list[str] | None = None
    """Judge only these candidates; all of them when absent."""
    limit: Annotated[int, Field(gt=0)] | None = None
    """Use only the first so many queries."""


class EngineConfig(Section):
    """A judge's or author's endpoint. Keys come from the environment, never from this file."""

    engine: str = "openai"
    """openai (any OpenAI-compatible server), scripted, or an installed plugin's name."""
    model: str
    """Model name as the endpoint knows it."""
    base_url: str | None = None
    """Such as http://127.0.0.1:8000/v1; default $OPENAI_BASE_URL, then the OpenAI API."""
    api_key_env: str = "OPENAI_API_KEY"
    """Name of the environment variable that holds the key."""
    concurrency: Annotated[int, Field(gt=0)] = 8
    """Responses in flight at most."""
    timeout: Annotated[float, Field(gt=0)] = 120.0
    """Seconds to wait for one request."""
    patience: Annotated[float, Field(ge=0)] = 60.0
    """Seconds to keep retrying one request before it counts as failed."""
    top_logprobs: Annotated[int, Field(ge=1)] = 20
    """Tokens to ask log-probabilities for; 20 is what most servers allow."""
    min_mass: Annotated[float, Field(ge=0, le=1)] = 0.1
    """An answer with less probability on yes and no together is not used."""
    max_width: Annotated[float, Field(ge=0, le=1)] = 0.1
    """A truncated answer with a wider proven interval is not used."""
    extra_body: dict[str, Any] = {}
    """Added to every request, for settings only this server knows."""
    options: dict[str, Any] = {}
    """Settings of a plugin engine."""


class PriceConfig(Section):
    """Money per million tokens, to show cost."""

    prompt: Annotated[float, Field(ge=0)] = 0.0
    completion: Annotated[float, Field(ge=0)] = 0.0
    cached: Annotated[float, Field(ge=0)] | None = None
    """Prompt tokens taken from the prefix cache; the prompt price when absent."""


class JudgeConfig(EngineConfig):
    """The lightweight LLM that answers the items."""

    template: Path | None = None
    """Your own grading prompt; the packaged one when absent."""
    price: PriceConfig = PriceConfig()


class AuthorConfig(Section):
    """Who writes the checklists."""

    kind: str = "imported"
    """imported (from the benchmark), instance (a strong LLM writes one per query), or a plugin."""
    engine: EngineConfig | None = None
    """The author LLM; needed by kind instance."""
    template: Path | None = None
    """Your own author prompt; the packaged one when absent."""
    min_items: Annotated[int, Field(ge=1)] = 3
    max_items: Annotated[int, Field(ge=1)] = 12
    attempts: Annotated[int, Field(ge=1)] = 3
    """How often an unparsable checklist is asked for again."""
    price: PriceConfig = PriceConfig()
    options: dict[str, Any] = {}


class ScorerConfig(Section):
    """How answers become a score."""

    kind: str = "mean"
    scale: tuple[float, float] = (1.0, 10.0)
    """The label scale that scores are given on."""
    missing: Literal["skip", "drop"] = "skip"
    """skip: a missing answer is left out of the mean; drop: it takes the response with it."""
    options: dict[str, Any] = {}


class RankingConfig(Section):
    """How scores become ranks."""

    tie_margin: Annotated[float, Field(ge=0)] = 0.1
    """Scores closer than this are a tie."""
    bootstrap: Annotated[int, Field(ge=0)] = 1000
    """Resamples of the queries behind every interval."""
    seed: int = 0


class RunConfig(Section):
    """Everything one run needs."""

    name: str = "run"
    """Name of the run; its directory is `output/name`."""
    benchmark: BenchmarkConfig
    judge: JudgeConfig
    author: AuthorConfig = AuthorConfig()
    scorer: ScorerConfig = ScorerConfig()
    ranking: RankingConfig = RankingConfig()
    output: Path = Path("runs")
    """Directory that holds runs, relative to the config file."""
    cache: Path | None = Path("runs/.cache")
    """Judgments shared between runs; null switches it off."""

    @property
    def run_path(self) -> Path:
        """The run's own directory."""
        return self.output / self.name


def load_config(path: Path | str) -> RunConfig:
    """Return the config in the YAML file at `path`; relative paths start from its folder."""
    path = Path(path)
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(
            f"Cannot read the config {path}: {error.strerror}.",
            hint="`rocketeval init` writes one to start from.",
        ) from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is not valid YAML: {error}") from None
    return parse_config(raw, where=path)


def parse_config(raw: Any, *, where: Path | None = None) -> RunConfig:
    """Return `raw` (a mapping, as read from YAML) as a validated config."""
    origin = str(where) if where else "The config"
    if not isinstance(raw, dict):
        raise ConfigError(f"{origin} must be a mapping of settings.")
    try:
        config = RunConfig.model_validate(raw)
    except ValidationError as error:
        raise ConfigError(f"{origin} has a mistake:\n" + _explain(error)) from None
    if any(part in ("", ".", "..") for part in [config.name]) or "/" in config.name:
        raise ConfigError(f"{origin}: the run's name {config.name!r} is not a plain folder name.")
    return _resolve(config, where.parent.resolve()) if where else config


def dump_config(config: RunConfig) -> str:
    """Return the config as YAML, every setting written out."""
    return yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


def _resolve(config: RunConfig, folder: Path) -> RunConfig:
    def absolute(path: Path | None) -> Path | None:
        return None if path is None else folder / path

    return config.model_copy(
        update={
            "benchmark": config.benchmark.model_copy(
                update={"path": folder / config.benchmark.path}
            ),
            "judge": config.judge.model_copy(update={"template": absolute(config.judge.template)}),
            "author": config.author.model_copy(
                update={"template": absolute(config.author.template)}
            ),
            "output": folder / config.output,
            "cache": absolute(config.cache),
        }
    )


def _explain(error: ValidationError) -> str:
    lines = []
    for mistake in error.errors(include_url=False):
        path = [str(part) for part in mistake["loc"]]
        where = ".".join(path)
        if mistake["type"] == "extra_forbidden":
            valid = list(_section_at(path[:-1]).model_fields)
            lines.append(f"  {where}: there is no such setting. {nearest(path[-1], valid)}")
        else:
            lines.append(f"  {where}: {mistake['msg']}")
    return "\n".join(lines)


def _section_at(path: list[str]) -> type[BaseModel]:
    section: type[BaseModel] = RunConfig
    for part in path:
        annotation = section.model_fields[part].annotation
        choices = [annotation, *getattr(annotation, "__args__", ())]
        section = next(
            choice for choice in choices if isinstance(choice, type) and issubclass(choice, Section)
        )
    return section
